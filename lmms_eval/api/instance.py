"""The request object of class plugins, and the values that their ``generate_until`` may return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from lmms_eval.api.records import ErrorKind
from lmms_eval.api.response import Thoughts
from lmms_eval.utils.records import to_dict


@dataclass(slots=True)
class TokenCounts:
    """Token counts of one answer; ``None`` if the back end does not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def to_dict(self) -> dict[str, int]:
        """Return the known counts."""
        return {name: count for name, count in to_dict(self).items() if count is not None}


@dataclass(slots=True)
class GenerationResult:
    """A text with the facts that a plugin knows about it, or an interleaved answer.

    An interleaved answer is in ``parts``: texts and pictures in order, each picture as the bytes of a PNG, JPEG, WebP
    or GIF file, as the ``Path`` of one, or as a PIL image. ``text`` is then ignored.
    """

    text: str = ""
    token_counts: TokenCounts | None = None
    parts: Sequence[Any] = ()
    finish_reason: str | None = None
    """``stop``; ``length``: the answer was truncated by the token limit; ``None``: unknown."""
    thoughts: Thoughts | None = None
    """Thoughts that are not part of the text. Tagged thoughts at the start of the text are detected without it."""


class FailedGeneration(Struct, frozen=True):
    """An item of ``generate_until``'s list for a request that was given up: its sample fails for this reason.

    Unlike an exception it does not lose the other answers of the call.
    """

    reason: str
    kind: ErrorKind = "internal"
    attempts: int = 1


@dataclass
class Instance:
    """One request in the form that class plugins receive (``docs/model_guide.md``)."""

    request_type: str
    arguments: tuple[Any, ...]
    idx: int
    metadata: dict[str, Any] = field(default_factory=dict)
    resps: list[Any] = field(default_factory=list)
    filtered_resps: dict[str, Any] = field(default_factory=dict)
    raw_filtered_resps: dict[str, Any] = field(default_factory=dict)
    token_counts: list[Any] = field(default_factory=list)
    task_name: str | None = None
    doc_id: int | None = None
    repeats: int = 1
    doc: Mapping[str, Any] | None = None
    seed: int = 0
    """Sampling seed: different for each request, the same on every start of the run."""
    implied_stop: str = ""
    """The few-shot delimiter, if it is a stop string only because neither the task nor the user states ``until``."""

    def __post_init__(self) -> None:
        self.task_name = self.metadata.get("task", self.task_name)
        self.doc_id = self.metadata.get("doc_id", self.doc_id)
        self.repeats = self.metadata.get("repeats", self.repeats) or 1

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments of the request; their order depends on the request type."""
        return self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)


class UnwrappedOutput(tuple[str | list[str], TokenCounts | None]):
    """The pair of an answer and its token counts, with the parts of an interleaved answer."""

    parts: tuple[Any, ...]

    def __new__(
        cls, text: str | list[str], token_counts: TokenCounts | None, parts: tuple[Any, ...] = ()
    ) -> UnwrappedOutput:
        made = super().__new__(cls, (text, token_counts))
        made.parts = parts
        return made

    @property
    def text(self) -> str | list[str]:
        """A string, or the list of rounds of a multi-round answer."""
        return self[0]

    @property
    def token_counts(self) -> TokenCounts | None:
        return self[1]


def unwrap_generation_output(output: Any) -> UnwrappedOutput:
    """Convert a plugin's output for one request: a text, ``GenerationResult``, ``(text, counts)`` or list of rounds."""
    if isinstance(output, GenerationResult):
        return UnwrappedOutput(output.text, output.token_counts, tuple(output.parts))
    if isinstance(output, tuple) and len(output) == 2 and isinstance(output[1], TokenCounts | Mapping):
        counts = output[1]
        if isinstance(counts, Mapping):
            counts = TokenCounts(*(counts.get(key) for key in ("input_tokens", "output_tokens", "reasoning_tokens")))
        return UnwrappedOutput(str(output[0]), counts)
    if isinstance(output, list | tuple):
        return UnwrappedOutput([str(item) for item in output], None)
    return UnwrappedOutput("" if output is None else str(output), None)
