"""Checked keys of tasks and groups. An error for an unknown key or a wrong type names the file and the key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval.api.task import OutputType, Sample
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.functions import FunctionRef

GENERATING: frozenset[str] = frozenset(
    {"generate_until", "generate_until_multi_round", "generate_until_agentic", "generate_visual_cot"}
)
DEFAULT_DELIMITER = " "


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, populate_by_name=True, defer_build=True)


class TaskConfig(_Keys):
    """Every key of a task; see ``docs/task_guide.md``. Functions are references until the task is built."""

    task: str
    task_alias: str | None = None
    tag: str | list[str] | None = None
    class_: Any = Field(default=None, alias="class")
    dataset_path: Any = None
    dataset_name: str | None = None
    dataset_kwargs: dict[str, Any] | None = None
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    full_docs: bool = False
    process_results_use_image: bool = False
    process_docs: Any = None
    doc_to_visual: Any = None
    media_archive: str | None = None
    doc_to_text: Any = None
    doc_to_target: Any = None
    doc_to_gold: Any = None
    doc_to_choice: Any = None
    choices: dict[str, Any] | None = None
    doc_to_messages: Any = None
    process_results: Any = None
    doc_to_judge: Any = None
    use_prompt: str | None = None
    description: Any = ""
    target_delimiter: str | None = None
    fewshot_delimiter: str = "\n\n"
    fewshot_config: dict[str, Any] | None = None
    num_fewshot: int | None = Field(default=None, ge=0)
    metric_list: list[dict[str, Any]] | None = None
    output_type: OutputType = "generate_until"
    generation_kwargs: dict[str, Any] | None = None
    repeats: int = Field(default=1, ge=1)
    filter_list: list[dict[str, Any]] | None = None
    should_decontaminate: bool = False
    doc_to_decontamination_query: Any = None
    cluster_key: str | None = None
    score_key: str = "score"
    sample: dict[str, int] | None = None
    metadata: dict[str, Any] | list[Any] | None = None
    lmms_eval_specific_kwargs: dict[str, Any] | None = None
    run_options: list[str] | None = None
    model_specific_generation_kwargs: dict[str, Any] | None = None
    model_specific_target_kwargs: dict[str, Any] | None = None
    reasoning_tags: Any = None
    auto_strip_thinking: bool = False
    scoring: Literal["inline", "process"] = "inline"
    report: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        """``metadata`` as one mapping; the list form is a list of mappings."""
        return facts_of(self.metadata)

    @property
    def drawn(self) -> Sample | None:
        """The sample of documents, if the task draws one."""
        return None if self.sample is None else Sample(**self.sample)

    @property
    def answer_delimiter(self) -> str:
        """Text between a question and its answer; a space by default."""
        return DEFAULT_DELIMITER if self.target_delimiter is None else self.target_delimiter

    @property
    def split(self) -> str:
        """The evaluated split."""
        return str(self.test_split or self.validation_split)


class GroupConfig(_Keys):
    """The keys of a group; every other key of a group file is an override for its members."""

    group: str
    group_alias: str | None = None
    task: list[str | dict[str, Any]]
    aggregate_metric_list: dict[str, Any] | list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | list[Any] | None = None
    tag: str | list[str] | None = None


class AggregateMetric(_Keys):
    """An entry of ``aggregate_metric_list``."""

    metric: str
    aggregation: Any = "mean"
    weight_by_size: bool = False
    filter_list: str | list[str] = "none"
    of: dict[str, str] = {}


def keys_of_type(kind: type[TaskConfig]) -> tuple[str, ...]:
    """Return the keys of a kind of task, as they are written."""
    return tuple(field.alias or name for name, field in kind.model_fields.items())


TASK_KEYS = keys_of_type(TaskConfig)
GROUP_KEYS = tuple(GroupConfig.model_fields)


def facts_of(metadata: Any) -> dict[str, Any]:
    parts = metadata if isinstance(metadata, list) else [metadata]
    return {key: value for part in parts if isinstance(part, Mapping) for key, value in part.items()}


class TaskKeys(Struct, frozen=True):
    """The keys that a task has."""

    kind: type[TaskConfig] = TaskConfig
    needs_path: bool = True
    """Whether the task must name its data (``dataset_path``)."""

    def checked(self, data: Mapping[str, Any], file: str) -> Any:
        """Check the keys of a task and return its configuration.

        Raises ``TaskError`` if a key is unknown, a value has the wrong type, or a combination of keys is incomplete;
        the message names the file.
        """
        given = dict(data)
        if given.get("group") is not None:
            if given.get("tag") is not None:
                raise TaskError(f"{file}: give either tag or group (its old spelling inside a task), not both")
            given["tag"] = given.pop("group")
        given.pop("group", None)
        given.pop("group_alias", None)
        check_keys(given, keys_of_type(self.kind), file)
        config = _validated(self.kind, given, file)
        if config.sample is not None:
            check_keys(config.sample, ("size", "seed"), f"{file}: key 'sample'")
            if config.sample.get("size", 0) < 1:
                raise TaskError(f"{file}: key 'sample' needs size, the number of documents to draw, from 1 on")
        if config.class_ is None:
            if self.needs_path and not config.dataset_path:
                path = "a hub name, a folder, or json, csv, parquet, ..."
                raise TaskError(f"{file}: key 'dataset_path' is missing: {path}")
            _check_task(config, file)
        return config


def task_config(data: Mapping[str, Any], file: str) -> TaskConfig:
    """Check the keys of a task. Raises ``TaskError`` as ``TaskKeys.checked`` does."""
    config: TaskConfig = TaskKeys().checked(data, file)
    return config


def _check_task(config: TaskConfig, file: str) -> None:
    if any(sign in config.task for sign in "/\\\0"):  # it becomes part of the names of files
        raise TaskError(f"{file}: key 'task': a name holds no slash, backslash or zero byte; got {config.task!r}")
    if not (config.test_split or config.validation_split):
        raise TaskError(f"{file}: give test_split or validation_split: it is the split that is evaluated")
    if config.doc_to_text is None and config.doc_to_messages is None:
        raise TaskError(f"{file}: give doc_to_text (or doc_to_messages): without it there is no prompt")
    if config.output_type == "multiple_choice" and config.doc_to_choice is None:
        raise TaskError(f"{file}: output_type multiple_choice needs doc_to_choice")
    if config.output_type == "generate_visual_cot" and config.metric_list is None:
        raise TaskError(f"{file}: output_type generate_visual_cot has no metric of its own: give metric_list")
    multi = config.output_type in ("generate_until_multi_round", "generate_until_agentic")
    if multi and not _callable(config.doc_to_text) and not _callable(config.doc_to_messages):
        raise TaskError(f"{file}: output_type {config.output_type} needs a function for doc_to_text")
    for key in ("process_docs", "doc_to_messages", "process_results", "doc_to_judge"):
        value = getattr(config, key)
        if value is not None and not _callable(value):
            raise TaskError(f"{file}: key {key!r} must be a function (!function module.name), not {value!r}")


def _callable(value: Any) -> bool:
    return isinstance(value, FunctionRef) or callable(value)


def group_config(data: Mapping[str, Any], file: str, has_known_keys: bool = True) -> tuple[GroupConfig, dict[str, Any]]:
    """Return the checked keys of a group, and its overrides for all members.

    Unless ``has_known_keys``, the overrides are checked only when a task is built.
    """
    own = {key: value for key, value in data.items() if key in GROUP_KEYS}
    overrides = {key: value for key, value in data.items() if key not in GROUP_KEYS}
    if has_known_keys:
        check_keys(overrides, (*GROUP_KEYS, *TASK_KEYS), file)
    return _validated(GroupConfig, own, file), overrides


def aggregate_metrics(config: GroupConfig, file: str) -> list[AggregateMetric]:
    stated = config.aggregate_metric_list
    entries = [] if stated is None else stated if isinstance(stated, list) else [stated]
    for entry in entries:
        check_keys(entry, tuple(AggregateMetric.model_fields), f"{file}: aggregate_metric_list")
    made = [_validated(AggregateMetric, entry, file) for entry in entries]
    for metric in made:
        if isinstance(metric.aggregation, str) and metric.aggregation != "mean":
            raise TaskError(
                f"{file}: aggregate_metric_list: aggregation {metric.aggregation!r}: give mean or a function"
            )
    return made


def check_keys(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise ``TaskError`` for the first unknown key, with the nearest valid one."""
    valid = tuple(known)
    for key in given:
        if key not in valid:
            close = difflib.get_close_matches(str(key), valid, n=1, cutoff=0.0)
            raise TaskError(f"{where}: unknown key {key!r}; the nearest valid key is {close[0]!r} (docs/task_guide.md)")


def _validated(model: type[Any], data: Mapping[str, Any], file: str) -> Any:
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        problems = []
        for item in error.errors(include_url=False):
            key = ".".join(str(part) for part in item["loc"])
            problems.append(f"key {key!r}: {item['msg']} (given: {item.get('input')!r:.80})")
        raise TaskError(f"{file}: {'; '.join(problems)}") from error
