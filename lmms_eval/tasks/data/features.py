"""Column types that need decoding: pictures, sounds, and JSON kept as text.

The ``datasets`` library writes these types into the metadata of parquet and Arrow files, as plain JSON.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lmms_eval.errors import MediaError

if TYPE_CHECKING:
    import pyarrow as pa
    from PIL import Image

    from lmms_eval.media.policy import MediaPolicy

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

    Raises:
        MediaError: a picture or sound cannot be read, or ``media`` refuses its file; ``where`` names its place.
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

    Raises:
        MediaError: the picture is missing or damaged, or the file is not a picture.
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
