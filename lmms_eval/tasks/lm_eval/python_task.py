"""Tasks that lm-eval's packs write as Python classes (``class: !function module.X``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from lmms_eval.api.messages import build_user_turn
from lmms_eval.api.response import Response
from lmms_eval.api.task import Answer, Request, TaskOptions
from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.tasks.data import DataSet
from lmms_eval.tasks.data.splits import of_datasets
from lmms_eval.tasks.lm_eval.config import LmEvalConfig, generation_kwargs, sent_generation
from lmms_eval.tasks.lm_eval.exchanges import LmEvalLikelihoodExchange
from lmms_eval.tasks.lm_eval.metrics import LmEvalMetric, definition_of
from lmms_eval.tasks.lm_eval.scoring import LmEvalScorer
from lmms_eval.tasks.lm_eval.task import LmEvalTask
from lmms_eval.tasks.yaml.exchanges import Ask, MessageBuilder, TaskExchange
from lmms_eval.tasks.yaml.functions import named, resolve_all
from lmms_eval.tasks.yaml.metrics import TaskMetric
from lmms_eval.tasks.yaml.task import TaskSource, media_policy
from lmms_eval.utils.installed import error_text

_SPLITS = {"train": "training", "validation": "validation", "test": "test"}


class ClassSettings(SimpleNamespace):
    """The configuration of a task class, read by attribute and by key."""

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)


class Instance:
    """One request of ``construct_requests``.

    ``metadata`` are the names of the task, the number of the document and of repeats.
    """

    def __init__(
        self, request_type: str, doc: Any, arguments: tuple[Any, ...], idx: int,
        metadata: tuple[Any, Any, Any] = (None, None, None), **_kwargs: Any,
    ) -> None:  # fmt: skip
        self.request_type, self.doc, self.arguments, self.idx, self.metadata = (
            request_type,
            doc,
            arguments,
            idx,
            metadata,
        )
        self.task_name, self.doc_id, self.repeats = metadata
        self.resps: list[Any] = []
        self.filtered_resps: dict[str, Any] = {}

    @property
    def args(self) -> tuple[Any, ...]:
        return self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)


class ConfigurableTask:
    """Base of the classes. They override what they need; the rest belongs to the task that runs them."""

    DATASET_PATH: str | None = None
    DATASET_NAME: str | None = None
    VERSION: Any = "Yaml"

    def __init__(self, config: Mapping[str, Any] | None = None, **_kwargs: Any) -> None:
        given = {"generation_kwargs": generation_kwargs(LmEvalConfig(task="")), "metadata": {}, **(config or {})}
        self.config = ClassSettings(**given)
        self._config, self._dataset = self.config, None
        self.DATASET_PATH = given.get("dataset_path") or self.DATASET_PATH
        self.DATASET_NAME = given.get("dataset_name") or self.DATASET_NAME

    @property
    def dataset(self) -> Any:
        """A mapping from split to data set; ``None`` until the task that runs it opens the data.

        A class that overrides ``download`` gets its data at the first use, which may be in its constructor.
        """
        if self._dataset is None and type(self).download is not ConfigurableTask.download:
            self.download(self.config.get("dataset_kwargs"))
        return self._dataset

    @dataset.setter
    def dataset(self, made: Any) -> None:
        self._dataset = made

    def download(self, *_args: Any, **_kwargs: Any) -> None:
        """Set ``dataset``, a mapping from split to data set. The base class leaves it to the task that runs it."""

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return False

    def doc_to_text(self, doc: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no doc_to_text")

    def doc_to_target(self, doc: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no doc_to_target")

    def construct_requests(self, doc: Any, ctx: str, **kwargs: Any) -> list[Instance]:
        raise NotImplementedError(f"{type(self).__name__} has no construct_requests")

    def process_results(self, doc: Any, results: Sequence[Any]) -> Mapping[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} has no process_results")

    def aggregation(self) -> Mapping[str, Any]:
        return {}

    def higher_is_better(self) -> Mapping[str, bool]:
        return {}


def built(cls: type[ConfigurableTask], config: Mapping[str, Any], where: str) -> ConfigurableTask:
    """Make the object of a task class. Raises ``TaskError`` if its constructor raises."""
    parameters = inspect.signature(cls.__init__).parameters
    if config.get("recipe") is not None:
        _check_recipes(where)
    try:
        made = cls(config=dict(config)) if "config" in parameters else cls()
    except LmmsEvalError:
        raise
    except Exception as error:  # the constructor is third-party code and may raise anything
        raise TaskError(
            f"{where}: key 'class': {cls.__name__} cannot be built: {type(error).__name__}: {error}"
        ) from error
    made.config.task = config["task"]
    return made


def _check_recipes(where: str) -> None:
    """Raise ``TaskError`` without the package that reads ``recipe``."""
    try:
        import_module("unitxt")
    except ImportError as error:
        raise TaskError(f"{where}: key 'recipe': unitxt cannot be imported: {error_text(error)}") from error


class PythonTask(LmEvalTask):
    """A task whose prompts, requests and scores are methods of a class. Raises as ``YamlTask`` does."""

    def __init__(self, source: TaskSource, options: TaskOptions, cls: type[ConfigurableTask]) -> None:
        config = {key: value for key, value in source.raw.items() if key != "class"}
        self._own = own = built(cls, {**config, "task": source.name}, source.file)
        has = {split: bool(getattr(own, f"has_{word}_docs")()) for split, word in _SPLITS.items()}
        stated: dict[str, Any] = {
            "dataset_path": str(own.DATASET_PATH or source.name),
            "dataset_name": own.DATASET_NAME,
            **{f"{word}_split": split for split, word in _SPLITS.items() if has[split]},
            "doc_to_text": own.doc_to_text,
            "doc_to_target": own.doc_to_target,
            "process_results": own.process_results,
            "metadata": {"version": own.VERSION, **(own.config.get("metadata") or {})},
            "metric_list": [],
        }
        raw = {**config, **stated, **{key: value for key, value in (source.overrides or {}).items() if key != "class"}}
        super().__init__(structs.replace(source, raw=raw), options)
        self.source = source  # with the class, so that the task can be built again

    @property
    def data(self) -> DataSet:
        """The splits that the class has, as its methods return them."""
        if self._data is None:
            own = self._own
            if named(lambda: own.dataset, f"{type(own).__name__}.download")() is None:
                own.dataset = self._open_data().dataset_dict()
            splits = {split: _docs(own, word) for split, word in _SPLITS.items() if getattr(own, f"has_{word}_docs")()}
            policy = media_policy(self.config, self.where, self.options)
            self._data = of_datasets(splits, f"{self.where}: {type(own).__name__}", policy)
            self.prompts.media = policy
        return self._data

    def instances(self, doc_id: int, context: str) -> list[Instance]:
        """Return the requests that the class makes for a document, in the order of their numbers."""
        doc = self.documents.text_view(doc_id)
        make = named(self._own.construct_requests, f"{type(self._own).__name__}.construct_requests")
        made = make(
            doc, context, apply_chat_template=self.options.apply_chat_template,
            metadata=(self.name, doc_id, self.repeats),
        )  # fmt: skip
        each = list(made) if isinstance(made, list | tuple) else [made]
        return sorted(each, key=lambda instance: instance.idx)

    def _stated_metrics(self) -> Sequence[TaskMetric]:
        if self.options.predict_only:
            return super()._stated_metrics()
        directions = self._own.higher_is_better()
        self._lm_eval_metrics = [
            LmEvalMetric(TaskMetric(definition_of(name, function, directions.get(name, True), self.where), {}), None)
            for name, function in self._own.aggregation().items()
        ]
        return [one.metric for one in self._lm_eval_metrics]

    def _answer_scorer(self, documents: Any) -> LmEvalScorer:  # noqa: ARG002 - the base's
        return _MixedScorer(self.prompts, self._lm_eval_metrics, self._plan, None, self.seeding.scoring_may_draw)

    @property
    def _exchange(self) -> type[TaskExchange]:
        return PythonExchange


def _docs(own: ConfigurableTask, word: str) -> Any:
    method: Callable[[], Any] = getattr(own, f"{word}_docs", lambda: None)
    docs = named(method, f"{type(own).__name__}.{word}_docs")()
    process = getattr(own, "_process_doc", None)
    return docs if process is None or docs is None else docs.map(process)


class PythonExchange(LmEvalLikelihoodExchange):
    """The requests of ``construct_requests``, which may be of different kinds."""

    def open(self) -> Sequence[Request]:
        task = self.requests.task
        assert isinstance(task, PythonTask)
        instances = task.instances(self.doc_id, self._first())
        self._is_rolling = [instance.request_type == "loglikelihood_rolling" for instance in instances]
        return [self._request(ask) for ask in self._asks(instances)]

    def answer(self) -> Answer:
        """Return the texts and losses of the responses: of a continuation ``[loss, is_greedy]``, else ``[loss]``."""
        return self._answer(list(map(self._value, self._responses, self._is_rolling)))

    def _value(self, response: Response, is_rolling: bool) -> Any:
        value = response.loglikelihood
        if response.text is not None or value is None:
            return response.text
        loss = value if response.is_loss else -value
        return [loss] if is_rolling else [loss, bool(response.is_greedy)]

    def _asks(self, instances: Sequence[Instance]) -> Iterator[Ask]:
        for number, instance in enumerate(instances):
            context, *more = instance.args
            builder = MessageBuilder(self.requests, self.doc_id)
            if instance.request_type == "generate_until":
                given = sent_generation(more[0] if more else {})
                yield Ask(context, builder, "generate_until", index=number, generation=given)
            elif instance.request_type == "loglikelihood":
                yield Ask(context, builder, "loglikelihood", str(more[0]), index=number)
            elif instance.request_type == "loglikelihood_rolling":
                nothing = MessageBuilder(self.requests, self.doc_id, lambda _doc: build_user_turn([], ""), bare=True)
                yield Ask("", nothing, "loglikelihood_rolling", str(context), index=number)
            else:
                raise TaskError(
                    f"{self.requests.where}: a request of type {instance.request_type!r} is not in this version"
                )


def _logarithms(losses: Sequence[Any]) -> Any:
    """Return what a class gets for a likelihood: a number for that of a whole text, else a pair."""
    value, *greedy = losses
    return (0.0 - value, bool(greedy[0])) if greedy else 0.0 - value


class _MixedScorer(LmEvalScorer):
    """Scores answers to requests of different kinds: texts, likelihoods of whole texts, and pairs of the likelihood of
    a continuation and whether it is greedy."""

    def _filtered(self, pipeline: Any, doc: Any, answers: Sequence[Answer]) -> list[Any]:  # noqa: ARG002 - the base's
        return list(answers[0].value)

    def _results(self, filtered: Sequence[Any]) -> list[Any]:
        return [value if isinstance(value, str) else _logarithms(value) for value in filtered]


def build_lm_eval_task(source: TaskSource, options: TaskOptions) -> LmEvalTask:
    """Build a task of a pack of lm-eval: by its keys, or by the class that they name.

    Raises ``TaskError`` if the class is not a task class of lm-eval, or as ``YamlTask`` does.
    """
    stated = source.raw.get("class")
    if stated is None:
        return LmEvalTask(source, options)
    cls = resolve_all(stated, "class")
    if not (isinstance(cls, type) and issubclass(cls, ConfigurableTask)):
        raise TaskError(f"{source.file}: key 'class': {cls!r} is no task class of lm-eval")
    return PythonTask(source, options, cls)
