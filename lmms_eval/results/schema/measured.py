"""Types of what the results document says of speed, tokens, judge and batches."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from lmms_eval.engine.batch_check import Difference, Trouble
from lmms_eval.results.schema.conversation import DESCRIBED


@with_config(DESCRIBED)
class Throughput(TypedDict):
    """Speed of what this start has asked."""

    total_gen_tokens: float
    total_elapsed_time: float
    """Seconds."""
    avg_speed: float
    """Tokens a second."""
    avg_latency: NotRequired[float]
    """Seconds, mean over requests."""


class TokenSums(TypedDict):
    """Tokens and answers."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int
    n_api_calls: int


@with_config(DESCRIBED)
class Cost(TypedDict):
    """Cost of all starts of the run, at the prices that the user gave; null where it is not known."""

    model: float | None
    judge: float | None
    total: float | None
    currency: str
    price: str
    """Source of the price."""
    judge_price: NotRequired[str]


@with_config(DESCRIBED)
class UsagePart(TypedDict, total=False):
    """Tokens over all answers of the run, resumed ones included; ``cost`` alone where no back end told any."""

    total: TokenSums
    by_task: dict[str, TokenSums]
    by_source: dict[str, TokenSums]
    """``model`` and ``judge``."""
    budget_exceeded: bool
    cost: Cost


@with_config(DESCRIBED)
class EfficiencyEntry(TypedDict):
    """Tokens spent per document and per right answer; each document counts once."""

    docs: float
    docs_with_token_counts: float
    total_input_tokens: float
    total_output_tokens: float
    total_tokens: float
    total_correct_score: float
    avg_output_tokens_per_sample: float
    tokens_per_correct_answer: float | None


class Efficiency(TypedDict):
    """Of each task and of all."""

    by_task: dict[str, EfficiencyEntry]
    overall: EfficiencyEntry


class JudgeCounts(TypedDict):
    """Questions to the judge and what became of them."""

    questions: int
    replies: int
    answered: int
    judge_unparsable: int
    failed: int
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int


class BatchCheckPart(TypedDict):
    """Answers that were asked again, each alone."""

    asked: int
    in_batches: int
    differing: int
    rows: list[Difference]
    failed: list[Trouble]
    stopped: str


class JudgePart(JudgeCounts):
    """The judge: who it is, and counts over all tasks."""

    asked: int
    by_task: dict[str, JudgeCounts]
    given_up: NotRequired[str]
    cache: NotRequired[dict[str, Any]]
