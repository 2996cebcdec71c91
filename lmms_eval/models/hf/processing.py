"""Processors that run in processes of their own, so that transforming pictures does not hold this process's lock.

The processor of a model (Pillow, numpy, tokenizer) takes the interpreter's lock many times for each picture, and so
does ``generate`` for each operation. In threads of one process they wait for each other; in processes they do not.
``python -m lmms_eval.models.hf.processing`` is the child's side. Jobs are JSON lines; pixels and tensors are in a file
that both sides map into memory.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import msgspec
from loguru import logger
from msgspec.structs import replace

from lmms_eval.models.hf.batching import RECOVERABLE
from lmms_eval.models.hf.load import Loaded, load_processor
from lmms_eval.models.hf.options import HFOptions, Profile
from lmms_eval.models.hf.pictures import cache_pictures
from lmms_eval.processes import Child, ChildError, Parent

_MODULE = "lmms_eval.models.hf.processing"
_START_S = 600.0
"""Seconds until a process must have loaded the processor and answered its first job."""
_JOB_S = 300.0
"""Seconds until a process must have answered a later job."""
_SHARED_MEMORY = Path("/dev/shm")
_ALIGNMENT = 64
_FIRST_BYTES = 1 << 20
_OF_PROFILE = ("name", "architecture", "parts", "without_torchvision", "media", "chat")
"""The fields of a profile that loading a processor needs."""


class SharedFile:
    """A file that two processes map into memory. It grows as needed, and has no name once both have opened it."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            folder = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
            self._file, name = tempfile.mkstemp(prefix="lmms-eval-", dir=folder)
            self.path = Path(name)
        else:
            self._file, self.path = os.open(path, os.O_RDWR), path
        self._map: mmap.mmap | None = None
        self.close = weakref.finalize(self, _remove, self._file, self.path)
        """Closes the file. Tensors over its memory stay valid."""

    def memory(self, size: int) -> mmap.mmap:
        """Return at least ``size`` bytes of memory. Raises ``OSError`` if there is no room for them."""
        if self._map is None or len(self._map) < size:
            size = max(size, _FIRST_BYTES)
            if os.fstat(self._file).st_size < size:
                os.truncate(self._file, size)
                if hasattr(os, "posix_fallocate"):  # writing to pages that have no room would end the process
                    os.posix_fallocate(self._file, 0, size)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return self._map

    def unlink(self) -> None:
        self.path.unlink(missing_ok=True)


def _remove(file: int, path: Path) -> None:
    os.close(file)
    path.unlink(missing_ok=True)


class PictureProcess:
    """The processor of an encoder, which processes prompts with pictures in a child process.

    Attributes and all other prompts are those of the ``local`` processor. It also processes what the child cannot: it
    raises the processor's own exceptions, and takes over if the child ends.
    """

    def __init__(self, options: HFOptions, profile: Profile) -> None:
        self.hits = 0
        """Pictures that the child did not have to process again."""
        self._local: Any = None
        self._shared = SharedFile()
        self._is_ready = False
        first = {
            "options": msgspec.to_builtins(options),
            "profile": {name: msgspec.to_builtins(getattr(profile, name)) for name in _OF_PROFILE},
            "path": str(self._shared.path),
        }
        self._child: Child | None = Child(_MODULE, name="the process of the processor", errors="kept")
        self._child.send(json.dumps(first).encode())

    def around(self, local: Any) -> PictureProcess:
        """Set the processor of this process."""
        self._local = local
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_local":
            raise AttributeError(name)
        return getattr(self._local, name)

    def __call__(self, text: list[str], **options: Any) -> Any:
        images = options.pop("images", None)
        pictures = _pictures(images)
        if self._child is not None and pictures and all(_is_plain(picture) for picture in pictures):
            found = self._ask(text, images, pictures, options)
            if found is not None:
                return found
        if images is not None:
            options["images"] = images
        return self._local(text=text, **options)

    def _ask(
        self, text: list[str], images: Sequence[Any], pictures: Sequence[Any], options: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Let the child process prompts; ``None`` if it cannot."""
        assert self._child is not None
        try:
            sizes = [picture.size for picture in pictures]
            memory, at = self._shared.memory(sum(3 * wide * high for wide, high in sizes)), 0
            for picture in pictures:
                data = picture.tobytes()
                memory[at : at + len(data)] = data
                at += len(data)
            rows = [len(row) for row in images] if isinstance(images[0], list) else None
            job = {"text": text, "sizes": sizes, "rows": rows, "options": options}
            self._child.send(json.dumps(job).encode())
            reply = json.loads(self._child.receive(_JOB_S if self._is_ready else _START_S))
            if not self._is_ready:
                self._shared.unlink()  # the child has opened it
                self._is_ready = True
            if "error" in reply:
                return None
            return self._tensors(reply)
        except (ChildError, OSError, TypeError) as error:
            logger.warning("pictures are processed in threads from now on: {}: {}", type(error).__name__, error)
            self.close()
            return None

    def _tensors(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        import torch

        self.hits = reply["hits"]
        memory = self._shared.memory(reply["size"])
        return {
            name: torch.frombuffer(memory, dtype=getattr(torch, kind), count=prod(shape), offset=at).clone().view(shape)
            for name, kind, shape, at in reply["tensors"]
        }

    def close(self) -> None:
        """End the child. Later prompts are processed by the local processor."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.close()
            self._shared.close()


def _pictures(images: Any) -> list[Any]:
    """Return the pictures of a list, or of a list of lists."""
    if not images:
        return []
    return [picture for row in images for picture in row] if isinstance(images[0], list) else list(images)


def _is_plain(picture: Any) -> bool:
    """Return whether its pixels are the whole picture."""
    return picture.mode == "RGB" and picture.info.get("transparency") is None


def begin(options: HFOptions, profile: Profile) -> list[PictureProcess]:
    """Start the processes that the options ask for, which load their processors while the model is loaded."""
    if not options.preprocess_processes or "image_processor" not in profile.parts:
        return []
    return [PictureProcess(options, profile) for _ in range(options.preprocess_workers or 1)]


def in_processes(copies: Sequence[Loaded], processes: Sequence[PictureProcess]) -> list[Loaded]:
    """Return the copies with the processes around their processors, if there are any."""
    if not processes:
        return list(copies)
    pairs = zip(copies, processes, strict=True)
    return [replace(copy, processor=process.around(copy.processor)) for copy, process in pairs]


class _Server:
    """The child's side: a processor, and the shared file that it shares with the parent."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        self._shared = SharedFile(Path(first["path"]))
        given = first["profile"]
        profile = Profile(**{**given, "parts": tuple(given["parts"]), "media": frozenset(given["media"])})
        options = msgspec.convert(first["options"], HFOptions)
        self._processor, *_ = load_processor(options, profile)
        self._pictures = cache_pictures(self._processor, options.image_cache_mb << 20)

    def process(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Process prompts with pictures, and write the tensors into the shared file."""
        pictures = self._read(job["sizes"])
        images: list[Any] = pictures
        if job["rows"] is not None:
            left = iter(pictures)
            images = [list(islice(left, count)) for count in job["rows"]]
        return self._write(self._processor(text=job["text"], images=images, **job["options"]))

    def _read(self, sizes: Sequence[Sequence[int]]) -> list[Any]:
        from PIL import Image

        memory, at, pictures = memoryview(self._shared.memory(sum(3 * wide * high for wide, high in sizes))), 0, []
        for wide, high in sizes:
            pictures.append(Image.frombytes("RGB", (wide, high), memory[at : (at := at + 3 * wide * high)]))
        return pictures

    def _write(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        import torch

        tensors, size = [], 0
        for name, value in batch.items():
            if not isinstance(value, torch.Tensor) or not value.numel():
                raise TypeError(f"{name} is not a tensor")
            tensors.append([name, str(value.dtype).removeprefix("torch."), list(value.shape), size])
            size += -(-value.nbytes // _ALIGNMENT) * _ALIGNMENT
        memory = self._shared.memory(size)
        for (_, _, _, at), value in zip(tensors, batch.values(), strict=True):
            torch.frombuffer(memory, dtype=value.dtype, count=value.numel(), offset=at).copy_(value.reshape(-1))
        return {"tensors": tensors, "size": size, "hits": 0 if self._pictures is None else self._pictures.hits}


def reply_to(server: _Server, line: bytes) -> bytes:
    """Process a job. If it raises, the reply is the error."""
    try:
        reply = server.process(json.loads(line))
    except RECOVERABLE as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps(reply).encode()


def serve() -> None:
    """Process jobs until the input ends."""
    parent = Parent()
    server = _Server(json.loads(parent.receive()))
    for line in parent:
        parent.send(reply_to(server, line))


if __name__ == "__main__":
    serve()
