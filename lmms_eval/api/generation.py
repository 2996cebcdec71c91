"""Generation options: the names of the usual ones, and a back end's statement of the ones that it accepts."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field


class MediaForm(Struct, frozen=True):
    """The form of media that a model receives, and its default limit of answers."""

    frames: int | None = None
    """Maximum number of frames of a video; ``None``: unknown."""
    fps: float | None = None
    """Frames per second."""
    wire: Any = None
    """Encoding of pictures (``lmms_eval.media.WireOptions``); ``None``: they are not sent over a network."""
    passes_videos: bool = False
    """A video is sent as its URL, not as frames."""
    max_new_tokens: int = 1024
    """Maximum number of tokens of an answer if a task states none."""


class RequestLimits(Struct, frozen=True):
    """Limits on the pictures and videos of a request; ``None``: the back end's own."""

    min_pixels: int | None = None
    """Smaller pictures and frames are scaled up to so many pixels."""
    max_pixels: int | None = None
    """Larger pictures and frames are scaled down to so many pixels."""
    total_pixels: int | None = None
    """Pixels of all frames of a video together."""
    fps: float | None = None
    """Frames per second of a video."""
    min_frames: int | None = None
    max_frames: int | None = None
    frame_rule: str | None = None
    """How frames are chosen and scaled (``media.frame_rules.RULES``); ``None``: evenly spaced, as usual."""
    tiles: int | None = None
    """Most tiles that a picture is cut into."""
    tiles_later: int | None = None
    """The same for all pictures of a request but the first."""
    total_tiles: int | None = None
    """Most tiles of all pictures together."""

    @property
    def stated(self) -> dict[str, int | float | str]:
        """The limits that are set, by name."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


PIXEL_LIMITS = frozenset({"min_pixels", "max_pixels"})
VIDEO_LIMITS = frozenset({"total_pixels", "fps", "min_frames", "max_frames", "frame_rule"})
"""Names of the limits that back ends apply which open media themselves."""
TILE_LIMITS = frozenset({"tiles", "tiles_later", "total_tiles"})
ALL_LIMITS = PIXEL_LIMITS | VIDEO_LIMITS | TILE_LIMITS
LENGTHS = ("max_new_tokens", "max_tokens", "max_completion_tokens", "max_gen_toks")
"""Names of the option for the maximum number of tokens of an answer, by precedence."""
MOST = "max"
"""Value of that option: as many tokens as the model can generate."""
STOPS = ("until", "stop", "stop_sequences", "stop_strings")
"""Names of the stop strings."""
SAMPLING = ("temperature", "top_p", "do_sample", "seed")
"""Sampling options that every kind of back end supports in some form."""
TEMPLATE_OPTIONS = "chat_template_kwargs"
"""Variables of the chat template, as a mapping."""
OF_HARNESS = frozenset({"max_agentic_steps", "visual_cot", "bagel_interleaved"})
"""Options that control the exchange of a task, not the model."""
WITHOUT_EFFECT = frozenset({"use_cache"})
"""Options that affect only the speed."""
_ALWAYS = OF_HARNESS | WITHOUT_EFFECT
_ONE = ("num_beams", "n", "best_of", "num_return_sequences")
"""Options whose value 1 is the default."""
_LIKENESS = 0.6
"""Minimum similarity (``difflib``) of a known name that is suggested for an unknown one."""


class TakenOptions(Struct, frozen=True):
    """Generation options that a back end accepts, by the names that tasks and ``--gen_kwargs`` give them.

    Source: engine rules, section 17.
    """

    names: frozenset[str]
    forwards: bool = False
    """Unknown options are forwarded under their own names."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons to refuse known options; they take precedence over ``names`` and ``forwards``."""
    variables: frozenset[str] | None = None
    """Variables of the chat template; ``None``: unknown, since a server renders it."""
    needs_length: str = ""
    """Reason why a request must state a number of tokens, not ``max``; empty if it need not."""

    def objection(self, name: str, value: Any) -> str:
        """Return the reason to refuse an option; empty if it is accepted, or equals the default."""
        if value is None or name in _ALWAYS or (name in _ONE and value == 1):
            return ""
        if name in LENGTHS and value == MOST:
            return self.needs_length
        if name in self.reasons:
            return self.reasons[name]
        if name == "extra_body" and isinstance(value, str) and not value.lstrip().startswith("{"):
            return "it is a mapping, or JSON text of one"
        if name == TEMPLATE_OPTIONS and self.variables is not None:
            known = sorted(self.variables or ())
            unknown = [str(name) for name in value if name not in known] if isinstance(value, Mapping) else []
            if not unknown:
                return ""
            has = f"its variables are {', '.join(known)}" if known else "it has no variables of its own"
            return f"the chat template knows no {', '.join(unknown)}; {has}"
        if name in self.names or self.forwards:
            return ""
        near = nearest_name(name, self.names)
        return f"did you mean {near!r}?" if near else "there is no such option"


def answer_length(options: Mapping[str, Any], default: int) -> int | None:
    """Return the maximum number of tokens of an answer; ``None``: as many as the model can generate.

    Raises:
        ValueError: the stated length is not a number.
    """
    stated = next((options[name] for name in LENGTHS if options.get(name)), None)
    if stated == MOST:
        return None
    return default if stated is None else int(stated)


def nearest_name(name: str, known: Collection[str]) -> str:
    """Return the known name that is most similar to ``name``; empty if there is no similar one."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=_LIKENESS)), "")
