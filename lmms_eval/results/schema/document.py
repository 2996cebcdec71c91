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
    """Numbers of a task or group: ``METRIC,FILTER``, ``METRIC_stderr,FILTER`` and the like; a number, null or N/A."""

    alias: str
    """Name in the table."""
    paired_baseline: NotRequired[str]
    """As ``--baseline`` names it."""
    paired_baseline_score: NotRequired[float]
    """The baseline's score, over the documents that both have."""
    paired_ci_lower: NotRequired[float | None]
    """95 % interval of the difference, in the units of ``paired``."""
    paired_ci_upper: NotRequired[float | None]
    """Upper end of that interval."""
    paired_pvalue: NotRequired[float | None]
    """These keys are of the task's first row that has a comparison; ``paired`` has all."""


@with_config(OPEN)
class MissingInterval(TypedDict):
    """No interval, and why."""

    low: None
    """Always null."""
    high: None
    """Always null."""
    reason: str
    """``n = 1``, ``no spread`` and the like."""


@with_config(DESCRIBED)
class PartialValue(TypedDict):
    """A value that is no score, since samples are missing."""

    value: Any
    """Over the documents that are scored."""
    n: int
    """Documents that it rests on."""
    reason: str
    """Why it is no score."""
    interval: Interval | None
    """95 %, where there is one."""


@with_config(DESCRIBED)
class Truncation(TypedDict):
    """A number apart for documents with completed and with truncated answers."""

    completed: SubScore | None
    """Of documents whose answers were completed; null: there are none."""
    truncated: SubScore
    """Of documents with an answer that the limit of tokens ended."""
    low: float | None
    """The number if all truncated documents scored the least of the metric's range; null: no finite range."""
    high: float | None
    """The number if they scored the most."""


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
    """Answers for which the server does not say."""


@with_config(DESCRIBED)
class Outcome(TypedDict):
    """Counts of documents: ``requested`` = ``scored`` + ``unscored`` + ``failed`` + ``not_asked``."""

    requested: int
    """Documents of the run."""
    scored: int
    """Documents with a score."""
    unscored: int
    """Documents for whose scoring a part is absent."""
    failed: int
    """Documents whose request or scoring failed."""
    not_asked: int
    """Documents that an end before their turn left out."""
    coverage: float
    """Share of the requested documents that are scored."""
    withheld: bool
    """There is no headline score."""
    reasons: dict[str, int]
    """How often each reason was given for what is not scored."""
    answers: int
    """Answers, each repeat counted, without failed requests."""
    blank: int
    """Answers without a visible character or picture."""
    filtered: int
    """Answers that a content filter ended."""
    truncated: int
    """Answers that the limit of tokens ended."""
    in_thought: NotRequired[int]
    """Blank answers that are thoughts alone."""
    shares: dict[str, float]
    """Of these counts in the answers."""
    judge_unread: NotRequired[int]
    """Documents with a question to the judge that got no readable reply; absent in results of earlier versions."""
    over_truncation_budget: NotRequired[bool]
    """More answers are truncated than ``--truncation_budget`` allows."""
    truncation: NotRequired[dict[str, Truncation]]
    """Completed and truncated answers apart, by ``METRIC,FILTER``, if some are truncated."""
    n: dict[str, int]
    """Documents that emitted the metric, by ``METRIC,FILTER``."""
    partial: dict[str, PartialValue]
    """Values that are no scores, by ``METRIC,FILTER``."""
    stops: NotRequired[StopCounts]
    """Answers that stop strings could end; absent without stop strings."""
    drew: NotRequired[int]
    """Documents whose scoring drew at random."""
    undrawn: NotRequired[dict[str, SubScore]]
    """The number over the others, by ``METRIC,FILTER``."""
    wrote_files: NotRequired[list[str]]
    """Metrics that write a file and give no number."""


@with_config(OPEN)
class SampleCounts(TypedDict):
    """Documents of the split and documents of the run."""

    original: int
    """Documents of the split."""
    effective: int
    """Documents of the run."""


@with_config(DESCRIBED)
class EarlyStopEntry(TypedDict):
    """A task or group whose numbers rest on its first documents alone."""

    rule: str
    """As ``--until`` states it."""
    order: str
    """Of the documents: where it is the same, so are the first ones."""
    asked: int
    """Documents that the numbers rest on."""
    of: int
    """Documents of the task."""
    interval: dict[str, Any] | None
    """``low``, ``high``, ``method`` and ``level``; it holds at every look."""
    difference: NotRequired[dict[str, Any]]
    """From the baseline that the rule names, as ``interval``."""


@with_config(DESCRIBED)
class Spread(TypedDict):
    """Minimum, median and maximum."""

    min: float
    """Least value."""
    median: float
    """Middle value; of an even number the mean of the two."""
    max: float
    """Greatest value."""


@with_config(DESCRIBED)
class SentMediaPart(TypedDict):
    """Media of a task's documents as the model saw them; unknown quantities are absent."""

    documents: int
    """Documents with media."""
    pictures: NotRequired[Spread]
    """Pictures of a document that has any."""
    videos: NotRequired[Spread]
    """Videos of a document that has any."""
    frames: NotRequired[Spread]
    """Frames that were sent of a document's videos."""
    sounds: NotRequired[Spread]
    """Sounds of a document that has any."""
    tokens: NotRequired[Spread]
    """Tokens that represent a document's pictures and videos in the prompt, if the back end reports it."""
    width: NotRequired[Spread]
    """Of pictures and frames as sent, in pixels."""
    height: NotRequired[Spread]
    """Of pictures and frames as sent, in pixels."""
    processed_width: NotRequired[Spread]
    """After the own resizing of a local model's processor."""
    processed_height: NotRequired[Spread]
    """After the own resizing of a local model's processor."""
    fps: NotRequired[Spread]
    """Frames a second of what was sent of a video."""


@with_config(OPEN)
class EffectiveRequest(TypedDict):
    """Parts of a task's requests apart from their messages, secrets masked; empty parts are absent."""

    sha256: str
    """Of all the rest, as JSON with sorted keys."""
    options: NotRequired[dict[str, Any]]
    """Options as they are sent: length, sampling, stop strings, fields for the server. A seed that each request has of
    its own is left out."""
    system_prompt: NotRequired[str]
    """Of the model's arguments."""
    chat_template: NotRequired[str]
    """SHA-256 of the chat template that a local model applies."""
    chat_template_kwargs: NotRequired[dict[str, Any]]
    """Variables of the chat template."""
    media: NotRequired[dict[str, Any]]
    """Limits and form of pictures and videos, as the model's arguments give them."""
    generation_config: NotRequired[dict[str, Any]]
    """The checkpoint's own configuration, for options that the request does not state."""


@with_config(OPEN)
class Timing(TypedDict):
    """Seconds by stage, and counts of this start."""

    first_request_to_last_response: float
    """Seconds."""
    asked: int
    """Requests that this start asked."""
    resumed: int
    """Responses that the journals held."""


_Hyphened = TypedDict(
    "_Hyphened",
    {
        "n-shot": Annotated[dict[str, Any], Field(description="Number of examples, by task.")],
        "n-samples": Annotated[dict[str, SampleCounts], Field(description="Number of documents, by task.")],
    },
)
"""Keys of the family that are no names in Python."""


@with_config(ConfigDict(use_attribute_docstrings=True, extra="allow", title="ResultsDocument"))
class ResultsDocument(_Hyphened):
    """``STAMP_results.json``. An aggregation of a task may add parts of its own at the top level."""

    results: dict[str, ResultEntry]
    """By task and group, in the order of the table."""
    groups: NotRequired[dict[str, ResultEntry]]
    """Groups that have numbers."""
    group_subtasks: dict[str, list[str]]
    """Tasks and groups below each group."""
    configs: dict[str, dict[str, Any]]
    """Of each task, as its YAML file states it."""
    versions: dict[str, Any]
    """Of each task."""
    higher_is_better: dict[str, Any]
    """By task and metric."""
    config: dict[str, Any]
    """How the run was started, secrets masked."""
    git_hash: str | None
    """Of the working directory's repository."""
    git_branch: str | None
    """Of the working directory's repository."""
    lmms_eval_version: str
    """Version of this package."""
    date: str
    """Start of the run."""
    throughput: NotRequired[Throughput]
    """Speed of what this start asked."""
    usage: UsagePart | Annotated[dict[str, Any], Field(max_length=0)]
    """Empty where no back end told any tokens."""
    efficiency: NotRequired[Efficiency]
    """Tokens spent, by task and over all."""
    data_files: NotRequired[dict[str, list[str]]]
    """Of each task: the local files that its documents were read from."""
    task_hashes: dict[str, str]
    """Of each task: hash over its samples."""
    model_source: str
    """Name of the back end."""
    model_name: str
    """The model, as ``--model_args`` names it."""
    model_name_sanitized: str
    """The model's name, fit for a file name."""
    system_instruction: str | None
    """Of ``--system_instruction``."""
    system_instruction_sha: str | None
    """SHA-256 of the instruction."""
    fewshot_as_multiturn: bool
    """Examples were turns of their own."""
    chat_template: Any
    """The template that the back end applies, where it tells."""
    chat_template_sha: str | None
    """Hash of the template, where the back end tells."""
    start_time: float
    """Seconds since 1970."""
    end_time: float
    """Seconds since 1970."""
    total_evaluation_time_seconds: str
    """Seconds, as a text."""
    intervals: dict[str, dict[str, Interval | MissingInterval]]
    """95 %, by task or group and ``METRIC,FILTER``."""
    outcomes: dict[str, Outcome]
    """What became of the documents, by task and aggregating group."""
    left_out: dict[str, dict[str, Any]]
    """Groups: leaf tasks without the group's metric."""
    state: RunState
    """How the run stands."""
    early_stop: NotRequired[dict[str, EarlyStopEntry]]
    """By task or group that ``--until`` ended."""
    error_budget: float
    """Share of documents that may fail."""
    run_key: str
    """Hash over everything that can change an answer."""
    prompt_fingerprint: str
    """Hash over all rendered prompts, whatever their order."""
    sent_media: NotRequired[dict[str, SentMediaPart]]
    """What the model saw of the documents, by task; absent where nothing was sent, or it is not known."""
    effective_requests: NotRequired[dict[str, EffectiveRequest]]
    """What goes out with a request apart from its messages, by task; absent where nothing is sent."""
    ignored_gen_kwargs: NotRequired[list[str]]
    """Options of ``--gen_kwargs`` that the model has no place for (``--allow_ignored``)."""
    timing: Timing
    """Seconds by stage, and counts."""
    cache: NotRequired[dict[str, Any]]
    """Of ``--use_cache``: path, and what was found, stored and left out."""
    judge: NotRequired[JudgePart]
    """Who judged, and counts."""
    batch_check: NotRequired[BatchCheckPart]
    """Of ``--check_batch``."""
    model: dict[str, Any]
    """What the back end says of itself."""
    library_versions: dict[str, str | None]
    """Of the packages that can change a result."""
    machine: dict[str, Any]
    """Host, processors, GPUs."""
    paired: NotRequired[dict[str, dict[str, PairedScores]]]
    """By task and ``METRIC,FILTER``: comparison with the baseline."""
    controls: NotRequired[dict[str, Any]]
    """Of ``--ablate`` and ``--permute_choices``, by task."""
    sub_scores: NotRequired[dict[str, dict[str, dict[str, dict[str, SubScore]]]]]
    """By task, ``METRIC,FILTER``, what divides the documents, and name."""
    submission_files: NotRequired[dict[str, Any]]
    """By task: files that its aggregation wrote."""
    sandbox: NotRequired[dict[str, Any]]
    """By task: what confined programs of the model."""
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
