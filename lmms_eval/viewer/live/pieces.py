"""Names of the pieces of a view, and those that are made alike for every run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from lmms_eval.errors import LmmsEvalError
from lmms_eval.viewer.live.lazy_media import LazyMedia
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.samples import PER_TEXT, TaskWriter

PER_INDEX = 1000
"""Samples in a piece of an index: the last one grows, and is loaded again."""
_NAME = re.compile(r"(run|index|text|media)-(\d{1,6})(?:-(\d{1,6})-(\d{1,9}))?")

Kind = Literal["run", "index", "text", "media"]


@dataclass(frozen=True, slots=True)
class PieceName:
    """``run-RUN``, or ``KIND-RUN-TASK-PLACE``, where the place of a medium is the row of its sample."""

    kind: Kind
    run: int
    task: int = 0
    place: int = 0

    @property
    def key(self) -> str:
        return f"{self.run}-{self.task}"

    @classmethod
    def read(cls, text: str) -> PieceName | None:
        """Read a name; ``None`` if it is none."""
        found = _NAME.fullmatch(text)
        if found is None or (found[1] == "run") != (found[3] is None):
            return None
        return cls(cast(Kind, found[1]), int(found[2]), int(found[3] or 0), int(found[4] or 0))


class PieceError(LmmsEvalError):
    """There is no such piece."""

    def __init__(self, name: object) -> None:
        super().__init__(f"the view has no piece {name}")


@dataclass(frozen=True, slots=True)
class Viewed:
    """The choices of a view, and the maker of its pictures."""

    options: ReportOptions
    media: LazyMedia

    def sample_piece(self, writer: TaskWriter, size: int, name: PieceName) -> Any:
        """Make a piece of texts, or the media of one sample; ``size`` is the number of rows.

        Raises:
            PieceError: there are fewer.
        """
        if name.kind == "text":
            first = name.place * PER_TEXT
            if first >= size:
                raise PieceError(name)
            return [writer.texts(row) for row in range(first, min(size, first + PER_TEXT))]
        if name.kind != "media" or name.place >= size:
            raise PieceError(name)
        return writer.media_apart(name.place, self.media.store)
