"""Documents of a split: random access to rows. Media are decoded only when their column is read."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import io
import json
import math
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import orjson
from msgspec import Struct, field

from lmms_eval.errors import MediaError

if TYPE_CHECKING:
    import pyarrow as pa
    from PIL import Image

    from lmms_eval.media.policy import MediaPolicy
    from lmms_eval.tasks.data.sizes import Cells, Item


Features = Mapping[str, Any]
_MEDIA = ("Image", "Audio", "Video")
_DECODED = (*_MEDIA, "Json")
_ORIENTATION = 274


def features_of(schema: pa.Schema) -> dict[str, Any]:
    """Return the column types from the ``huggingface`` metadata of a schema; empty without it."""
    text = (schema.metadata or {}).get(b"huggingface")
    if text is None:
        return {}
    try:
        features = json.loads(text)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return dict(features) if isinstance(features, Mapping) else {}


def is_media(feature: Any) -> bool:
    """Return whether a type is an image, a sound, or a list of images, which the text view of a document omits."""
    if _type(feature) in ("Image", "Audio"):
        return True
    item = _item(feature)
    return item is not None and _type(item) == "Image"


def holds(feature: Any, kinds: tuple[str, ...] = _DECODED) -> bool:
    """Return whether a type needs decoding, at any depth."""
    if _type(feature) in kinds:
        return feature.get("decode", True) is not False
    item = _item(feature)
    if item is not None:
        return holds(item, kinds)
    return isinstance(feature, Mapping) and any(holds(part, kinds) for key, part in feature.items() if key != "_type")


def decode(feature: Any, value: Any, where: str, media: MediaPolicy | None = None) -> Any:
    """Decode a stored value for task functions: PIL images, ``{path, array, sampling_rate}`` sounds, parsed JSON.

    Raises ``MediaError`` if a picture or sound cannot be read, or ``media`` refuses its file; ``where`` names its
    place.
    """
    if value is None or not holds(feature):
        return value
    kind = _type(feature)
    if kind == "Image":
        return decode_image(_allowed(value, media), feature.get("mode"), where)
    if kind == "Audio":
        return _decode_audio(_allowed(value, media), feature, where)
    if kind == "Video":
        return value.get("path") or value if isinstance(value, Mapping) else value
    if kind == "Json":
        return orjson.loads(value) if isinstance(value, str) else value
    item = _item(feature)
    if item is None:
        return {key: decode(feature.get(key), part, where, media) for key, part in value.items()}
    if isinstance(value, Mapping):  # a sequence of structs is stored as a struct of lists
        return {
            key: [decode(item.get(key), part, where, media) for part in parts or ()] for key, parts in value.items()
        }
    return [decode(item, part, where, media) for part in value]


def _allowed(value: Any, media: MediaPolicy | None) -> Any:
    """Check a stored picture or sound, which may be just a path. Raises ``MediaError``."""
    return value if media is None or isinstance(value, bytes) else media.medium(value)


def decode_image(value: Any, mode: str | None, where: str) -> Any:
    """Decode an upright PIL image; a URL is returned unchanged.

    An image whose file may be sent instead (``lmms_eval.media.originals``) is decoded when its pixels are needed.
    Raises ``MediaError`` if the picture is missing or damaged, or the file is not a picture.
    """
    from PIL import ImageOps

    from lmms_eval.media.image import open_image, read_errors
    from lmms_eval.media.opened import deferred, read_original
    from lmms_eval.media.originals import attach

    data, path = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (None, value)
    if isinstance(value, bytes):
        data, path = value, None
    if data is None and isinstance(path, str) and "://" in path:
        return path
    if data is None and not path:
        return None
    try:
        file = "" if data is not None else os.path.abspath(str(path))
        content = data if data is not None else Path(file).read_bytes()
        opened = open_image(io.BytesIO(content))
        image: Image.Image | None = deferred(opened, content, file, where)
        if image is None:
            opened.load()
            original = read_original(opened, content, file, decoded=True)
            if original is not None:
                attach(opened, original)
            image = opened if opened.getexif().get(_ORIENTATION) is None else ImageOps.exif_transpose(opened)
    except read_errors() as error:
        raise MediaError(f"{where}: picture {path or 'in the data'} cannot be read: {error}") from error
    return image.convert(mode) if mode and mode != image.mode else image


def _decode_audio(value: Any, feature: Mapping[str, Any], where: str) -> Any:
    from lmms_eval.media.audio import load_audio

    data, path = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (None, value)
    rate = feature.get("sampling_rate")
    try:
        audio = load_audio({"bytes": data, "path": path} if data is not None else path, rate)
    except MediaError as error:
        raise MediaError(f"{where}: sound {path or 'in the data'} cannot be read: {error}") from error
    return {"path": path, "array": audio.samples, "sampling_rate": audio.sampling_rate}


def picture_paths(feature: Any, value: Any) -> list[Any]:
    """Yield the stored pictures of a value, in order, as ``{bytes, path}`` mappings."""
    if value is None:
        return []
    if _type(feature) == "Image":
        return [value]
    item = _item(feature)
    if item is not None and isinstance(value, list):
        return [found for part in value for found in picture_paths(item, part)]
    return []


def _type(feature: Any) -> str | None:
    kind = feature.get("_type") if isinstance(feature, Mapping) else None
    return kind if isinstance(kind, str) else None


def _item(feature: Any) -> Any:
    """Return the element type of a list type; ``None`` for other types."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    if _type(feature) in ("Sequence", "List", "LargeList"):
        return feature.get("feature")
    return None


MAX_BYTES = 64 * 2**20
"""Limit of the cached rows of the process: about the texts of ten thousand documents."""
_ROW_BYTES = 1024
"""Bytes of a row in addition to its texts."""
_TEXTS = frozenset({str, bytes})
_LEAVES = frozenset({str, int, bool, type(None)})
_UNCHANGEABLE = (
    bytes, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal,
)  # fmt: skip


class PlainRow(Struct):
    """The columns of a document that hold no media."""

    values: Mapping[str, Any]
    """Values as stored; columns that need decoding are undecoded."""
    nested: Sequence[str]
    """Columns of lists and mappings. Each reader gets a copy of them."""
    nbytes: int
    """Estimated size in memory."""
    parsed: dict[Hashable, Any] = field(default_factory=dict)
    """Results of functions over the document, by function and further arguments."""


class RowsInFlight:
    """Cache of rows with a limit in bytes. The oldest rows are dropped first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._rows: dict[Hashable, PlainRow] = {}
        self._lock = threading.Lock()
        self.get = self._rows.get
        """Return a row; ``None`` if it is not in the cache."""

    def __len__(self) -> int:
        return len(self._rows)

    def keep(self, key: Hashable, values: Mapping[str, Any]) -> PlainRow:
        """Keep a row until it is dropped, or until newer rows need its place."""
        nested = [name for name, value in values.items() if isinstance(value, list | dict)]
        row = PlainRow(values, nested, _ROW_BYTES + _size(values))
        with self._lock:
            known = self._rows.pop(key, None)
            self._rows[key] = row
            self._bytes += row.nbytes - (0 if known is None else known.nbytes)
            while self._bytes > self._max_bytes:
                self._bytes -= self._rows.pop(next(iter(self._rows))).nbytes
        return row

    def drop(self, key: Hashable) -> None:
        """Drop the row of a scored document."""
        with self._lock:
            row = self._rows.pop(key, None)
            self._bytes -= 0 if row is None else row.nbytes


ROWS = RowsInFlight()
"""The cached rows of all tasks of this process."""


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _size(value: Any) -> int:
    """Return the bytes of the texts in a mapping or list; any other value counts 8."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list):
        return 8
    return sum([len(item) if type(item) in _TEXTS else _size(item) for item in value])


def can_be_carried(value: Any) -> bool:
    """Return whether a stored value is unchanged after it is written to a pipe and read back."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list):
        return value is None or isinstance(value, str | int | float | bytes)
    return all([type(item) is str or can_be_carried(item) for item in value])


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
_LONGEST_SUFFIX = max(map(len, PICTURE_SUFFIXES))
MAX_PICTURES = 4


class RowSource(Protocol):
    """Rows as stored: media columns undecoded."""

    columns: tuple[str, ...]
    features: Mapping[str, Any]
    """Types of columns from the metadata (see ``features``)."""
    where: str
    """Files or name, for messages."""

    def __len__(self) -> int: ...

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return the stored values of some columns."""

    def cells(self, name: str, indices: Sequence[int]) -> Cells:
        """Return some cells of a column without media."""

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        """Return sizes or paths of the media in some rows of a media column, without reading the media."""

    def identity(self) -> str:
        """Return the identity of the data, which changes when the data changes."""

    def dataset(self) -> Any:
        """Return the rows as a ``datasets.Dataset``."""


class _Stored:
    """A value that is decoded when it is read."""

    __slots__ = ("feature", "media", "value", "where")

    def __init__(self, feature: Any, value: Any, where: str, media: MediaPolicy | None) -> None:
        self.feature, self.value, self.where, self.media = feature, value, where, media


class Document(dict[str, Any]):
    """A dictionary with the values of a document.

    ``parsed`` holds results of functions over the document. All copies of a cached row share it; other documents have
    no such attribute.
    """

    __slots__ = ("parsed",)
    parsed: dict[Hashable, Any]

    def __reduce__(self) -> Any:
        return (dict, (dict(self.items()),))

    __hash__ = None


class DeferredDocument(Document):
    """A document whose media values are decoded at the first read of their key."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) is _Stored:
            value = decode(value.feature, value.value, value.where, value.media)
            super().__setitem__(key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        if key in self:
            return self[key]
        return default

    def __iter__(self) -> Iterator[str]:  # so that dict(document) and {**document} read through __getitem__
        return super().__iter__()

    def values(self) -> Any:
        return {key: self[key] for key in list(self)}.values()

    def items(self) -> Any:
        return {key: self[key] for key in list(self)}.items()

    def pop(self, key: str, *default: Any) -> Any:
        if key in self:
            self[key]
        return super().pop(key, *default)

    def copy(self) -> DeferredDocument:
        made = DeferredDocument()
        for key in self:
            dict.__setitem__(made, key, dict.__getitem__(self, key))
        return made

    def setdefault(self, key: str, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __or__(self, other: Any) -> dict[str, Any]:  # type: ignore[override]
        return {**self, **other}

    def __ror__(self, other: Any) -> dict[str, Any]:  # type: ignore[override]
        return {**other, **self}

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    __hash__ = None


class Documents(Sequence[Mapping[str, Any]]):
    """The documents of one split. ``[i]`` is a full document, whose values are decoded when they are read.

    Args:
        source: the rows.
        media: files and addresses that documents from the hub may name.
        rows: the cache of rows of documents in flight.
    """

    def __init__(self, source: RowSource, media: MediaPolicy | None = None, rows: RowsInFlight = ROWS) -> None:
        self.source, self._media, self._rows = source, media, rows
        self.columns = source.columns
        self.media_columns = tuple(name for name in self.columns if is_media(source.features.get(name)))
        self.text_columns = tuple(name for name in self.columns if name not in self.media_columns)
        self._decoded = {name: source.features[name] for name in self.columns if holds(source.features.get(name))}
        self._key = object()
        self._length = len(source)

    def over(self, source: RowSource) -> Documents:
        """Return documents of another source with the same media policy and cache."""
        return Documents(source, self._media, self._rows)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._read(number) for number in range(*index.indices(len(self)))]
        return self._copy(int(index), self.columns)

    def __iter__(self) -> Iterator[Document]:
        """Iterate over all documents without caching their rows."""
        return map(self._read, range(len(self)))

    def text_view(self, index: int) -> Document:
        """Return the document without its columns of type image, list of images or audio."""
        return self._copy(index, self.text_columns)

    def stored(self, index: int) -> Mapping[str, Any]:
        """Return the row as stored, with pictures as ``{bytes, path}`` mappings. The caller must not change it."""
        number, row = self._row(index)
        return self._with_media(number, row.values) if self.media_columns else row.values

    def pop(self, index: int) -> Mapping[str, Any]:
        """Return the row of a scored document as stored, and drop it from the cache."""
        number, row = self._row(index)
        self._rows.drop((self._key, number))
        return self._with_media(number, row.values) if self.media_columns else row.values

    def take(self, index: int, values: Mapping[str, Any]) -> None:
        """Cache the columns without media of a document as if they had been read."""
        self._rows.keep((self._key, index), values)

    def drop(self, index: int) -> None:
        """Drop the row of a scored document."""
        self._rows.drop((self._key, index))

    def _row(self, index: int) -> tuple[int, PlainRow]:
        """Return the number of a document, counted from the start, and its row."""
        number = index + self._length if index < 0 else index
        if not 0 <= number < self._length:
            raise IndexError(f"{self.source.where} has {len(self)} documents, not one numbered {index}")
        key = (self._key, number)
        row = self._rows.get(key)
        return number, row or self._rows.keep(key, self.source.row(number, self.text_columns))

    def _copy(self, index: int, columns: tuple[str, ...]) -> Document:
        """Return all columns, or those without media, as copies that the reader may change."""
        number, row = self._row(index)
        made = Document(row.values)
        for name in row.nested:
            try:
                made[name] = msgspec.to_builtins(row.values[name], builtin_types=_UNCHANGEABLE)
            except TypeError:  # a value of another type, such as an array
                made[name] = _copied(row.values[name])
        if len(columns) > len(self.text_columns):
            made = self._undecoded(number, self._with_media(number, made))
        elif self._decoded:
            made = self._undecoded(number, made)
        made.parsed = row.parsed
        return made

    def _with_media(self, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """Add the media columns to the others, in the order of the columns."""
        media = self.source.row(number, self.media_columns)
        return {name: media[name] if name in media else values[name] for name in self.columns}

    def _read(self, number: int) -> Document:
        return self._undecoded(number, self.source.row(number, self.columns))

    def _undecoded(self, number: int, values: Mapping[str, Any]) -> Document:
        """Return a document whose values are decoded when they are read."""
        made = DeferredDocument(values) if self._decoded else Document(values)
        for name, feature in self._decoded.items():
            if values.get(name) is not None:
                where = f"{self.source.where}, document {number}, column {name!r}"
                dict.__setitem__(made, name, _Stored(feature, values[name], where, self._media))
        return made


def plain(value: Any) -> Any:
    """Convert a stored value to JSON: media become their path or digest, dates take ISO form."""
    if type(value) in _LEAVES or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, bytes):
        return digest(value)
    if isinstance(value, Mapping):
        if set(value) == {"bytes", "path"}:
            return digest(value["bytes"]) if value["bytes"] is not None else value["path"]
        return {str(key): item if type(item) in _LEAVES else plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _LEAVES else plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "tobytes") and hasattr(value, "mode"):  # a PIL image inside a nested column
        return digest(value.tobytes())
    return str(value)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a stored row to JSON (see ``plain``)."""
    return {name: value if type(value) in _LEAVES else plain(value) for name, value in row.items()}


def document_hash(row: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a JSON row (``plain_row``) in canonical form: keys sorted, no spaces."""
    return hashlib.sha256(_canonical(row).encode("utf-8", "surrogatepass")).hexdigest()


def pictures(row: Mapping[str, Any], features: Mapping[str, Any]) -> tuple[str, ...]:
    """Return paths, URLs or digests of up to four pictures of a stored row."""
    found: list[str] = []
    for name, value in row.items():
        feature = features.get(name)
        if feature is not None:
            found += [str(plain(picture)) for picture in picture_paths(feature, value) if picture is not None]
        if feature is not None and is_media(feature):
            value = None
        texts: Iterable[str] = [value] if isinstance(value, str) else _texts(value) if isinstance(value, list) else ()
        for text in texts:
            if text.startswith("data:image/"):
                found.append(digest(text.encode()))
            elif "\n" not in text and text.partition("?")[0][-_LONGEST_SUFFIX:].lower().endswith(PICTURE_SUFFIXES):
                found.append(text)
        if len(found) >= MAX_PICTURES:
            break
    return tuple(found[:MAX_PICTURES])


def _texts(values: list[Any]) -> Iterator[str]:
    """Yield the texts among the first items of a list, also of nested ones."""
    for value in values[:MAX_PICTURES]:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str):
            yield value
