"""Names of the pieces of a view, and those that are made alike for every run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from lmms_eval.errors import LmmsEvalError
from lmms_eval.viewer.columns import TaskIndex
from lmms_eval.viewer.live.lazy_media import LazyMedia
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.samples import PER_TEXT, TaskWriter

Kind = Literal["run", "audit", "index", "values", "rows", "names", "column", "text", "media"]
_ONE_TASK = dict.fromkeys(("values", "rows", "names", "text", "media"), 3)
_NUMBERS = {"run": 1, "audit": 1, "index": 2, "column": 4, **_ONE_TASK}
"""Numbers in a name: run, task, column, and the piece's own; of a medium the row of its sample."""
_NAME = re.compile(r"([a-z]{3,6})((?:-\d{1,9}){1,4})")


@dataclass(frozen=True, slots=True)
class PieceName:
    """``KIND-RUN``, ``KIND-RUN-TASK`` and so on."""

    kind: Kind
    numbers: tuple[int, ...]

    @property
    def run(self) -> int:
        return self.numbers[0]

    @property
    def task(self) -> int:
        return self.numbers[1]

    @property
    def key(self) -> str:
        return f"{self.run}-{self.task}"

    @property
    def place(self) -> int:
        return self.numbers[-1]

    def __str__(self) -> str:
        return "-".join([self.kind, *map(str, self.numbers)])

    @classmethod
    def read(cls, text: str) -> PieceName | None:
        """Read a name; ``None`` if it is none."""
        found = _NAME.fullmatch(text)
        numbers = () if found is None else tuple(int(number) for number in found[2].split("-")[1:])
        if found is None or _NUMBERS.get(found[1]) != len(numbers):
            return None
        return cls(cast(Kind, found[1]), numbers)


class PieceError(LmmsEvalError):
    """There is no such piece."""

    def __init__(self, name: object) -> None:
        super().__init__(f"the view has no piece {name}")


def index_piece(index: TaskIndex, name: PieceName) -> Any:
    """Return the index of a task, or one of its pieces; empty where a column has none any more.

    Raises:
        PieceError: there is no such column, or it is none of the index.
    """
    if name.kind == "index":
        return index.content
    if name.kind in ("values", "column") and name.numbers[2] >= len(index.content["columns"]):
        raise PieceError(name)
    if name.kind == "values":
        return index.values(name.numbers[2])
    if name.kind == "column":
        return index.column(name.numbers[2], name.place)
    if name.kind == "rows":
        return index.rows(name.place)
    if name.kind == "names":
        return index.names(name.place)
    raise PieceError(name)


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
