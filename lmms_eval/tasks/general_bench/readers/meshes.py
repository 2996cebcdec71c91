"""Vertices and triangles of PLY (text and binary), OBJ and OFF files.

Polygons are cut into fans of triangles. Colours, normals, textures and other properties are skipped. Numbers in headers
are compared with the size of the file before memory is allocated.

Files are read here because trimesh (5.2) accepts files that end early, refuses binary PLY files with faces of different
numbers of corners, and needs four times the memory.
"""

from __future__ import annotations

import io
import itertools
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

MAX_BYTES = 512 << 20
MAX_TEXT_BYTES = 64 << 20
MAX_VERTICES = 10_000_000
MAX_FACES = 2_000_000
MAX_LINES = 3_000_000
_MAX_HEADER = 64 << 10
_MAX_LINE = 64 << 10
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4",
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4",
    "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_LISTS = ("vertex_indices", "vertex_index")


class Mesh(Struct, frozen=True, eq=False):
    """A surface. Without triangles it is a cloud of points."""

    vertices: Floats
    """``(vertices, 3)``."""
    triangles: Integers
    """``(triangles, 3)``: numbers of vertices, from 0."""


class _Property(Struct, frozen=True):
    name: str
    type: str
    count: str = ""
    """Type of the length of a list, or empty for a single value."""


class _Element(Struct, frozen=True):
    name: str
    count: int
    properties: tuple[_Property, ...]

    @property
    def is_flat(self) -> bool:
        return not any(one.count for one in self.properties)

    def column(self, name: str, path: Path) -> int:
        for number, one in enumerate(self.properties):
            if one.name == name and not one.count:
                return number
        raise DataError(f"{path}: the PLY element {self.name!r} has no property {name!r}")


class _Header(Struct, frozen=True):
    order: str
    """Byte order, or empty for text."""
    elements: tuple[_Element, ...]
    size: int
    """Number of bytes before the first element."""


def read_mesh(path: Path) -> Mesh:
    """Read the mesh of a ``.ply``, ``.obj`` or ``.off`` file, with unchanged coordinates.

    Raises:
        DataError: another suffix, too large, damaged, or without vertices.
    """
    match path.suffix.lower():
        case ".ply":
            return _read_ply(path)
        case ".obj":
            return _read_obj(path)
        case ".off":
            return _read_off(path)
    raise DataError(f"{path}: meshes are read from .ply, .obj and .off files")


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file that are not blank.

    Raises:
        DataError: larger than 64 MiB, more than three million lines, or a line of more than 64 KiB.
    """
    with open(regular_file(path, MAX_TEXT_BYTES), encoding="utf-8", errors="replace") as file:
        yield from _with_content(file, path)


def number_lines(lines: Iterable[str], columns: tuple[int, ...], path: Path) -> Floats:
    """Read columns of lines of numbers as ``(lines, columns)``.

    Raises:
        DataError: a line lacks one of them, or something there is not a number; no lines.
    """
    import numpy as np

    rest = iter(lines)
    try:
        first = next(rest, None)
        if first is None:
            raise DataError(f"{path} holds no lines of numbers")
        source: Any = itertools.chain((first,), rest)
        table: Floats = np.loadtxt(source, usecols=columns, comments=None, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no table of numbers: {str(error)[:200]}") from error
    return table


def _with_content(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines):
        if len(line) > _MAX_LINE or number >= MAX_LINES:
            raise DataError(f"{path} has a line of more than {_MAX_LINE} letters, or more than {MAX_LINES} lines")
        if not line.isspace():
            yield line


def _fan(face: list[int]) -> Iterator[tuple[int, int, int]]:
    return ((face[0], face[at], face[at + 1]) for at in range(1, len(face) - 1))


def _counted(words: Sequence[str]) -> list[int]:
    """Return the corners of a face that begins with their number. Raises ``ValueError``."""
    count = int(words[0])
    if not 0 <= count < len(words):  # colours may follow
        raise ValueError(f"a face of {count} corners on a line of {len(words)} words")
    return [int(word) for word in words[1 : 1 + count]]


def _checked(vertices: Floats, triangles: Integers, path: Path) -> Mesh:
    if len(triangles) and not (triangles.min() >= 0 and triangles.max() < len(vertices)):
        raise DataError(f"{path}: a face names a vertex that is not there ({len(vertices)} vertices)")
    return Mesh(vertices, triangles)


class _Builder(Struct):
    """Collects the vertices and faces of a text file."""

    path: Path
    vertices: array[float] = field(default_factory=lambda: array("d"))
    triangles: array[int] = field(default_factory=lambda: array("q"))
    faces: int = 0

    @property
    def vertex_count(self) -> int:
        return len(self.vertices) // 3

    def add_vertex(self, words: Sequence[str]) -> None:
        self.vertices.extend((float(words[0]), float(words[1]), float(words[2])))

    def add_face(self, corners: list[int]) -> None:
        self.faces += 1
        for triangle in _fan(corners):
            self.triangles.extend(triangle)
        if len(self.triangles) > 3 * MAX_FACES:
            raise DataError(f"{self.path} has more than {MAX_FACES} triangles")

    def mesh(self) -> Mesh:
        import numpy as np

        if not self.vertices:
            raise DataError(f"{self.path} has no vertices")
        vertices = np.frombuffer(self.vertices).reshape(-1, 3)
        return _checked(vertices, np.array(self.triangles, np.int64).reshape(-1, 3), self.path)


def _read_obj(path: Path) -> Mesh:
    built = _Builder(path)
    try:
        for words in map(str.split, text_lines(path)):
            if len(words) >= 4 and words[0] == "v":
                built.add_vertex(words[1:4])
            elif len(words) >= 4 and words[0] == "f":
                numbers = (int(word.partition("/")[0]) for word in words[1:])
                built.add_face([number - 1 if number > 0 else built.vertex_count + number for number in numbers])
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} is no readable OBJ file: {str(error)[:200]}") from error
    return built.mesh()


def _read_off(path: Path) -> Mesh:
    rows = (words for line in text_lines(path) if (words := line.partition("#")[0].split()))
    first = next(rows, [""])
    if not (mark := re.fullmatch(r"(?:ST)?C?N?OFF(.*)", first[0])):
        raise DataError(f"{path} is no OFF file: it does not begin with OFF")
    counts = [mark[1], *first[1:]] if mark[1] else first[1:]  # "OFF8 6 0": counts on the line of the mark
    built = _Builder(path)
    try:
        vertex_count, face_count = (int(word) for word in (counts or next(rows, []))[:2])
        for words in itertools.islice(rows, max(vertex_count, 0)):
            built.add_vertex(words)
        for words in itertools.islice(rows, max(face_count, 0)):
            built.add_face(_counted(words))
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(f"{path} is no readable OFF file: {str(error)[:200]}") from error
    if (built.vertex_count, built.faces) != (vertex_count, face_count):
        raise DataError(f"{path} does not hold the {vertex_count} vertices and {face_count} faces of its head")
    return built.mesh()


def _read_ply(path: Path) -> Mesh:
    regular_file(path, MAX_BYTES)
    header = _read_header(path)
    for element in header.elements:
        limit = MAX_VERTICES if element.is_flat else MAX_FACES
        if not 0 <= element.count <= limit:
            raise DataError(f"{path}: the PLY header states {element.count} of {element.name!r}; at most {limit}")
    vertices, triangles = _binary_parts(path, header) if header.order else _text_parts(path, header)
    if vertices is None or not len(vertices):
        raise DataError(f"{path} has no vertices")
    return _checked(vertices, triangles, path)


def _read_header(path: Path) -> _Header:
    with open(path, "rb") as file:
        start = file.read(_MAX_HEADER)
    end = re.search(rb"(?:^|\n)end_header[ \t]*\r?\n", start)
    lines = start[: end.start()].decode("latin-1").splitlines() if end else []
    if end is None or not lines or lines[0].strip() != "ply":
        raise DataError(f"{path} is no PLY file, or its header is longer than {_MAX_HEADER} bytes")
    order: str | None = None
    found: list[tuple[str, int, list[_Property]]] = []
    for words in (line.split() for line in lines[1:]):
        match words:
            case ["format", kind, _] if kind in _ORDERS:
                order = _ORDERS[kind]
            case ["element", name, count] if re.fullmatch(r"\d{1,18}", count):
                found.append((name, int(count), []))
            case ["property", "list", count, kind, name] if found and {count, kind} <= set(_TYPES):
                found[-1][2].append(_Property(name, _TYPES[kind], _TYPES[count]))
            case ["property", kind, name] if found and kind in _TYPES:
                found[-1][2].append(_Property(name, _TYPES[kind]))
            case ["comment" | "obj_info", *_] | []:
                pass
            case _:
                raise DataError(f"{path}: PLY header: {' '.join(words)[:80]!r} cannot be read")
    if order is None:
        raise DataError(f"{path}: the PLY header names no format")
    return _Header(order, tuple(_Element(name, count, tuple(kinds)) for name, count, kinds in found), end.end())


def _text_parts(path: Path, header: _Header) -> tuple[Floats | None, Integers]:
    import numpy as np

    regular_file(path, MAX_TEXT_BYTES)
    with open(path, "rb") as file:
        file.seek(header.size)
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace")
        lines = list(_with_content(text, path))
    if sum(element.count for element in header.elements) > len(lines):
        raise DataError(f"{path} ends before all elements of its header")
    vertices, triangles, at = None, np.empty((0, 3), np.int64), 0
    for element in header.elements:
        rows = lines[at : at + element.count]
        at += element.count
        if element.name == "vertex" and element.count:
            vertices = number_lines(rows, _coordinate_columns(element, path), path)
        elif _has_faces(element):
            try:
                listed = [triangle for row in rows for triangle in _fan(_counted(row.split()))]
                triangles = np.asarray(listed, np.int64).reshape(-1, 3)
            except (ValueError, OverflowError) as error:
                raise DataError(f"{path}: a face cannot be read: {str(error)[:100]}") from error
    return vertices, triangles


def _coordinate_columns(element: _Element, path: Path) -> tuple[int, ...]:
    if not element.is_flat:
        raise DataError(f"{path}: vertices with lists are not read")
    return tuple(element.column(axis, path) for axis in "xyz")


def _has_faces(element: _Element) -> bool:
    return bool(element.properties) and element.properties[0].name in _LISTS and bool(element.properties[0].count)


def _binary_parts(path: Path, header: _Header) -> tuple[Floats | None, Integers]:
    import numpy as np

    data = np.memmap(path, np.uint8, "r", offset=0)
    vertices, triangles, at = None, np.empty((0, 3), np.int64), header.size
    for element in header.elements:
        if not element.count:
            continue
        if element.is_flat:
            width = sum(int(one.type[1]) for one in element.properties)
            if at + width * element.count > len(data):
                raise DataError(f"{path} ends before all of its {element.count} {element.name!r}")
            if element.name == "vertex":
                names = [(f"{number}", f"{header.order}{one.type}") for number, one in enumerate(element.properties)]
                table = data[at : at + width * element.count].view(np.dtype(names))
                columns = [table[f"{column}"] for column in _coordinate_columns(element, path)]
                vertices = np.stack(columns, axis=1).astype(np.float64)
            at += width * element.count
        elif _has_faces(element) and vertices is not None:
            return vertices, _uniform_faces(data[at:], element, header.order, path)
        else:
            raise DataError(f"{path}: the PLY element {element.name!r} comes before the vertices and has lists")
    return vertices, triangles


def _uniform_faces(data: npt.NDArray[np.uint8], element: _Element, order: str, path: Path) -> Integers:
    """Read faces with the same number of corners, skipping what follows their lists."""
    import numpy as np

    head, *rest = element.properties
    if any(one.count for one in rest):
        raise DataError(f"{path}: faces with two lists are not read")
    width = int(head.count[1])
    corners = int(data[:width].view(f"{order}{head.count}")[0]) if len(data) >= width else 0
    if not 3 <= corners <= 255:
        raise DataError(f"{path}: a first face of {corners} corners is not read")
    fields = [("n", f"{order}{head.count}"), ("v", f"{order}{head.type}", (corners,))]
    row = np.dtype([*fields, *((f"{number}", one.type) for number, one in enumerate(rest))])
    if row.itemsize * element.count > len(data):
        return _mixed_faces(data, element, order, path)
    table = data[: row.itemsize * element.count].view(row)
    if (table["n"] != corners).any():
        return _mixed_faces(data, element, order, path)
    listed = table["v"].astype(np.int64)
    parts = [listed[:, (0, second, second + 1)] for second in range(1, corners - 1)]
    return np.concatenate(parts)


def _mixed_faces(data: npt.NDArray[np.uint8], element: _Element, order: str, path: Path) -> Integers:
    import struct

    import numpy as np

    letters = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f", "f8": "d"}
    head, *rest = element.properties
    length, size = struct.Struct(f"{order}{letters[head.count]}"), int(head.type[1])
    behind = sum(int(one.type[1]) for one in rest)
    content, at = data.tobytes(), 0
    triangles: list[tuple[int, int, int]] = []
    try:
        for _ in range(element.count):
            corners = int(length.unpack_from(content, at)[0])
            at += length.size
            if not 0 <= corners <= 255:
                raise DataError(f"{path}: a face of {corners} corners is not read")
            triangles += _fan(list(struct.unpack_from(f"{order}{corners}{letters[head.type]}", content, at)))
            at += corners * size + behind
    except struct.error as error:
        raise DataError(f"{path} ends within its faces") from error
    return np.asarray(triangles, np.int64).reshape(-1, 3)
