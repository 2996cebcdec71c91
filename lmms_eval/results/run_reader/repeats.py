"""The answers of a document that was asked several times, each with what it took and scored alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.filters.reasoning import THOUGHT_TAGS


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of all requests of a sample, or of one of its answers, as far as the back end told them."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @classmethod
    def of(cls, counts: Any) -> Tokens:
        """Add up ``token_counts``; what is none counts nothing."""
        known = [one for one in counts if isinstance(one, Mapping)] if isinstance(counts, list) else []

        def total(name: str) -> int | None:
            numbers = [one[name] for one in known if isinstance(one.get(name), int)]
            return sum(numbers) if numbers else None

        return cls(total("input_tokens"), total("output_tokens"), total("reasoning_tokens"))


@dataclass(frozen=True, slots=True)
class Repeat:
    """One answer of several."""

    answer: Any
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Values of this answer alone; empty where the task scores all of them together."""
    tokens: Tokens = Tokens()
    elapsed: float | None = None
    """Seconds."""
    finish_reason: str = ""
    thoughts: Any = None
    """What the model thought before it: a text, or one for each round."""


def thoughts_text(value: Any) -> str:
    """Join the thoughts of a line of samples: a text, or one for each round or repeat."""
    if isinstance(value, list):
        return "\n\n".join(text for one in value if (text := thoughts_text(one)))
    return value if isinstance(value, str) else ""


def without_thoughts(answer: str, thoughts: Any) -> str:
    """Take the thoughts and their closing tag out of an answer that holds them; another one stays as it is."""
    place = answer.find(thoughts) if isinstance(thoughts, str) and thoughts.strip() else -1
    if place < 0:
        return answer
    rest = answer[place + len(thoughts) :]
    closing = next((tag for _, tag in THOUGHT_TAGS if rest.startswith(tag)), "")
    return rest.removeprefix(closing).lstrip()


def token_counts_of(record: Mapping[str, Any]) -> list[Any]:
    """List the counts of all requests of a sample: of repeats each has its own."""
    told = record.get("repeats")
    owners = [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else [record]
    counts = [owner.get("token_counts") for owner in owners]
    return [one for some in counts if isinstance(some, list) for one in some]


def repeats_of(record: Mapping[str, Any]) -> tuple[Repeat, ...]:
    """Read the answers of a line of samples; none where there is a single one."""
    said, told = record.get("raw_resps"), record.get("repeats")
    if not isinstance(said, list) or len(said) < 2:
        return ()
    return tuple(_repeat(record, answer, _at(told, number), number) for number, answer in enumerate(said))


def _repeat(record: Mapping[str, Any], answer: Any, told: Any, number: int) -> Repeat:
    own = told if isinstance(told, Mapping) else {}
    metrics, elapsed = own.get("metrics"), _at(record.get("elapsed"), number)
    return Repeat(
        answer=answer,
        metrics=metrics if isinstance(metrics, Mapping) else {},
        tokens=Tokens.of(own.get("token_counts")),
        elapsed=float(elapsed) if isinstance(elapsed, int | float) else None,
        finish_reason=str(_at(record.get("finish_reason"), number) or ""),
        thoughts=_at(record.get("thoughts"), number),
    )


def _at(values: Any, number: int) -> Any:
    """Return the entry of a list; anything else is one value for none in particular."""
    return values[number] if isinstance(values, list) and number < len(values) else None
