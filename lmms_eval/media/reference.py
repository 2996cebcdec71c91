"""Sources of pictures, videos and sounds: finding them, reading their bytes, hashing their content."""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lmms_eval.errors import MediaError
from lmms_eval.media.originals import original_of

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.media.policy import MediaPolicy

Root = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Kind = Literal["path", "bytes", "image", "url", "array"]

FETCH_TIMEOUT_S = 30.0
FETCH_MAX_BYTES = 256 * 2**20
_MAX_DIGESTS = 65_536
_FileKey: TypeAlias = "tuple[str, int, int]"
"""Path, modification time in nanoseconds and size of a file."""
Identity: TypeAlias = "str | _FileKey"
_DIGESTS: dict[_FileKey, str] = {}
"""Digests of files by (path, mtime_ns, size)."""
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class MediaRef:
    """The source of one picture, video or sound. ``kind`` determines which of the fields below is set."""

    kind: Kind
    path: Path | None = None
    data: bytes | None = None
    image: Image.Image | None = None
    url: str = ""
    policy: MediaPolicy | None = None
    """Checks the address when it is fetched; ``None`` for addresses from the user, which are not checked."""
    array: Any = None
    """Samples of a sound, float or int: ``(samples,)``, ``(samples, channels)`` or ``(channels, samples)``."""
    sampling_rate: int = 0
    """Samples per second, with ``array``."""
    mime: str = ""
    """Media type that the source declares (data URL), or empty."""
    name: str = field(default="", repr=False)
    """The name that a hub feature provides with the bytes."""

    def describe(self) -> str:
        """Return the name of the source for messages, without contents and without the query of a URL (maybe a key)."""
        if self.kind == "path":
            return str(self.path)
        if self.kind == "url":
            return self.url.split("?")[0].split("#")[0]
        if self.kind == "image" and self.image is not None:
            return f"picture in memory ({self.image.mode}, {self.image.width}x{self.image.height})"
        if self.kind == "array":
            return f"sound in memory ({self.sampling_rate} Hz)"
        name = f" {self.name}" if self.name else ""
        return f"{len(self.data or b'')} bytes in memory{name}"

    def read_bytes(self) -> bytes:
        """Return the encoded content of a file, of bytes, or fetched from the URL.

        Raises ``MediaError`` if it cannot be read, or if the source is a decoded picture or sound.
        """
        if self.kind == "path" and self.path is not None:
            try:
                return self.path.read_bytes()
            except OSError as error:
                raise MediaError(f"cannot read {self.path}: {error.strerror or error}") from error
        if self.kind == "url":
            return _fetch(self)
        if self.data is None:
            raise MediaError(f"{self.describe()} has no encoded bytes: encode it with lmms_eval.media first")
        return self.data


def resolve(value: Any, root: Root = None) -> MediaRef:
    """Determine the source of a medium. A file must exist, but nothing is read or decoded.

    Args:
        value: a :class:`MediaRef`; a path, ``file://`` URL, http(s) URL or data URL; bytes; a PIL image; a hub
            feature ``{"bytes": ..., "path": ...}``; a sound ``{"array": ..., "sampling_rate": ...}``; a mapping
            with ``url``, ``path``, ``video``, ``image`` or ``audio``.
        root: folder or folders below which a relative path is looked up, in this order; the current folder if none
            is given.

    Raises:
        MediaError: the file does not exist, or ``value`` has another type.
    """
    if isinstance(value, MediaRef):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return MediaRef("bytes", data=bytes(value))
    if isinstance(value, str):
        return _resolve_text(value, root)
    if isinstance(value, os.PathLike):
        return MediaRef("path", path=_find(Path(value), root))
    if isinstance(value, Mapping):
        return _resolve_mapping(value, root)
    if all(hasattr(value, name) for name in ("mode", "size", "tobytes", "convert")):
        return MediaRef("image", image=value)
    if hasattr(value, "get_all_samples"):  # the audio decoder of `datasets`
        samples = value.get_all_samples()
        return MediaRef("array", array=samples.data.numpy(), sampling_rate=int(samples.sample_rate))
    raise MediaError(
        f"a {type(value).__name__} is not a picture, video or sound: give a path, URL, bytes, PIL image or a mapping"
    )


def digest(value: Any) -> str:
    """Return the hexadecimal SHA-256 digest of the content.

    It covers the encoded bytes, which for a PIL image are those that it was decoded from if it still equals them;
    otherwise the mode, size and pixels of a picture; the type, shape, rate and samples of a sound; the address of a URL
    (its content is not fetched). Digests of files are cached by (path, modification time, size). Raises ``MediaError``
    if the source cannot be read.
    """
    ref = resolve(value)
    if ref.kind == "path":
        return known_digest(ref) or content(ref)[1]
    if ref.kind == "url":
        return hashlib.sha256(b"url\0" + ref.url.encode()).hexdigest()
    if ref.kind == "array":
        import numpy as np

        samples = np.ascontiguousarray(ref.array)
        state = hashlib.sha256(f"{samples.dtype.str}\0{samples.shape}\0{ref.sampling_rate}\0".encode())
        state.update(samples.tobytes())
        return state.hexdigest()
    if ref.kind != "image" or ref.image is None:
        return hashlib.sha256(ref.read_bytes()).hexdigest()
    image, original = ref.image, original_of(ref.image)
    if original is not None:
        return original.sha256
    state = hashlib.sha256(f"{image.mode}\0{image.size}\0{image.info.get('transparency')!r}\0".encode())
    if image.mode in ("P", "PA"):
        state.update(bytes(image.getpalette() or []))
    state.update(image.tobytes())
    return state.hexdigest()


def known_digest(ref: MediaRef) -> str | None:
    """Return the digest of an unchanged file that has been hashed before; ``None`` if the source had to be read."""
    return _DIGESTS.get(_file_key(ref)) if ref.kind == "path" else None


def content(ref: MediaRef) -> tuple[bytes, str]:
    """Return the encoded bytes and their digest, reading the file once."""
    data = ref.read_bytes()
    if ref.kind == "url":
        return data, digest(ref)
    if ref.kind != "path":
        return data, hashlib.sha256(data).hexdigest()
    key = _file_key(ref)
    found = _DIGESTS.get(key) or hashlib.sha256(data).hexdigest()
    with _LOCK:
        if key not in _DIGESTS and len(_DIGESTS) >= _MAX_DIGESTS:
            _DIGESTS.pop(next(iter(_DIGESTS)))
        _DIGESTS[key] = found
    return data, found


def identity(ref: MediaRef) -> Identity:
    """Return a key that changes with the content: path, time and size of a file, which is not read; else the digest."""
    return _file_key(ref) if ref.kind == "path" else digest(ref)


def digest_of(key: Identity) -> str:
    """Return the digest that belongs to an ``identity``; empty for a file that has not been hashed."""
    return key if isinstance(key, str) else _DIGESTS.get(key, "")


def _resolve_text(value: str, root: Root) -> MediaRef:
    scheme = value[:8].lower()
    if scheme.startswith("data:"):
        return _data_url(value)
    if scheme.startswith(("http://", "https://")):
        return MediaRef("url", url=value, policy=getattr(value, "policy", None))
    if scheme.startswith("file://"):
        return MediaRef("path", path=_find(Path(urllib.request.url2pathname(urllib.parse.urlsplit(value).path)), root))
    if not value:
        raise MediaError("an empty text is not the path of a picture, video or sound")
    return MediaRef("path", path=_find(Path(value), root))


def _resolve_mapping(value: Mapping[str, Any], root: Root) -> MediaRef:
    if value.get("array") is not None and value.get("sampling_rate"):
        return MediaRef("array", array=value["array"], sampling_rate=int(value["sampling_rate"]))
    if value.get("bytes") is not None:
        return MediaRef("bytes", data=bytes(value["bytes"]), name=str(value.get("path") or ""))
    for key in ("url", "path", "video", "image", "audio"):
        inner = value.get(key)
        if inner is not None:
            return resolve(inner, root)
    raise MediaError(f"a mapping with the keys {sorted(map(str, value))} names no media: give bytes, path or url")


def _data_url(value: str) -> MediaRef:
    head, comma, body = value.partition(",")
    options = head[5:].split(";")
    if not comma:
        raise MediaError(f"data URL without a comma: {value[:40]!r}...")
    try:
        data = (
            base64.b64decode(urllib.parse.unquote(body), validate=True)
            if "base64" in options[1:]
            else urllib.parse.unquote_to_bytes(body)
        )
    except (binascii.Error, ValueError) as error:
        raise MediaError(f"data URL {head!r} does not hold valid base64: {error}") from error
    return MediaRef("bytes", data=data, mime=options[0])


def _find(path: Path, root: Root) -> Path:
    if path.is_absolute():
        candidates = [path]
    elif root is None:
        candidates = [Path.cwd() / path]
    elif isinstance(root, (str, os.PathLike)):
        candidates = [Path(root) / path]
    else:
        candidates = [Path(folder) / path for folder in root]
    for candidate in candidates:
        try:
            if candidate.is_file():
                return candidate
        except OSError as error:  # the name is too long, or the folder is not accessible
            raise MediaError(f"cannot look up {str(candidate)[:200]!r}: {error.strerror or error}") from error
    tried = ", ".join(str(candidate) for candidate in candidates) or "no folder"
    raise MediaError(f"media file {str(path)!r} not found; tried {tried}. Check the media folder of the task's data")


def _file_key(ref: MediaRef) -> _FileKey:
    path = ref.path or Path()
    try:
        stat = path.stat()
    except OSError as error:
        raise MediaError(f"cannot read {path}: {error.strerror or error}") from error
    return str(path), stat.st_mtime_ns, stat.st_size


def _fetch(ref: MediaRef) -> bytes:
    request = urllib.request.Request(ref.url, headers={"User-Agent": "lmms-eval"})
    fetch = urllib.request.urlopen if ref.policy is None else ref.policy.opener().open
    try:
        with fetch(request, timeout=FETCH_TIMEOUT_S) as reply:
            data: bytes = reply.read(FETCH_MAX_BYTES + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:  # URLError, HTTPError and timeouts are OSErrors
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise MediaError(f"cannot fetch {ref.describe()}: {error}") from error
    if len(data) > FETCH_MAX_BYTES:
        raise MediaError(f"{ref.describe()} is larger than {FETCH_MAX_BYTES} bytes: download it and give its path")
    return data
