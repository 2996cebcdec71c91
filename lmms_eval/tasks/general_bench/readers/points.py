"""Meshes, points, poses of a moving camera, boxes and tracked objects in space.

Points come from arrays, tables, lists, or the surface of a mesh; poses from KITTI's text files (a 3x4 matrix in each
line), arrays and lists; boxes and tracked objects from JSON; meshes from PLY (text and binary), OBJ and OFF files.
Polygons are cut into fans of triangles. Colours, normals, textures and other properties are skipped. Numbers in headers
are compared with the size of the file before memory is allocated.

Meshes are read here because trimesh (5.2) accepts files that end early, refuses binary PLY files with faces of
different numbers of corners, and needs four times the memory.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers.sides import Side, read_array, regular_file

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


Mesh = tuple["Floats", "Integers"]
"""Vertices ``(vertices, 3)``, and triangles ``(triangles, 3)`` of their numbers, from 0 (none: a cloud of points)."""


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


def read_mesh(path: Path) -> Mesh:
    """Read the mesh of a ``.ply``, ``.obj`` or ``.off`` file, with unchanged coordinates.

    Raises ``DataError`` for another suffix, or a file that is too large, damaged, or without vertices.
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

    Raises ``DataError`` for more than 64 MiB, more than three million lines, or a line of more than 64 KiB.
    """
    with open(regular_file(path, MAX_TEXT_BYTES), encoding="utf-8", errors="replace") as file:
        yield from _with_content(file, path)


def number_lines(lines: Iterable[str], columns: tuple[int, ...], path: Path) -> Floats:
    """Read columns of lines of numbers as ``(lines, columns)``.

    Raises ``DataError`` if a line lacks one, something there is not a number, or there are no lines.
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
    return vertices, triangles


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
    order, elements, start = _read_header(path)
    for element in elements:
        limit = MAX_VERTICES if element.is_flat else MAX_FACES
        if not 0 <= element.count <= limit:
            raise DataError(f"{path}: the PLY header states {element.count} of {element.name!r}; at most {limit}")
    vertices, triangles = _binary_parts(path, order, elements, start) if order else _text_parts(path, elements, start)
    if vertices is None or not len(vertices):
        raise DataError(f"{path} has no vertices")
    return _checked(vertices, triangles, path)


def _read_header(path: Path) -> tuple[str, list[_Element], int]:
    """Return the byte order (empty for text), the elements, and the number of bytes before the first one."""
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
    return order, [_Element(name, count, tuple(kinds)) for name, count, kinds in found], end.end()


def _text_parts(path: Path, elements: Sequence[_Element], start: int) -> tuple[Floats | None, Integers]:
    import numpy as np

    regular_file(path, MAX_TEXT_BYTES)
    with open(path, "rb") as file:
        file.seek(start)
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace")
        lines = list(_with_content(text, path))
    if sum(element.count for element in elements) > len(lines):
        raise DataError(f"{path} ends before all elements of its header")
    vertices, triangles, at = None, np.empty((0, 3), np.int64), 0
    for element in elements:
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


def _binary_parts(path: Path, order: str, elements: Sequence[_Element], start: int) -> tuple[Floats | None, Integers]:
    import numpy as np

    data = np.memmap(path, np.uint8, "r", offset=0)
    vertices, triangles, at = None, np.empty((0, 3), np.int64), start
    for element in elements:
        if not element.count:
            continue
        if element.is_flat:
            width = sum(int(one.type[1]) for one in element.properties)
            if at + width * element.count > len(data):
                raise DataError(f"{path} ends before all of its {element.count} {element.name!r}")
            if element.name == "vertex":
                names = [(f"{number}", f"{order}{one.type}") for number, one in enumerate(element.properties)]
                table = data[at : at + width * element.count].view(np.dtype(names))
                columns = [table[f"{column}"] for column in _coordinate_columns(element, path)]
                vertices = np.stack(columns, axis=1).astype(np.float64)
            at += width * element.count
        elif _has_faces(element) and vertices is not None:
            return vertices, _uniform_faces(data[at:], element, order, path)
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

    head, *rest = element.properties
    length, size = struct.Struct(f"{order}{np.dtype(head.count).char}"), int(head.type[1])
    behind = sum(int(one.type[1]) for one in rest)
    content, at = data.tobytes(), 0
    triangles: list[tuple[int, int, int]] = []
    try:
        for _ in range(element.count):
            corners = int(length.unpack_from(content, at)[0])
            at += length.size
            if not 0 <= corners <= 255:
                raise DataError(f"{path}: a face of {corners} corners is not read")
            triangles += _fan(list(struct.unpack_from(f"{order}{corners}{np.dtype(head.type).char}", content, at)))
            at += corners * size + behind
    except struct.error as error:
        raise DataError(f"{path} ends within its faces") from error
    return np.asarray(triangles, np.int64).reshape(-1, 3)


MAX_POINTS = 32_768
"""Most points. A larger cloud is represented by so many of its points, and a surface by so many points on it."""
MAX_LISTED = 1_000_000
FARTHEST = 1e12
"""Largest coordinate of a point."""
_SEED = 20250507


def read_side(read: Callable[[Any], Floats], value: Any, side: Side) -> Floats:
    """Read the points (``read_points``) or poses (``read_poses``) of a prediction or reference: a path, or a list.

    Raises:
        UnreadableAnswer: a prediction without such a file, or that holds nothing usable.
        DataError: the same of a reference.
        MediaError: the reference's file is missing.
    """
    source = side.path(value) if isinstance(value, str) else value
    with side.reading():
        return read(source)


def read_points(source: Path | Any, most: int = MAX_POINTS) -> Floats:
    """Read the points of a ``.npy``, ``.xyz``, ``.txt``, ``.ply``, ``.obj`` or ``.off`` file or of a list, ``(points,
    3)``.

    The first three columns of a table count. A mesh with faces gives points sampled evenly on its surface; of a cloud
    with more than ``most`` points, ``most`` are sampled. Both use a fixed seed. Raises ``DataError`` for no
    points, more than ten million, or some that are unreadable or not finite.
    """
    if not isinstance(source, Path):
        where = "the list of points"
        return _finite(subset(number_rows(source, where, MAX_LISTED)[:, :3], most), where)
    match source.suffix.lower():
        case ".npy":
            table = read_array(source)
            if table.ndim != 2 or table.shape[1] < 3 or not 0 < len(table) <= MAX_VERTICES:
                raise DataError(f"{source} has the shape {table.shape}: (points, 3) is needed")
            return _finite(subset(table[:, :3], most), str(source))
        case ".xyz" | ".txt":
            return _finite(subset(number_lines(text_lines(source), (0, 1, 2), source), most), str(source))
        case ".ply" | ".obj" | ".off":
            vertices, triangles = read_mesh(source)
            _finite(vertices, str(source))
            return surface_points(vertices, triangles, most) if len(triangles) else subset(vertices, most)
    raise DataError(f"{source}: points are read from .npy, .xyz, .txt, .ply, .obj and .off files")


def number_rows(value: Any, what: str, most: int) -> Floats:
    """Return a list of lists of equally many numbers, at least three each, as an array.

    Raises ``DataError`` if it is not valid, it is empty, or it has more than ``most`` rows.
    """
    import numpy as np

    if not isinstance(value, list | tuple) or not value or len(value) > most:
        raise DataError(f"{what} must be a list of 1 to {most} rows")
    width = len(value[0]) if isinstance(value[0], list | tuple) else 0
    if not 3 <= width <= 64 or any(not isinstance(row, list | tuple) or len(row) != width for row in value):
        raise DataError(f"{what} must have rows of equally many numbers, at least 3")
    try:
        return np.asarray(value, dtype=np.float64).reshape(len(value), width)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{what} holds something else than numbers: {str(error)[:100]}") from error


def subset(points: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """Sample ``most`` of the points with a fixed seed, keeping their order. If there are no more points, return all."""
    import numpy as np

    if len(points) <= most:
        return points
    chosen = np.random.default_rng(_SEED).choice(len(points), most, replace=False, shuffle=False)
    return points[np.sort(chosen)]


def surface_points(vertices: Floats, triangles: Integers, count: int) -> Floats:
    """Sample points evenly on the surface with a fixed seed, ``(count, 3)``. Without area, return vertices."""
    import numpy as np

    corners = vertices[triangles]
    sides = corners[:, 1:] - corners[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    upto = np.cumsum(areas)
    if not upto[-1] > 0:
        return subset(vertices, count)
    source = np.random.default_rng(_SEED)
    chosen = np.minimum(np.searchsorted(upto, source.random(count) * upto[-1], side="right"), len(areas) - 1)
    across, along = np.sqrt(source.random((count, 1))), source.random((count, 1))
    first, second = sides[chosen, 0], sides[chosen, 1]
    drawn: Floats = corners[chosen, 0] + across * (1 - along) * first + across * along * second
    return drawn


def _finite(points: npt.NDArray[Any], where: str) -> Floats:
    import numpy as np

    numbers: Floats = np.asarray(points, dtype=np.float64)
    if not (np.abs(numbers) <= FARTHEST).all():  # false for NaN too
        raise DataError(f"{where} holds coordinates that are no finite places")
    return numbers


MAX_POSES = 100_000
_LEAST_DETERMINANT = 1e-6


def read_poses(source: Path | Any) -> Floats:
    """Read the poses (camera to world) of a ``.txt`` or ``.npy`` file or of a list, ``(poses, 4, 4)``.

    Each pose is 12 numbers (the upper three rows of its matrix, row by row, as in KITTI), 16 numbers, or the matrix.
    Raises ``DataError`` for an unreadable file, no or too many poses, numbers that are not finite, or matrices without
    an inverse.
    """
    import numpy as np

    where = str(source) if isinstance(source, Path) else "the list of poses"
    if isinstance(source, Path) and source.suffix.lower() == ".npy":
        table: npt.NDArray[Any] = read_array(source)
    elif isinstance(source, Path) and source.suffix.lower() == ".txt":
        lines = list(text_lines(source))
        width = len(lines[0].split()) if lines else 0
        if width not in (12, 16):
            raise DataError(f"{source}: a line must have the 12 numbers of a pose, not {width}")
        table = number_lines(lines, tuple(range(width)), source)
    elif isinstance(source, Path):
        raise DataError(f"{source}: poses are read from .txt and .npy files")
    elif not isinstance(source, list) or len(source) > MAX_POSES:
        raise DataError(f"{where} must have 1 to {MAX_POSES} poses")
    else:
        table = number_rows([_flat(pose) for pose in source], where, MAX_POSES)
    if table.ndim == 3 and table.shape[1:] in ((3, 4), (4, 4)):
        table = table.reshape(len(table), -1)
    if table.ndim != 2 or table.shape[1] not in (12, 16) or not 0 < len(table) <= MAX_POSES:
        raise DataError(f"{where}: 1 to {MAX_POSES} poses of 12 or 16 numbers are needed, not the shape {table.shape}")
    poses = np.tile(np.eye(4), (len(table), 1, 1))
    poses[:, :3] = np.asarray(table[:, :12], np.float64).reshape(-1, 3, 4)
    if not (np.abs(poses) <= FARTHEST).all():
        raise DataError(f"{where} holds numbers that are not finite")
    if not (np.abs(np.linalg.det(poses[:, :3, :3])) > _LEAST_DETERMINANT).all():
        raise DataError(f"{where} holds a matrix that is no rotation: it has no inverse")
    return poses


def _flat(pose: Any) -> Any:
    if isinstance(pose, list) and 3 <= len(pose) <= 4 and all(isinstance(row, list) and len(row) == 4 for row in pose):
        return [number for row in pose for number in row]
    return pose


MAX_BOXES = 10_000
MAX_FRAMES = 10_000
MAX_IN_FRAME = 500
MAX_TRACKED = 100_000
_MAX_NAME = 200
_BOX_NUMBERS = (6, 7)


class Corner(NamedTuple):
    """A point on the ground plane."""

    x: float
    y: float


class Box3D(Struct, frozen=True):
    """A box: centre, full sizes along its own axes, and rotation about the vertical axis in radians."""

    x: float
    y: float
    z: float
    dx: float
    dy: float
    dz: float
    yaw: float = 0.0
    label: str = ""
    score: float = 1.0

    @property
    def volume(self) -> float:
        return self.dx * self.dy * self.dz

    def corners(self) -> list[Corner]:
        """Return the corners of the base, anticlockwise."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        halves = ((1, 1), (-1, 1), (-1, -1), (1, -1))
        sides = [(across * self.dx / 2, along * self.dy / 2) for across, along in halves]
        return [Corner(self.x + a * cos - b * sin, self.y + a * sin + b * cos) for a, b in sides]


class Tracked(Struct, frozen=True):
    """An object in a frame; ``x`` and ``y`` in metres on the ground plane."""

    id: str
    label: str
    x: float
    y: float
    score: float = 1.0


def read_boxes3d(value: Any) -> tuple[Box3D, ...]:
    """Read a list of boxes ``{"box": [x, y, z, dx, dy, dz, yaw], "label": text, "score": number}`` or ``[x, y, z, dx,
    dy, dz, yaw, label, score]``. Yaw (radians, 0), label (empty) and score (1) are optional.

    Raises:
        DataError: another form, more than 10,000 boxes, numbers that are not finite, or sizes that are not positive.
    """
    if not isinstance(value, list) or len(value) > MAX_BOXES:
        raise DataError(f"3D boxes must be a list of at most {MAX_BOXES}")
    return tuple(_box(entry) for entry in value)


def read_tracks(value: Any) -> tuple[tuple[Tracked, ...], ...]:
    """Read a list of frames, each a list of ``{"id": ..., "label": text, "center": [x, y, z], "score": number}``. Label
    (empty) and score (1) are optional.

    Raises:
        DataError: another form, too many frames or objects, numbers that are not finite, or an id twice in a frame.
    """
    if not isinstance(value, list) or len(value) > MAX_FRAMES or not all(isinstance(frame, list) for frame in value):
        raise DataError(f"tracks must be a list of at most {MAX_FRAMES} frames, each a list of objects")
    if any(len(frame) > MAX_IN_FRAME for frame in value) or sum(map(len, value)) > MAX_TRACKED:
        raise DataError(f"more than {MAX_IN_FRAME} objects in a frame, or {MAX_TRACKED} in all")
    frames = tuple(tuple(_tracked(entry) for entry in frame) for frame in value)
    for number, frame in enumerate(frames):
        if len({one.id for one in frame}) < len(frame):
            raise DataError(f"frame {number} has an id twice")
    return frames


def _box(entry: Any) -> Box3D:
    if isinstance(entry, dict):
        numbers, label, score = entry.get("box"), entry.get("label", ""), entry.get("score", 1.0)
    elif not isinstance(entry, list) or len(entry) > 9:
        raise DataError(f"{entry!r:.100} is no 3D box")
    elif texts := [number for number, one in enumerate(entry) if isinstance(one, str)]:
        numbers, label, score = entry[: texts[0]], entry[texts[0]], (entry[texts[0] + 1 :] or [1.0])[0]
    else:
        numbers, label, score = entry[:7], "", entry[7] if len(entry) > 7 else 1.0
    if not isinstance(numbers, list) or len(numbers) not in _BOX_NUMBERS:
        raise DataError(f"the 3D box {entry!r:.100} is not [x, y, z, dx, dy, dz, yaw]")
    if min(map(_number, numbers[3:6])) <= 0:
        raise DataError(f"the 3D box {entry!r:.100} has a size that is not positive")
    x, y, z, dx, dy, dz, yaw = map(_number, numbers if len(numbers) == 7 else [*numbers, 0.0])
    return Box3D(x, y, z, dx, dy, dz, yaw, _name(label), _number(score))


def _tracked(entry: Any) -> Tracked:
    if not isinstance(entry, dict):
        raise DataError(f"the tracked object {entry!r:.100} is no object with id and center")
    name, center = entry.get("id"), entry.get("center")
    if isinstance(name, bool) or not isinstance(name, int | str) or not isinstance(center, list) or len(center) < 2:
        raise DataError(f"the tracked object {entry!r:.100} lacks its id or center")
    x, y, *_ = map(_number, center[:3])
    label, score = _name(entry.get("label", "")), _number(entry.get("score", 1.0))
    return Tracked(f"{type(name).__name__[0]}{name!s:.200}", label, x, y, score)


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise DataError(f"the label {value!r:.80} is no text of at most {_MAX_NAME} letters")
    return value.strip()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{value!r:.80} is no number")
    if not abs(value) <= FARTHEST:  # NaN neither
        raise DataError(f"{value!r:.80} is not finite, or too large")
    return float(value)
