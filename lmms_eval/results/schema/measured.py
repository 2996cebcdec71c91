"""Types of what the results document says of speed, tokens, judge and batches."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from lmms_eval.engine.batch_check import Difference, Trouble
from lmms_eval.results.schema.conversation import DESCRIBED, OPEN


@with_config(DESCRIBED)
class Throughput(TypedDict):
    """Speed of what this start has asked."""

    total_gen_tokens: float
    """Output tokens."""
    total_elapsed_time: float
    """Seconds."""
    avg_speed: float
    """Tokens a second."""
    avg_latency: NotRequired[float]
    """Seconds, mean over requests."""


@with_config(DESCRIBED)
class TokenSums(TypedDict):
    """Tokens and answers."""

    input_tokens: int
    """Of prompts, media among them where the back end counts them."""
    output_tokens: int
    """Of answers, reasoning among them."""
    reasoning_tokens: int
    """Of reasoning, where the back end tells."""
    total_tokens: int
    """Input and output."""
    n_api_calls: int
    """Answers; of a judge its replies."""


@with_config(DESCRIBED)
class Cost(TypedDict):
    """Cost of all starts of the run, at the prices that the user gave; null where it is not known."""

    model: float | None
    """Of the model under test."""
    judge: float | None
    """Of the judge."""
    total: float | None
    """Of model and judge."""
    currency: str
    """Of the price list."""
    price: str
    """Source of the price."""
    judge_price: NotRequired[str]
    """Source of the judge's price."""


@with_config(DESCRIBED)
class UsagePart(TypedDict, total=False):
    """Tokens over all answers of the run, resumed ones included; ``cost`` alone where no back end told any."""

    total: TokenSums
    """Over all tasks."""
    by_task: dict[str, TokenSums]
    """By task."""
    by_source: dict[str, TokenSums]
    """``model`` and ``judge``."""
    budget_exceeded: bool
    """A limit of tokens or cost ended the run."""
    cost: Cost
    """What it cost, where prices were given."""


@with_config(DESCRIBED)
class EfficiencyEntry(TypedDict):
    """Tokens spent per document and per right answer; each document counts once."""

    docs: float
    """Documents."""
    docs_with_token_counts: float
    """Documents whose back end told tokens."""
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
    """Output tokens for each point of the score."""


@with_config(OPEN)
class Efficiency(TypedDict):
    """Of each task and of all."""

    by_task: dict[str, EfficiencyEntry]
    """By task."""
    overall: EfficiencyEntry
    """Over all tasks."""


@with_config(OPEN)
class JudgeCounts(TypedDict):
    """Questions to the judge and what became of them."""

    questions: int
    """Questions of the documents."""
    replies: int
    """Replies of the judge, each attempt counted."""
    answered: int
    """Questions with a readable reply."""
    judge_unparsable: int
    """Questions whose replies could not be read."""
    failed: int
    """Questions without any reply."""
    input_tokens: int
    """Of the replies' prompts."""
    output_tokens: int
    """Of the replies."""
    reasoning_tokens: int
    """Of the judge's reasoning."""


@with_config(OPEN)
class BatchCheckPart(TypedDict):
    """Answers that were asked again, each alone."""

    asked: int
    """Requests that were asked again."""
    in_batches: int
    """Requests of these that had others in their batch."""
    differing: int
    """Requests whose answer differs."""
    rows: list[Difference]
    """The answers that differ."""
    failed: list[Trouble]
    """Requests that could not be asked again."""
    stopped: str
    """Why the check was not made, or not to its end."""


@with_config(OPEN)
class JudgePart(JudgeCounts):
    """The judge: who it is, and counts over all tasks."""

    asked: int
    """Requests that this start asked."""
    by_task: dict[str, JudgeCounts]
    """Counts by task."""
    given_up: NotRequired[str]
    """Why the judge was asked no more."""
    cache: NotRequired[dict[str, Any]]
    """Of ``--use_cache``."""
