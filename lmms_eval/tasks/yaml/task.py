"""A task written in YAML."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path, PurePath
from typing import Any, ClassVar

from msgspec import Struct, structs

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Request
from lmms_eval.api.task import Answer, Exchange, ScoredDoc, Task, TaskOptions
from lmms_eval.errors import AbsentDataError, DataError, LmmsEvalError, MediaError, TaskError, UsageError
from lmms_eval.filters.reasoning import THOUGHT_TAGS
from lmms_eval.media.policy import MediaPolicy
from lmms_eval.sandbox.policy import Policy, using
from lmms_eval.tasks._task_utils.media_files import ADDRESSES, hf_home
from lmms_eval.tasks._task_utils.scoring_data import identity_of
from lmms_eval.tasks.data import DataSet, Documents, open_data
from lmms_eval.tasks.data.documents import can_be_carried, document_hash, pictures, plain_row
from lmms_eval.tasks.data.local_copies import LocalCopies
from lmms_eval.tasks.data.locate import data_root_folders
from lmms_eval.tasks.data.sources import CarriedSource, ChangedSource, described
from lmms_eval.tasks.data.splits import DataRequest
from lmms_eval.tasks.packs.store import used_pack
from lmms_eval.tasks.yaml.choices import ChoiceColumns, changed_row
from lmms_eval.tasks.yaml.config import TaskConfig, task_config
from lmms_eval.tasks.yaml.costs import Costs, Files
from lmms_eval.tasks.yaml.exchanges import EXCHANGES, PLUGIN_EXCHANGES, RequestSettings, TaskExchange
from lmms_eval.tasks.yaml.family_interface import FamilyInterface, arguments_of
from lmms_eval.tasks.yaml.fingerprints import absolute_paths, hash_of_functions, hash_of_text
from lmms_eval.tasks.yaml.functions import Seeding, comes_with_package, describe_all, named, resolve_all
from lmms_eval.tasks.yaml.included import included_folders
from lmms_eval.tasks.yaml.loader import YamlReader, encode
from lmms_eval.tasks.yaml.metrics import (
    BYPASS,
    TaskMetric,
    check_reducers,
    common_column,
    reduced_metrics,
    stated_reducers,
    strata_of,
    task_metrics,
)
from lmms_eval.tasks.yaml.prompts import Doc, FewShot, PromptBuilder, Prompts, RenderError, check_template, few_shot
from lmms_eval.tasks.yaml.scoring import AnswerScorer, ScoringPlan, repeated, scoring_plan
from lmms_eval.tasks.yaml.settings import (
    generation_options,
    implied_stop,
    recorded_generation,
    recorded_specific_kwargs,
    shots,
)
from lmms_eval.utils.files import read_text
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.signatures import accepts

_CACHES = ("HF_HUB_CACHE", "HF_DATASETS_CACHE")


def media_policy(config: TaskConfig, file: str, options: TaskOptions) -> MediaPolicy:
    """Make the policy of a task: its files are in the hub's caches, the data and media roots, or its YAML folder."""
    return MediaPolicy.of(Path(file).name, _roots(config, Path(file), options), options.allowed_media)


def _roots(config: TaskConfig, file: Path, options: TaskOptions) -> Iterator[Path]:
    yield hf_home()
    yield from (Path(folder).expanduser() for name in _CACHES if (folder := os.environ.get(name)))
    yield from options.media_roots
    if options.data_root is not None:
        yield Path(options.data_root).expanduser()
    if file.is_file():
        yield file.parent
    cache_dir = PurePath(str((config.dataset_kwargs or {}).get("cache_dir") or "/"))
    if not cache_dir.is_absolute() and ".." not in cache_dir.parts and cache_dir.parts:
        yield from (Path(cache_dir), hf_home() / cache_dir)  # the latter may be a link to the folder of its archives


class ColumnCheck:
    """Tries the keys that read documents on the first document.

    ``from_root`` is the ``--data_root`` if the files lie in it without a folder of the benchmark's name. Then every key
    must find its columns, since the files may belong to another benchmark. Raises ``DataError`` if there are no
    documents, or a column that a key or the task's own code reads is absent or has another type; it names the column
    and the existing ones.
    """

    def __init__(self, prompts: Prompts, documents: Documents, split: str, from_root: Path | None) -> None:
        self._prompts, self._documents, self._where = prompts, documents, prompts.where
        self._source, config = documents.source.where, prompts.config
        if not len(documents):
            raise DataError(f"{self._where}: {split} has no documents ({self._source})")
        doc = documents.text_view(0)
        checks: dict[str, Callable[[Doc], Any]] = {"doc_to_text": prompts.text, "doc_to_choice": prompts.choices}
        if config.process_results is None and not prompts.options.predict_only:
            checks["doc_to_target"] = prompts.target
        for key, value_of in checks.items():
            spec = getattr(config, key)
            if isinstance(spec, str):
                self._check_text(key, spec, value_of, doc)
            elif callable(spec):
                self._check_function(key, value_of, doc)
        if from_root is not None:
            self._check_fit(from_root)
        documents.drop(0)  # keeps the document and its parsed parts until it is asked
        if isinstance(config.doc_to_visual, str) and config.doc_to_visual not in documents.columns:
            raise self._no_column("doc_to_visual", config.doc_to_visual)

    def _check_fit(self, root: Path) -> None:
        """Also try the functions that read whole documents, and the reference answer."""
        prompts, doc = self._prompts, self._documents[0]
        tried: dict[str, Callable[[Doc], Any]] = {"doc_to_messages": prompts.own_turns}
        if prompts.config.doc_to_target is not None:
            tried["doc_to_target"] = prompts.target
        for key, value_of in tried.items():
            spec = getattr(prompts.config, key)
            try:
                if isinstance(spec, str) and spec.isidentifier() and spec not in doc:
                    raise self._no_column(key, spec)
                self._check_function(key if spec is not None else "doc_to_visual", value_of, doc)
            except DataError as error:
                raise DataError(
                    f"{error}. --data_root {root} has no folder of this benchmark's name, so the file may be another "
                    "one's: put this one's data into a folder of its name there"
                ) from error

    def _check_text(self, key: str, spec: str, value_of: Callable[[Doc], Any], doc: Doc) -> None:
        """Check the name of a column, or a template."""
        if spec in doc:
            if key == "doc_to_text" and isinstance(doc[spec], Mapping | list):
                kind = "mapping" if isinstance(doc[spec], Mapping) else "list"
                raise DataError(
                    f"{self._where}: key {key!r}: column {spec!r} of {self._source} holds a {kind}, not a text; write "
                    f"a template that picks what is asked, such as '{{{{{spec}[...]}}}}'"
                )
            return
        if spec.isidentifier():
            raise self._no_column(key, spec)
        try:
            value_of(doc)
        except RenderError as error:
            raise DataError(f"{error} ({self._source})") from error

    def _check_function(self, key: str, value_of: Callable[[Doc], Any], doc: Doc) -> None:
        """Check the task's own code. Only a missing column is an error; other errors belong to single documents."""
        try:
            value_of(doc)
        except (LmmsEvalError, NotEvaluated) as error:
            absent = error.__cause__
            column = absent.args[0] if isinstance(absent, KeyError) and absent.args else None
            if isinstance(column, str) and column not in self._documents.columns:
                raise self._no_column(key, column) from error

    def _no_column(self, key: str, name: str) -> DataError:
        columns = ", ".join(self._documents.columns)
        return DataError(
            f"{self._where}: key {key!r}: there is no column {name!r} in {self._source}; there is: {columns}; the "
            "task's card (README.md next to this file, if any) names the columns that it was written for"
        )


NO_FILES = "files not here"
"""Kind of absence for the count of skipped tasks."""


def check_files(name: str, size: str, doc_ids: Sequence[int], visuals: Callable[[int], Sequence[Any]]) -> None:
    """Check that the files of documents exist, each path once.

    Args:
        name: name of the task.
        size: size of the archives that hold the files, as the task's YAML states it.
        doc_ids: the planned documents.
        visuals: returns the media of a document, including paths; raises ``MediaError`` if a file is missing. Any other
            error concerns the document alone, which fails when it is asked.

    Raises:
        AbsentDataError: files are missing.
    """
    known: dict[str, bool] = {}
    first, missing = "", 0
    for doc_id in doc_ids:
        try:
            lacks = _lacks(visuals(doc_id), known)
        except MediaError as error:
            lacks = str(error)
        except LmmsEvalError:
            continue
        if lacks:
            missing += 1
            first = first or f"document {doc_id}: {lacks}"
    if missing:
        raise AbsentDataError(
            f"task {name!r}: the files of {missing:,} of {len(doc_ids):,} documents are missing; "
            f"the first, of {first}; `lmms-eval fetch {name}` gets them ({size})",
            NO_FILES,
        )


def _lacks(visuals: Sequence[Any], known: dict[str, bool]) -> str:
    """Describe the first path that is not a file; empty if all exist."""
    for visual in visuals:
        if not isinstance(visual, str | os.PathLike) or os.fspath(visual).startswith(ADDRESSES):
            continue
        path = os.fspath(visual)
        if path not in known:
            known[path] = os.path.isfile(path)
        if not known[path]:
            return f"{path} is not there"
    return ""


_USUAL_FOLDERS = ("images", "videos")
"""Folders that the functions of tasks put before a column's value."""


def media_folders(config: TaskConfig, file: str, options: TaskOptions, prompt_options: Any) -> list[Path]:
    """Find the folders that a relative path of a document may refer to, the most specific first.

    Args:
        config: the task.
        file: its YAML file, or a description of where the configuration was given.
        options: options of the run, with its folders of data sets and media.
        prompt_options: ``lmms_eval_specific_kwargs`` for this model; its ``data_folder`` is relative to the file.
    """
    found = dict.fromkeys(_folders(config, Path(file), options, prompt_options))
    roots = [folder for folder in found if folder.is_dir()]
    return [*roots, *(root / name for root in roots for name in _USUAL_FOLDERS if (root / name).is_dir())]


def _folders(config: TaskConfig, file: Path, options: TaskOptions, prompt_options: Any) -> Iterator[Path]:
    beside = [file.parent] if file.is_file() else []
    if isinstance(prompt_options, Mapping) and prompt_options.get("data_folder"):
        yield from (folder / str(prompt_options["data_folder"]) for folder in (*beside, Path()))
    yield from options.media_roots
    path = "" if callable(config.dataset_path) else str(config.dataset_path or "")
    data_root = options.data_root
    if data_root is not None and Path(data_root).expanduser().is_dir():
        yield (root := Path(data_root).expanduser())
        yield from data_root_folders(root, path, file.name, config.task or "") if path else ()
    cache_dir = (config.dataset_kwargs or {}).get("cache_dir")
    if cache_dir:
        yield from (hf_home() / str(cache_dir), Path(str(cache_dir)).expanduser())
    yield from beside
    yield from (folder / path for folder in beside if path)
    yield Path()


PROMPT_KEYS = ("process_docs", "doc_to_visual", "doc_to_text", "doc_to_choice", "doc_to_messages", "description")
SCORING_KEYS = ("process_results", "doc_to_target", "doc_to_judge")
NAMED_KEYS = (*PROMPT_KEYS, *SCORING_KEYS, "doc_to_gold", "dataset_path")
_TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "description")


class TaskSource(Struct, frozen=True):
    """The origin of a task, which lets another process build it again."""

    name: str
    file: str
    """YAML file, or a description of where the configuration was given."""
    raw: Mapping[str, Any]
    """Keys and values, with functions as references."""
    overrides: Mapping[str, Any] | None = None
    """Keys of groups and inline mappings that override the file; ``None`` if the configuration is not from a file."""
    standalone: bool = False
    """Whether ``overrides`` is the whole configuration, because the task is defined inside a group's file."""
    base: str = ""
    """The task's name in the file, if it runs under another name."""
    documents: Mapping[str, Any] | None = None
    """Description of the documents, if another process sends them (``data.sources.CarriedSource``)."""
    change: str = ""
    """Name of the change that each document gets (``choices.changed_row``); empty for no change."""


class YamlTask(FamilyInterface, Task):
    """See ``lmms_eval.api.task.Task``; ``docs/task_guide.md`` explains every key.

    Raises ``TaskError`` if the configuration is wrong; no data is touched before ``load``.
    """

    named_keys: ClassVar[tuple[str, ...]] = NAMED_KEYS
    """Keys whose functions are named in their errors, and find data sets below ``--data_root``."""
    names_all_code: ClassVar[bool] = True
    """The configuration names all functions that score: they are not methods, or metrics that are functions."""

    def __init__(self, source: TaskSource, options: TaskOptions) -> None:
        self.source, self.options, self.where = source, options, source.file
        self._policy = Policy(options.allow_unsafe_code)
        self._raw = self._checked({**source.raw, "task": source.name})
        copies = LocalCopies(options.data_root, self.where, str(self._raw.dataset_path))
        with copies.offered(), using(self._policy):  # modules may load data, and try their tools, on import
            resolved = {name: resolve_all(value, name) for name, value in dict(self._raw).items()}
            for name in self.named_keys:  # errors of functions for documents or scores name their key
                resolved[name] = copies.reached(named(resolved[name], name))
        self.config: TaskConfig = self._raw.model_copy(update=resolved)
        config = self.config
        self.name = source.name
        self.alias = config.task_alias or source.name
        self.version = config.facts.get("version", "Yaml")
        self.output_type = config.output_type
        self.repeats = options.repeats if options.repeats is not None else config.repeats
        self._shots = shots(config, options)
        self.num_fewshot = int(config.facts.get("num_fewshot", self._shots))
        self.generation = self._generation_options()
        self._task_metrics = self._stated_metrics()
        given = () if options.predict_only else stated_reducers(options.reduce)
        check_reducers(given, self.repeats, config, self.where)
        self.metrics = (
            *(metric.definition for metric in self._task_metrics),
            *reduced_metrics(self._task_metrics, given, config),
        )
        self._strata = common_column([metric.strata for metric in self._task_metrics], self.where)
        self._plan = self._scoring_plan()
        self.thought_tags = self._plan.thought_tags
        self.pipelines = tuple("none" if one is None else one.name for one in self._plan.pipelines)
        second = None if options.predict_only else options.second_reading
        if second is not None:
            read = second.metrics(self.metrics)
            self.metrics += tuple(structs.replace(one, pipelines=self.pipelines[:1]) for one in read)
        has_questions = config.doc_to_judge is not None or (second is not None and second.asks_judge)
        self.is_judged = has_questions and not options.predict_only
        self.scoring = config.scoring if source.overrides is not None else "inline"
        self.report = config.report
        self.cluster_key, self.score_key, self.split = config.cluster_key, config.score_key, config.split
        self.sample = config.drawn
        self.choice_columns = None if config.choices is None else ChoiceColumns.of(config.choices, self.where)
        """Where documents have their choices, as far as the task says it."""
        self.prompts = self._made_prompts()
        stated = [getattr(config, key) for key in (*PROMPT_KEYS, *SCORING_KEYS)]  # templates may draw too
        has_own_rules = self._plan.is_ours and all(metric.is_ours for metric in self._task_metrics)
        scoring = [getattr(config, key) for key in (*SCORING_KEYS, "doc_to_choice")]
        self.is_scored_by_package = (
            self.names_all_code and has_own_rules
            and all(comes_with_package(value) for value in scoring if callable(value))
        )  # fmt: skip
        self.seeding = Seeding(
            options.seed, self.name, [getattr(config, key) for key in PROMPT_KEYS],
            is_scored_by_us=has_own_rules
            and not any(callable(value) or (isinstance(value, str) and "random" in value) for value in stated),
            scoring_functions=[getattr(config, key) for key in SCORING_KEYS],
        )  # fmt: skip
        self._few = self._few_shot()
        self._check()
        self._data: DataSet | None = None
        self._documents: Documents | None = None
        self._builder: PromptBuilder | None = None
        self._scorer: AnswerScorer | None = None

    # What follows is made by the rules of another family in its packs.

    def _checked(self, raw: Mapping[str, Any]) -> TaskConfig:
        return task_config(raw, self.where)

    def _generation_options(self) -> dict[str, Any]:
        return generation_options(self.config, self.options)

    def _stated_metrics(self) -> Sequence[TaskMetric]:
        return task_metrics(self.config, self.options.predict_only, self.where)

    def _scoring_plan(self) -> ScoringPlan:
        return scoring_plan(self.config, self.options, self.where)

    def _made_prompts(self) -> Prompts:
        return Prompts(self.config, self.options, self.where)

    def _process_docs(self) -> Callable[[Any], Any] | None:
        process: Callable[[Any], Any] | None = self.config.process_docs
        return process

    def _open_data(self) -> DataSet:
        """Find the data, before ``process_docs``."""
        return open_data(self.data_request, self.split)

    def _few_shot(self) -> FewShot | None:
        return few_shot(self.config, self._shots, self.options.fewshot_seed, self.where)

    def _prompt_builder(self, documents: Documents) -> PromptBuilder:
        examples = None if self._few is None else self.data.documents(self._few.split)
        if self._few is not None and examples is not None:
            self._few.choose(0, len(examples))
        return PromptBuilder(self.prompts, documents, self._few, examples)

    def _answer_scorer(self, documents: Documents) -> AnswerScorer:
        return AnswerScorer(
            self.prompts, self._task_metrics, self._plan, documents if self.config.full_docs else None,
            self.seeding.scoring_may_draw,
        )  # fmt: skip

    @cached_property
    def documents(self) -> Documents:
        if self._documents is None:
            raise UsageError(f"task {self.name!r} is used before load()")
        return self._documents

    @cached_property
    def requests(self) -> RequestSettings:
        """Parts of all requests, made at the first exchange: a task may set its generation options during load."""
        if self._builder is None:
            raise UsageError(f"task {self.name!r} is used before load()")
        return RequestSettings(self, self._builder, self.seeding, self.generation, self._costs.of_request)

    @cached_property
    def _exchange(self) -> type[TaskExchange]:
        kinds = {**EXCHANGES, **PLUGIN_EXCHANGES} if self.options.legacy else EXCHANGES
        if self.output_type not in kinds:
            raise TaskError(f"{self.where}: output_type {self.output_type!r} is not in this version")
        return kinds[self.output_type]

    def load(self) -> None:
        if self._documents is not None:
            return
        carried = self.source.documents
        if carried is None:
            documents = self._opened()
        else:
            documents = Documents(CarriedSource(carried, lambda: self._opened().source))
        builder = self._prompt_builder(documents)
        self._documents, self._builder = documents, builder
        self._scorer = self._answer_scorer(documents)
        if carried is None:
            ColumnCheck(self.prompts, documents, f"split {self.split!r}", self.data.from_root)

    def _opened(self) -> Documents:
        """The documents of the evaluated split, with the change of the task's source applied."""
        documents, change, columns = self.data.documents(self.split), self.source.change, self.choice_columns
        if not change or columns is None:
            return documents
        source = ChangedSource(documents.source, columns.used, lambda row: changed_row(columns, change, row))
        return documents.over(source)

    @property
    def data(self) -> DataSet:
        """The splits. Files are opened when a split is requested."""
        if self._data is None:
            self._data = self._open_data()
            self.prompts.media = self._data.media
            self.prompts.folders = cache(
                partial(media_folders, self.config, self.where, self.options, self.prompts.kwargs)
            )
            if (process := self._process_docs()) is not None:
                splits = {self.split, *([self._few.split] if self._few else [])}
                self._data.process(process, sorted(splits))
        return self._data

    @property
    def data_request(self) -> DataRequest:
        """The description of the data to open."""
        config = self.config
        return DataRequest(
            config.dataset_path, config.dataset_name, config.dataset_kwargs or {}, self.where,
            self.options.data_root, self.options.trust_remote_code, self.prompts.kwargs,
            media_policy(config, self.where, self.options), self.name,
        )  # fmt: skip

    @property
    def data_files(self) -> Sequence[str]:
        """Return the files of the evaluated split."""
        source = None if self._documents is None else self._documents.source
        return [str(file) for file in getattr(source, "files", ())]

    def __len__(self) -> int:
        return len(self.documents)

    def check_files(self, doc_ids: Sequence[int]) -> None:
        if size := self.config.media_archive:
            check_files(self.name, size, doc_ids, lambda doc_id: self.prompts.visuals(self.document(doc_id)))

    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        return self._exchange(self.requests, doc_id, repeat)

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        return self._costs.of_documents(doc_ids)

    def strata(self, doc_ids: Sequence[int]) -> Sequence[str] | None:
        return strata_of(self.documents, self._strata, doc_ids, self.where)

    @cached_property
    def _costs(self) -> Costs:
        config, options, documents = self.config, self.options, self.documents
        files = Files(lambda: media_folders(config, self.where, options, self.prompts.kwargs))
        has_media = config.doc_to_visual is not None or config.doc_to_messages is not None
        new_tokens = self.generation.get("max_new_tokens") or 0
        new_tokens = float(new_tokens) if isinstance(new_tokens, int | float) else 0.0
        choices: str | int = 1
        if self.output_type == "multiple_choice":
            stated = config.doc_to_choice
            if isinstance(stated, str) and stated in documents.text_columns:
                choices = stated
            elif isinstance(stated, list | tuple):
                choices = len(stated)
        return Costs(documents, files, has_media, new_tokens, choices)

    @property
    def has_judged_scores(self) -> bool:
        return self.is_judged and self.config.doc_to_judge is not None

    def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
        scorer = self._scorer
        assert scorer is not None
        with self.seeding.scoring(doc_id):
            questions = scorer.judge_questions(self.documents[doc_id], self._lettered(answers))
            return repeated(questions, self.options.judge_repeats)

    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        documents, scorer = self.documents, self._scorer
        assert scorer is not None
        with_media = self.config.process_results_use_image or self.options.process_with_media
        doc = documents[doc_id] if with_media else documents.text_view(doc_id)
        with self.seeding.scoring(doc_id), using(self._policy):
            target = "" if self.config.doc_to_target is None else str(self.prompts.target(doc))
            scores = scorer.scores(doc, self._lettered(answers), verdicts)
        row = plain_row(documents.pop(doc_id))
        return ScoredDoc(
            target=target,
            doc={name: row[name] for name in documents.text_columns} if documents.media_columns else row,
            doc_hash=document_hash(row),
            scores=scores,
            media=pictures(row, documents.source.features),
        )

    def _lettered(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return answers with the task's letters of options, if the run's variant of the prompt has other labels."""
        labels = self.options.option_labels
        if not labels:
            return answers
        from lmms_eval.utils.prompt_variants import with_letters

        tags = THOUGHT_TAGS if self.thought_tags is None else self.thought_tags
        return [
            structs.replace(one, value=with_letters(one.value, labels, tags)) if type(one.value) is str else one
            for one in answers
        ]

    def share_data(self, other: YamlTask) -> None:
        """Use the open data of the same task with other options, instead of opening them again."""
        self._data, self.prompts.media, self.prompts.folders = other.data, other.prompts.media, other.prompts.folders

    def describe(self) -> dict[str, Any]:
        raw = self._raw
        recorded = {
            **dict(raw),
            "target_delimiter": self.config.answer_delimiter,
            "num_fewshot": self._shots,
            "repeats": self.repeats,
            "generation_kwargs": recorded_generation(self.config, self.generation),
            "lmms_eval_specific_kwargs": recorded_specific_kwargs(raw.lmms_eval_specific_kwargs, self.options),
            "dataset_kwargs": absolute_paths(raw.dataset_kwargs),
        }
        if self.options.predict_only:
            recorded["metric_list"] = [{"metric": BYPASS}]
        names = {"class_": "class"}
        return {names.get(key, key): describe_all(value) for key, value in recorded.items() if value is not None}

    def fingerprint(self) -> Mapping[str, str]:
        """``config``, ``functions`` (of prompts), ``scoring`` (its functions and their data) and ``data``."""
        scoring = self._hash_of((*SCORING_KEYS, "metric_list", "filter_list"), is_scoring=True)
        scoring += "".join(f" {name}" for name in self.options.reduce)
        second = self.options.second_reading
        scoring += "" if second is None else f" read by {second.identity}"
        # Answers with this stop differ from answers without it.
        implied = ["implied stop"] if implied_stop(self.config, self.generation) else []
        implied += [self.options.asked_by] if self.options.asked_by else []
        scoring_data = identity_of(self.config.process_results, self.prompts.kwargs)
        pack = used_pack(Path(self.source.file))
        return {
            **({} if pack is None else {"pack": " ".join(pack.identity.values())}),
            "config": hash_of_text(
                json.dumps([self.describe(), self.config.target_delimiter, *implied], sort_keys=True, default=str)
            ),
            "functions": self._hash_of((*PROMPT_KEYS, "fewshot_config", *(("doc_to_target",) if self._shots else ()))),
            "scoring": hash_of_text(f"{scoring} {scoring_data}") if scoring_data else scoring,
            "data": self.data.identity(self.split),
        }

    @property
    def pack(self) -> Mapping[str, str]:
        pack = used_pack(Path(self.source.file))
        if pack is None:
            return {}
        keys = (*PROMPT_KEYS, *SCORING_KEYS, "fewshot_config", "metric_list", "filter_list")
        files = [hash_of_text(read_text(file)) for file in YamlReader().all_files(Path(self.source.file))]
        return {**pack.identity, "files": hash_of_text(" ".join([*files, self._hash_of(keys, is_scoring=True)]))}

    def _hash_of(self, keys: Sequence[str], is_scoring: bool = False) -> str:
        """Compute the hash of the code behind some keys. The settings of its functions may name files too."""
        stated = [getattr(self._raw, key) for key in (*keys, "lmms_eval_specific_kwargs")]
        return hash_of_functions([getattr(self.config, key) for key in keys], stated, is_scoring)

    def spec(self) -> Mapping[str, Any]:
        if self.source.overrides is None:
            raise TaskError(f"task {self.name!r} was given as Python objects ({self.where}): use scoring: inline")
        is_carried = self._documents is not None and not self.config.full_docs
        documents = described(self.documents) if is_carried else None
        return {
            "name": self.name,
            "file": self.source.file,
            "overrides": encode(self.source.overrides),
            "standalone": self.source.standalone,
            "base": self.source.base,
            "change": self.source.change,
            "documents": documents,
            "options": to_dict(structs.replace(self.options, layout=None, media=None, second_reading=None)),
            "included": included_folders(),
        }

    def carried_document(self, doc_id: int) -> Mapping[str, Any] | None:
        documents = self.documents
        if self.config.full_docs or documents.media_columns:  # scoring needs more than the document
            return None
        row = documents.pop(doc_id)
        return row if can_be_carried(row) else None

    def take_document(self, doc_id: int, document: Mapping[str, Any] | None) -> None:
        if document is not None:
            self.documents.take(doc_id, document)
        elif isinstance(self.documents.source, CarriedSource):
            self.documents.source.open()

    def dataset_dict(self) -> Any:
        return self.data.dataset_dict()

    def target(self, doc_id: int) -> Any:
        """Return the reference answer as ``doc_to_target`` gives it."""
        return self.prompts.target(self.documents.text_view(doc_id))

    def gold_answer(self, doc_id: int) -> str:
        """Return an answer with full marks: ``doc_to_gold``, else the first reference answer."""
        return str(self.prompts.gold(self.documents.text_view(doc_id)))

    def choice_texts(self, doc_id: int) -> list[str]:
        """Return the document's choices as texts, by ``choices`` or ``doc_to_choice``; empty without both keys."""
        doc = self.documents.text_view(doc_id)
        if self.choice_columns is not None:
            return [str(option) for option in self.choice_columns.options(doc)]
        return self.prompts.choices(doc) or []

    def document_hash(self, doc_id: int) -> str:
        """Return the hash of the document, ``doc_hash`` of its samples row."""
        return document_hash(plain_row(self.documents.stored(doc_id)))

    def document(self, doc_id: int) -> Mapping[str, Any]:
        """Return the document without its media columns."""
        return self.documents.text_view(doc_id)

    def legacy_arguments(self, request: Request, chat: bool) -> tuple[Any, ...]:
        """Return ``Instance.args`` for a plugin of the class interface (``docs/model_guide.md``)."""
        arguments = arguments_of(self.requests, request, chat)
        if not self.source.change:
            return arguments

        def bound(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda _doc, **rounds: function(self.documents[request.doc_id], **rounds)

        # The functions get the changed document; a plugin passes the document of the data set.
        return tuple(bound(value) if callable(value) else value for value in arguments)

    def legacy_metadata(self, request: Request) -> Mapping[str, Any]:
        """Return ``Instance.metadata``: the task's own facts and the keys that identify the document."""
        own = {"task": self.name, "doc_id": request.doc_id, "repeats": self.repeats, "split": self.split}
        return {**self.config.facts, **own}

    def legacy_context_turns(self, request: Request) -> list[dict[str, str]]:
        """Return the context as a message list, for plugins with ``apply_chat_template``."""
        if request.round:
            return [{"role": "user", "content": request.context}]
        return self.requests.builder.text_turns(request.doc_id)

    def _check(self) -> None:
        """Check everything that can be checked without data."""
        config = self.config
        for key in _TEMPLATES:
            value = getattr(config, key)
            if isinstance(value, str) and "{" in value:
                check_template(value, f"{self.where}: key {key!r}")
        if self._shots and not self.options.chat and config.doc_to_visual is not None:
            raise UsageError(
                f"task {self.name!r}: --num_fewshot {self._shots} with pictures needs a chat model: the simple "
                "interface carries the media of one document only; use --num_fewshot 0 or a chat model"
            )
        scored = config.process_results is None and not self.options.predict_only
        if scored and config.doc_to_target is None:
            raise TaskError(f"{self.where}: give doc_to_target (or process_results): without it nothing can be scored")
        if (
            config.doc_to_judge
            and self.is_judged
            and not (config.process_results and accepts(config.process_results, "verdicts"))
        ):
            raise TaskError(f"{self.where}: doc_to_judge needs process_results(doc, results, verdicts)")
