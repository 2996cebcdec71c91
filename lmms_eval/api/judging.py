"""Model-as-judge: questions of a task about an answer, and verdicts.

A task returns its questions from ``Task.judge_questions``. The engine sends them to the judge in the same way as
requests to the model under test (stream, retries, journal, response cache), and passes the verdicts to ``Task.score``.
Stand-alone scripts do the same through ``lmms_eval.judges``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import convert

from lmms_eval.api.records import JudgeVerdict
from lmms_eval.api.response import Usage

if TYPE_CHECKING:  # it costs the import of pydantic
    from lmms_eval.api.messages import ChatMessages


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question about one answer."""

    name: str
    """Name that is unique within the document, for example the judged field."""
    build_messages: Callable[[], ChatMessages]
    """Renders the prompt and opens its media; called in a preparation thread."""
    accepts: Callable[[str], bool]
    """Returns whether a reply can be parsed; if not, the question is asked again, at most ``--judge_retries`` times."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation options, such as ``temperature`` and ``max_new_tokens``."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the record of the question (frames taken of a video, ...); JSON values."""
    asking: int = 1
    """Number of this repetition of the question (``--judge_repeats``); replies are not shared between repetitions."""


def repeat_name(name: str, number: int) -> str:
    """Return the name of a repetition of a question, counted from 1: the first keeps the question's own name."""
    return name if number == 1 else f"{name}~{number}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one question to a judge."""

    name: str
    text: str | None
    """The last reply, whether it can be parsed or not; ``None`` without a reply."""
    accepted: bool
    """``text`` can be parsed."""
    model: str
    """The judge's name."""
    prompt: str = ""
    """Fingerprint of the rendered prompt."""
    replies: tuple[str, ...] = ()
    """All replies in order, including the last one."""
    usage: Usage | None = None
    error: str | None = None
    """Reason why there is no reply."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The ``details`` of the question."""

    def as_record(self) -> dict[str, Any]:
        """Return the verdict as JSON, without empty fields."""
        record: dict[str, Any] = {
            "name": self.name,
            "text": self.text,
            "accepted": self.accepted,
            "model": self.model,
            "prompt": self.prompt or None,
            "error": self.error or None,
            "replies": list(self.replies) if len(self.replies) > 1 else None,
            "usage": None if self.usage is None else list(self.usage.to_dict().values()),
            "details": dict(self.details) or None,
        }
        return {key: value for key, value in record.items() if value is not None or key == "text"}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Verdict:
        """Undo ``as_record``. Raises ``msgspec.ValidationError`` if the record is not one of a verdict."""
        convert(record, JudgeVerdict)
        text, usage = record["text"], record.get("usage")
        return cls(
            name=record["name"],
            text=text,
            accepted=record["accepted"],
            model=record["model"] or "",
            prompt=record.get("prompt", ""),
            replies=tuple(record.get("replies") or (() if text is None else (text,))),
            usage=Usage(*usage[:3]) if usage else None,
            error=record.get("error"),
            details=record.get("details", {}),
        )


SECOND_READING = "second_reading"
"""Key of the details of questions that only another reading of the answers asks: the task's score needs no reply."""


def has_unread(verdicts: Sequence[Verdict]) -> bool:
    """Return whether a question of the task got no parsable reply in any of its repetitions."""
    read: dict[str, bool] = {}
    for verdict in verdicts:
        if verdict.details.get(SECOND_READING):
            continue
        name, mark, number = verdict.name.rpartition("~")
        question = name if mark and number.isdecimal() else verdict.name
        read[question] = read.get(question, False) or verdict.accepted
    return not all(read.values())
