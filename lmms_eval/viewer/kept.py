"""Small files of an earlier writing of a report, by what they were made of: none of them is made twice."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from lmms_eval.viewer.chunks import write_file

INDEX = "sources.jsonl"
_NAME = re.compile(r"[0-9a-f]{24}\.(webp|png|jpg|gif|wav)")


class _Frame(BaseModel):
    model_config = ConfigDict(extra="forbid")

    src: str
    time: float | None


class _Made(BaseModel):
    """Line of the index: what was made of one source, as a page reads it, and the sizes of the files."""

    model_config = ConfigDict(extra="forbid")

    key: str
    src: str = ""
    full: str = ""
    frames: list[_Frame] = []
    frames_seen: int = 0
    sizes: dict[str, int]


@dataclass(slots=True)
class KeptMedia:
    """The files in a report's folder of media with the index that tells their sources.

    The index holds digests, no paths. It grows by a line with each file, so that a writing that is cut off loses none.
    Lines that are damaged or that something else has written are passed over, and so are those whose files are missing
    or of another size.
    """

    folder: Path
    _sizes: dict[str, int] = field(default_factory=dict)
    _saved: dict[str, int] = field(default_factory=dict)
    _earlier: dict[str, _Made] = field(default_factory=dict)
    _made: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            with os.scandir(self.folder) as found:
                self._sizes = {one.name: one.stat().st_size for one in found if _NAME.fullmatch(one.name)}
            lines = (self.folder / INDEX).read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            with contextlib.suppress(ValidationError):
                made = _Made.model_validate_json(line)
                self._earlier[made.key] = made

    def has(self, name: str, size: int) -> bool:
        """Tell whether a file of that name and size was there before."""
        return self._sizes.get(name) == size

    def find(self, key: str) -> dict[str, Any] | None:
        """Return what was made of a source and is all there."""
        made = self._earlier.get(key)
        if made is None or not all(self.has(name, size) for name, size in made.sizes.items()):
            return None
        entry = made.model_dump(exclude_unset=True)
        item = {name: value for name, value in entry.items() if name not in ("key", "sizes")}
        if {f"{self.folder.name}/{name}" for name in made.sizes} != set(addresses_in(item)):
            return None
        self._made[key] = orjson.dumps(entry) + b"\n"
        return item

    def save(self, name: str, size: int) -> None:
        """Note the size of a file that is written now, or that another thread is writing."""
        self._saved[name] = size

    def add(self, key: str, item: dict[str, Any]) -> None:
        """Note what was made of a source. Raises ``OSError`` if that cannot be written."""
        sizes = {name: self._saved[name] for name in (address.rpartition("/")[2] for address in addresses_in(item))}
        self._made[key] = line = orjson.dumps({"key": key, **item, "sizes": sizes}) + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / INDEX, "ab", buffering=0) as index:
            index.write(line)

    def write(self) -> bool:
        """Write the index of what this report shows, if it shows any.

        Raises:
            LmmsEvalError: that cannot be done.
        """
        if self._made:
            write_file(self.folder / INDEX, b"".join(self._made.values()))
        return bool(self._made)


def addresses_in(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of the files that stand for a medium."""
    yield from (item[name] for name in ("src", "full") if item.get(name))
    yield from (frame["src"] for frame in item.get("frames", ()))


def source_key(path: Path, *options: object) -> str:
    """Tell a source from others: by path, size, time of its last change, and by what is made of it.

    Raises:
        OSError: there is no such file.
    """
    facts = path.stat()
    return hashlib.sha256(repr((str(path), facts.st_size, facts.st_mtime_ns, options)).encode()).hexdigest()[:32]
