"""Small files of an earlier writing of a report, by what they were made of: none of them is made twice."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from lmms_eval.viewer.chunks import json_of, write_file

INDEX = "sources.json"
_NAME = re.compile(r"[0-9a-f]{24}\.(webp|png|jpg|gif|wav)")


class _Frame(BaseModel):
    model_config = ConfigDict(extra="forbid")

    src: str
    time: float | None


class _Made(BaseModel):
    """Item made of one source, as a page reads it, and the sizes of its files."""

    model_config = ConfigDict(extra="forbid")

    src: str = ""
    full: str = ""
    frames: list[_Frame] = []
    frames_seen: int = 0
    sizes: dict[str, int]


_INDEX = TypeAdapter(dict[str, _Made])


@dataclass(slots=True)
class KeptMedia:
    """The files in a report's folder of media with the index that tells their sources.

    The index holds digests, no paths. One that is damaged or that something else has written is passed over, and so
    are entries whose files are missing or of another size.
    """

    folder: Path
    _sizes: dict[str, int] = field(default_factory=dict)
    _earlier: dict[str, _Made] = field(default_factory=dict)
    _made: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            with os.scandir(self.folder) as found:
                self._sizes = {one.name: one.stat().st_size for one in found if _NAME.fullmatch(one.name)}
            self._earlier = _INDEX.validate_json((self.folder / INDEX).read_bytes())
        except (OSError, ValidationError):
            self._earlier = {}

    def has(self, name: str, size: int) -> bool:
        """Tell whether a file of that name and size was there before."""
        return self._sizes.get(name) == size

    def find(self, key: str) -> dict[str, Any] | None:
        """Return what was made of a source and is all there."""
        made = self._earlier.get(key)
        if made is None or not all(self.has(name, size) for name, size in made.sizes.items()):
            return None
        entry = made.model_dump(exclude_unset=True)
        item = {name: value for name, value in entry.items() if name != "sizes"}
        if {f"{self.folder.name}/{name}" for name in made.sizes} != set(addresses_in(item)):
            return None
        self._made[key] = entry
        return item

    def add(self, key: str, item: dict[str, Any]) -> None:
        """Note what was made of a source."""
        names = {address.rpartition("/")[2] for address in addresses_in(item)}
        self._made[key] = {**item, "sizes": {name: (self.folder / name).stat().st_size for name in names}}

    def write(self) -> bool:
        """Write the index of what this report shows, if it shows any.

        Raises:
            LmmsEvalError: that cannot be done.
        """
        if self._made:
            write_file(self.folder / INDEX, json_of(self._made).encode())
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
