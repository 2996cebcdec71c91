"""Names that programs of the family ask a task for, beyond the contract: its documents, functions and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.api.task import MetricDefinition, TaskOptions
    from lmms_eval.tasks.data import DataSet, Documents
    from lmms_eval.tasks.yaml.config import TaskConfig
    from lmms_eval.tasks.yaml.prompts import Prompts
    from lmms_eval.tasks.yaml.scoring import AnswerScorer


class FamilyInterface:
    """Methods of the family's task classes over a loaded task; documents decode their media when a column is read."""

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
        """Return the documents that examples are taken from, as far as a split holds them."""
        config = self.config
        return self._docs(config.fewshot_split or config.training_split or config.validation_split or config.test_split)

    @property
    def eval_docs(self) -> Documents:
        """The documents that are evaluated."""
        self.load()
        return self.documents

    @property
    def eval_docs_no_media(self) -> Sequence[Mapping[str, Any]]:
        """The documents that are evaluated, without their media columns."""
        documents = self.eval_docs
        return [documents.text_view(doc_id) for doc_id in range(len(documents))]

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, offset: int = 0
    ) -> Iterator[tuple[int, Any]]:
        """Give number and document of each document of a rank."""
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
            NotEvaluated: a part that scoring needs is absent. Whatever the task's own function raises.
        """
        self.load()
        assert self._scorer is not None
        return self._scorer.of_results(doc, results)

    def aggregation(self) -> dict[str, Callable[..., Any]]:
        """Return the function that makes a metric's number of the documents' values, by metric."""
        return {metric.name: metric.aggregation for metric in self.metrics}

    def higher_is_better(self) -> dict[str, bool | None]:
        """Return the direction of each metric."""
        return {metric.name: metric.higher_is_better for metric in self.metrics}

    def get_config(self, key: str) -> Any:
        """Return the value of a key of the task's YAML; ``None`` if it has none."""
        return getattr(self.config, "class_" if key == "class" else key, None)

    def dump_config(self) -> dict[str, Any]:
        """Return every key that has a value, as JSON; functions by their names."""
        return self.describe()

    def _docs(self, split: str | None) -> Documents | None:
        return None if split is None else self.data.processed(split)
