"""Pictures, frames of videos and sounds of samples, as small files beside a report's pages."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, Sampling, fit, load_audio, load_rgb, read_frames, resolve
from lmms_eval.media.audio import encode_wav
from lmms_eval.viewer.chunks import write_file
from lmms_eval.viewer.options import Media

SIDE, FRAME_SIDE = 512, 256
"""Pixels of the longer side of a picture and of a video's frame at most."""
MOST_FRAMES = 24
"""Frames of a video that are shown, evenly taken from those that the model saw."""
MOST_SECONDS = 300.0
"""Of a sound that is kept."""
MOST_BYTES = 24_000
"""Of a picture: ten thousand of them stay below 250 MB."""
_STEPS = ((SIDE, 72), (SIDE, 50), (384, 50), (256, 40))
"""Sides and qualities of WebP, of which the first counts whose picture is small enough, else the last."""
_PICTURES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif"}
"""Formats that browsers show, as Pillow calls them, with the endings of their files."""
_THREADS = 8

Item = dict[str, Any]
"""One medium as the page reads it: ``kind`` and, as far as they are there, ``src``, ``full``, ``width``, ``height``,
``frames`` (``src`` and ``time``), ``seconds``, ``name``, ``missing`` (why it is not shown)."""


class MediaMaker(Protocol):
    """Makes what stands for a medium."""

    def add(self, medium: Mapping[str, Any], folders: Sequence[Path]) -> Future[Item]:
        """Begin to make what stands for one entry of ``sent_media``, or for a part of an answer."""


@dataclass(slots=True)
class MediaStore:
    """Maker of the small files: each once, several at a time."""

    folder: Path | None
    """``None``: they become part of the page."""
    mode: Media
    missing: int = 0
    """Media that could not be shown."""
    _pool: ThreadPoolExecutor = field(init=False)
    _made: dict[str, Future[Item]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """Names of the files that were written."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(min(_THREADS, (os.cpu_count() or 1) + 1), "thumbnails")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, medium: Mapping[str, Any], folders: Sequence[Path]) -> Future[Item]:
        """Begin to make what stands for one entry of ``sent_media``, or for a part of an answer.

        The future raises nothing that a damaged file could cause: the item then says why it is not shown.
        """
        key = medium_key(medium)
        with self._lock:
            if key not in self._made:
                self._made[key] = self._pool.submit(self._item, dict(medium), tuple(folders))
            return self._made[key]

    def _item(self, medium: Mapping[str, Any], folders: Sequence[Path]) -> Item:
        kind = str(medium.get("type", "image"))
        item: Item = {"kind": kind, "name": str(medium.get("path") or medium.get("url") or medium.get("name") or "")}
        item |= {key: medium[key] for key in ("width", "height", "seconds") if isinstance(medium.get(key), int | float)}
        if self.mode == "none":
            return item
        try:
            path = medium_path(medium, folders)
            if kind == "video":
                return item | self._video(path, medium)
            return item | (self._sound(path) if kind == "audio" else self._picture(path))
        except (MediaError, OSError, ValueError) as error:
            with self._lock:
                self.missing += 1
            return item | {"missing": str(error)}

    def _picture(self, path: Path) -> Item:
        image = load_rgb(resolve(path), bounds=Bounds(max_side=SIDE))
        return {"src": self._save(_webp(image)), **(self._original(path) if self.mode == "full" else {})}

    def _original(self, path: Path) -> Item:
        """The file as it is, where browsers show its format."""
        from PIL import Image

        with Image.open(path) as image:
            ending = _PICTURES.get(image.format or "")
        return {"full": self._save(path.read_bytes(), ending)} if ending else {}

    def _video(self, path: Path, medium: Mapping[str, Any]) -> Item:
        from PIL import Image

        given = medium.get("frames")
        seen = [number for number in given if isinstance(number, int)] if isinstance(given, list) else []
        step = max(1, -(-len(seen) // MOST_FRAMES))
        sampling = Sampling(indices=tuple(sorted(set(seen[::step])))) if seen else Sampling(count=8)
        found = read_frames(resolve(path), sampling)
        stated = medium.get("times")
        times = dict(zip(seen, stated, strict=False)) if isinstance(stated, list) else {}
        frames = []
        for number, array in zip(found.indices, found.array, strict=True):
            image = fit(Image.fromarray(array), Bounds(max_side=FRAME_SIDE))
            time = times.get(number, number / found.fps if found.fps else None)
            frames.append({"src": self._save(_webp(image)), "time": time})
        return {"frames": frames, "frames_seen": len(seen) or len(frames)}

    def _sound(self, path: Path) -> Item:
        sound = load_audio(resolve(path), max_seconds=MOST_SECONDS)
        return {"src": self._save(encode_wav(sound.samples, sound.sampling_rate), "wav")}

    def _save(self, data: bytes, ending: str = "webp") -> str:
        if self.folder is None:
            kind = "audio/wav" if ending == "wav" else f"image/{'jpeg' if ending == 'jpg' else ending}"
            return f"data:{kind};base64,{base64.b64encode(data).decode()}"
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{ending}"
        with self._lock:
            is_new = name not in self.names
            self.names.add(name)
        if is_new:
            write_file(self.folder / name, data)
        return f"{self.folder.name}/{name}"


def media_of(sample: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the media of a sample: what was sent to the model, else the pictures that its line names."""
    sent = sample.get("sent_media")
    if isinstance(sent, list):
        return [medium for medium in sent if isinstance(medium, Mapping)]
    shown = sample.get("input_media")
    named = shown if isinstance(shown, list) else []
    return [one if isinstance(one, Mapping) else {"type": "image", "path": one} for one in named if one]


def pictures_in(parts: Any) -> list[Mapping[str, Any]]:
    """List the pictures that the model made, from ``parts`` of any depth."""
    if isinstance(parts, list):
        return [picture for part in parts for picture in pictures_in(part)]
    return [parts] if isinstance(parts, Mapping) and parts.get("type") == "image" else []


def medium_key(medium: Mapping[str, Any]) -> str:
    """Return a text that tells a medium from others."""
    named = (medium.get(key) for key in ("type", "path", "url", "name", "sha256", "frames", "times"))
    return repr(tuple(named))


def medium_path(medium: Mapping[str, Any], folders: Sequence[Path]) -> Path:
    """Find the file. Raises ``MediaError`` if there is none on this machine."""
    named = medium.get("path")
    if not isinstance(named, str) or not named:
        raise MediaError("it was sent from an address or from memory: no file of it is kept")
    places = [Path(named)] if Path(named).is_absolute() else [folder / named for folder in folders]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise MediaError(f"no file {named}")
    return found


def _webp(image: Any) -> bytes:
    found = b""
    for side, quality in _STEPS:
        data = io.BytesIO()
        fit(image, Bounds(max_side=side)).save(data, "WEBP", quality=quality, method=1)
        found = data.getvalue()
        if len(found) <= MOST_BYTES:
            break
    return found
