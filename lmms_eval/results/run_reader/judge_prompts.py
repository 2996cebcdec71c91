"""Prompts of judges: each stands once in a run's journal of judgements, and is joined to the verdicts when shown."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_eval.api.request import SentMessage
from lmms_eval.engine.judgements import PATTERN
from lmms_eval.errors import JournalError
from lmms_eval.storage.journal import JournalSet, Place


class JudgePrompts:
    """The prompts in the record of a run, by their fingerprints; read when the first is asked for.

    Args:
        folder: of the record; ``None``: there is none, and so no prompt.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._journals = JournalSet()
        weakref.finalize(self, self._journals.close)

    def joined(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a line of samples whose verdicts have ``asked``, and ``sent_media`` where media were shown."""
        verdicts = record.get("judge")
        if not isinstance(verdicts, list) or not self._places:
            return dict(record)
        return {**record, "judge": [self._verdict(one) if isinstance(one, Mapping) else one for one in verdicts]}

    def _verdict(self, verdict: Mapping[str, Any]) -> dict[str, Any]:
        place = self._places.get(str(verdict.get("prompt")))
        if place is None:
            return dict(verdict)
        try:
            found = self._journals.at(place)
        except JournalError:  # it has changed since: what it held is not known
            return dict(verdict)
        told = {"asked": found["messages"]}
        if "media" in found:
            told["sent_media"] = _each_once(found["media"])
        return {**verdict, **told}

    @cached_property
    def _places(self) -> Mapping[str, Place]:
        found: dict[str, Place] = {}
        for path in [] if self.folder is None else sorted(self.folder.glob(PATTERN)):
            try:
                for place, record in self._journals.load(path, quietly=True):
                    if _is_told(record.get("messages")):
                        found.setdefault(str(record.get("prompt")), place)
            except JournalError:  # no file that can be read: verdicts stand without their prompts
                continue
        return found


def _is_told(messages: Any) -> bool:
    try:
        return bool([SentMessage.from_dict(one) for one in messages])
    except (TypeError, KeyError, AttributeError, IndexError):
        return False


def _each_once(media: Any) -> list[Any]:
    """Messages count different media."""
    kept: list[Any] = []
    for medium in media if isinstance(media, list) else []:
        if medium not in kept:
            kept.append(medium)
    return kept
