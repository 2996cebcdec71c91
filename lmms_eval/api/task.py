"""The interface of tasks: documents in, requests out, answers in, scores out.

The engine knows tasks only through this module; ``lmms_eval.tasks`` builds them from YAML. ``Request`` is defined here
too, since it refers to its task; authors import it from ``lmms_eval.api.request``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field, structs

from lmms_eval.api.generation import LENGTHS, MOST, RequestLimits
from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Status, TaskNumbers
from lmms_eval.api.response import Part, Response, SentMedia, SentMessage, Thoughts, Usage
from lmms_eval.errors import TaskError
from lmms_eval.utils.answer_reading import NO_READING, AnswerReading
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages
    from lmms_eval.utils.prompt_variants import PromptVariant
else:  # ``inspect.signature`` of a Struct evaluates its annotations; the module takes long to import
    ChatMessages = Any


class ConfigurableTask:
    """Base class for tasks that open their data themselves: ``class: !function utils.X`` in the task's YAML.

    The other keys of the YAML define the task as usual. A subclass may override ``download`` to supply the documents.
    ``download`` is called once with ``dataset_kwargs`` before the first document is read, and sets ``dataset``, a
    mapping from split to ``datasets.Dataset``. It must then apply ``process_docs`` itself. No other method is called.
    """

    dataset: Any = None
    dataset_no_image: Any = None
    """Set by subclasses; not used by this package, which skips pictures by itself if they are not needed."""

    def __init__(self, *args: Any, config: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ARG002 - the family's
        """Store the task's configuration as ``self.config.test_split`` etc., ``None`` for keys without a value."""
        self.config = SimpleNamespace(**{key: value for key, value in config.items() if key != "class"})

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002 - for subclasses
        """Set ``dataset`` and ``dataset_no_image``; for subclasses to override.

        Raises:
            TaskError: always, in this base class.
        """
        raise TaskError(
            f"{type(self).__name__}.download: the data are not opened by the base class in this version; set "
            "self.dataset, or leave download out where the keys of the YAML say where the data are"
        )


class PipelineScore(Struct, frozen=True):
    """Scores of one document through one filter pipeline: a row of the samples file."""

    filter: str
    filtered: Any
    """Filtered answers, one per request of the document (see ``filtered_resps`` in ``docs/results.md``)."""
    metrics: Mapping[str, Any]
    """Values by metric name from ``process_results``, without ``Unscored`` values."""
    status: Status = "scored"
    reason: str = ""
    per_answer: tuple[Mapping[str, Any], ...] = ()
    """The metrics of each single answer, for the stability metrics; only with repeats."""
    per_verdict: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    """For each answer its metrics by each asking of the judge; only with repeats of the judge."""
    drew: bool = False
    """Scoring used a random choice, for example for an answer that names no choice."""
    reading: AnswerReading = NO_READING
    """The rule that parsed the answer, if scoring noted it."""


class ScoredDoc(Struct, frozen=True):
    """A scored document."""

    target: str
    doc: Mapping[str, Any]
    """The fields of the document without media."""
    doc_hash: str
    """SHA-256 of the document as canonical JSON, with media replaced by digests or references."""
    scores: tuple[PipelineScore, ...]
    media: tuple[str, ...] = ()
    """Paths, URLs or digests of up to 4 pictures of the document."""


RequestKind = Literal[
    "generate_until",
    "loglikelihood",
    "loglikelihood_rolling",
    "generate_until_multi_round",
    "generate_visual_cot",
]
OutputType = Literal[
    "generate_until",
    "loglikelihood",
    "loglikelihood_rolling",
    "multiple_choice",
    "generate_until_multi_round",
    "generate_until_agentic",
    "generate_visual_cot",
]


_RETRY = "~"


class Request(Struct, frozen=True):
    """One request to a model.

    ``build_messages`` renders the conversation and opens its media, each time it is called. ``Model.prepare`` sets
    ``payload`` in a preparation thread, with its size ``payload_bytes``.
    """

    id: str
    """Unique within a run and the same on every start: ``task/doc_id/repeat/round/index``."""
    kind: RequestKind
    task: Task
    doc_id: int
    build_messages: Callable[[], ChatMessages]
    context: str = ""
    """Text of the prompt without media; samples log it as ``input``, and simple plugins receive it."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation options: max_new_tokens, temperature, until, ..."""
    continuation: str | None = None
    """The text whose log probability is requested; for ``loglikelihood_rolling`` the whole text, without context."""
    implied_delimiter: str = ""
    """Start of ``continuation`` that comes from the default ``target_delimiter``, not from the task."""
    implied_stop: str = ""
    """The few-shot delimiter if neither the task nor the user states ``until``: a stop string for plain completion."""
    moves_blanks: bool = False
    """Whether white space at the end of the prompt belongs to the continuation whose likelihood is requested."""
    repeat: int = 0
    round: int = 0
    index: int = 0
    """Number of the choice, for multiple choice."""
    seed: int = 0
    """Sampling seed: a hash of (run seed, request id)."""
    cost: float = 1.0
    """Estimate of the work, roughly in prompt tokens, from lengths and file sizes; needs no rendering."""
    media: RequestLimits | None = None
    """Limits on pictures and videos in place of the back end's own (``Model.media_limits``)."""
    payload: Any = None
    """``None`` before preparation, and again once the answer is recorded."""
    payload_bytes: int = 0

    @property
    def is_likelihood(self) -> bool:
        """Whether a log probability is requested, not a text."""
        return self.kind in ("loglikelihood", "loglikelihood_rolling")

    def continuation_after(self, has_template: bool) -> str:
        """Return the text to be scored, without the implied delimiter after a chat template's generation prompt.

        A generation prompt already separates prompt and reply: a reply begins with "Paris", not with " Paris".

        Args:
            has_template: the prompt ends with the generation prompt of a chat template.
        """
        continuation = self.continuation or ""
        return continuation.removeprefix(self.implied_delimiter) if has_template else continuation

    def prompt_and_continuation(self, prompt: str, has_template: bool) -> tuple[str, str]:
        """Return the prompt and the text to be scored; with ``moves_blanks``, white space between them is scored.

        Args:
            prompt: the rendered prompt.
            has_template: as in ``continuation_after``.
        """
        continuation = self.continuation_after(has_template)
        kept = prompt.rstrip() if self.moves_blanks else prompt
        return kept, prompt[len(kept) :] + continuation

    def generation_after(self, has_template: bool) -> Mapping[str, Any]:
        """Return the generation options, with the implied stop string if the prompt is plain text.

        A chat model ends its reply by itself. A plain completion would continue with the next few-shot example.

        Args:
            has_template: the prompt is a conversation: chat messages for a server, or text from a chat template.
        """
        if has_template or not self.implied_stop:
            return self.generation
        return {**self.generation, "until": [self.implied_stop]}

    def with_payload(self, payload: Any, payload_bytes: int) -> Request:
        return structs.replace(self, payload=payload, payload_bytes=payload_bytes)

    def with_messages(self, build_messages: Callable[[], ChatMessages]) -> Request:
        return structs.replace(self, build_messages=build_messages)

    def with_more_tokens(self, limit: str) -> Request:
        """Return this request with another token limit: a number, or ``max`` for as many as the model can generate.

        It has a different id, so that the journal keeps both answers.
        """
        generation = {name: value for name, value in self.generation.items() if name not in LENGTHS}
        generation["max_new_tokens"] = limit if limit == MOST else int(limit)
        return structs.replace(self, id=f"{self.id}{_RETRY}{limit}", generation=generation)

    def free(self) -> None:
        """Drop the payload once the answer is recorded: back ends may hold a reference to the request for longer."""
        structs.force_setattr(self, "payload", None)


def first_asking(request_id: str) -> str:
    """Return the id of the original request for the id of a retry with more tokens."""
    return request_id.rpartition(_RETRY)[0] if is_retry(request_id) else request_id


def is_retry(request_id: str) -> bool:
    """Return whether the id belongs to a retry with more tokens."""
    return _RETRY in request_id.rpartition("/")[2]


def task_of(request_id: str) -> str:
    """Return the task's name from a request's id; the name may contain slashes."""
    return request_id.rsplit("/", 4)[0]


class QuestionLayout(Protocol):
    """Makes the messages of a document in place of the task's own prompt."""

    def __call__(self, doc: Mapping[str, Any], visuals: Callable[[], Sequence[Any]]) -> list[dict[str, Any]]:
        """Return the messages as plain mappings.

        Args:
            doc: the full document.
            visuals: returns the media of the document as the task gives them.

        Raises:
            ItemError: the document lacks what the layout shows.
        """


class SecondReading(Protocol):
    """Reads and scores answers in another way than the task, for metrics next to the task's own."""

    @property
    def identity(self) -> str:
        """Everything that changes its scores, as a text."""

    @property
    def asks_judge(self) -> bool:
        """Whether it puts questions to a judge."""

    def metrics(self, own: Sequence[MetricDefinition]) -> tuple[MetricDefinition, ...]:
        """Return its metrics, given the task's own."""

    def line(self, task: str, own: Sequence[MetricDefinition]) -> str:
        """Return a sentence about its metrics of a task."""

    def questions(self, doc: Mapping[str, Any], truth: Any, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
        """Return the questions to the judge about a document's answers; names count the answers."""

    def values(
        self,
        doc: Mapping[str, Any],
        truth: Any,
        answers: Sequence[Answer],
        evaluate: Callable[[str], Mapping[str, Any]],
        verdicts: Sequence[Verdict],
    ) -> Sequence[Mapping[str, Any]]:
        """Return the values of each answer by metric.

        Args:
            doc: the document.
            truth: its reference answer.
            answers: the answers, one per repeat.
            evaluate: the task's own scoring of a text.
            verdicts: those of ``questions``, among others.
        """


MODEL_FACTS = ("max_length", "max_model_len", "model", "pretrained", "tokenizer")
"""Arguments of models that tasks get: those that say which model it is, and the length of its context."""


class TaskOptions(Struct, frozen=True):
    """Settings from the command line for every task. Plain values only: worker processes receive them as JSON."""

    model_name: str = ""
    """Value of ``--model``: the first key of model-specific settings."""
    model_id: str = ""
    """Canonical name if ``model_name`` is an alias: the second key of model-specific settings."""
    chat: bool = True
    """The model takes chat messages (else the simple interface)."""
    legacy: bool = False
    """The model is a class plugin."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of the model in ``MODEL_FACTS``, for tasks that make their documents for a model."""
    gen_kwargs: Mapping[str, Any] = field(default_factory=dict)
    task_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Settings that override ``lmms_eval_specific_kwargs`` of every task."""
    num_fewshot: int | None = None
    repeats: int | None = None
    reduce: tuple[str, ...] = ()
    """Reducers of the answers to a document (``--reduce``), such as ``pass@4``."""
    system_instruction: str | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool | None = None
    """``None``: examples are turns of their own only in conversations of lm-eval's tasks."""
    agentic_trace_mode: Literal["basic", "full"] = "basic"
    process_with_media: bool = False
    predict_only: bool = False
    reasoning_tags: tuple[tuple[str, str], ...] = ()
    keeps_thoughts: bool = False
    """Tagged thoughts stay in the answers (``--reasoning_tags none``)."""
    thinking_tags: tuple[tuple[str, str], ...] = ()
    """Additional tags of thoughts."""
    data_root: str | None = None
    seed: int = 0
    fewshot_seed: int | None = 1234
    trust_remote_code: bool = False
    allow_unsafe_code: bool = False
    """Programs written by the model are run even without a sandbox."""
    run_options: Mapping[str, str] = field(default_factory=dict)
    """The given options of the run that tasks may request by name (``run_options`` in their YAML)."""
    question_frame: tuple[str, str] = ("", "")
    """Texts before and after each question, in addition to those of the task (``--prompt_variants``)."""
    option_labels: tuple[str, ...] = ()
    """Labels that options have in place of A, B, C, ... (``--prompt_variants``); empty for the task's own letters."""
    layout: QuestionLayout | None = None
    """Makes the messages of documents in place of the task's prompt functions (``--recipe``)."""
    media: RequestLimits | None = None
    """Limits on the media of requests (``--recipe``)."""
    second_reading: SecondReading | None = None
    """Scores answers in another way too (``--recipe``)."""
    asked_by: str = ""
    """Hash of the layout, the limits, the system prompt and the seed of a recipe; empty without one."""
    judge_repeats: int = 1
    """Number of times that each question is put to the judge; repetitions are named ``NAME~2``, ..."""

    @property
    def media_roots(self) -> tuple[Path, ...]:
        """Further folders that are searched for media paths (``--media_root``)."""
        root = self.run_options.get("media_root")
        return (Path(root).expanduser(),) if root else ()

    @property
    def allowed_media(self) -> tuple[str, ...]:
        """Further folders, files and URLs that documents from the hub may refer to (``--allow_media``)."""
        return comma_list(self.run_options.get("allow_media"))


class MetricDefinition(Struct, frozen=True):
    """A metric of the task's ``metric_list``."""

    name: str
    aggregation: Callable[..., Any]
    aggregation_name: str | None
    """Registered name; ``None`` for a function of the task (called exactly once, no bootstrap error)."""
    higher_is_better: bool | None
    score_range: ScoreRange | None = None
    """Range of the aggregated value; ``None``: unknown."""
    macro_scale: float = 0.0
    """Factor between the value and the mean over ``Task.strata`` of their means; 0: it is not such a mean."""
    reduces: str = ""
    """The metric whose scores of a document's answers this metric reduces (``--reduce``)."""
    pipelines: tuple[str, ...] = ()
    """Filter pipelines that have the metric; empty: all."""


class Answer(Struct, frozen=True):
    """The complete answer of a model to one (document, repeat).

    ``value`` is a text, a list of rounds (multi-round), or a list with a ``(value, is_greedy)`` pair per choice (log
    probabilities). A text with pictures is an ``InterleavedText``. ``error`` is set instead if a request was given up.
    """

    value: Any
    usage: tuple[Usage | None, ...] = ()
    finish_reason: str | None = None
    latency: float | None = None
    error: str | None = None
    input: str = ""
    """Context of the first request, as samples log it."""
    is_loss: bool = True
    """Values are losses (lower is likelier); ``False``: log probabilities that the engine negated."""
    model: str | None = None
    """The model name that the server reported."""
    media: tuple[SentMedia, ...] = ()
    """Distinct media that were sent with the requests."""
    messages: tuple[SentMessage, ...] = ()
    """The conversation; empty if only ``input`` is known. Set by the engine."""
    attempts: int = 1
    """Largest number of times that one of the requests was sent. Set by the engine."""
    thoughts: tuple[Thoughts | None, ...] = ()
    """Thoughts of each response, in the order of ``usage``; empty without thoughts. ``value`` does not contain them."""
    stops: tuple[str, ...] = ()
    """Stop strings that could end a response."""
    ended_by: tuple[str | None, ...] = ()
    """``Response.ended_by`` of each response; empty if it is unknown for all of them."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Texts and pictures of all rounds in order; empty if all answers are plain text."""
        texts = self.value if isinstance(self.value, list | tuple) else (self.value,)
        return tuple(part for text in texts for part in getattr(text, "parts", ()))


class Exchange(abc.ABC):
    """The rounds of requests for one (document, repeat): a pure state machine, which is replayed on resume."""

    @abc.abstractmethod
    def open(self) -> Sequence[Request]:
        """Return the requests of the first round."""

    @abc.abstractmethod
    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        """Return the requests of the next round; an empty sequence ends the exchange.

        Args:
            responses: the successful responses to all requests of the current round, in the order of the requests.
        """

    def observation(self) -> str:
        """Return further output of the task's functions on the last answers, such as the result of a tool."""
        return ""

    @abc.abstractmethod
    def answer(self) -> Answer:
        """Return the complete answer; called after ``advance`` returned no requests."""


ReportFunction = Callable[[Mapping[str, TaskNumbers], Path | None], BenchmarkReport | None]
"""Function that makes a benchmark's report of its tasks' numbers by name, and of the path stem for files (``None``:
write no files)."""


class Sample(Struct, frozen=True):
    """Size and seed of a random sample of the split, which is the same on every machine."""

    size: int
    seed: int = 0


class Task(abc.ABC):
    """One task of a run. The constructor is cheap; ``load`` opens the data."""

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
    """Called once after the aggregations with all tasks of the run that share it, by name."""
    sample: Sample | None = None
    """Random sample of the split; ``None``: all documents."""
    is_judged: bool = False
    """``judge_questions`` may return questions."""
    is_scored_by_package: bool = False
    """Only functions of this package score the answers, so that an event loop may call them if they are quick."""
    thought_tags: Sequence[tuple[str, str]] | None = None
    """Opening and closing tags of thoughts to remove from answers; ``None``: the usual ones."""
    moves_blanks: bool = False
    """White space at the end of a prompt belongs to the continuation whose likelihood is requested."""
    control_of: str = ""
    """Name of the task whose documents this control task asks in another form (``docs/controls.md``)."""
    variant: PromptVariant | None = None
    """The changes of the prompt, if this control task is a variant of it (``docs/prompts.md``)."""
    asks_again: bool = False
    """This control asks the same requests as its task a second time (``--repeat_share``)."""

    @property
    def has_judged_scores(self) -> bool:
        """Whether the task's own scores depend on the judge: a second reading may ask it too."""
        return self.is_judged

    def add_metrics(self, returned: Sequence[str]) -> None:
        """Add to ``metrics`` those that scoring returned and the task does not declare; by default none is added."""

    @abc.abstractmethod
    def load(self) -> None:
        """Open the data without decoding pictures. Raises ``DataError`` or ``TaskError``."""

    @property
    def data_files(self) -> Sequence[str]:
        """Local files that hold the documents, once the data are open; empty for data from the hub."""
        return ()

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of documents of the evaluated split; only after ``load``."""

    def check_files(self, doc_ids: Sequence[int]) -> None:
        """Check that the files of these documents exist, if the task declares that they are its own.

        Raises:
            AbsentDataError: files are missing; the message states how many, the first one, and how to get them.
        """

    @abc.abstractmethod
    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        """Return the exchange of one (document, repeat)."""

    @abc.abstractmethod
    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        """Estimate the work per document, roughly in tokens, from column lengths and file sizes without rendering."""

    def strata(self, doc_ids: Sequence[int]) -> Sequence[str] | None:  # noqa: ARG002 - the default
        """Return the name of each document's stratum, which must not depend on answers; ``None``: no strata."""
        return None

    def judge_questions(
        self,
        doc_id: int,  # noqa: ARG002 - the default for tasks that need no judge
        answers: Sequence[Answer],  # noqa: ARG002
    ) -> Sequence[JudgeQuestion]:
        """Return the questions to the judge about one document's answers; called only in runs with a judge."""
        return ()

    @abc.abstractmethod
    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        """Filter and score the answers of all repeats of one document; never called with failed answers.

        The task's functions may raise anything; the engine then records a failed sample.

        Args:
            doc_id: the document.
            answers: one per repeat.
            verdicts: one for each of ``judge_questions``; empty without a judge.
        """

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return ``configs[TASK]`` of the results: all keys that are not null; callables as ``<function NAME>``."""

    @abc.abstractmethod
    def fingerprint(self) -> Mapping[str, str]:
        """Return hashes of the configuration, the source of its functions and the identity of the data."""

    @property
    def pack(self) -> Mapping[str, str]:
        """``pack``, ``version`` and ``sha256`` of the pack, and ``files``, the hash of the task's own files.

        Empty for a task outside packs.
        """
        return {}

    @abc.abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """Return JSON that lets a worker process rebuild the task (``lmms_eval.tasks.build_from_spec``)."""

    def carried_document(self, doc_id: int) -> Mapping[str, Any] | None:  # noqa: ARG002 - the default
        """Return a document as JSON for a scoring process; ``None``: the process must open the data itself."""
        return None

    def take_document(self, doc_id: int, document: Mapping[str, Any] | None) -> None:
        """Receive in a scoring process the document that ``carried_document`` returned in the parent.

        Raises:
            DataError: ``document`` is ``None``, and the data cannot be opened here.
        """

    @abc.abstractmethod
    def dataset_dict(self) -> Any:
        """Return a ``datasets.DatasetDict`` of all splits for legacy plugins (``task_dict[task][split][doc_id]``)."""


class GroupMetric(Struct, frozen=True):
    """One entry of a group's ``aggregate_metric_list``."""

    metric: str
    aggregation: str | Callable[..., Any]
    weight_by_size: bool = False
    filters: tuple[str, ...] = ("none",)
    """Names of filter pipelines; empty: all through which a leaf task has the metric."""
    of: Mapping[str, str] = field(default_factory=dict)
    """``metric,filter`` of each leaf task, rescaled from its range to 0 to 100; empty: ``metric`` of all leaves that
    have it, unscaled."""


class Group(Struct, frozen=True):
    """A group and its direct children (names of tasks or groups), as selected in this run."""

    name: str
    alias: str
    children: tuple[str, ...]
    metrics: tuple[GroupMetric, ...] = ()
    version: Any = None


class Selection(Struct, frozen=True):
    """The tasks selected by ``--tasks``: leaf tasks in order, and the groups that contain them."""

    tasks: tuple[Task, ...]
    groups: tuple[Group, ...] = ()
    direct: frozenset[str] = frozenset()
    """Tasks that were named directly, by wildcard or by tag; the table shows them unindented."""
