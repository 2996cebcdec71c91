"""A small interpreter of the PDDL subset of the planning tasks. All matching is on the text of literals.

It does not validate: types and negative literals are not enforced, as in the official evaluator. The ``fixed`` variant
enforces negative literals, and takes domains of one action and goals of one literal (scoring rules §3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.tasks.megabench.conversions.literals import ConversionError

_ACTION = "(:action"
_TYPE_NOTE = re.compile(r" - [\w-]+")
_PARAMETER = re.compile(r"\?[\w-]+")
_FILLED = re.compile(r"\?[\w-]+(?=.)", re.DOTALL)


class PlanError(ConversionError):
    """The domain, the problem or the plan cannot be read."""


class Action(Struct, frozen=True):
    """An action schema; literals are texts with ``?parameters``."""

    name: str
    parameters: tuple[str, ...]
    preconditions: tuple[str, ...]
    deletes: tuple[str, ...]
    adds: tuple[str, ...]

    def bind(self, arguments: Sequence[str]) -> Action:
        """The action with its parameters replaced, as many as it has."""
        values = dict(zip(self.parameters, arguments, strict=True))

        def fill(literals: tuple[str, ...]) -> tuple[str, ...]:
            # a parameter at the end of the text is kept, as nothing follows it
            return tuple(_FILLED.sub(lambda found: values.get(found[0], found[0]), literal) for literal in literals)

        return Action(self.name, (), fill(self.preconditions), fill(self.deletes), fill(self.adds))


def symbolic_planning_test(response: Any, context: Mapping[str, Any]) -> float:
    """1 if the plan can be executed and reaches the goal of ``task_pddl`` in ``domain_pddl``, else 0."""
    problem = context["task_pddl"]
    return _validate(response, read_domain(context["domain_pddl"]), problem, read_goals(problem), _holds)


def symbolic_planning_test_fixed(response: Any, context: Mapping[str, Any]) -> float:
    """``symbolic_planning_test`` with negative literals enforced, for domains and goals of any size."""
    problem = context["task_pddl"]
    actions = read_domain(context["domain_pddl"], repaired=True)
    return _validate(response, actions, problem, read_any_goals(problem), _truly_holds)


def _validate(
    response: Any,
    actions: Mapping[str, Action],
    problem: str,
    goals: Sequence[str],
    holds: Callable[[str, set[str]], bool],
) -> float:
    state = set(_groups_after(problem, "(:init"))
    bound: dict[str, Action] = {}
    for step in read_plan(response):
        if step not in bound:
            name, *arguments = step[1:-1].split(" ")
            if name not in actions or len(arguments) != len(actions[name].parameters):
                return 0.0
            bound[step] = actions[name].bind(arguments)
        if not all(holds(literal, state) for literal in bound[step].preconditions):
            return 0.0
        state.difference_update(bound[step].deletes)
        state.update(bound[step].adds)
    return float(all(holds(goal, state) for goal in goals))


def read_plan(response: Any) -> list[str]:
    """The lines (or the elements of a list) that start with a parenthesis in the first column, stripped."""
    if isinstance(response, str):
        response = response.split("\n")
    if not isinstance(response, list | tuple) or not all(isinstance(line, str) for line in response):
        raise PlanError("a plan is a text or a list of texts")
    return [line.strip() for line in response if line.startswith("(")]


def read_domain(domain: str, *, repaired: bool = False) -> dict[str, Action]:
    """The actions of a domain by name.

    The official reader takes domains from two actions on, and cuts a single negative literal at its first ``)``.
    """
    sections = domain.split(_ACTION)[1:]
    least = 1 if repaired else 2
    if len(sections) < least:
        raise PlanError(f"a domain has at least {least} actions")
    return {action.name: action for action in (_read_action(domain, section, repaired) for section in sections)}


def read_goals(problem: str) -> tuple[str, ...]:
    """The groups of the only ``(and`` in the problem; none without it."""
    count = problem.count("(and")
    if count > 1:
        raise PlanError("the problem has several conjunctions")
    return tuple(_groups_after(problem, "(and"))


def read_any_goals(problem: str) -> tuple[str, ...]:
    """The literals of the goal: those of its conjunction, or the only one."""
    goals = tuple(_groups_after(problem, "(:goal"))
    if len(goals) != 1:
        raise PlanError("the problem has no goal, or several")
    return tuple(_groups(goals[0][len("(and") :])) if re.match(r"\(and[\s()]", goals[0]) else goals


def _read_action(domain: str, section: str, repaired: bool) -> Action:
    words = section.split(None, 1)
    groups = list(_groups(section))
    if not words or len(groups) != 3:
        raise PlanError("an action has parameters, a precondition and an effect")
    name = words[0]
    body = domain[domain.index(f"{_ACTION} {name}") :]
    effects = _literals(body, ":effect", repaired)
    return Action(
        name=name,
        parameters=tuple(_PARAMETER.findall(groups[0])),
        preconditions=_literals(body, ":precondition", repaired),
        deletes=tuple(_negated(effect) for effect in effects if _is_negative(effect)),
        adds=tuple(effect for effect in effects if not _is_negative(effect)),
    )


def _literals(body: str, key: str, whole: bool) -> tuple[str, ...]:
    """The literals after ``key``: the clauses of an ``(and ...)``, or the text up to the first ``)``.

    ``whole``: a single literal ends with its own parenthesis.
    """
    position = body.find(key)
    start = body.find("(", position)
    if position < 0 or start < 0:
        raise PlanError(f"{key} is missing")
    if body.startswith("(and", start):
        clauses = _groups(body[start + len("(and") :])
        return tuple(_TYPE_NOTE.sub("", clause) for clause in clauses)
    if whole:
        return (next(_groups(body[start:]), ""),)
    end = body.find(")", start)
    return (body[start : end + 1],)


def _groups_after(text: str, opening: str) -> Iterator[str]:
    """Return the parenthesised groups inside the first ``opening``; empty if it is absent."""
    start = text.find(opening)
    return _groups(text[start + len(opening) :] if start >= 0 else "")


def _groups(text: str) -> Iterator[str]:
    """Balanced ``(...)`` at the top level, until a parenthesis closes what was open before the text."""
    depth = start = 0
    for match in re.finditer(r"[()]", text):
        if match.group() == "(":
            start = match.start() if depth == 0 else start
            depth += 1
        elif depth == 0:
            return
        else:
            depth -= 1
            if depth == 0:
                yield text[start : match.end()]


def _is_negative(literal: str) -> bool:
    return re.match(r"\(not[\s(]", literal) is not None  # a predicate may be named `not-on-ground`


def _negated(literal: str) -> str:
    """Return the literal that a negative one denies."""
    return next(_groups(literal[1:-1]), "")


def _holds(literal: str, state: set[str]) -> bool:
    """Check that positive literals are in the state; negative ones fail only if their exact text is."""
    return (literal in state) != _is_negative(literal)


def _truly_holds(literal: str, state: set[str]) -> bool:
    """Check that a literal holds; a negative one holds while its positive form is not in the state."""
    return _negated(literal) not in state if _is_negative(literal) else literal in state
