"""Effective requests of a run and the media that its model saw, as lines of text for ``lmms-eval show``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.run_reader.document import part_of

_MOST_NAMED = 4
_LONGEST = 400
"""Characters of a part that is shown."""
_DIGITS = 12
"""Of a hash that is shown."""


def asked_lines(document: Mapping[str, Any], task: str = "") -> list[str]:
    """Describe the requests of a run's tasks, or of one: options, prompts, limits of media, and the media as they were.

    Empty for results of earlier versions and of the family, which do not tell.
    """
    return [*_requests(document, task), *_ignored(document), *_media(document, task)]


def _requests(document: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """One block for all tasks with equal requests."""
    found: dict[str, list[str]] = {}
    told = part_of(document, "effective_requests")
    for task in told:
        if task == wanted or not wanted:
            found.setdefault(str(part_of(told, task).get("sha256")), []).append(task)
    for digest, tasks in found.items():
        yield f"requests of {_listed(tasks)} (sha256 {digest[:_DIGITS]}):"
        for part, value in part_of(told, tasks[0]).items():
            if part != "sha256":
                yield f"  {part}: {_shown(part, value)}"


def _ignored(document: Mapping[str, Any]) -> Iterator[str]:
    named = document.get("ignored_gen_kwargs")
    if isinstance(named, list) and named:
        yield f"asked without these options of --gen_kwargs (--allow_ignored): {', '.join(map(str, named))}"


def _media(document: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """One line for all tasks with equal media."""
    told = part_of(document, "sent_media")
    found: dict[str, list[str]] = {}
    for task in told:
        if task == wanted or not wanted:
            entry = part_of(told, task)
            parts = [f"{name} {_spread(entry[name])}" for name in entry if isinstance(entry[name], Mapping)]
            found.setdefault(f"{entry.get('documents')} documents, {', '.join(parts)}", []).append(task)
    for text, tasks in found.items():
        yield f"media of {_listed(tasks)} (min / median / max): {text}"


def _spread(value: Mapping[str, Any]) -> str:
    ends = [value.get(name) for name in ("min", "median", "max")]
    texts = [f"{end:g}" if isinstance(end, int | float) else "?" for end in ends]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _shown(part: str, value: Any) -> str:
    if part == "chat_template":
        return f"sha256 {str(value)[:_DIGITS]}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={json.dumps(item, ensure_ascii=False, default=str)}" for name, item in value.items())
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _listed(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else ""
    return f"{', '.join(tasks[:_MOST_NAMED])}{more}"
