"""Attributes of a task that programs of the family use beyond the contract: documents, functions and settings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Request
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.exchanges import MessageBuilder, RequestSettings
from lmms_eval.tasks.yaml.prompts import as_turns, keep_originals
from lmms_eval.utils.signatures import accepts, keywords_for

if TYPE_CHECKING:
    from lmms_eval.api.task import MetricDefinition, TaskOptions
    from lmms_eval.tasks.data import DataSet, Documents
    from lmms_eval.tasks.yaml.config import TaskConfig
    from lmms_eval.tasks.yaml.prompts import Prompts
    from lmms_eval.tasks.yaml.scoring import AnswerScorer


Doc = Mapping[str, Any]


def arguments_of(requests: RequestSettings, request: Request, chat: bool) -> tuple[Any, ...]:
    """Return the ``Instance.args`` tuple of a request.

    Raises ``TaskError`` if the request is for a likelihood, which chat plugins cannot answer.
    """
    task, builder = requests.task, request.build_messages
    place = (request.doc_id, task.name, task.split)
    show, policy = requests.prompts.visuals, requests.prompts.media
    if isinstance(builder, MessageBuilder) and (own := builder.own) is not None:

        def show(doc: Doc) -> list[Any]:
            return [part["url"] for turn in own(doc) for part in turn["content"] if part["type"] != "text"]

    visual = show if policy is None else lambda doc: policy.media(show(doc))
    if request.kind == "loglikelihood_rolling":
        return (request.continuation or "",)
    if request.kind == "loglikelihood":
        if chat:
            raise TaskError(
                f"task {task.name!r} ({task.output_type}) asks for likelihoods, which chat plugins cannot give: use "
                "--force_simple or another model"
            )
        continuation: Any = request.continuation
        if task.output_type == "loglikelihood":
            continuation = requests.prompts.answer_text
        return (request.context, continuation, visual, *place)
    # Plugins of the family expect the few-shot delimiter here. Chat plugins remove it themselves.
    generation = copy.deepcopy(dict(request.generation_after(has_template=False)))
    if chat:
        return (request.context, partial(_messages_of, requests, request), generation, *place)
    if request.kind == "generate_until_multi_round":
        return (request.context, generation, visual, requests.prompts.text, *place)
    return (request.context, generation, visual, *place)


def _messages_of(requests: RequestSettings, request: Request, doc: Doc, **rounds: Any) -> Any:
    """Build a document's messages, examples included, also for later rounds."""
    if rounds.get("round_idx"):
        prompts, own = requests.prompts, requests.config.doc_to_messages
        if own is not None and prompts.messages is not None and accepts(own, "round_idx"):
            keep_originals()
            messages, stop, outputs, info = prompts.messages(doc, **keywords_for(own, rounds))
            turns = None if messages is None else as_turns(messages, f"{requests.where}: doc_to_messages")
        else:
            visuals, text, stop, outputs, info = prompts.text(doc, **rounds)
            turns = None if stop else prompts.user_turn(visuals or [], str(text))
        shown = None if turns is None else prompts.allowed(requests.builder.with_system(turns))
        return shown, bool(stop), outputs, info
    if isinstance(request.build_messages, MessageBuilder):
        return request.build_messages.turns(doc)
    return requests.prompts.allowed(requests.builder.turns(request.doc_id, doc))


class FamilyInterface:
    """Methods of the family's task classes on a loaded task. Documents decode their media when a column is read."""

    if TYPE_CHECKING:
        name: str
        version: Any
        output_type: Any
        split: str
        metrics: Sequence[MetricDefinition]
        config: TaskConfig
        options: TaskOptions
        prompts: Prompts
        _scorer: AnswerScorer | None

        @property
        def data(self) -> DataSet: ...

        @property
        def documents(self) -> Documents: ...

        def load(self) -> None: ...

        def describe(self) -> dict[str, Any]: ...

    @property
    def task_name(self) -> str:
        return self.name

    @property
    def VERSION(self) -> Any:
        return self.version

    @property
    def OUTPUT_TYPE(self) -> Any:
        return self.output_type

    def has_training_docs(self) -> bool:
        return self.config.training_split is not None

    def has_validation_docs(self) -> bool:
        return self.config.validation_split is not None

    def has_test_docs(self) -> bool:
        return self.config.test_split is not None

    def training_docs(self) -> Documents | None:
        """Return the documents of the training split; ``None`` if the task names none."""
        return self._docs(self.config.training_split)

    def validation_docs(self) -> Documents | None:
        """Return the documents of the validation split; ``None`` if the task names none."""
        return self._docs(self.config.validation_split)

    def test_docs(self) -> Documents | None:
        """Return the documents of the test split; ``None`` if the task names none."""
        return self._docs(self.config.test_split)

    def fewshot_docs(self) -> Documents | None:
        """Return the documents that examples are taken from; ``None`` if no split holds any."""
        config = self.config
        return self._docs(config.fewshot_split or config.training_split or config.validation_split or config.test_split)

    @property
    def eval_docs(self) -> Documents:
        """The evaluated documents."""
        self.load()
        return self.documents

    @property
    def eval_docs_no_media(self) -> Sequence[Mapping[str, Any]]:
        """The evaluated documents without their media columns."""
        documents = self.eval_docs
        return [documents.text_view(doc_id) for doc_id in range(len(documents))]

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, offset: int = 0
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number and the content of each document of a rank."""
        documents = self.eval_docs
        stop = len(documents) if limit is None else min(len(documents), offset + int(limit))
        return ((doc_id, documents[doc_id]) for doc_id in range(offset + rank, stop, world_size))

    def doc_to_text(self, doc: Mapping[str, Any]) -> Any:
        """Return the document's prompt."""
        return self.prompts.text(doc)

    def doc_to_target(self, doc: Mapping[str, Any]) -> Any:
        """Return the document's reference answer."""
        return self.prompts.target(doc)

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        """Return the document's media."""
        return self.prompts.visuals(doc)

    def doc_to_choice(self, doc: Mapping[str, Any]) -> list[str] | None:
        """Return the document's choices; ``None`` if it has none."""
        return self.prompts.choices(doc)

    def process_results(
        self,
        doc: Mapping[str, Any],
        results: Sequence[Any],
        full_docs: Any = None,  # noqa: ARG002 - the family's
    ) -> Mapping[str, Any]:
        """Score the filtered answers of a document, one for each of its requests.

        Raises:
            NotEvaluated: a part that scoring needs is absent. The task's own function may raise any other error.
        """
        self.load()
        assert self._scorer is not None
        return self._scorer.evaluate(doc, results)

    def aggregation(self) -> dict[str, Callable[..., Any]]:
        """Return the aggregation function of each metric."""
        return {metric.name: metric.aggregation for metric in self.metrics}

    def higher_is_better(self) -> dict[str, bool | None]:
        """Return the direction of each metric."""
        return {metric.name: metric.higher_is_better for metric in self.metrics}

    def get_config(self, key: str) -> Any:
        """Return the value of a key of the task's YAML; ``None`` if the key is absent."""
        return getattr(self.config, "class_" if key == "class" else key, None)

    def dump_config(self) -> dict[str, Any]:
        """Return every key that has a value, as JSON, with functions by name."""
        return self.describe()

    def _docs(self, split: str | None) -> Documents | None:
        return None if split is None else self.data.processed(split)
