"""The contract of tasks: documents in, requests out, answers in, scores out.

The engine knows tasks only through this module; ``lmms_eval.tasks`` builds them from YAML. A request names its task, so
both are here; ``lmms_eval.api.request`` is where authors import ``Request`` from.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from lmms_eval.api.generation import LENGTHS, MOST
from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Status, TaskNumbers
from lmms_eval.api.response import Part, Response, SentMedia, SentMessage, Thoughts, Usage
from lmms_eval.errors import TaskError
from lmms_eval.utils.answer_reading import NOT_TOLD, AnswerReading
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages


class ConfigurableTask:
    """Opens a task's data in a way of its own: ``class: !function utils.X`` names a subclass in the task's YAML.

    The task is what the other keys of the YAML say. A subclass that overrides ``download`` gives its documents:
    ``download`` is called once with ``dataset_kwargs``, before the first document is read, and sets ``dataset``, a
    mapping from split to ``datasets.Dataset``. ``process_docs`` is then its own business, and nothing else of the
    object is called.
    """

    dataset: Any = None
    dataset_no_image: Any = None
    """Set by subclasses and read by nobody here: documents are read without their pictures where those are not asked
    for."""

    def __init__(self, *args: Any, config: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ARG002 - the family's
        """Keep the task's configuration: ``self.config.test_split`` and so on, ``None`` for keys without a value."""
        self.config = SimpleNamespace(**{key: value for key, value in config.items() if key != "class"})

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002 - for subclasses
        """Set ``dataset`` and ``dataset_no_image``; overridden by subclasses.

        Raises:
            TaskError: always; data that need no code are opened without this method.
        """
        raise TaskError(
            f"{type(self).__name__}.download: the data are not opened by the base class in this version; set "
            "self.dataset, or leave download out where the keys of the YAML say where the data are"
        )


@dataclass(frozen=True, slots=True)
class PipelineScore:
    """One document scored through one filter pipeline: a row of the samples file."""

    filter: str
    filtered: Any
    """The filtered answers: one for each request of the document (see ``filtered_resps`` in ``docs/results.md``)."""
    metrics: Mapping[str, Any]
    """Values by metric name as ``process_results`` gave them, ``Unscored`` values left out."""
    status: Status = "scored"
    reason: str = ""
    per_answer: tuple[Mapping[str, Any], ...] = ()
    """With repeats: the metrics of each answer alone, for the stability metrics."""
    drew: bool = False
    """Scoring drew at random, as a parser does with an answer that names no choice."""
    reading: AnswerReading = NOT_TOLD
    """The rule by which the answer was read, where scoring noted it."""


@dataclass(frozen=True, slots=True)
class ScoredDoc:
    """A document after scoring."""

    target: str
    doc: Mapping[str, Any]
    """The document's text fields (no media)."""
    doc_hash: str
    """SHA-256 of the document as canonical JSON, media by content digest or reference."""
    scores: tuple[PipelineScore, ...]
    media: tuple[str, ...] = ()
    """Paths, URLs or digests of up to 4 pictures in the document."""


RequestKind = Literal["generate_until", "loglikelihood", "generate_until_multi_round", "generate_visual_cot"]
OutputType = Literal[
    "generate_until",
    "loglikelihood",
    "multiple_choice",
    "generate_until_multi_round",
    "generate_until_agentic",
    "generate_visual_cot",
]


_RETRY = "~"


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    ``build_messages`` renders the conversation when it is called: media is opened then, not before. ``payload`` is
    what the back end's own ``prepare`` made of the request in a preparation thread, ``payload_bytes`` its size.
    """

    id: str
    """Unique within a run and the same on every start of it: ``task/doc_id/repeat/round/index``."""
    kind: RequestKind
    task: Task
    doc_id: int
    build_messages: Callable[[], ChatMessages]
    context: str = ""
    """Text of the prompt without media: what samples log as ``input`` and simple plugins receive."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation options by their family names: max_new_tokens, temperature, until, ..."""
    continuation: str | None = None
    """The text whose likelihood is asked (``loglikelihood``)."""
    implied_delimiter: str = ""
    """The beginning of ``continuation`` that no one asked for: the task leaves ``target_delimiter`` to its default."""
    implied_stop: str = ""
    """The few-shot delimiter, if neither the task nor the user states ``until``: a stop of plain completion alone."""
    repeat: int = 0
    round: int = 0
    index: int = 0
    """Number of the choice, for multiple choice."""
    seed: int = 0
    """Sampling seed: a hash of (run seed, request id)."""
    cost: float = 1.0
    """Estimate of the work in roughly a token of prompt: from lengths and file sizes, before anything is rendered."""
    payload: Any = None
    """``None`` again once the answer is recorded."""
    payload_bytes: int = 0

    def continuation_after(self, has_template: bool) -> str:
        """The text to be scored: after a chat template's generation prompt, without the delimiter that is implied.

        A template's generation prompt is itself the delimiter: a reply begins with "Paris", not with " Paris".

        Args:
            has_template: the prompt ends with the generation prompt of a chat template.
        """
        continuation = self.continuation or ""
        return continuation.removeprefix(self.implied_delimiter) if has_template else continuation

    def generation_after(self, has_template: bool) -> Mapping[str, Any]:
        """Return the generation options, with the stop that is implied if the prompt is plain text.

        A chat model ends its reply by itself. A plain completion goes on with the next example of the few shots.

        Args:
            has_template: the prompt is a conversation: chat messages to a server, or text by a chat template.
        """
        if has_template or not self.implied_stop:
            return self.generation
        return {**self.generation, "until": [self.implied_stop]}

    def with_payload(self, payload: Any, payload_bytes: int) -> Request:
        return _changed(self, payload=payload, payload_bytes=payload_bytes)

    def with_messages(self, build_messages: Callable[[], ChatMessages]) -> Request:
        return _changed(self, build_messages=build_messages)

    def with_more_tokens(self, limit: str) -> Request:
        """Ask the same with another limit of tokens: a number, or ``max`` for as many as the model takes.

        The request has an id of its own, so that the journal keeps both answers.
        """
        generation = {name: value for name, value in self.generation.items() if name not in LENGTHS}
        generation["max_new_tokens"] = limit if limit == MOST else int(limit)
        return _changed(self, id=f"{self.id}{_RETRY}{limit}", generation=generation)

    def free(self) -> None:
        """Let the payload go, once the answer is recorded: back ends may name the request for longer."""
        object.__setattr__(self, "payload", None)


_NAMES = tuple(Request.__dataclass_fields__)
_values = attrgetter(*_NAMES)
_SETTERS = [vars(Request)[name].__set__ for name in _NAMES]


def _changed(request: Request, **changes: Any) -> Request:
    """Copy as ``dataclasses.replace`` does, in an eighth of its time: every request is copied three times."""
    made = object.__new__(Request)
    for set_field, value in zip(_SETTERS, _values(request), strict=True):
        set_field(made, value)
    for name, value in changes.items():
        object.__setattr__(made, name, value)
    return made


def first_asking(request_id: str) -> str:
    """Return the id under which a request was asked first, whatever its limit of tokens."""
    return request_id.rpartition(_RETRY)[0] if is_retry(request_id) else request_id


def is_retry(request_id: str) -> bool:
    """Return whether the id belongs to a request that was asked again with more tokens."""
    return _RETRY in request_id.rpartition("/")[2]


def task_of(request_id: str) -> str:
    """The task in a request's id; its name may hold slashes."""
    return request_id.rsplit("/", 4)[0]


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Settings of the command line for every task. Plain values only: worker processes get it as JSON."""

    model_name: str = ""
    """The text given to ``--model``: key of the model-specific settings."""
    model_id: str = ""
    """The canonical name, where ``model_name`` is an alias: the second key that is looked up."""
    chat: bool = True
    """The model takes chat messages (else the simple interface)."""
    legacy: bool = False
    """The model is a plugin of the class interface."""
    gen_kwargs: Mapping[str, Any] = field(default_factory=dict)
    task_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Settings over ``lmms_eval_specific_kwargs`` of every task."""
    num_fewshot: int | None = None
    repeats: int | None = None
    system_instruction: str | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool = False
    agentic_trace_mode: Literal["basic", "full"] = "basic"
    process_with_media: bool = False
    predict_only: bool = False
    reasoning_tags: tuple[tuple[str, str], ...] = ()
    keeps_thoughts: bool = False
    """Thoughts in tags stay in the answers (``--reasoning_tags none``)."""
    thinking_tags: tuple[tuple[str, str], ...] = ()
    """Tags of thoughts beyond the known ones."""
    data_root: str | None = None
    seed: int = 0
    fewshot_seed: int | None = 1234
    trust_remote_code: bool = False
    allow_unsafe_code: bool = False
    """Programs of the model are run also where no sandbox can confine them."""
    run_options: Mapping[str, str] = field(default_factory=dict)
    """Options of the run that tasks may ask for by name (``run_options`` in their YAML), as far as they are given."""
    judge_repeats: int = 1
    """Number of times that each question to the judge is asked; the repeats are named ``NAME~2``, ..."""

    @property
    def media_roots(self) -> tuple[Path, ...]:
        """Further folder in which media paths are looked up (``--media_root``)."""
        root = self.run_options.get("media_root")
        return (Path(root).expanduser(),) if root else ()

    @property
    def allowed_media(self) -> tuple[str, ...]:
        """Folders, files and addresses that documents from the hub may name beyond their own (``--allow_media``)."""
        return comma_list(self.run_options.get("allow_media"))


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric as the task's ``metric_list`` names it."""

    name: str
    aggregation: Callable[..., Any]
    aggregation_name: str | None
    """Registered name, or ``None`` for the task's own function (called exactly once, no bootstrap error)."""
    higher_is_better: bool | None
    score_range: ScoreRange | None = None
    """Range of the aggregated value; ``None``: not stated."""
    macro_scale: float = 0.0
    """It is so many times the mean over ``Task.strata`` of their documents' means; 0: it is no such mean."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a model said to one (document, repeat).

    ``value``: a text; the list of rounds (multi-round); the list of ``(value, is_greedy)`` pairs, choice by choice
    (likelihood). A text with pictures is an ``InterleavedText``. ``error`` is set instead if a request was given up.
    """

    value: Any
    usage: tuple[Usage | None, ...] = ()
    finish_reason: str | None = None
    latency: float | None = None
    error: str | None = None
    input: str = ""
    """First text argument of the (first) request, as samples log it."""
    is_loss: bool = True
    """Likelihood values are losses (lower is likelier); ``False``: log-probabilities were negated by the engine."""
    model: str | None = None
    """The model that a server says it served."""
    media: tuple[SentMedia, ...] = ()
    """Media that went out with its requests, each once."""
    messages: tuple[SentMessage, ...] = ()
    """The conversation; empty where no more is known than ``input``. Set by the engine."""
    attempts: int = 1
    """The most often that one of its requests was sent. Set by the engine."""
    thoughts: tuple[Thoughts | None, ...] = ()
    """Of each response, in the order of ``usage``; empty if there are none. ``value`` is without them."""
    stops: tuple[str, ...] = ()
    """The stop strings that could end a response."""
    ended_by: tuple[str | None, ...] = ()
    """Of each response, as ``Response.ended_by``; empty if that is known of none."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Texts and pictures of interleaved answers in order, of all rounds; empty where all is plain text."""
        texts = self.value if isinstance(self.value, list | tuple) else (self.value,)
        return tuple(part for text in texts for part in getattr(text, "parts", ()))


class Exchange(abc.ABC):
    """The questions to one (document, repeat), round after round. A pure state machine, replayed on resume."""

    @abc.abstractmethod
    def open(self) -> Sequence[Request]:
        """The requests of the first round."""

    @abc.abstractmethod
    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        """All requests of the current round are answered (in their order, none failed): the next round's, or none."""

    def observation(self) -> str:
        """Whatever the task's functions made of the last answers beyond the next requests (the result of a tool)."""
        return ""

    @abc.abstractmethod
    def answer(self) -> Answer:
        """After ``advance`` gave no more requests."""


ReportFunction = Callable[[Mapping[str, TaskNumbers], Path | None], BenchmarkReport | None]
"""From tasks by name, and the stem of paths for files of its own (``None``: write none), to the benchmark's report."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Documents that a task draws from its split: always the same ones, on every machine."""

    size: int
    seed: int = 0


class Task(abc.ABC):
    """One task of a run. Built cheaply; ``load`` opens the data."""

    name: str
    alias: str
    version: Any
    output_type: OutputType
    repeats: int
    num_fewshot: int
    metrics: Sequence[MetricDefinition]
    pipelines: Sequence[str]
    """Names of the filter pipelines, ``("none",)`` without ``filter_list``."""
    scoring: Literal["inline", "process"]
    cluster_key: str | None
    score_key: str
    split: str
    report: ReportFunction | None = None
    """Called once with all tasks of the run that name it, by name, after the aggregations."""
    sample: Sample | None = None
    """The documents that are asked; ``None``: all of the split."""
    is_judged: bool = False
    """``judge_questions`` may give some."""
    thought_tags: Sequence[tuple[str, str]] | None = None
    """Opening and closing tags of the thoughts that are taken out of its answers; ``None``: the known ones."""
    control_of: str = ""
    """Name of the task that this one is a control of: its documents, asked otherwise (``docs/controls.md``)."""

    @abc.abstractmethod
    def load(self) -> None:
        """Open the data. Raises ``DataError`` or ``TaskError``; no picture is decoded."""

    @property
    def data_files(self) -> Sequence[str]:
        """Local files that the documents are read from, once the data are open; none where they come from the hub."""
        return ()

    @abc.abstractmethod
    def __len__(self) -> int:
        """Documents of the evaluated split. After ``load``."""

    def check_files(self, doc_ids: Sequence[int]) -> None:
        """Look up the files that these documents name, where the task says that they are its own.

        Raises:
            AbsentDataError: some are missing; says how many, the first one, and how to get them.
        """

    @abc.abstractmethod
    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        """The questions of one (document, repeat)."""

    @abc.abstractmethod
    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        """Work per document in roughly tokens, from column lengths and file sizes, without rendering."""

    def strata(self, doc_ids: Sequence[int]) -> Sequence[str] | None:  # noqa: ARG002 - the default
        """Return the name of each document's stratum, known before anything is asked; ``None``: there are none."""
        return None

    def judge_questions(
        self,
        doc_id: int,  # noqa: ARG002 - the default for tasks that need no judge
        answers: Sequence[Answer],  # noqa: ARG002
    ) -> Sequence[JudgeQuestion]:
        """Make the questions to a judge about one document's answers; called only where there is a judge."""
        return ()

    @abc.abstractmethod
    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        """Filter and score all repeats' answers of one document. Failed answers never reach this.

        ``verdicts``: one for each of ``judge_questions``; none where there is no judge.

        Raises whatever the task's own functions raise; the engine turns it into a failed sample.
        """

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """``configs[TASK]``: every key that is not null; callables as ``<function module.name>``."""

    @abc.abstractmethod
    def fingerprint(self) -> Mapping[str, str]:
        """Hashes of the configuration with the source of its functions, and of the data's identity: for the run key."""

    @abc.abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """JSON by which a worker process builds the same task again (``lmms_eval.tasks.build_from_spec``)."""

    def carried_document(self, doc_id: int) -> Mapping[str, Any] | None:  # noqa: ARG002 - the default
        """Returns what a scoring process needs of a document, as JSON; ``None`` where it must open the data itself."""
        return None

    def take_document(self, doc_id: int, document: Mapping[str, Any] | None) -> None:
        """Takes over what ``carried_document`` of the task that gave ``spec()`` returned in another process.

        Raises:
            DataError: it returned ``None``, and the data cannot be opened here.
        """

    @abc.abstractmethod
    def dataset_dict(self) -> Any:
        """A ``datasets.DatasetDict`` of all splits, for legacy plugins (``task_dict[task][split][doc_id]``)."""


@dataclass(frozen=True, slots=True)
class GroupMetric:
    """One entry of a group's ``aggregate_metric_list``."""

    metric: str
    aggregation: str | Callable[..., Any]
    weight_by_size: bool = False
    filters: tuple[str, ...] = ("none",)
    of: Mapping[str, str] = field(default_factory=dict)
    """By leaf task the ``metric,filter`` that it gives, put on 0 to 100 by its range; empty: ``metric`` of all leaves
    that have it, as it is."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group and its direct children (names of tasks or groups), as selected in this run."""

    name: str
    alias: str
    children: tuple[str, ...]
    metrics: tuple[GroupMetric, ...] = ()
    version: Any = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Choice of ``--tasks``: leaf tasks in order, the groups above them, and the tasks named directly."""

    tasks: tuple[Task, ...]
    groups: tuple[Group, ...] = ()
    direct: frozenset[str] = frozenset()
    """Tasks named directly, by wildcard or by tag: they stand unindented in the table."""
