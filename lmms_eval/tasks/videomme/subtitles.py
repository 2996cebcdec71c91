"""Subtitles of Video-MME: those that stand on the screen in one of the frames which a model sees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ALL_FRAMES = -1
_OPENING = re.compile(r'<font color="white" size=".72c">')
_CLOSING = "</font>"
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_TIME = r"(\d{1,6}):(\d{1,6}):(\d{1,6}[,.]\d{1,6})"  # bounded, so that a row of digits is read in linear time
_TIMES = re.compile(rf"{_TIME}\s*+-->\s*+{_TIME}")


@dataclass(frozen=True, slots=True)
class Block:
    """Texts that are shown together."""

    start: float
    """Seconds."""
    end: float
    """Seconds; not shown any more."""
    lines: tuple[str, ...]


def read(text: str) -> list[Block]:
    """Read a file in the form SubRip, in order of time. Blocks without times are passed over.

    Of files with the authors' font tags the tagged texts alone count; of others the lines as they are.
    """
    is_tagged = any(True for line in text.splitlines() for _ in _tagged(line))
    return sorted(_blocks(text, is_tagged), key=lambda block: block.start)


def _blocks(text: str, is_tagged: bool) -> Iterator[Block]:
    for part in _BLANK_LINE.split(text.replace("\r\n", "\n")):
        lines = part.strip().split("\n")
        place, times = next(((n, found) for n, line in enumerate(lines) if (found := _TIMES.search(line))), (0, None))
        if times is None:
            continue
        shown_lines = [line.strip() for line in lines[place + 1 :]]
        texts = _tagged(" ".join(shown_lines)) if is_tagged else list(filter(None, shown_lines))
        yield Block(_seconds(*times.groups()[:3]), _seconds(*times.groups()[3:]), tuple(texts))


def _tagged(line: str) -> Iterator[str]:
    """The texts in the authors' font tags."""
    opening = _OPENING.search(line)
    while opening is not None:
        end = line.find(_CLOSING, opening.end())
        if end < 0:
            return
        yield line[opening.end() : end]
        opening = _OPENING.search(line, end)


def _seconds(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def shown(blocks: Sequence[Block], frames: int, rate: float, sampled: int) -> list[str]:
    """Return the first text of each block that is on the screen in a sampled frame.

    Args:
        blocks: in order of time.
        frames: number of frames of the video.
        rate: frames per second.
        sampled: number of frames that are taken at equal distances, the first and the last among them, or
            ``ALL_FRAMES``.
    """
    import numpy as np

    taken = np.arange(frames) if sampled == ALL_FRAMES else np.linspace(0, frames - 1, sampled).astype(int)
    found = []
    for block in blocks:
        first, after = np.searchsorted(taken, [int(block.start * rate), int(block.end * rate)])
        if block.lines and first < after:
            found.append(block.lines[0])
    return found
