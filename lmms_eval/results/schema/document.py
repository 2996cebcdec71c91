"""Type of the results document."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lmms_eval.api.outcome import SubScore
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.schema.conversation import DESCRIBED
from lmms_eval.results.schema.measured import BatchCheckPart, Efficiency, JudgePart, Throughput, UsagePart
from lmms_eval.stats import Interval
from lmms_eval.storage.run_folder import RunState


@with_config(ConfigDict(use_attribute_docstrings=True, extra="allow"))
class ResultEntry(TypedDict):
    """Numbers of a task or group: ``METRIC,FILTER``, ``METRIC_stderr,FILTER`` and the like; a number, null or N/A."""

    alias: str
    """Name in the table."""
    paired_baseline: NotRequired[str]
    paired_baseline_score: NotRequired[float]
    paired_ci_lower: NotRequired[float | None]
    paired_ci_upper: NotRequired[float | None]
    paired_pvalue: NotRequired[float | None]


class MissingInterval(TypedDict):
    """No interval, and why."""

    low: None
    high: None
    reason: str


@with_config(DESCRIBED)
class PartialValue(TypedDict):
    """A value that is no score, since samples are missing."""

    value: Any
    n: int
    reason: str
    interval: Interval | None


@with_config(DESCRIBED)
class Outcome(TypedDict):
    """Counts of documents: ``requested`` = ``scored`` + ``unscored`` + ``failed`` + ``not_asked``."""

    requested: int
    scored: int
    unscored: int
    failed: int
    not_asked: int
    coverage: float
    """Share of the requested documents that are scored."""
    withheld: bool
    """There is no headline score."""
    reasons: dict[str, int]
    answers: int
    blank: int
    filtered: int
    truncated: int
    shares: dict[str, float]
    n: dict[str, int]
    """Documents that emitted the metric, by ``METRIC,FILTER``."""
    partial: dict[str, PartialValue]
    drew: NotRequired[int]
    """Documents whose scoring drew at random."""
    undrawn: NotRequired[dict[str, SubScore]]
    """The number over the others, by ``METRIC,FILTER``."""
    wrote_files: NotRequired[list[str]]
    """Metrics that write a file and give no number."""


class SampleCounts(TypedDict):
    """Documents of the split and documents of the run."""

    original: int
    effective: int


@with_config(DESCRIBED)
class EarlyStopEntry(TypedDict):
    """A task or group whose numbers rest on its first documents alone."""

    rule: str
    order: str
    """Of the documents: where it is the same, so are the first ones."""
    asked: int
    of: int
    interval: dict[str, Any] | None
    """``low``, ``high``, ``method`` and ``level``; it holds at every look."""
    difference: NotRequired[dict[str, Any]]
    """From the baseline that the rule names, as ``interval``."""


@with_config(ConfigDict(use_attribute_docstrings=True, extra="allow"))
class Timing(TypedDict):
    """Seconds by stage, and counts of this start."""

    first_request_to_last_response: float
    asked: int
    resumed: int


_Hyphened = TypedDict("_Hyphened", {"n-shot": dict[str, Any], "n-samples": dict[str, SampleCounts]})
"""Keys of the family that are no names in Python."""


@with_config(ConfigDict(use_attribute_docstrings=True, extra="allow", title="ResultsDocument"))
class ResultsDocument(_Hyphened):
    """``STAMP_results.json``. An aggregation of a task may add parts of its own at the top level."""

    results: dict[str, ResultEntry]
    """By task and group, in the order of the table."""
    groups: NotRequired[dict[str, ResultEntry]]
    """Groups that have numbers."""
    group_subtasks: dict[str, list[str]]
    configs: dict[str, dict[str, Any]]
    versions: dict[str, Any]
    higher_is_better: dict[str, Any]
    config: dict[str, Any]
    """How the run was started, secrets masked."""
    git_hash: str | None
    git_branch: str | None
    lmms_eval_version: str
    date: str
    throughput: NotRequired[Throughput]
    usage: UsagePart | Annotated[dict[str, Any], Field(max_length=0)]
    """Empty where no back end told any tokens."""
    efficiency: NotRequired[Efficiency]
    task_hashes: dict[str, str]
    model_source: str
    model_name: str
    model_name_sanitized: str
    system_instruction: str | None
    system_instruction_sha: str | None
    fewshot_as_multiturn: bool
    chat_template: Any
    chat_template_sha: str | None
    start_time: float
    """Seconds since 1970."""
    end_time: float
    total_evaluation_time_seconds: str
    intervals: dict[str, dict[str, Interval | MissingInterval]]
    """95 %, by task or group and ``METRIC,FILTER``."""
    outcomes: dict[str, Outcome]
    left_out: dict[str, dict[str, Any]]
    """Groups: leaf tasks without the group's metric."""
    state: RunState
    early_stop: NotRequired[dict[str, EarlyStopEntry]]
    error_budget: float
    run_key: str
    prompt_fingerprint: str
    timing: Timing
    cache: NotRequired[dict[str, Any]]
    judge: NotRequired[JudgePart]
    batch_check: NotRequired[BatchCheckPart]
    model: dict[str, Any]
    """What the back end says of itself."""
    library_versions: dict[str, str | None]
    machine: dict[str, Any]
    paired: NotRequired[dict[str, dict[str, PairedScores]]]
    """By task and ``METRIC,FILTER``: comparison with the baseline."""
    controls: NotRequired[dict[str, Any]]
    sub_scores: NotRequired[dict[str, dict[str, dict[str, dict[str, SubScore]]]]]
    """By task, ``METRIC,FILTER``, what divides the documents, and name."""
    submission_files: NotRequired[dict[str, Any]]
    sandbox: NotRequired[dict[str, Any]]
    megabench: NotRequired[dict[str, Any]]
    megabench_breakdown: NotRequired[dict[str, Any]]
    milebench: NotRequired[dict[str, Any]]
    milebench_report: NotRequired[dict[str, Any]]
    general_bench: NotRequired[dict[str, Any]]
    general_bench_report: NotRequired[dict[str, Any]]
    mmie: NotRequired[dict[str, Any]]
    mmie_report: NotRequired[dict[str, Any]]
