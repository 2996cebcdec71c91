from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics.planning import (
    PlanError,
    read_domain,
    read_plan,
    symbolic_planning_test,
    symbolic_planning_test_fixed,
)
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import cpu_limit

DOMAIN = """(define (domain rooms)
 (:action go
  :parameters (?from - room ?to-room - room)
  :precondition (and (at ?from) (door ?from ?to-room) (not (locked ?to-room)))
  :effect (and (at ?to-room) (not (at ?from))))
 (:action wave
  :parameters ()
  :precondition (at yard)
  :effect (waved yard))
)"""
PROBLEM = """(define (problem p) (:init (at hall) (door hall yard) (door yard hall) (locked yard))
 (:goal (and (at hall) (waved yard) (not (at yard)))))"""
PLAN = "(go hall yard)\n(wave)\n(go yard hall)"


def score(plan: Any, problem: str = PROBLEM, domain: str = DOMAIN) -> float:
    return symbolic_planning_test(plan, {"domain_pddl": domain, "task_pddl": problem})


def test_actions_are_read() -> None:
    go = read_domain(DOMAIN)["go"]
    assert go.parameters == ("?from", "?to-room")
    assert go.preconditions == ("(at ?from)", "(door ?from ?to-room)", "(not (locked ?to-room))")
    assert (go.deletes, go.adds) == (("(at ?from)",), ("(at ?to-room)",))


@for_each("plan", ["Plan:\n" + PLAN + "\nDone.", PLAN.replace("\n", "\r\n"), PLAN.split("\n")])
def test_plans_that_reach_the_goal(plan: Any) -> None:
    assert score(plan.replace("(wave)", "(wave)") if isinstance(plan, str) else plan) == 1


@for_each(
    "plan",
    [
        "",
        "(wave)",
        "(go hall yard)",
        "(go hall cellar)",
        "(fly)",
        "(go hall)",
        "(",
        " " + PLAN,
        PLAN.replace(" ", "  "),
    ],
)
def test_plans_that_do_not(plan: str) -> None:
    assert score(plan) == 0


def test_negative_literals_are_not_enforced_but_their_text_is() -> None:
    assert score(PLAN) == 1  # the yard is locked
    assert score(PLAN, PROBLEM.replace("(locked yard)", "(not (locked yard))")) == 0


def test_goals_need_exactly_one_conjunction() -> None:
    assert score("", PROBLEM.replace("(and ", "(or ")) == 1
    with pytest.raises(PlanError):
        score("", PROBLEM + "(and )")


def test_a_domain_needs_two_actions() -> None:
    with pytest.raises(PlanError):
        score(PLAN, domain=DOMAIN.split("(:action wave")[0])


@for_each("plan", [None, 5, {"plan": PLAN}, [1, 2]])
def test_other_types_are_no_plan(plan: Any) -> None:
    with pytest.raises(PlanError):
        read_plan(plan)


def test_long_plans_are_quick() -> None:
    with cpu_limit():
        assert score("(go hall yard)\n(wave)\n(go yard hall)\n" * 20_000) == 1
    with cpu_limit():
        assert score("(" * 1_000_000) == 0


def fixed(plan: Any, problem: str = PROBLEM, domain: str = DOMAIN) -> float:
    return symbolic_planning_test_fixed(plan, {"domain_pddl": domain, "task_pddl": problem})


OPEN_PROBLEM = PROBLEM.replace("(locked yard)", "")


def test_where_nothing_negative_is_violated_both_agree() -> None:
    assert score(PLAN, OPEN_PROBLEM) == fixed(PLAN, OPEN_PROBLEM) == 1
    for plan in ("", "(wave)", "(go hall yard)", "(fly)", "(go hall)"):
        assert score(plan, OPEN_PROBLEM) == fixed(plan, OPEN_PROBLEM) == 0


def test_negative_preconditions_are_enforced_in_the_fixed_test() -> None:
    assert (score(PLAN), fixed(PLAN)) == (1, 0)  # the yard is locked
    denied = PROBLEM.replace("(locked yard)", "(not (locked yard))")
    assert (score(PLAN, denied), fixed(PLAN, denied)) == (0, 1)


def test_negative_goals_are_enforced_in_the_fixed_test() -> None:
    problem = OPEN_PROBLEM.replace("(not (at yard))", "(not (at hall))")
    assert (score(PLAN, problem), fixed(PLAN, problem)) == (1, 0)


SWITCH = """(define (domain lamp)
 (:action toggle :parameters (?x) :precondition (not (on ?x)) :effect (on ?x))
 (:action kill :parameters (?x) :precondition (on ?x) :effect (not (on ?x))))"""


def test_a_single_negative_literal_is_read_whole_in_the_fixed_test() -> None:
    lit = "(define (problem p) (:init (on a)) (:goal (and (on a))))"
    assert (score("(toggle a)", lit, SWITCH), fixed("(toggle a)", lit, SWITCH)) == (1, 0)
    dark = "(define (problem p) (:init (off a)) (:goal (and (on a))))"
    assert score("(toggle a)", dark, SWITCH) == fixed("(toggle a)", dark, SWITCH) == 1
    off = "(define (problem p) (:init (on a)) (:goal (and (not (on a)))))"
    assert fixed("(kill a)", off, SWITCH) == 1
    assert (score("", off, SWITCH), fixed("", off, SWITCH)) == (1, 0)


def test_domains_of_one_action_in_the_fixed_test() -> None:
    domain = DOMAIN.split("(:action wave", maxsplit=1)[0] + ")"
    problem = OPEN_PROBLEM.replace("(waved yard)", "")
    plan = "(go hall yard)\n(go yard hall)"
    with pytest.raises(PlanError):
        score(plan, problem, domain)
    assert fixed(plan, problem, domain) == 1
    assert fixed("(go hall yard)", problem, domain) == 0
    with pytest.raises(PlanError):
        fixed(plan, problem, "(define (domain empty))")


@for_each(("goal", "plan"), [("(waved yard)", "(go hall yard)\n(wave)"), ("(not (at hall))", "(go hall yard)")])
def test_goals_of_one_literal_in_the_fixed_test(goal: str, plan: str) -> None:
    problem = f"(define (problem p) (:init (at hall) (door hall yard))\n (:goal {goal}))"
    assert score("", problem) == 1  # no conjunction, no goal
    assert fixed("", problem) == 0
    assert score(plan, problem) == fixed(plan, problem) == 1


def test_conjunctions_elsewhere_do_not_confuse_the_fixed_test() -> None:
    problem = OPEN_PROBLEM + "\n(:constraints (and (always (at hall))))"
    with pytest.raises(PlanError):
        score(PLAN, problem)
    assert fixed(PLAN, problem) == 1
    with pytest.raises(PlanError):
        fixed("", "(define (problem p) (:init (at hall)))")
