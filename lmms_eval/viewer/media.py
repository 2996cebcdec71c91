"""Makes small files for the media of samples: thumbnails of pictures, frames of videos, and sounds."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import orjson
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, ValidationError

from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, Sampling, fit, load_audio, load_preview, read_frames, resolve
from lmms_eval.media.audio import encode_wav
from lmms_eval.media.keeper import FOLDER as KEPT
from lmms_eval.media.keeper import NAME
from lmms_eval.utils.media_types import PICTURE_SUFFIXES
from lmms_eval.viewer.chunks import write_file
from lmms_eval.viewer.page import Media

INDEX = "sources.jsonl"
_NAME = re.compile(r"[0-9a-f]{24}\.(webp|png|jpg|gif|wav)")


class _Frame(BaseModel):
    model_config = ConfigDict(extra="forbid")

    src: str
    time: float | None


class _Made(BaseModel):
    """A line of the index: the item of one source, in the form that a page reads, and the sizes of its files."""

    model_config = ConfigDict(extra="forbid")

    key: str
    src: str = ""
    full: str = ""
    frames: list[_Frame] = []
    frames_seen: int = 0
    sizes: dict[str, int]


class KeptMedia:
    """The media files of an earlier report that can be used again, with the index of their sources.

    The index holds digests instead of paths. It grows by a line with each source, so that an interrupted writing loses
    nothing. Lines that are damaged or foreign, and lines with files that are missing or of another size, are ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sizes: dict[str, int] = {}
        self._saved: dict[str, int] = {}
        self._earlier: dict[str, _Made] = {}
        self._made: dict[str, bytes] = {}
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
        """Return whether an earlier report left a file of this name and size."""
        return self._sizes.get(name) == size

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the item of a source if all of its files are present."""
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
        """Record the size of a file that this or another thread is writing."""
        self._saved[name] = size

    def add(self, key: str, item: dict[str, Any]) -> None:
        """Record the item of a source. Raises ``OSError`` if the index cannot be written."""
        sizes = {name: self._saved[name] for name in (address.rpartition("/")[2] for address in addresses_in(item))}
        self._made[key] = line = orjson.dumps({"key": key, **item, "sizes": sizes}) + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / INDEX, "ab", buffering=0) as index:
            index.write(line)

    def write(self) -> bool:
        """Write the index of the media in this report, if there are any, and return whether there are.

        Raises ``LmmsEvalError`` if the index cannot be written.
        """
        if self._made:
            write_file(self.folder / INDEX, b"".join(self._made.values()))
        return bool(self._made)


def addresses_in(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of an item's files."""
    yield from (item[name] for name in ("src", "full") if item.get(name))
    yield from (frame["src"] for frame in item.get("frames", ()))


def source_key(path: Path, *options: object) -> str:
    """Identify a source by path, size, modification time and the options of its item.

    Raises ``OSError`` if there is no such file.
    """
    facts = path.stat()
    return hashlib.sha256(repr((str(path), facts.st_size, facts.st_mtime_ns, options)).encode()).hexdigest()[:32]


SIDE, FRAME_SIDE = 512, 256
"""Most pixels of the longer side of a picture and of a video's frame."""
MOST_FRAMES = 24
"""Most frames of a video, evenly chosen from those that the model saw."""
MOST_SECONDS = 300.0
"""Most seconds of a sound."""
MOST_BYTES = 24_000
"""Most bytes of a picture, so that ten thousand pictures take less than 250 MB."""
_STEPS = ((SIDE, 72, 1.0), (SIDE, 50, 0.75), (384, 50, 0.32), (256, 40, 0.0))
"""Steps of WebP: side, quality, and the typical least share of the first step's bytes. The first step with a small
enough picture is used, else the last one. A step is skipped if its share shows that the picture would be too large."""
_MAKING = (1, _STEPS, FRAME_SIDE, MOST_FRAMES, MOST_SECONDS, MOST_BYTES)
"""Everything that the files depend on except their sources. The number changes with the code that makes the files."""
_PICTURES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif"}
"""Formats that browsers show, by Pillow's names, with their file suffixes."""
_THREADS = 8

_NOT_STORED = {
    "budget": "budget (--log_media_mb)",
    "size": "larger than --log_media_item_mb",
    "disk": "it could not be written",
}
"""Reasons of a run that keeps no file of a medium, in words."""


class NotStored(MediaError):
    """The run keeps no file of a medium, by its own limits."""


Item = dict[str, Any]
"""One medium in the form that a page reads: ``kind`` and, if known, ``src``, ``full``, ``width``, ``height``,
``frames`` (``src`` and ``time``), ``seconds``, ``name``, ``missing`` (the reason why it is not shown)."""


class MediaFolders(Struct, frozen=True):
    """Folders with the files of a run's media."""

    folders: tuple[Path, ...]
    """Folders to look up relative names, in this order."""
    bounds: tuple[Path, ...] | None = None
    """The only folders with files that are opened, because a foreign run may name any file of this machine. ``None`` if
    the run was made here."""

    def permit(self, path: Path) -> bool:
        """Return whether a file may be shown. For a link, its target decides."""
        return self.bounds is None or any(path.resolve().is_relative_to(bound.resolve()) for bound in self.bounds)


class MediaMaker(Protocol):
    """Makes items of media."""

    def add(self, medium: Mapping[str, Any], places: MediaFolders) -> Future[Item]:
        """Begin to make the item of an entry of ``sent_media`` or of a part of an answer."""


class MediaStore:
    """Makes the small files in threads, each one once. Without a folder, they become part of the page."""

    def __init__(self, folder: Path | None, mode: Media) -> None:
        self.folder, self.mode = folder, mode
        self.missing = 0
        """Media that could not be shown."""
        self.names: set[str] = set()
        """Names of the written files."""
        self._pool = ThreadPoolExecutor(min(_THREADS, (os.cpu_count() or 1) + 1), "thumbnails")
        self._kept = None if folder is None or mode == "none" else KeptMedia(folder)
        self._made: dict[tuple[str, MediaFolders | None], Future[Item]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop the threads, and write the index for the next report.

        Raises ``LmmsEvalError`` if the index cannot be written.
        """
        self._pool.shutdown(cancel_futures=True)
        if self._kept is not None and self._kept.write():
            self.names.add(INDEX)

    def add(self, medium: Mapping[str, Any], places: MediaFolders) -> Future[Item]:
        """Begin to make the item of an entry of ``sent_media`` or of a part of an answer.

        A damaged file does not raise: its item has the reason why it is not shown.
        """
        is_kept = bool(medium.get("stored"))
        is_anywhere = places.bounds is None and not is_kept and os.path.isabs(str(medium.get("path")))
        key = (medium_key(medium), None if is_anywhere else places)
        with self._lock:
            if key not in self._made:
                self._made[key] = self._pool.submit(self._item, dict(medium), places)
            return self._made[key]

    def draw(self, make: Callable[[], list[Item]]) -> Future[list[Item]]:
        """Begin to draw shapes over pictures. If no media are shown, there are no shapes."""
        return self._pool.submit(make if self.mode != "none" else list)

    def _item(self, medium: Mapping[str, Any], places: MediaFolders) -> Item:
        kind = str(medium.get("type", "image"))
        item: Item = {"kind": kind, "name": str(medium.get("path") or medium.get("url") or medium.get("name") or "")}
        item |= {key: medium[key] for key in ("width", "height", "seconds") if isinstance(medium.get(key), int | float)}
        if self.mode == "none":
            return item
        try:
            if kind == "video" and len(stored := stored_names(medium)) > 0 and is_picture(stored[0]):
                return item | self._stored_frames([_kept(name, places) for name in stored], medium)
            return item | self._files(file_of(medium, places), kind, medium)
        except NotStored as error:  # by the run's own limits, so it is not missing
            return item | {"missing": str(error)}
        except (MediaError, OSError, ValueError) as error:
            with self._lock:
                self.missing += 1
            return item | {"missing": str(error)}

    def _files(self, path: Path, kind: str, medium: Mapping[str, Any]) -> Item:
        """Make the files of one source, or find those of an earlier report."""
        if self._kept is None:
            return self._new_files(path, kind, medium)
        key = source_key(path, kind, self.mode, medium.get("frames"), medium.get("times"), _MAKING)
        if (found := self._kept.find(key)) is None:
            found = self._new_files(path, kind, medium)
            self._kept.add(key, found)
        with self._lock:
            self.names.update(address.rpartition("/")[2] for address in addresses_in(found))
        return found

    def _new_files(self, path: Path, kind: str, medium: Mapping[str, Any]) -> Item:
        if kind == "video":
            return self._video(path, medium)
        if kind == "audio":
            sound = load_audio(resolve(path), max_seconds=MOST_SECONDS)
            return {"src": self.save(encode_wav(sound.samples, sound.sampling_rate), "wav")}
        item = {"src": self.save(_webp(load_preview(path, FRAME_SIDE if kind == "frame" else SIDE)))}
        if self.mode == "full" and kind != "frame":
            from PIL import Image

            with Image.open(path) as image:
                ending = _PICTURES.get(image.format or "")
            if ending:  # browsers show the format of the original
                item["full"] = self.save(path.read_bytes(), ending)
        return item

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
            frames.append({"src": self.save(_webp(image)), "time": time})
        return {"frames": frames, "frames_seen": len(seen) or len(frames)}

    def _stored_frames(self, paths: Sequence[Path], medium: Mapping[str, Any]) -> Item:
        """Make the frames of a video that the run keeps as pictures."""
        times = medium.get("times")
        times = times if isinstance(times, list) and len(times) == len(paths) else [None] * len(paths)
        step = max(1, -(-len(paths) // MOST_FRAMES))
        shown = list(zip(paths, times, strict=True))[::step]
        frames = [{"src": self._files(path, "frame", {})["src"], "time": time} for path, time in shown]
        return {"frames": frames, "frames_seen": len(paths)}

    def save(self, data: bytes, ending: str = "webp") -> str:
        """Write a small file, unless it exists, and return its address.

        Raises ``LmmsEvalError`` if the file cannot be written.
        """
        if self.folder is None:
            kind = "audio/wav" if ending == "wav" else f"image/{'jpeg' if ending == 'jpg' else ending}"
            return f"data:{kind};base64,{base64.b64encode(data).decode()}"
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{ending}"
        with self._lock:
            is_new = name not in self.names
            self.names.add(name)
        if self._kept is not None:
            self._kept.save(name, len(data))
        if is_new and not (self._kept is not None and self._kept.has(name, len(data))):
            write_file(self.folder / name, data)
        return f"{self.folder.name}/{name}"


def media_of(sample: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the media of a sample: those sent to the model, or else the pictures that its line names."""
    sent = sample.get("sent_media")
    if isinstance(sent, list):
        drawn = {one.get("sha256"): one for one in made_in(sample).values()}
        return [_found(medium, drawn) for medium in sent if isinstance(medium, Mapping)]
    shown = sample.get("input_media")
    named = shown if isinstance(shown, list) else []
    return [one if isinstance(one, Mapping) else {"type": "image", "path": one} for one in named if one]


def made_in(sample: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the other media of a sample by name. A picture that the model made has its path as its name; one of a
    judge's prompt has the numbers of question and medium (``judge/0/0``)."""
    found = {str(one.get("path")): one for key in ("parts", "messages") for one in _pictures_in(sample.get(key))}
    judge = sample.get("judge")
    for number, verdict in enumerate(judge if isinstance(judge, list) else ()):
        sent = verdict.get("sent_media") if isinstance(verdict, Mapping) else None
        media = enumerate(sent if isinstance(sent, list) else ())
        found |= {f"judge/{number}/{place}": one for place, one in media if isinstance(one, Mapping)}
    return found


def _pictures_in(parts: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the pictures with a file that the model made, in parts or messages of any depth."""
    if isinstance(parts, list):
        for part in parts:
            yield from _pictures_in(part)
    elif isinstance(parts, Mapping):
        if parts.get("type") == "image" and "path" in parts:
            yield parts
        yield from _pictures_in(parts.get("content"))


def _found(medium: Mapping[str, Any], drawn: Mapping[Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Add the file to a medium that is a picture which the model made in an earlier round."""
    made = None if medium.get("path") or medium.get("url") else drawn.get(medium.get("sha256"))
    return medium if made is None else {**medium, "path": made.get("path")}


def medium_key(medium: Mapping[str, Any]) -> str:
    """Return a text that identifies a medium."""
    named = (medium.get(key) for key in ("type", "path", "url", "name", "sha256", "frames", "times", "stored"))
    return repr(tuple(named))


def file_of(medium: Mapping[str, Any], places: MediaFolders) -> Path:
    """Find the file of a medium.

    Raises ``MediaError`` if there is no file on this machine, or if a foreign run names a file outside of its folders.
    """
    if stored := stored_names(medium):
        return _kept(stored[0], places)
    named = medium.get("path")
    if not isinstance(named, str) or not named:
        if reason := _NOT_STORED.get(str(medium.get("not_stored"))):
            raise NotStored(f"not stored: {reason}")
        raise MediaError("it was sent from an address or from memory: no file of it is kept")
    tried = [Path(named)] if Path(named).is_absolute() else [folder / named for folder in places.folders]
    permitted = [path for path in tried if places.permit(path)]
    if not permitted:
        raise MediaError(
            f"{named} is outside of the run's folder: without the run's record, only files in its folder are shown; "
            "--allow_path FOLDER allows more"
        )
    found = next((path for path in permitted if path.is_file()), None)
    if found is None:
        raise MediaError(f"there is no file {named}")
    return found


def stored_names(medium: Mapping[str, Any]) -> list[str]:
    """Return the paths of the files that the run keeps of a medium, below the folder of the samples.

    Only names that a run gives are returned: a foreign samples file cannot lead to another place.
    """
    stored = medium.get("stored")
    names = [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []
    return [name for name in names if name.startswith(f"{KEPT}/") and NAME.fullmatch(name[len(KEPT) + 1 :])]


def is_picture(name: str) -> bool:
    """Return whether a file that a run keeps is a picture."""
    return name.rpartition(".")[2] in PICTURE_SUFFIXES


def _kept(name: str, places: MediaFolders) -> Path:
    """Find a file that the run keeps. Raises ``MediaError`` if it is gone, or a link out of the run's folders."""
    found = next((folder / name for folder in places.folders if (folder / name).is_file()), None)
    if found is None:
        raise MediaError(f"there is no file {name} in {places.folders[0]}: was the folder {KEPT} left behind?")
    if not places.permit(found):
        raise MediaError(f"{name} is a link out of the run's folder")
    return found


def _webp(image: Any) -> bytes:
    found, first = b"", 0
    for side, quality, share in _STEPS:
        if first * share > MOST_BYTES:
            continue
        data = io.BytesIO()
        fit(image, Bounds(max_side=side)).save(data, "WEBP", quality=quality, method=0)
        found = data.getvalue()
        first = first or len(found)
        if len(found) <= MOST_BYTES:
            break
    return found
