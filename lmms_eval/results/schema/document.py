"""Type of the results document."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lmms_eval.api.outcome import SubScore
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.schema.conversation import DESCRIBED, OPEN
from lmms_eval.results.schema.measured import BatchCheckPart, Efficiency, JudgePart, Throughput, UsagePart
from lmms_eval.stats import Interval
from lmms_eval.storage.run_folder import RunState


@with_config(OPEN)
class ResultEntry(TypedDict):
    """Numbers of a task or group, such as ``METRIC,FILTER`` and ``METRIC_stderr,FILTER``: a number, null or N/A."""

    alias: str
    """Name in the table."""
    paired_baseline: NotRequired[str]
    """The baseline, as ``--baseline`` names it."""
    paired_baseline_score: NotRequired[float]
    """The baseline's score, over the documents that both have."""
    paired_ci_lower: NotRequired[float | None]
    """Lower end of the 95 % interval of the difference, in the units of ``paired``."""
    paired_ci_upper: NotRequired[float | None]
    """Upper end of that interval."""
    paired_pvalue: NotRequired[float | None]
    """p-value. These keys hold the comparison of the task's first row that has one; ``paired`` has all."""


@with_config(OPEN)
class MissingInterval(TypedDict):
    """The reason for a missing interval."""

    low: None
    """Always null."""
    high: None
    """Always null."""
    reason: str
    """Why the interval is missing, such as ``n = 1`` or ``no spread``."""


@with_config(DESCRIBED)
class PartialValue(TypedDict):
    """A value that is not a score because samples are missing."""

    value: Any
    """Value over the scored documents."""
    n: int
    """Number of these documents."""
    reason: str
    """Why it is not a score."""
    interval: Interval | None
    """95 % interval, if there is one."""


@with_config(DESCRIBED)
class Truncation(TypedDict):
    """A metric's number for documents with completed and with truncated answers."""

    completed: SubScore | None
    """Documents with completed answers only; null if there are no such documents."""
    truncated: SubScore
    """Documents with an answer that reached the token limit."""
    low: float | None
    """The number if all truncated documents had the lowest score; null without a finite range."""
    high: float | None
    """The number if they had the highest score."""


@with_config(DESCRIBED)
class StopCounts(TypedDict):
    """Counts of a task's answers that stop strings could end."""

    active: list[str]
    """The stop strings."""
    answers: int
    """Answers that they could end."""
    ended: int
    """Answers that one of them ended."""
    untold: int
    """Answers whose server does not report it."""


@with_config(DESCRIBED)
class Outcome(TypedDict):
    """Counts of documents: ``requested`` = ``scored`` + ``unscored`` + ``failed`` + ``not_asked``."""

    requested: int
    """Documents of the run."""
    scored: int
    """Documents with a score."""
    unscored: int
    """Documents that cannot be scored because a part is missing."""
    failed: int
    """Documents whose request or scoring failed."""
    not_asked: int
    """Documents that were not asked because the run ended before."""
    coverage: float
    """Share of the requested documents that are scored."""
    withheld: bool
    """Whether the headline score is withheld."""
    reasons: dict[str, int]
    """Number of documents by the reason why they are not scored."""
    answers: int
    """Answers, including repeats, without failed requests."""
    blank: int
    """Answers without a visible character or picture."""
    filtered: int
    """Answers that a content filter ended."""
    truncated: int
    """Answers that reached the token limit."""
    in_thought: NotRequired[int]
    """Blank answers that consist of thoughts only."""
    shares: dict[str, float]
    """Shares of these counts in the answers."""
    judge_unread: NotRequired[int]
    """Documents with a judge question that got no readable reply; absent in results of earlier versions."""
    over_truncation_budget: NotRequired[bool]
    """Whether more answers are truncated than ``--truncation_budget`` allows."""
    truncation: NotRequired[dict[str, Truncation]]
    """Numbers of completed and truncated answers, by ``METRIC,FILTER``, if some answers are truncated."""
    n: dict[str, int]
    """Number of documents that have the metric, by ``METRIC,FILTER``."""
    partial: dict[str, PartialValue]
    """Values that are not scores, by ``METRIC,FILTER``."""
    stops: NotRequired[StopCounts]
    """Answers that stop strings could end; absent without stop strings."""
    drew: NotRequired[int]
    """Documents whose scoring drew at random."""
    undrawn: NotRequired[dict[str, SubScore]]
    """The number over the other documents, by ``METRIC,FILTER``."""
    wrote_files: NotRequired[list[str]]
    """Metrics that write a file instead of returning a number."""


@with_config(OPEN)
class SampleCounts(TypedDict):
    """Documents of the split and documents of the run."""

    original: int
    """Documents of the split."""
    effective: int
    """Documents of the run."""


@with_config(DESCRIBED)
class EarlyStopEntry(TypedDict):
    """A task or group that stopped early, so that its numbers rest on its first documents only."""

    rule: str
    """The rule, as in ``--until``."""
    order: str
    """Name of the documents' order. Runs with the same order have the same first documents."""
    asked: int
    """Documents that the numbers rest on."""
    of: int
    """Documents of the task."""
    interval: dict[str, Any] | None
    """``low``, ``high``, ``method`` and ``level``. The interval holds at every look."""
    difference: NotRequired[dict[str, Any]]
    """Difference from the baseline that the rule names, in the form of ``interval``."""


@with_config(DESCRIBED)
class Spread(TypedDict):
    """Minimum, median and maximum."""

    min: float
    """Least value."""
    median: float
    """Middle value, or the mean of the two middle values."""
    max: float
    """Greatest value."""


@with_config(DESCRIBED)
class SentMediaPart(TypedDict):
    """Media of a task's documents as the model saw them. Unknown quantities are absent."""

    documents: int
    """Documents with media."""
    pictures: NotRequired[Spread]
    """Pictures per document that has any."""
    videos: NotRequired[Spread]
    """Videos per document that has any."""
    frames: NotRequired[Spread]
    """Frames sent of a document's videos."""
    sounds: NotRequired[Spread]
    """Sounds per document that has any."""
    tokens: NotRequired[Spread]
    """Tokens of a document's pictures and videos in the prompt, if the back end reports them."""
    width: NotRequired[Spread]
    """Width of pictures and frames as sent, in pixels."""
    height: NotRequired[Spread]
    """Height of pictures and frames as sent, in pixels."""
    processed_width: NotRequired[Spread]
    """Width after resizing by a local model's processor."""
    processed_height: NotRequired[Spread]
    """Height after resizing by a local model's processor."""
    fps: NotRequired[Spread]
    """Frames per second of the frames sent of a video."""


@with_config(OPEN)
class EffectiveRequest(TypedDict):
    """Parts of a task's requests other than their messages, with secrets masked. Empty parts are absent."""

    sha256: str
    """Hash of the other parts, as JSON with sorted keys."""
    options: NotRequired[dict[str, Any]]
    """Options as they are sent: length, sampling, stop strings, fields for the server. Seeds that differ between
    requests are left out."""
    system_prompt: NotRequired[str]
    """System prompt of the model's arguments."""
    chat_template: NotRequired[str]
    """SHA-256 of the chat template that a local model applies."""
    chat_template_kwargs: NotRequired[dict[str, Any]]
    """Variables of the chat template."""
    media: NotRequired[dict[str, Any]]
    """Limits and formats of pictures and videos, from the model's arguments."""
    generation_config: NotRequired[dict[str, Any]]
    """The checkpoint's configuration, for options that the request does not set."""


@with_config(OPEN)
class Timing(TypedDict):
    """Seconds by stage, and counts of this start."""

    first_request_to_last_response: float
    """Seconds."""
    asked: int
    """Requests sent by this start."""
    resumed: int
    """Responses taken from the journals."""


_Hyphened = TypedDict(
    "_Hyphened",
    {
        "n-shot": Annotated[dict[str, Any], Field(description="Number of examples, by task.")],
        "n-samples": Annotated[dict[str, SampleCounts], Field(description="Number of documents, by task.")],
    },
)
"""Keys of the family that are not names in Python."""


@with_config(ConfigDict(use_attribute_docstrings=True, extra="allow", title="ResultsDocument"))
class ResultsDocument(_Hyphened):
    """``STAMP_results.json``. A task's aggregation may add parts at the top level."""

    results: dict[str, ResultEntry]
    """Numbers by task and group, in the order of the table."""
    groups: NotRequired[dict[str, ResultEntry]]
    """Numbers of the groups that have any."""
    group_subtasks: dict[str, list[str]]
    """Tasks and groups below each group."""
    configs: dict[str, dict[str, Any]]
    """Configuration of each task, from its YAML file."""
    versions: dict[str, Any]
    """Version of each task."""
    higher_is_better: dict[str, Any]
    """Whether higher is better, by task and metric."""
    config: dict[str, Any]
    """How the run was started, with secrets masked."""
    git_hash: str | None
    """Commit of the working directory's repository."""
    git_branch: str | None
    """Branch of the working directory's repository."""
    lmms_eval_version: str
    """Version of this package."""
    date: str
    """Start of the run."""
    throughput: NotRequired[Throughput]
    """Requests and tokens per second in this start."""
    usage: UsagePart | Annotated[dict[str, Any], Field(max_length=0)]
    """Tokens; empty if no back end reported any."""
    efficiency: NotRequired[Efficiency]
    """Tokens per document and per right answer, by task and over all tasks."""
    data_files: NotRequired[dict[str, list[str]]]
    """For each task, the local files that its documents were read from."""
    task_hashes: dict[str, str]
    """For each task, a hash over its samples."""
    model_source: str
    """Name of the back end."""
    model_name: str
    """Name of the model, from ``--model_args``."""
    model_name_sanitized: str
    """Name of the model, as used in file names."""
    system_instruction: str | None
    """Value of ``--system_instruction``."""
    system_instruction_sha: str | None
    """SHA-256 of the instruction."""
    fewshot_as_multiturn: bool
    """Whether few-shot examples were separate turns."""
    chat_template: Any
    """The template that the back end applies, if it reports it."""
    chat_template_sha: str | None
    """Hash of the template, if the back end reports it."""
    start_time: float
    """Seconds since 1970."""
    end_time: float
    """Seconds since 1970."""
    total_evaluation_time_seconds: str
    """Seconds, as text."""
    intervals: dict[str, dict[str, Interval | MissingInterval]]
    """95 % intervals, by task or group and ``METRIC,FILTER``."""
    outcomes: dict[str, Outcome]
    """Counts of documents by outcome, by task and aggregating group."""
    left_out: dict[str, dict[str, Any]]
    """By group: leaf tasks that lack the group's metric."""
    state: RunState
    """State of the run."""
    early_stop: NotRequired[dict[str, EarlyStopEntry]]
    """Tasks and groups that ``--until`` ended early."""
    error_budget: float
    """Share of documents that may fail."""
    run_key: str
    """Hash over everything that can change an answer."""
    prompt_fingerprint: str
    """Hash over all rendered prompts, independent of their order."""
    sent_media: NotRequired[dict[str, SentMediaPart]]
    """Media that the model saw, by task; absent if no media were sent or they are not known."""
    effective_requests: NotRequired[dict[str, EffectiveRequest]]
    """Parts of a request other than its messages, by task; absent if no requests are sent."""
    ignored_gen_kwargs: NotRequired[list[str]]
    """Options of ``--gen_kwargs`` that the model cannot take (``--allow_ignored``)."""
    timing: Timing
    """Seconds by stage, and counts."""
    cache: NotRequired[dict[str, Any]]
    """``--use_cache``: its path, and counts of entries found, stored and left out."""
    judge: NotRequired[JudgePart]
    """The judge and its counts."""
    batch_check: NotRequired[BatchCheckPart]
    """Result of ``--check_batch``."""
    model: dict[str, Any]
    """Description of the model by its back end."""
    library_versions: dict[str, str | None]
    """Versions of the packages that can change a result."""
    machine: dict[str, Any]
    """Host, processors, GPUs."""
    paired: NotRequired[dict[str, dict[str, PairedScores]]]
    """Comparison with the baseline, by task and ``METRIC,FILTER``."""
    controls: NotRequired[dict[str, Any]]
    """Results of ``--ablate`` and ``--permute_choices``, by task."""
    sub_scores: NotRequired[dict[str, dict[str, dict[str, dict[str, SubScore]]]]]
    """Scores of parts of the documents, by task, ``METRIC,FILTER``, dividing column, and name."""
    submission_files: NotRequired[dict[str, Any]]
    """Files written by aggregations, by task."""
    sandbox: NotRequired[dict[str, Any]]
    """How programs written by the model were confined, by task."""
    megabench: NotRequired[dict[str, Any]]
    """MEGA-Bench: summary, and the score of every task."""
    megabench_breakdown: NotRequired[dict[str, Any]]
    """MEGA-Bench: numbers by application, format and skill."""
    milebench: NotRequired[dict[str, Any]]
    """MileBench: sums by task."""
    milebench_report: NotRequired[dict[str, Any]]
    """MileBench: groups and overall numbers."""
    general_bench: NotRequired[dict[str, Any]]
    """General-Bench: values by task."""
    general_bench_report: NotRequired[dict[str, Any]]
    """General-Bench: levels."""
    mmie: NotRequired[dict[str, Any]]
    """MMIE: means by task and joined."""
    mmie_report: NotRequired[dict[str, Any]]
    """MMIE: numbers by category."""
