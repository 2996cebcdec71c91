"""Recorded files beside which a corrected one stands: where ours may differ from the record.

Only at the paths at which the corrected file differs from it. Tasks are told apart by name, queries by position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tests.parity.adapters.megabench import same
from tests.parity.vectors import PASSED, Verdict, deviates, failed

Place = tuple[str | int, ...]
"""The keys that lead to a value."""


def tree(content: Any) -> Any:
    """Lists of tasks as mappings by name (a repeated one numbered), lists of queries as mappings by position."""
    if isinstance(content, dict):
        return {
            key: dict(enumerate(map(tree, value))) if key == "query_response" else tree(value)
            for key, value in content.items()
        }
    if not isinstance(content, list) or not all(isinstance(item, dict) and _name(item) for item in content):
        return content
    named: dict[str, Any] = {}
    for item in content:
        repeats = sum(_name(other) == _name(item) for other in named.values())
        named[f"{_name(item)}#{repeats + 1}" if repeats else _name(item)] = tree(item)
    return named


def _name(item: dict[str, Any]) -> str:
    return str(item.get("task_name") or item.get("name") or "")


def differences(one: Any, other: Any, place: Place = ()) -> Iterator[Place]:
    """The places at which two trees differ; of what only one of them has, the topmost."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        if not same(one, other):
            yield place
        return
    for key in [*one, *(key for key in other if key not in one)]:
        if key in one and key in other:
            yield from differences(one[key], other[key], (*place, key))
        else:
            yield (*place, key)


def superseded(found: Any, recorded: Any, allowed: Collection[Place], rule: str, file: str) -> Verdict:
    """A difference of two trees at or below an allowed place counts as the rule's deviation, any other fails."""
    places = list(differences(recorded, found))
    beyond = [place for place in places if not any(place[: len(start)] == start for start in allowed)]
    if beyond:
        return failed(f"{file}: differs from the record at {'/'.join(map(str, beyond[0]))}, the corrected one does not")
    return deviates(rule) if places else PASSED
