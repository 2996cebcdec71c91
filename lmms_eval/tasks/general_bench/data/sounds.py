"""Items of audio comprehension (General-Bench specification §2.3, §4.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.drafts import Draft, Source
from lmms_eval.tasks.general_bench.data.forms import form_of
from lmms_eval.tasks.general_bench.data.media import media_of
from lmms_eval.tasks.general_bench.data.records import Record
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.prompts.text_tasks import LOWER_CASED

INTENT_PARTS = ("action", "object", "location")
"""Maps of the annotation's ``intent_label``, in the order of an answer's three class numbers."""
_SEPARATOR = ","
_BACKSLASHES = frozenset(map(find_task, ("Music Genre Classification", "Speech Command", "Vocal Technique Detection")))
"""Their paths are written with backslashes."""
_BIRD = find_task("Bird Sound Detection")
_NOTES = find_task("Note Qualities Analysis")
_INTENT = find_task("Intent Classification")
_YES_NO: Mapping[str, str] = MappingProxyType({"1": "Yes", "0": "No", "yes": "Yes", "no": "No"})


def read_sound_item(source: Source) -> Draft:
    """``input.audio_file`` below ``audios``, ``input.prompt``, ``output.text``.

    Raises:
        DataError: a key is missing or of another kind.
    """
    given = source.top.record("input")
    if source.facts in _BACKSLASHES and isinstance(given.values.get("audio_file"), str):
        straight = {**given.values, "audio_file": given.values["audio_file"].replace("\\", "/")}
        given = Record(straight, given.where)
    return Draft(
        form=form_of(source.facts),
        prompt=given.text("prompt"),
        media=media_of("audio", given, "audio_file", source.annotation),
        reference=_reference(source) if source.has_output else None,
    )


def _reference(source: Source) -> str | list[str]:
    if source.facts is _BIRD:
        return _yes_or_no(source.output)
    if source.facts is _INTENT:
        return _intent(source.output, source.annotation.head)
    answer = source.output.answer("text")
    if source.facts is _NOTES:
        return answer if isinstance(answer, str) else _SEPARATOR.join(answer)
    if source.facts in LOWER_CASED:
        return answer.lower() if isinstance(answer, str) else [one.lower() for one in answer]
    return answer


def _yes_or_no(output: Record) -> str:
    """Reads 1 as ``Yes``, any other number ``No``; the words stay."""
    value = output.values.get("text")
    if isinstance(value, int):
        return "Yes" if value == 1 else "No"
    found = _YES_NO.get(value.strip().casefold()) if isinstance(value, str) else None
    if found is None:
        raise output.wrong("text", "0, 1, Yes or No")
    return found


def _intent(output: Record, head: Mapping[str, Any]) -> str:
    """Reads three class numbers, each by its own map (the reference looks all three up in the first: a defect)."""
    value = output.values.get("text")
    numbers = re.split(r"[\s,]+", value.strip(" []()")) if isinstance(value, str) else value
    if not isinstance(numbers, list) or len(numbers) != len(INTENT_PARTS):
        raise output.wrong("text", "three class numbers (action, object, location)")
    labels = Record.of(head.get("intent_label"), f"{output.where}: the annotation's `intent_label`")
    return _SEPARATOR.join(_name(number, labels, part) for number, part in zip(numbers, INTENT_PARTS, strict=True))


def _name(number: object, labels: Record, part: str) -> str:
    """Finds a class's name by its number; maps are written from number to name, from name to number, or as a list."""
    if isinstance(number, bool) or not isinstance(number, int | str) or not str(number).isdigit():
        raise DataError(f"{labels.where}: {number!r:.80} is no class number")
    names = labels.values.get(part)
    if isinstance(names, list):
        names = {str(place): name for place, name in enumerate(names)}
    if not isinstance(names, Mapping):
        raise labels.wrong(part, "a map of class numbers and names")
    found = names.get(str(number))
    if isinstance(found, str):
        return found
    inverse = [name for name, value in names.items() if not isinstance(value, bool) and str(value) == str(number)]
    if not inverse:
        raise DataError(f"{labels.where}: `{part}` has no class {number!r:.80}")
    return str(inverse[0])
