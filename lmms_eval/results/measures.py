"""Speeds, tokens and costs of a run in the results document."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from lmms_eval.results.certainty import Open


class Throughput(Struct, kw_only=True):
    """Speed of the requests of this start."""

    total_gen_tokens: float
    """Output tokens."""
    total_elapsed_time: float
    """Seconds."""
    avg_speed: float
    """Tokens per second."""
    avg_latency: float | UnsetType = UNSET
    """Mean seconds per request."""


class SpeedSpread(Struct, kw_only=True):
    """A speed over answers."""

    median: float
    """Median over the answers."""
    p95: float
    """95th percentile by nearest rank."""


class StreamSpeeds(Struct, kw_only=True):
    """Speeds of the streamed answers to a task in this start."""

    answers: int
    """Number of answers."""
    ttft: SpeedSpread
    """Seconds from sending a request to the first piece of its answer."""
    tokens_per_second: SpeedSpread | UnsetType = UNSET
    """Output tokens after the first, per second from the first piece to the last; absent if no token counts are known,
    or all pieces of each answer arrived together."""


class TokenSums(Struct, kw_only=True):
    """Tokens and answers."""

    input_tokens: int
    """Tokens of prompts, including media if the back end counts them."""
    output_tokens: int
    """Tokens of answers, including reasoning."""
    reasoning_tokens: int
    """Tokens of reasoning, if the back end reports them."""
    total_tokens: int
    """Input and output tokens."""
    n_api_calls: int
    """Number of answers, or of a judge's replies."""


class Cost(Struct, kw_only=True):
    """Cost of all starts of the run, at the prices that the user gave; null if it is not known."""

    model: float | None
    """Cost of the model under test."""
    judge: float | None
    """Cost of the judge."""
    total: float | None
    """Cost of model and judge."""
    currency: str
    """Currency of the price list."""
    price: str
    """Source of the price."""
    judge_price: str | UnsetType = UNSET
    """Source of the judge's price."""


class UsagePart(Struct, kw_only=True):
    """Tokens over all answers of the run; only ``cost`` if no back end reported tokens."""

    total: TokenSums | UnsetType = UNSET
    """Over all tasks."""
    by_task: dict[str, TokenSums] | UnsetType = UNSET
    """By task."""
    by_source: dict[str, TokenSums] | UnsetType = UNSET
    """``model`` and ``judge``."""
    budget_exceeded: bool | UnsetType = UNSET
    """A limit of tokens or cost ended the run."""
    cost: Cost | UnsetType = UNSET
    """Cost, if prices were given."""


class EfficiencyEntry(Struct, kw_only=True):
    """Tokens per document and per right answer. Each document counts once."""

    docs: float
    """Documents."""
    docs_with_token_counts: float
    """Documents with token counts."""
    total_input_tokens: float
    """Input tokens of all documents."""
    total_output_tokens: float
    """Output tokens of all documents."""
    total_tokens: float
    """Input and output tokens of all documents."""
    total_correct_score: float
    """Sum of the documents' scores above 0."""
    avg_output_tokens_per_sample: float
    """Mean over all documents."""
    tokens_per_correct_answer: float | None
    """Output tokens per point of the score."""


class Efficiency(Open, kw_only=True):
    """Tokens of each task and of all tasks."""

    by_task: dict[str, EfficiencyEntry]
    """By task."""
    overall: EfficiencyEntry
    """Over all tasks."""
