"""One video as it lies in its container: facts, packets, and decoded frames in order."""

from __future__ import annotations

import bisect
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval.errors import MediaError
from lmms_eval.media.reference import MediaRef

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,av1,ivf,obu,gif,apng,flv,asf,ogg,"
    "mxf,nut,dv,mjpeg,yuv4mpegpipe,rm,vc1,h263,"
    "wav,w64,mp3,flac,aac,aiff,au,caf,amr,amrnb,amrwb,ac3,eac3,ape,wv,tta,mpc,mpc8,gsm,voc,dts,truehd,xwma"
)
"""FFmpeg's names of formats. Playlists and the like (hls, concat, dash) are none of them: they make FFmpeg open further
files and addresses."""


def open_container(ref: MediaRef) -> Any:
    """A video or sound, opened by PyAV: a file, bytes, or an address to fetch.

    Raises:
        av.FFmpegError: it is none of ``FORMATS``, whatever its name, or damaged.
        MediaError: the bytes cannot be read.
        OSError: the file cannot be opened.
    """
    import av

    source: Any = str(ref.path) if ref.kind == "path" else io.BytesIO(ref.read_bytes())
    return av.open(source, options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})


MAX_FRAME_PIXELS = 2**27
"""Pixels of one frame; 16 times 4K. What a header claims beyond it is refused before memory is taken."""
THREADED_FROM_PIXELS = 2**22
"""Pixels of all frames from which on a video is decoded by several threads: starting them takes a millisecond, in which
one decodes 2**18."""


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """Facts about the first video stream, from the container where it tells them."""

    frames: int
    """Frames as the container counts them, else as decoded."""
    fps: float
    """Average frames per second; 0 if unknown."""
    duration: float
    """Seconds; 0 if unknown."""
    width: int
    height: int

    def of_length(self, frames: int) -> VideoInfo:
        """The same video with as many frames as were found in it."""
        if frames == self.frames:
            return self
        counted = frames / self.fps if self.fps else 0.0
        return replace(self, frames=frames, duration=counted if self.frames > 0 else self.duration or counted)


@dataclass(frozen=True, slots=True)
class PacketIndex:
    """Presentation times of all frames, ascending, and those of the key frames."""

    times: tuple[int, ...]
    keys: tuple[int, ...]

    def by_key(self, wanted: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Wanted frame numbers (ascending), grouped by the number of the key frame to start decoding from."""
        groups: dict[int, list[int]] = {}
        for number in wanted:
            position = max(0, bisect.bisect_right(self.keys, self.times[number]) - 1)
            groups.setdefault(bisect.bisect_left(self.times, self.keys[position]), []).append(number)
        yield from groups.items()


class VideoFile:
    """The first video stream of an opened container."""

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
        context.options = {"max_pixels": str(MAX_FRAME_PIXELS)}  # a stream may tell another size later
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
        """Frames that are decoded at a time."""
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
        """All frames in order of time; ``None`` in place of one that cannot be decoded."""
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
        """As :meth:`decode`, from the first frame on, whatever was read before."""
        if not self._is_fresh:
            self._container.close()
            self._open()  # not every container finds its first frame by seeking
        return self.decode()

    def seek(self, time: int) -> bool:
        """Go on from the key frame at ``time`` (in units of the stream); ``False`` if the container cannot."""
        try:
            self._container.seek(time, stream=self._stream, backward=True)
        except self._errors:
            return False
        return True

    def packet_index(self) -> PacketIndex | None:
        """Times of all frames without decoding; ``None`` where a packet has no time or the file is damaged."""
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
