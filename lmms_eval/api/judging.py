"""Model-as-judge: questions of a task about an answer, and verdicts.

A task names its questions (``Task.judge_questions``); the engine puts them to the judge model through the machinery
that asks the model under test (stream, retries, journal, response cache) and hands the verdicts to ``Task.score``.
Stand-alone scripts do the same through ``lmms_eval.judges``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmms_eval.api.response import Usage

if TYPE_CHECKING:  # it costs the import of pydantic
    from lmms_eval.api.messages import ChatMessages


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question about one answer."""

    name: str
    """Unique within the document: the field that is judged, say."""
    build_messages: Callable[[], ChatMessages]
    """The rendered prompt with its pictures; called in a preparation thread, media is opened then."""
    accepts: Callable[[str], bool]
    """Tells whether a reply can be read; one that cannot is asked again, at most ``--judge_retries`` times."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation options by their family names, ``temperature`` and ``max_new_tokens`` among them."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the record of the question (frames taken of a video, ...); JSON values."""
    asking: int = 1
    """Counts the askings of one question (``--judge_repeats``): no reply to one is taken for that to another."""


def repeat_name(name: str, number: int) -> str:
    """Name the asking of a question, counted from 1: the first has the question's own name."""
    return name if number == 1 else f"{name}~{number}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one question to a judge."""

    name: str
    text: str | None
    """The last reply, readable or not; ``None`` if no reply came."""
    accepted: bool
    """``text`` can be read."""
    model: str
    """The judge's name."""
    prompt: str = ""
    """Fingerprint of the rendered prompt."""
    replies: tuple[str, ...] = ()
    """All replies in their order, the last one included."""
    usage: Usage | None = None
    error: str | None = None
    """Reason for which no reply came."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Those of the question."""

    def as_record(self) -> dict[str, Any]:
        """JSON of the verdict; what is empty is left out."""
        record: dict[str, Any] = {"name": self.name, "text": self.text, "accepted": self.accepted, "model": self.model}
        for key in ("prompt", "error"):
            if getattr(self, key):
                record[key] = getattr(self, key)
        if len(self.replies) > 1:
            record["replies"] = list(self.replies)
        if self.usage is not None:
            record["usage"] = list(self.usage.to_dict().values())
        if self.details:
            record["details"] = dict(self.details)
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Verdict:
        """Undo ``as_record``."""
        text = record["text"]
        return cls(
            name=record["name"],
            text=text,
            accepted=record["accepted"],
            model=record["model"],
            prompt=record.get("prompt", ""),
            replies=tuple(record.get("replies", () if text is None else (text,))),
            usage=Usage(*record["usage"]) if "usage" in record else None,
            error=record.get("error"),
            details=dict(record.get("details", {})),
        )


def has_unread(verdicts: Sequence[Verdict]) -> bool:
    """Return whether some question got no readable reply in any of its askings."""
    read: dict[str, bool] = {}
    for verdict in verdicts:
        name, mark, number = verdict.name.rpartition("~")
        question = name if mark and number.isdecimal() else verdict.name
        read[question] = read.get(question, False) or verdict.accepted
    return not all(read.values())
