"""Types of the results document and of the lines of samples files, and the JSON Schemas of all files of a run.

The records of journals are in ``api.records``. ``make schemas`` writes the schemas of all types into
``lmms_eval/schemas``; the docstrings of fields are their descriptions.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from lmms_eval.api import records
from lmms_eval.api.outcome import SubScore
from lmms_eval.api.records import JudgementLine, JudgeVerdict, Medium, Message, OnlyTrue, ResponseLine, ScoreLine
from lmms_eval.engine.batch_check import BatchDifference, Trouble
from lmms_eval.engine.columns import TruncationScores
from lmms_eval.engine.outcomes import StopCounts
from lmms_eval.engine.uncertainty import MissingBounds
from lmms_eval.results import certainty, measures, recipe
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.certainty import (
    AnchorsEntry,
    AnyInterval,
    ClustersEntry,
    HumanScoresEntry,
    JudgeBiasEntry,
    MissingInterval,
    NeedsMediaEntry,
    NoiseFloorEntry,
    Open,
    PromptVariantsEntry,
    PublishedEntry,
    ReadingEntry,
    SampledEntry,
    StatedInterval,
    VarianceEntry,
)
from lmms_eval.results.measures import Efficiency, StreamSpeeds, Throughput, UsagePart
from lmms_eval.results.recipe import RecipePart
from lmms_eval.stats import Interval
from lmms_eval.storage.run_folder import RunFile, RunState


class JudgeCounts(Open, kw_only=True):
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


class BatchCheckPart(Open, kw_only=True):
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


class JudgePart(JudgeCounts, kw_only=True):
    """The judge, and counts over all tasks."""

    asked: int
    """Requests sent by this start."""
    by_task: dict[str, JudgeCounts]
    """Counts by task."""
    given_up: str | UnsetType = UNSET
    """Why the run stopped asking the judge."""
    cache: dict[str, Any] | UnsetType = UNSET
    """Counts of ``--use_cache``."""


class ResultEntry(Open, kw_only=True):
    """Numbers of a task or group, such as ``METRIC,FILTER`` and ``METRIC_stderr,FILTER``: a number, null or N/A."""

    alias: str
    """Name in the table."""
    paired_baseline: str | UnsetType = UNSET
    """The baseline, as ``--baseline`` names it."""
    paired_baseline_score: float | UnsetType = UNSET
    """The baseline's score, over the documents that both have."""
    paired_ci_lower: float | UnsetType | None = UNSET
    """Lower end of the 95 % interval of the difference, in the units of ``paired``."""
    paired_ci_upper: float | UnsetType | None = UNSET
    """Upper end of that interval."""
    paired_pvalue: float | UnsetType | None = UNSET
    """p-value. These keys hold the comparison of the task's first row that has one; ``paired`` has all."""


class PartialValue(Struct, kw_only=True):
    """A value that is not a score because samples are missing."""

    value: Any
    """Value over the scored documents."""
    n: int
    """Number of these documents."""
    reason: str
    """Why it is not a score."""
    interval: Interval | None
    """95 % interval, if there is one."""


class Outcome(Struct, kw_only=True):
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
    in_thought: int | UnsetType = UNSET
    """Blank answers that consist of thoughts only."""
    shares: dict[str, float]
    """Shares of these counts in the answers."""
    judge_unread: int | UnsetType = UNSET
    """Documents with a judge question that got no readable reply; absent in results of earlier versions."""
    over_truncation_budget: bool | UnsetType = UNSET
    """Whether more answers are truncated than ``--truncation_budget`` allows."""
    n: dict[str, int]
    """Number of documents that have the metric, by ``METRIC,FILTER``."""
    truncation: dict[str, TruncationScores] | UnsetType = UNSET
    """Numbers of completed and truncated answers, by ``METRIC,FILTER``, if some answers are truncated."""
    missing_bounds: dict[str, MissingBounds] | UnsetType = UNSET
    """Bounds of the score whatever documents without one would score, by ``METRIC,FILTER``, if documents have none."""
    undrawn: dict[str, SubScore] | UnsetType = UNSET
    """The number over the other documents, by ``METRIC,FILTER``."""
    partial: dict[str, PartialValue]
    """Values that are not scores, by ``METRIC,FILTER``."""
    wrote_files: list[str] | UnsetType = UNSET
    """Metrics that write a file instead of returning a number."""
    stops: StopCounts | UnsetType = UNSET
    """Answers that stop strings could end; absent without stop strings."""
    drew: int | UnsetType = UNSET
    """Documents whose scoring drew at random."""


class SampleCounts(Open, kw_only=True):
    """Documents of the split and documents of the run."""

    original: int
    """Documents of the split."""
    effective: int
    """Documents of the run."""


class EarlyStopEntry(Struct, kw_only=True):
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
    difference: dict[str, Any] | UnsetType = UNSET
    """Difference from the baseline that the rule names, in the form of ``interval``."""


class Spread(Struct, kw_only=True):
    """Minimum, median and maximum."""

    min: float
    """Least value."""
    median: float
    """Middle value, or the mean of the two middle values."""
    max: float
    """Greatest value."""


class SentMediaPart(Struct, kw_only=True):
    """Media of a task's documents as the model saw them. Unknown quantities are absent."""

    documents: int
    """Documents with media."""
    pictures: Spread | UnsetType = UNSET
    """Pictures per document that has any."""
    videos: Spread | UnsetType = UNSET
    """Videos per document that has any."""
    frames: Spread | UnsetType = UNSET
    """Frames sent of a document's videos."""
    sounds: Spread | UnsetType = UNSET
    """Sounds per document that has any."""
    tokens: Spread | UnsetType = UNSET
    """Tokens of a document's pictures and videos in the prompt, if the back end reports them."""
    width: Spread | UnsetType = UNSET
    """Width of pictures and frames as sent, in pixels."""
    height: Spread | UnsetType = UNSET
    """Height of pictures and frames as sent, in pixels."""
    processed_width: Spread | UnsetType = UNSET
    """Width after resizing by a local model's processor."""
    processed_height: Spread | UnsetType = UNSET
    """Height after resizing by a local model's processor."""
    fps: Spread | UnsetType = UNSET
    """Frames per second of the frames sent of a video."""


class StoredMedia(Struct, kw_only=True):
    """Media that the run keeps because they have no file of their own."""

    folder: str
    """Folder next to the samples files; without ``--output_path`` in the run's folder."""
    files: int
    """Files of this run. Files that an earlier run of the model left count too if this run names them."""
    bytes: int
    """Size of these files."""
    max_bytes: int
    """Limit on the size of all files (``--log_media_mb``)."""
    max_bytes_each: int
    """Limit on the size of one file (``--log_media_item_mb``)."""
    not_stored: dict[str, int]
    """Numbers of media that were not stored, by reason: ``budget``, ``size`` or ``disk``."""


class EffectiveRequest(Open, kw_only=True):
    """Parts of a task's requests other than their messages, with secrets masked. Empty parts are absent."""

    sha256: str
    """Hash of the other parts, as JSON with sorted keys."""
    options: dict[str, Any] | UnsetType = UNSET
    """Options as they are sent: length, sampling, stop strings, fields for the server. Seeds that differ between
    requests are left out."""
    system_prompt: str | UnsetType = UNSET
    """System prompt of the model's arguments."""
    chat_template: str | UnsetType = UNSET
    """SHA-256 of the chat template that a local model applies."""
    chat_template_kwargs: dict[str, Any] | UnsetType = UNSET
    """Variables of the chat template."""
    media: dict[str, Any] | UnsetType = UNSET
    """Limits and formats of pictures and videos, from the model's arguments and the recipe."""
    generation_config: dict[str, Any] | UnsetType = UNSET
    """The checkpoint's configuration, for options that the request does not set."""


class Timing(Open, kw_only=True):
    """Seconds by stage, and counts of this start."""

    first_request_to_last_response: float
    """Seconds."""
    asked: int
    """Requests sent by this start."""
    resumed: int
    """Responses taken from the journals."""


class PackOfTask(Struct, kw_only=True):
    """The pack that a task belongs to."""

    pack: str
    """Name of the pack."""
    version: str
    """Version of its package; empty for a folder."""
    sha256: str
    """Hash of its wheel; empty for a folder."""
    files: str
    """Hash of the task's own files: YAML with its includes, and the code that they name."""


class ResultsDocument(Open, kw_only=True):
    """``STAMP_results.json``. A task's aggregation may add parts at the top level."""

    results: dict[str, ResultEntry]
    """Numbers by task and group, in the order of the table."""
    groups: dict[str, ResultEntry] | UnsetType = UNSET
    """Numbers of the groups that have any."""
    group_subtasks: dict[str, list[str]]
    """Tasks and groups below each group."""
    n_shot: dict[str, Any] = field(name="n-shot")
    """Number of examples, by task."""
    n_samples: dict[str, SampleCounts] = field(name="n-samples")
    """Number of documents, by task."""
    configs: dict[str, dict[str, Any]]
    """Configuration of each task, from its YAML file."""
    versions: dict[str, Any]
    """Version of each task."""
    packs: dict[str, PackOfTask] | UnsetType = UNSET
    """Pack of each task that belongs to one."""
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
    throughput: Throughput | UnsetType = UNSET
    """Requests and tokens per second in this start."""
    streams: dict[str, StreamSpeeds] | UnsetType = UNSET
    """Speeds of streamed answers (`stream=true`), by task."""
    usage: UsagePart
    """Tokens; empty if no back end reported any."""
    efficiency: Efficiency | UnsetType = UNSET
    """Tokens per document and per right answer, by task and over all tasks."""
    data_files: dict[str, list[str]] | UnsetType = UNSET
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
    intervals: dict[str, dict[str, AnyInterval]]
    """95 % intervals, by task or group and ``METRIC,FILTER``."""
    variance: dict[str, dict[str, VarianceEntry]] | UnsetType = UNSET
    """With repeats of the questions or of the judge: sources of the variance, by task and ``METRIC,FILTER``."""
    noise_floor: dict[str, NoiseFloorEntry] | UnsetType = UNSET
    """How scores vary if the same requests are sent again (``--repeat_share``), by task."""
    outcomes: dict[str, Outcome]
    """Counts of documents by outcome, by task and aggregating group."""
    clusters: dict[str, ClustersEntry] | UnsetType = UNSET
    """For each task, the clusters that its intervals are over."""
    left_out: dict[str, dict[str, Any]]
    """By group: leaf tasks that lack the group's metric."""
    state: RunState
    """State of the run."""
    early_stop: dict[str, EarlyStopEntry] | UnsetType = UNSET
    """Tasks and groups that ``--until`` ended early."""
    sampled: dict[str, SampledEntry] | UnsetType = UNSET
    """Tasks whose documents are a random sample (``--sample``)."""
    anchors: dict[str, AnchorsEntry] | UnsetType = UNSET
    """Estimates with ``--anchors``, by task."""
    error_budget: float
    """Share of documents that may fail."""
    run_key: str
    """Hash over everything that can change an answer."""
    prompt_fingerprint: str
    """Hash over all rendered prompts, independent of their order."""
    sent_media: dict[str, SentMediaPart] | UnsetType = UNSET
    """Media that the model saw, by task; absent if no media were sent or they are not known."""
    stored_media: StoredMedia | UnsetType = UNSET
    """Media that the run keeps because they have no file of their own (``--log_media``); absent without any."""
    effective_requests: dict[str, EffectiveRequest] | UnsetType = UNSET
    """Parts of a request other than its messages, by task; absent if no requests are sent."""
    ignored_gen_kwargs: list[str] | UnsetType = UNSET
    """Options of ``--gen_kwargs`` that the model cannot take (``--allow_ignored``)."""
    recipe: RecipePart | UnsetType = UNSET
    """The recipe, and what the run has in place of it (``--recipe``)."""
    timing: Timing
    """Seconds by stage, and counts."""
    cache: dict[str, Any] | UnsetType = UNSET
    """``--use_cache``: its path, and counts of entries found, stored and left out."""
    judge: JudgePart | UnsetType = UNSET
    """The judge and its counts."""
    batch_check: BatchCheckPart | UnsetType = UNSET
    """Result of ``--check_batch``."""
    model: dict[str, Any]
    """Description of the model by its back end."""
    library_versions: dict[str, str | None]
    """Versions of the packages that can change a result."""
    machine: dict[str, Any]
    """Host, processors, GPUs."""
    paired: dict[str, dict[str, PairedScores]] | UnsetType = UNSET
    """Comparison with the baseline, by task and ``METRIC,FILTER``."""
    readings: dict[str, dict[str, ReadingEntry]] | UnsetType = UNSET
    """With a recipe that states how answers are read: the metrics of that reading, by task."""
    published: dict[str, list[PublishedEntry]] | UnsetType = UNSET
    """With ``--published``: published numbers of the model, by task or group."""
    prompt_variants: dict[str, PromptVariantsEntry] | UnsetType = UNSET
    """With ``--prompt_variants``: variants of the prompt and the scores over them, by task."""
    controls: dict[str, Any] | UnsetType = UNSET
    """Results of ``--ablate`` and ``--permute_choices``, by task."""
    needs_media: dict[str, dict[str, NeedsMediaEntry]] | UnsetType = UNSET
    """What the controls without media of ``--ablate`` answer too, by task and ``METRIC,FILTER``."""
    human_scores: dict[str, HumanScoresEntry] | UnsetType = UNSET
    """Judged scores corrected by ``--human_scores``, by task."""
    judge_bias: dict[str, JudgeBiasEntry] | UnsetType = UNSET
    """For judged tasks: what the judge's scores owe to length and position of the answers."""
    sub_scores: dict[str, dict[str, dict[str, dict[str, SubScore]]]] | UnsetType = UNSET
    """Scores of parts of the documents, by task, ``METRIC,FILTER``, dividing column, and name."""
    submission_files: dict[str, Any] | UnsetType = UNSET
    """Files written by aggregations, by task."""
    sandbox: dict[str, Any] | UnsetType = UNSET
    """How programs written by the model were confined, by task."""
    megabench: dict[str, Any] | UnsetType = UNSET
    """MEGA-Bench: summary, and the score of every task."""
    megabench_breakdown: dict[str, Any] | UnsetType = UNSET
    """MEGA-Bench: numbers by application, format and skill."""
    milebench: dict[str, Any] | UnsetType = UNSET
    """MileBench: sums by task."""
    milebench_report: dict[str, Any] | UnsetType = UNSET
    """MileBench: groups and overall numbers."""
    general_bench: dict[str, Any] | UnsetType = UNSET
    """General-Bench: values by task."""
    general_bench_report: dict[str, Any] | UnsetType = UNSET
    """General-Bench: levels."""
    mmie: dict[str, Any] | UnsetType = UNSET
    """MMIE: means by task and joined."""
    mmie_report: dict[str, Any] | UnsetType = UNSET
    """MMIE: numbers by category."""


class TokenCounts(Open, kw_only=True):
    """Tokens of one request; null if the back end does not report them."""

    input_tokens: int | None
    """Tokens of the prompt."""
    output_tokens: int | None
    """Tokens of the answer."""
    reasoning_tokens: int | None
    """Tokens of its reasoning."""


class Repeat(Open, kw_only=True):
    """One of several answers to a document."""

    token_counts: list[TokenCounts | None]
    """Tokens of each request."""
    metrics: dict[str, Any] | UnsetType = UNSET
    """Metrics of this answer alone."""


_MESSAGES = {"type": "array", "items": {"$ref": "#/$defs/Message"}}
Conversations = Annotated[Any, Meta(extra_json_schema={"anyOf": [_MESSAGES, {"type": "array", "items": _MESSAGES}]})]


class SampleLine(Open, kw_only=True):
    """A line of ``STAMP_samples_TASK.jsonl``: a document through a filter pipeline, with a further key per metric."""

    doc_id: int
    """Number of the document in its split."""
    status: Literal["scored", "unscored", "failed"]
    """Outcome of the document."""
    request_id: str
    """Id of the document in the journal: ``TASK/DOC_ID``."""
    input: str
    """First text argument of the request."""
    target: Any | UnsetType = UNSET
    """Reference answer, as text; absent if the request failed."""
    doc_hash: str | UnsetType = UNSET
    """SHA-256 of the document."""
    filter: str | UnsetType = UNSET
    """Name of the filter pipeline."""
    filtered_resps: Any | UnsetType = UNSET
    """The filtered answer, without reasoning tags; a list if the document has several requests."""
    resps: Any | UnsetType = UNSET
    """The raw answer, if it differs from ``filtered_resps``."""
    raw_resps: list[Any] | UnsetType = UNSET
    """All raw answers, if a filter changed them or there are several."""
    parts: list[Any] | UnsetType = UNSET
    """Texts and pictures of an interleaved answer, in order; a list for each answer or round if there are several."""
    token_counts: list[TokenCounts | None] | UnsetType = UNSET
    """Tokens of each request."""
    repeats: list[Repeat] | UnsetType = UNSET
    """With ``--repeats``: tokens and metrics of each answer."""
    input_media: list[Any] | UnsetType = UNSET
    """Up to four pictures of the document."""
    sent_media: list[Medium] | UnsetType = UNSET
    """Media sent to the model, each once, in order."""
    messages: Conversations | UnsetType = UNSET
    """The conversation as it was sent; one for each answer if they differ."""
    reason: str | UnsetType = UNSET
    """Why the document is unscored."""
    error: str | UnsetType = UNSET
    """Why the document failed."""
    drew: OnlyTrue | UnsetType = UNSET
    """Scoring drew a choice at random."""
    answer_reading: dict[str, Any] | UnsetType = UNSET
    """The ``rule`` that read the answer, and what it found."""
    judge: list[JudgeVerdict] | UnsetType = UNSET
    """The judge's reply to each question about the document."""
    thoughts: str | list[list[str | None] | str | None] | UnsetType | None = UNSET
    """The model's thoughts before its answer; a list for several answers, with a list for several rounds."""
    blank: str | list[str | None] | UnsetType = UNSET
    """Why the answer is empty: ``blank``, ``truncated in thought``, ``unclosed thought`` or ``only thoughts``."""
    finish_reason: str | list[str | None] | UnsetType | None = UNSET
    """How generation ended; a list for several answers."""
    elapsed: float | list[float | None] | UnsetType | None = UNSET
    """Seconds."""
    attempts: int | list[int] | UnsetType = UNSET
    """How often the request was sent, if more than once."""
    doc: dict[str, Any] | UnsetType = UNSET
    """The document's text fields."""


FOLDER = Path(__file__).parents[1] / "schemas"
TYPES: dict[str, type[Struct]] = {
    "results": ResultsDocument,
    "sample": SampleLine,
    "response": ResponseLine,
    "score": ScoreLine,
    "judgement": JudgementLine,
    "run": RunFile,
}
"""Type of the file, by the name of its schema."""
_REFERRED = {"results": (StatedInterval, MissingInterval), "sample": (Message,)}
"""Types that a schema only names."""
_SEALED = ("response", "score", "judgement")
_CHECKSUM = {
    "description": "CRC-32 of the line's bytes before the comma of this field.",
    "pattern": "^[0-9a-f]{8}$",
    "type": "string",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(name: str) -> str:
    """Return the JSON Schema of one kind of file."""
    kind = TYPES[name]
    _, found = msgspec.json.schema_components((kind, *_REFERRED.get(name, ())), ref_template="#/$defs/{name}")
    for part, definition in found.items():
        _complete(definition, _CLASSES[part])
    schema = {"$schema": _DIALECT, **found.pop(kind.__name__)}
    if name in _SEALED:
        schema["properties"]["crc"] = _CHECKSUM
        schema["required"].append("crc")
    if found:
        schema["$defs"] = found
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def schema_file(name: str) -> Path:
    """Return the path of the schema that this version ships."""
    return FOLDER / f"{name}.schema.json"


_CLASSES = {
    name: value
    for names in (vars(records), vars(certainty), vars(measures), vars(recipe), globals())
    for name, value in names.items()
    if isinstance(value, type) and value.__module__.startswith("lmms_eval.")
}


def _complete(schema: dict[str, Any], kind: type) -> None:
    """Add to the schema of a type what msgspec does not know: descriptions of fields, and whether the type is open."""
    if issubclass(kind, Open):
        schema["additionalProperties"] = True
    keys: dict[str, str] = {}
    if issubclass(kind, Struct):
        keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for name, text in _field_docs(kind):
        schema["properties"][keys.get(name, name)]["description"] = text


def _field_docs(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class and its bases with their docstrings."""
    for owner in kind.__mro__:
        if not owner.__module__.startswith("lmms_eval."):
            continue
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        body = definition.body if isinstance(definition, ast.ClassDef) else []
        for one, after in pairwise(body):
            match one, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                    yield name, inspect.cleandoc(text)
