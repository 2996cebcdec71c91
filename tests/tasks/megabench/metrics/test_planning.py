from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics.planning import PlanError, read_domain, read_plan, symbolic_planning_test
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


@pytest.mark.parametrize("plan", ["Plan:\n" + PLAN + "\nDone.", PLAN.replace("\n", "\r\n"), PLAN.split("\n")])
def test_plans_that_reach_the_goal(plan: Any) -> None:
    assert score(plan.replace("(wave)", "(wave)") if isinstance(plan, str) else plan) == 1


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("plan", [None, 5, {"plan": PLAN}, [1, 2]])
def test_other_types_are_no_plan(plan: Any) -> None:
    with pytest.raises(PlanError):
        read_plan(plan)


def test_long_plans_are_quick() -> None:
    with cpu_limit():
        assert score("(go hall yard)\n(wave)\n(go yard hall)\n" * 20_000) == 1
    with cpu_limit():
        assert score("(" * 1_000_000) == 0
