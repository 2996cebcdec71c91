"""Generation options: which of them a back end takes, and why another one has no place in its requests."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
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


LENGTHS = ("max_new_tokens", "max_tokens", "max_completion_tokens", "max_gen_toks")
"""Names of the most tokens of an answer; the first one given counts."""
MOST = "max"
"""Value of a length: as many tokens as the model takes."""
STOPS = ("until", "stop", "stop_sequences", "stop_strings")
"""Names of the stop strings."""
SAMPLING = ("temperature", "top_p", "do_sample", "seed")
"""Options of sampling that every kind of back end knows in some form."""
TEMPLATE_OPTIONS = "chat_template_kwargs"
"""Variables of the chat template, as a mapping."""
OF_HARNESS = frozenset({"max_agentic_steps", "visual_cot", "bagel_interleaved"})
"""They steer the exchange of a task, not the model."""
WITHOUT_EFFECT = frozenset({"use_cache"})
"""They change the speed alone."""
_ALWAYS = OF_HARNESS | WITHOUT_EFFECT
_ONE = ("num_beams", "n", "best_of", "num_return_sequences")
"""Options whose value 1 asks for what happens without them."""
_LIKENESS = 0.6
"""Of a name to a known one (``difflib``), from which on it is offered."""


@dataclass(frozen=True, slots=True)
class TakenOptions:
    """Generation options that a back end takes, by the names that tasks and ``--gen_kwargs`` give them.

    Source: engine rules, section 17.
    """

    names: frozenset[str]
    forwards: bool = False
    """An option that nobody here knows goes out under its own name."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why known options have no place; beats ``names`` and ``forwards``."""
    variables: frozenset[str] | None = None
    """Variables of the chat template; ``None``: not known, since a server renders it."""
    needs_length: str = ""
    """Why a request must state a number of tokens, not ``max``; empty if it need not."""

    def objection(self, name: str, value: Any) -> str:
        """Return why an option has no place; empty if it has one, or asks for what happens anyway."""
        if value is None or name in _ALWAYS or (name in _ONE and value == 1):
            return ""
        if name in LENGTHS and value == MOST:
            return self.needs_length
        if name in self.reasons:
            return self.reasons[name]
        if name == "extra_body" and isinstance(value, str) and not value.lstrip().startswith("{"):
            return "it is a mapping, or JSON text of one"
        if name == TEMPLATE_OPTIONS and self.variables is not None:
            return self._unknown_variables(value)
        if name in self.names or self.forwards:
            return ""
        near = nearest_name(name, self.names)
        return f"did you mean {near!r}?" if near else "there is no such option"

    def _unknown_variables(self, given: Any) -> str:
        known = sorted(self.variables or ())
        unknown = [str(name) for name in given if name not in known] if isinstance(given, Mapping) else []
        if not unknown:
            return ""
        has = f"its variables are {', '.join(known)}" if known else "it has no variables of its own"
        return f"the chat template knows no {', '.join(unknown)}; {has}"


def answer_length(options: Mapping[str, Any], default: int) -> int | None:
    """Return the most tokens of an answer; ``None``: as many as the model takes.

    Raises:
        ValueError: the stated length is no number.
    """
    stated = next((options[name] for name in LENGTHS if options.get(name)), None)
    if stated == MOST:
        return None
    return default if stated is None else int(stated)


def nearest_name(name: str, known: Collection[str]) -> str:
    """Return the known name that is most like ``name``; empty if none is like it."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=_LIKENESS)), "")
