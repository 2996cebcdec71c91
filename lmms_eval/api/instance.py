"""The request object of the family's model plugins, and what their ``generate_until`` may return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lmms_eval.api.response import ErrorKind, Thoughts


@dataclass(slots=True)
class TokenCounts:
    """Tokens of one answer; ``None`` where a back end does not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def to_dict(self) -> dict[str, int]:
        """Return the counts that are known."""
        return {name: count for name, count in asdict(self).items() if count is not None}


@dataclass(slots=True)
class GenerationResult:
    """A text with what a plugin knows of it, or an interleaved answer.

    ``parts`` are texts and pictures in order, each picture as bytes of a PNG, JPEG, WebP or GIF file, as ``Path`` of
    one, or as PIL image; ``text`` is not looked at then.
    """

    text: str = ""
    token_counts: TokenCounts | None = None
    parts: Sequence[Any] = ()
    finish_reason: str | None = None
    """``stop``; ``length``: the limit of length cut the answer off; ``None``: not known."""
    thoughts: Thoughts | None = None
    """Thoughts that are not part of the text. Those in tags at its start are found without it."""


@dataclass(frozen=True, slots=True)
class FailedGeneration:
    """A place of ``generate_until``'s list whose request was given up: the sample fails for this reason.

    It keeps the other answers of the call, which an exception would not.
    """

    reason: str
    kind: ErrorKind = "internal"
    attempts: int = 1


@dataclass
class Instance:
    """One request as the class interface of existing plugins sees it (``docs/model_guide.md``)."""

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
    """For sampling; another one for each request, and the same on every start of the run."""
    implied_stop: str = ""
    """The few-shot delimiter, if it is among the generation options though no one states ``until``."""

    def __post_init__(self) -> None:
        self.task_name = self.metadata.get("task", self.task_name)
        self.doc_id = self.metadata.get("doc_id", self.doc_id)
        self.repeats = self.metadata.get("repeats", self.repeats) or 1

    @property
    def args(self) -> tuple[Any, ...]:
        """The request's arguments; which they are depends on the request type."""
        return self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)


class UnwrappedOutput(tuple[str | list[str], TokenCounts | None]):
    """The pair of an answer and its token counts, and the parts of an interleaved answer."""

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
    """Read what a plugin returned for one request: text, ``GenerationResult``, ``(text, counts)``, list of rounds."""
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
