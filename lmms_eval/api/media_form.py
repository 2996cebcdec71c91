"""Form in which a back end takes media, as its arguments alone tell it: for what is foretold of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MediaForm:
    """Form of media and limit of answers; by default nothing is known and nothing is sent."""

    frames: int | None = None
    """Most frames of a video; ``None``: not known."""
    fps: float | None = None
    """Frames a second."""
    wire: Any = None
    """Encoding of pictures (``lmms_eval.media.WireOptions``); ``None``: they are not sent over a network."""
    passes_videos: bool = False
    """A video goes as its address, not as frames."""
    max_new_tokens: int = 1024
    """Tokens of an answer at most, where a task does not say."""
