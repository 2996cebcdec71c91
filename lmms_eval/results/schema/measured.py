"""Types of the results document's parts about speed, tokens, judge and batches."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from lmms_eval.engine.batch_check import BatchDifference, Trouble
from lmms_eval.results.schema.conversation import DESCRIBED, OPEN


@with_config(DESCRIBED)
class Throughput(TypedDict):
    """Speed of the requests of this start."""

    total_gen_tokens: float
    """Output tokens."""
    total_elapsed_time: float
    """Seconds."""
    avg_speed: float
    """Tokens per second."""
    avg_latency: NotRequired[float]
    """Mean seconds per request."""


@with_config(DESCRIBED)
class TokenSums(TypedDict):
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


@with_config(DESCRIBED)
class Cost(TypedDict):
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
    judge_price: NotRequired[str]
    """Source of the judge's price."""


@with_config(DESCRIBED)
class UsagePart(TypedDict, total=False):
    """Tokens over all answers of the run; only ``cost`` if no back end reported tokens."""

    total: TokenSums
    """Over all tasks."""
    by_task: dict[str, TokenSums]
    """By task."""
    by_source: dict[str, TokenSums]
    """``model`` and ``judge``."""
    budget_exceeded: bool
    """A limit of tokens or cost ended the run."""
    cost: Cost
    """Cost, if prices were given."""


@with_config(DESCRIBED)
class EfficiencyEntry(TypedDict):
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


@with_config(OPEN)
class Efficiency(TypedDict):
    """Tokens of each task and of all tasks."""

    by_task: dict[str, EfficiencyEntry]
    """By task."""
    overall: EfficiencyEntry
    """Over all tasks."""


@with_config(OPEN)
class JudgeCounts(TypedDict):
    """Counts of questions to the judge by outcome."""

    questions: int
    """Questions about the documents."""
    replies: int
    """Replies of the judge, including all attempts."""
    answered: int
    """Questions with a readable reply."""
    judge_unparsable: int
    """Questions whose replies could not be read."""
    failed: int
    """Questions without any reply."""
    input_tokens: int
    """Tokens of the judge's prompts."""
    output_tokens: int
    """Tokens of the replies."""
    reasoning_tokens: int
    """Tokens of the judge's reasoning."""


@with_config(OPEN)
class BatchCheckPart(TypedDict):
    """Requests that were sent again, each in its own batch."""

    asked: int
    """Requests sent again."""
    in_batches: int
    """Requests that had shared their batch with others."""
    differing: int
    """Requests whose answers differ."""
    rows: list[BatchDifference]
    """The differing answers."""
    failed: list[Trouble]
    """Requests that could not be sent again."""
    stopped: str
    """Why the check was skipped or not finished."""


@with_config(OPEN)
class JudgePart(JudgeCounts):
    """The judge, and counts over all tasks."""

    asked: int
    """Requests sent by this start."""
    by_task: dict[str, JudgeCounts]
    """Counts by task."""
    given_up: NotRequired[str]
    """Why the run stopped asking the judge."""
    cache: NotRequired[dict[str, Any]]
    """Counts of ``--use_cache``."""
