"""Choices of a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmms_eval.errors import UsageError
from lmms_eval.results.run_reader.task import Choice

Media = Literal["thumbnails", "full", "none"]
"""Pictures in a report: small ones, the originals beside them, or none of any medium."""


_SAID_AGAIN = frozenset({"messages", "asked"})
"""Keys of texts that are made of others: the conversation, and the prompt of a judge."""
_ANSWERS = frozenset({"resps", "filtered_resps", "raw_resps", "thoughts"})
_SAID = _ANSWERS | {"input"}
_READ = frozenset({"extracted"})
"""Keys of what scoring read in an answer."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Selection of what a report holds.

    Raises:
        UsageError: the limit is none.
    """

    media: Media = "thumbnails"
    only_failed: bool = False
    """Only samples that failed."""
    choice: Choice = field(default_factory=Choice)
    """Only samples that ``--ids`` and ``--where`` choose."""
    limit: int | None = None
    """Samples of each task at most."""
    redact: frozenset[str] = frozenset()
    """Keys of samples, documents and settings whose values are left out. A prompt or answer that is left out is so
    from the conversation and the judge's prompt too."""
    allowed: tuple[Path, ...] = ()
    """Folders from which media of foreign runs are shown too."""
    single_file: bool = False
    compare: bool = True
    """Runs are compared with each other."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give a number of samples from 1 on")
        if self.redact & _SAID:
            read = _READ | {"thoughts"} if self.redact & _ANSWERS else frozenset()
            if "thoughts" in self.redact:  # what the model wrote holds them, if they stood in tags
                read |= {"resps", "raw_resps"}
            object.__setattr__(self, "redact", self.redact | _SAID_AGAIN | read)
