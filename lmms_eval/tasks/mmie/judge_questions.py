"""From a model's answer to the judge's questions, and from verdicts to how a sample came out."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.request import GeneratedImage
from lmms_eval.errors import MediaError
from lmms_eval.tasks.mmie.data import documents
from lmms_eval.tasks.mmie.data.records import Segment
from lmms_eval.tasks.mmie.judge_prompts import JudgePrompts, built_in, judge_question, load_prompts
from lmms_eval.tasks.mmie.scoring import read_score
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import View, build_view
from lmms_eval.tasks.yaml.judged import repeat_name
from lmms_eval.utils.picture_marks import count_marks, in_words

Outcome = Literal["scored", "unparsable", "skipped", "unscored"]
QUESTION = "mmie"
"""Name of the judge's question."""
NO_JUDGE = "no judge: give --judge_model"


@dataclass(frozen=True, slots=True)
class Judged:
    """How a sample came out."""

    outcome: Outcome
    score: int | None = None
    """Of the first asking."""
    repeats: tuple[int | None, ...] = ()
    """The score of every asking, where the judge was asked more than once."""
    reason: str = ""
    """Why there is no score."""


def prompts(file: str) -> JudgePrompts:
    """Read the judge's texts: those of ``--judge_prompts FILE``, else our own.

    Raises:
        DataError: the file cannot be read, or lacks a text.
    """
    return _prompts(file, os.stat(file).st_mtime_ns if file and os.path.exists(file) else 0)


@functools.lru_cache(maxsize=4)
def _prompts(file: str, changed: int) -> JudgePrompts:  # noqa: ARG001 - a changed file is read again
    return load_prompts(Path(file)) if file else built_in()


def prompts_identity(kwargs: Mapping[str, Any] | None) -> str:
    """Name what scores depend on beside document and answer. Raises ``DataError`` as ``prompts``."""
    return " ".join(prompts(Settings.of(kwargs).judge_prompts).fingerprints().values())


def answer_segments(answer: Any) -> tuple[Segment, ...]:
    """Texts and pictures of an answer in order, each picture with the text before it; descriptions that nobody drew
    stand in words, since a judge takes a mark for a picture."""
    segments: list[Segment] = []
    text: str | None = None
    for part in getattr(answer, "parts", ()) or (str(answer),):
        if isinstance(part, GeneratedImage):
            segments.append(Segment(text, part.path))
            text = None
        elif words := in_words(part).strip():
            text = words if text is None else f"{text}\n{words}"
    if text is not None or not segments:
        segments.append(Segment(text or ""))
    return tuple(segments)


def view_of(doc: Mapping[str, Any], answer: Any, settings: Settings) -> View:
    """What the judge sees of a document and its answer.

    Raises:
        MediaError: a picture of the question is not there and the settings are strict.
        DataError: the data is not there.
    """
    finder = documents.image_finder(settings)
    view = build_view(documents.question_of(doc).question, answer_segments(answer), finder, settings.view_options)
    if view.missing and settings.strict_images:
        raise MediaError(f"MMIE, {doc['id']}: the picture {view.missing[0]} is not there (strict_images)")
    return view


def questions(doc: Mapping[str, Any], answer: Any, settings: Settings) -> list[JudgeQuestion]:
    """The question to the judge; none about a sample that is skipped."""
    view = view_of(doc, answer, settings)
    if view.is_skipped:
        return []
    reference = documents.question_of(doc).reference_text
    return [judge_question(view, str(doc["category"]), reference, prompts(settings.judge_prompts), QUESTION)]


def outcome(view: View, verdicts: Mapping[str, Verdict], settings: Settings) -> Judged:
    """Read the verdicts of a sample."""
    if view.is_skipped:
        return Judged("skipped", reason=f"skipped: {len(view.images)} pictures, more than {settings.max_images}")
    asked = _askings(verdicts)
    if not asked or asked[0].text is None:
        return Judged("unscored", reason=f"the judge gave no reply: {asked[0].error}" if asked else NO_JUDGE)
    found = [_score(verdict) for verdict in asked]
    repeats = tuple(found) if len(found) > 1 else ()
    if found[0] is None:
        return Judged("unparsable", repeats=repeats, reason="the judge's reply holds no score from 0 to 6")
    return Judged("scored", found[0], repeats)


def described(answer: Any) -> int:
    """Pictures that the answer describes and nobody drew."""
    return sum(count_marks(part) for part in getattr(answer, "parts", ()) or (str(answer),) if isinstance(part, str))


def _askings(verdicts: Mapping[str, Verdict]) -> Sequence[Verdict]:
    """The verdicts of the first asking and of its repeats."""
    found: list[Verdict] = []
    while (name := repeat_name(QUESTION, len(found) + 1)) in verdicts:
        found.append(verdicts[name])
    return found


def _score(verdict: Verdict) -> int | None:
    reading = read_score(verdict.text or "")
    return reading.score if reading.counted else None
