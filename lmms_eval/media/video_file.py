"""One video in its container: properties, packets, and decoded frames in order."""

from __future__ import annotations

import bisect
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import MediaError
from lmms_eval.media.reference import MediaRef

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,av1,ivf,obu,gif,apng,flv,asf,ogg,"
    "mxf,nut,dv,mjpeg,yuv4mpegpipe,rm,vc1,h263,"
    "wav,w64,mp3,flac,aac,aiff,au,caf,amr,amrnb,amrwb,ac3,eac3,ape,wv,tta,mpc,mpc8,gsm,voc,dts,truehd,xwma"
)
"""FFmpeg's names of the accepted formats. Playlists and the like (hls, concat, dash) are excluded: they make FFmpeg
open further files and addresses."""
MAX_FRAME_PIXELS = 2**27
"""Maximum pixels of one frame: 16 times 4K. Larger claims of a header are refused before memory is allocated."""
THREADED_FROM_PIXELS = 2**22
"""Least number of pixels of all frames for decoding by several threads. Starting them takes a millisecond, and a single
thread decodes 2**18 pixels in that time."""


def open_container(ref: MediaRef) -> Any:
    """Open a video or sound with PyAV: a file, bytes, or an address to fetch.

    Raises:
        av.FFmpegError: the content is not in one of ``FORMATS``, whatever its name, or is damaged.
        MediaError: the bytes cannot be read.
        OSError: the file cannot be opened.
    """
    import av

    source: Any = str(ref.path) if ref.kind == "path" else io.BytesIO(ref.read_bytes())
    return av.open(source, options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})


class VideoInfo(Struct, frozen=True):
    """Properties of the first video stream, as far as the container states them."""

    frames: int
    """Number of frames according to the container, or as counted."""
    fps: float
    """Average frames per second; 0 if unknown."""
    duration: float
    """Seconds; 0 if unknown."""
    width: int
    height: int

    def of_length(self, frames: int) -> VideoInfo:
        """Return the properties with the number of frames that were found."""
        if frames == self.frames:
            return self
        counted = frames / self.fps if self.fps else 0.0
        return replace(self, frames=frames, duration=counted if self.frames > 0 else self.duration or counted)


class PacketIndex(Struct, frozen=True):
    """Presentation times of all frames and of the key frames, ascending."""

    times: tuple[int, ...]
    keys: tuple[int, ...]

    def by_key(self, wanted: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Group wanted frame numbers (ascending) by the number of the key frame where decoding starts."""
        groups: dict[int, list[int]] = {}
        for number in wanted:
            position = max(0, bisect.bisect_right(self.keys, self.times[number]) - 1)
            groups.setdefault(bisect.bisect_left(self.times, self.keys[position]), []).append(number)
        yield from groups.items()


class VideoFile:
    """The first video stream of an open container."""

    def __init__(self, ref: MediaRef) -> None:
        import av

        self._ref = ref
        self._errors: tuple[type[BaseException], ...] = (av.FFmpegError, OSError, ValueError, EOFError)
        self._open()

    def _open(self) -> None:
        ref = self._ref
        try:
            self._container = open_container(ref)
        except self._errors as error:
            raise MediaError(f"{ref.describe()} is not a readable video: {error}") from error
        if not self._container.streams.video:
            self._container.close()
            raise MediaError(f"{ref.describe()} has no video stream")
        self._stream = self._container.streams.video[0]
        if self._stream.codec_context is None:
            self._container.close()
            raise MediaError(
                f"the video stream of {ref.describe()} has a codec that the installed FFmpeg does not know"
            )
        context = self._stream.codec_context
        if context.width * context.height > MAX_FRAME_PIXELS:
            self._container.close()
            raise MediaError(f"video {ref.describe()} claims frames of {context.width}x{context.height} pixels")
        context.options = {"max_pixels": str(MAX_FRAME_PIXELS)}  # a stream may change its size later
        if 0 < context.width * context.height * self._stream.frames < THREADED_FROM_PIXELS:
            context.thread_count = 1
        else:
            self._stream.thread_type = "AUTO"
        self._is_fresh = True

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()

    @property
    def threads(self) -> int:
        """Number of frames that are decoded at the same time."""
        return int(self._stream.codec_context.thread_count) or os.cpu_count() or 1

    def info(self) -> VideoInfo:
        stream = self._stream
        fps = float(stream.average_rate or 0)
        duration = 0.0
        if stream.duration and stream.time_base:
            duration = float(stream.duration * stream.time_base)
        elif self._container.duration:
            duration = self._container.duration / 1_000_000
        context = stream.codec_context
        return VideoInfo(int(stream.frames), fps, duration, int(context.width), int(context.height))

    def decode(self) -> Iterator[Any]:
        """Yield all frames in order of time, with ``None`` in place of frames that cannot be decoded."""
        self._is_fresh = False
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except self._errors:  # the rest of the file is missing or damaged
                packet = None
            if packet is None:
                return
            try:
                yield from packet.decode()
            except self._errors:
                yield None

    def from_start(self) -> Iterator[Any]:
        """Yield the same as :meth:`decode`, from the first frame, whatever was read before."""
        if not self._is_fresh:
            self._container.close()
            self._open()  # not every container finds its first frame by seeking
        return self.decode()

    def seek(self, time: int) -> bool:
        """Continue from the key frame at ``time`` (in units of the stream); ``False`` if the container cannot seek."""
        try:
            self._container.seek(time, stream=self._stream, backward=True)
        except self._errors:
            return False
        return True

    def packet_index(self) -> PacketIndex | None:
        """Return the times of all frames without decoding; ``None`` if a packet has no time or the file is damaged."""
        self._is_fresh = False
        times: set[int] = set()
        keys: set[int] = set()
        try:
            for packet in self._container.demux(self._stream):
                if packet.size == 0 or packet.is_discard:
                    continue
                if packet.pts is None:
                    return None
                times.add(packet.pts)
                if packet.is_keyframe:
                    keys.add(packet.pts)
        except self._errors:
            return None
        return PacketIndex(tuple(sorted(times)), tuple(sorted(keys))) if keys else None
