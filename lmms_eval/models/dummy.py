"""One constant answer to everything, and a measure of how fast the media of the tasks can be read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED_LOCALLY
from lmms_eval.models.baseline import Baseline

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatVideoContent


@dataclass(slots=True)
class Read:
    """Media that were read so far; seconds are summed over the preparation threads."""

    pictures: int = 0
    videos: int = 0
    frames: int = 0
    sounds: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Dummy(Baseline):
    """``--model dummy --model_args response=A``.

    Args:
        response: the answer to every request.
        read_bytes: read the files that the prompts name, and count their bytes.
        decode_num_frames: frames to decode of every video; pictures and sounds are decoded too. 0: nothing is decoded.
        decode_fps: frames a second to decode, at most ``decode_num_frames`` where both are given.
        metrics_output_path: JSON file for what was read. The results file has it under ``model`` in any case.
    """

    ignored_arguments = IGNORED_LOCALLY

    def __init__(
        self,
        response: str = "A",
        read_bytes: bool = False,
        decode_num_frames: int = 0,
        decode_fps: float | None = None,
        metrics_output_path: str | None = None,
    ) -> None:
        if decode_num_frames < 0 or (decode_fps is not None and decode_fps <= 0):
            raise ModelError("dummy: decode_num_frames is at least 0 and decode_fps above 0 (--model_args)")
        super().__init__("constant", text=response, no_media=True)
        self.read_bytes = read_bytes
        self.decode_num_frames, self.decode_fps = decode_num_frames, decode_fps
        self._output = Path(metrics_output_path).expanduser() if metrics_output_path else None
        self._read = Read()
        self._lock = threading.Lock()

    def prepare(self, request: Request) -> Request:
        """Read what the prompt shows, as far as the arguments ask for it.

        Raises:
            MediaError: a medium is missing or damaged.
        """
        decodes = bool(self.decode_num_frames or self.decode_fps)
        if not self.read_bytes and not decodes:
            return request
        messages = request.build_messages()
        started, read = time.monotonic(), Read()
        for message in messages.messages:
            for part in message.content:
                if part.type == "text":
                    continue
                read.bytes += _file_size(part.url) if self.read_bytes else 0
                if decodes:
                    self._decode(part, read)
        read.seconds = time.monotonic() - started
        with self._lock:
            for name, value in asdict(read).items():
                setattr(self._read, name, getattr(self._read, name) + value)
        return request

    def describe(self) -> Mapping[str, Any]:
        """Tell what was read."""
        return asdict(self._read) if self.read_bytes or self.decode_num_frames or self.decode_fps else {}

    def close(self) -> None:
        """Write ``metrics_output_path``. Raises ``ModelError`` where that fails."""
        if self._output is None:
            return
        try:
            self._output.parent.mkdir(parents=True, exist_ok=True)
            self._output.write_text(json.dumps(asdict(self._read), indent=2), "utf-8")
        except OSError as error:
            raise ModelError(f"dummy: {self._output} cannot be written: {error.strerror or error}") from error

    def _decode(self, part: Any, read: Read) -> None:
        from lmms_eval.media import load_audio, load_rgb

        if part.type == "image":
            load_rgb(part.url)
            read.pictures += 1
        elif part.type == "audio":
            load_audio(part.url)
            read.sounds += 1
        else:
            read.videos += 1
            read.frames += self._frames(part)

    def _frames(self, part: ChatVideoContent) -> int:
        from lmms_eval.media import Sampling, load_rgb, read_frames

        if isinstance(part.url, Sequence) and not isinstance(part.url, str | bytes | bytearray):
            return len([load_rgb(frame) for frame in part.url[: self.decode_num_frames or None]])
        sampling = Sampling(count=self.decode_num_frames or None, fps=self.decode_fps)
        return len(list(read_frames(part.url, sampling).images()))


def _file_size(value: Any) -> int:
    """Bytes of the local file that a part names, read; 0 for what is no such file."""
    if not isinstance(value, str | Path) or str(value).startswith(("http://", "https://", "data:")):
        return 0
    path = Path(str(value).removeprefix("file://")).expanduser()
    return len(path.read_bytes()) if path.is_file() else 0
