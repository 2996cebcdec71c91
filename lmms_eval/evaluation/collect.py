"""The collect phase: names to tasks, model and plan. Cheap mistakes are found before anything heavy is loaded."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Selection, Task, TaskOptions
from lmms_eval.config import RunConfig, answer_options
from lmms_eval.config.resolve import option_table
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import TaskPlan, plan_task, run_key
from lmms_eval.engine.team import Place
from lmms_eval.errors import AbsentDataError, DataError, FunctionError, LmmsEvalError, ModelError, TaskError, UsageError
from lmms_eval.evaluation.generation import refuse_unplaced
from lmms_eval.evaluation.inputs import Collected, ModelChoice, Start
from lmms_eval.evaluation.judge import build_judge, judge_key, tariffs_of
from lmms_eval.filters.reasoning import THOUGHT_TAGS
from lmms_eval.judges.providers import Judge
from lmms_eval.models.building import BuildOptions, adapt_model, ignored_arguments
from lmms_eval.models.legacy import LegacyAdapter
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.results.baseline import find_baseline
from lmms_eval.results.columns import SAMPLE_ONLY
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.data.documents import plain
from lmms_eval.tasks.manager import selection_of
from lmms_eval.tasks.selection import rebuilt
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.document_ids import DocumentIds, parse_ids
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.launch import may_have_gpus
from lmms_eval.utils.redaction import redact
from lmms_eval.utils.where import Where, parse_where


def check_integrity(tasks: Sequence[Task]) -> None:
    """Check tasks as ``lmms-eval check`` does, and log what is doubtful or could not be tried.

    Raises:
        TaskError: one is broken.
    """
    from lmms_eval.checks.findings import check_lines
    from lmms_eval.checks.workers import MOST_PROCESSES, CheckOptions, check_run

    checks = check_run(tasks, CheckOptions(processes=min(MOST_PROCESSES, os.cpu_count() or 1)))
    report = "\n".join(check_lines(checks))
    if not checks.is_sound():
        raise TaskError(f"--check_integrity: a task is broken, and nothing was asked\n{report}")
    logger.info("--check_integrity:\n{}", report)


LOGGED_TASKS, LOGGED_FILES = 20, 3
"""Most tasks whose files are logged, and most files of each."""


def load_tasks(selection: Selection) -> Selection:
    """Open the data of all tasks. What a group names of a benchmark whose data are there in part only is left out.

    Raises:
        AbsentDataError: a task that was named itself has no data, or none has.
        DataError: data are damaged. TaskError: a task's own functions raised.
    """
    absent: dict[str, AbsentDataError] = {}
    for task in selection.tasks:
        try:
            task.load()
        except AbsentDataError as error:
            if task.name in selection.direct:
                raise
            absent[task.name] = error
        except FunctionError as error:
            raise TaskError(f"task {task.name!r}: preparing its data: {error}; --verbosity DEBUG shows more") from error
        except LmmsEvalError:
            raise
        except Exception as error:  # process_docs and the like are the task's own code
            raise TaskError(
                f"task {task.name!r}: preparing its data raised {type(error).__name__}: {error}; see the task's own "
                "functions (process_docs); --verbosity DEBUG shows where"
            ) from error
    return _present(selection, absent)


def log_files(tasks: Sequence[Task]) -> None:
    """Name the local files that are read; those of many tasks are in the results only."""
    read = [task for task in tasks if task.data_files]
    if len(read) > LOGGED_TASKS:
        logger.info("the data of {} tasks are local files; the results name them (data_files)", len(read))
        return
    for task in read:
        more = f" and {len(task.data_files) - LOGGED_FILES} more" if len(task.data_files) > LOGGED_FILES else ""
        logger.info("{}: documents from {}{}", task.name, ", ".join(task.data_files[:LOGGED_FILES]), more)


def with_files(selection: Selection, plans: Sequence[TaskPlan]) -> Selection:
    """Look up the files of all documents that are planned. Tasks that lack some are left out, as ``load_tasks`` does.

    Raises:
        AbsentDataError: tasks that were named themselves lack files, or all do.
    """
    absent: dict[str, AbsentDataError] = {}
    for plan in plans:
        try:
            plan.task.check_files(plan.doc_ids)
        except AbsentDataError as error:
            absent[plan.task.name] = error
    named = [str(error) for name, error in absent.items() if name in selection.direct]
    if named:
        raise AbsentDataError("\n".join(named))
    return _present(selection, absent)


def _present(selection: Selection, absent: Mapping[str, AbsentDataError]) -> Selection:
    """The selection without the absent tasks. Raises ``AbsentDataError`` where none is left."""
    if not absent:
        return selection
    if len(absent) == len(selection.tasks):
        first = next(iter(absent.values()))
        if all(error.kind == first.kind for error in absent.values()):
            raise first
        raise AbsentDataError(f"none of {len(absent)} tasks can be run: {_why(absent)}")
    logger.warning("{} of {} tasks are left out: {}", len(absent), len(selection.tasks), _why(absent))
    return without(selection, absent)


def _why(absent: Mapping[str, AbsentDataError]) -> str:
    """Count the absent ones for each kind of reason, each with an example; the rarest first, which tell most."""
    kinds: dict[str, list[str]] = {}
    for name, error in absent.items():
        kinds.setdefault(error.kind, []).append(f"{name}: {error}")
    parts = sorted(kinds.items(), key=lambda pair: len(pair[1]))
    return "; ".join(f"{len(found)} {kind} ({found[0]}{', ...' if len(found) > 1 else ''})" for kind, found in parts)


def without(selection: Selection, absent: Mapping[str, Any]) -> Selection:
    """The selection without some tasks, and without the groups that are empty then."""
    gone = set(absent)
    groups = list(selection.groups)
    while True:
        kept = [replace(one, children=tuple(child for child in one.children if child not in gone)) for one in groups]
        empty = {group.name for group in kept if not group.children}
        groups = [group for group in kept if group.children]
        if not empty:
            break
        gone |= empty
    return Selection(
        tuple(task for task in selection.tasks if task.name not in absent), tuple(groups), selection.direct
    )


Chosen = Mapping[str, Sequence[int]]
"""Documents by task, rising; a task that is not in it has all."""
_SHOWN = 5


def choose_documents(config: RunConfig, selection: Selection) -> tuple[Selection, Chosen]:
    """Choose the documents of each task; tasks of which none is chosen are left out.

    Raises:
        UsageError: a number beyond a task's documents, an unknown task or column, or no document at all.
    """
    ids = None if config.ids is None else parse_ids(config.ids)
    where = None if config.where is None else parse_where(config.where)
    if ids is not None and (unknown := set(ids.by_task) - {task.name for task in selection.tasks}):
        raise UsageError(f"--ids: {', '.join(sorted(unknown))}: not among the tasks of this run")
    chosen = {task.name: _of_task(task, ids, where) for task in selection.tasks}
    empty = {name: "" for name, doc_ids in chosen.items() if not doc_ids}
    if len(empty) == len(chosen):
        raise UsageError("--ids and --where choose no document of any task")
    if empty:
        shown = ", ".join(list(empty)[:_SHOWN]) + (", ..." if len(empty) > _SHOWN else "")
        logger.warning("{} tasks are left out, of which no document is chosen: {}", len(empty), shown)
    return without(selection, empty), chosen


def _of_task(task: Task, ids: DocumentIds | None, where: Where | None) -> Sequence[int]:
    total = len(task)
    doc_ids: Sequence[int] = range(total)
    if ids is not None:
        wanted = ids.of(task.name)
        if wanted.pairs and wanted.pairs[-1][1] >= total:
            raise UsageError(f"--ids: task {task.name!r} has no document {wanted.pairs[-1][1]}: it has {total}")
        doc_ids = list(wanted.among(total))
    return doc_ids if where is None else _fitting(task, doc_ids, where)


def _fitting(task: Task, doc_ids: Sequence[int], where: Where) -> list[int]:
    """Documents whose columns fit; none of them is decoded."""
    if not isinstance(task, YamlTask):
        raise UsageError(f"--where: the documents of task {task.name!r} have no columns that could be looked at")
    documents = task.documents
    places = {name: name for name in documents.text_columns}
    places |= {f"doc.{name}": name for name in documents.text_columns}
    answered = {*SAMPLE_ONLY, *(metric.name for metric in task.metrics)}
    where.check(
        {*places, "task", "doc_id"} - answered,
        {name: "known of answered samples alone: no run can choose by it (show and export can)" for name in answered},
    )
    needed = tuple(dict.fromkeys(places[name] for name in where.columns if name in places))

    def fits(doc_id: int) -> bool:
        row: Mapping[str, Any] = documents.source.row(doc_id, needed) if needed else {}

        def lookup(name: str) -> Any:
            if name in ("task", "doc_id"):
                return task.name if name == "task" else doc_id
            return plain(row.get(places[name]))

        return where.holds(lookup)

    return [doc_id for doc_id in doc_ids if fits(doc_id)]


def choose_model(config: RunConfig, registry: ModelRegistry, given: Model | lmms | None) -> ModelChoice:
    """Look the model's class up. Raises ``UnknownNameError`` or ``ModelError``."""
    if given is not None:
        legacy = isinstance(given, lmms)
        chat = not (legacy and getattr(given, "is_simple", True))
        return ModelChoice(config.model, _backend(type(given), chat), chat, legacy, object=given)
    for folder in registry.plugin_task_folders():  # files of models import helpers of tasks
        include(folder)
    resolved = registry.resolve(config.model, config.force_simple)
    cls = resolved.load()
    chat = resolved.kind == "chat"
    return ModelChoice(
        name=config.model,
        backend=_backend(cls, chat),
        chat=chat,
        legacy=issubclass(cls, lmms),
        model_id=resolved.manifest.model_id,
        ignored_arguments=frozenset(ignored_arguments(cls, config.model_arguments)),
        opens_media=not config.no_media and (not issubclass(cls, Model) or cls.opens_media(config.model_arguments)),
    )


def _backend(cls: type[Any], chat: bool) -> str:
    return f"{cls.__module__}.{cls.__name__} ({'chat' if chat else 'simple'})"


def task_options(config: RunConfig, choice: ModelChoice) -> TaskOptions:
    """Gather the options of the command line that every task gets."""
    return TaskOptions(
        model_name=config.model,
        model_id=choice.model_id,
        chat=choice.chat,
        legacy=choice.legacy,
        gen_kwargs=config.generation_arguments,
        task_kwargs=config.task_arguments,
        num_fewshot=config.num_fewshot,
        repeats=config.repeats,
        system_instruction=config.system_instruction,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        agentic_trace_mode=config.agentic_trace_mode,
        process_with_media=config.process_with_media,
        predict_only=config.predict_only,
        reasoning_tags=config.reasoning_tag_pairs,
        keeps_thoughts=not config.reasoning_tag_pairs,
        thinking_tags=config.thinking_tag_pairs,
        data_root=str(Path(config.data_root).resolve()) if config.data_root else None,
        seed=config.seed[0] or 0,
        fewshot_seed=config.seed[3],
        trust_remote_code=config.trust_remote_code,
        allow_unsafe_code=config.allow_unsafe_code,
        judge_repeats=config.judge_repeats,
        run_options=config.for_tasks(),
    )


def collect(
    config: RunConfig,
    opened: ExitStack,
    given: Model | lmms | None = None,
    place: Place | None = None,
    start: Start | None = None,
) -> Collected:
    """Find and build what a run needs: tasks first (names, YAML, data), then the judge and the model.

    Args:
        config: the options.
        opened: closes the judge and the model, also where a later step fails.
        given: a model object, which stays open.
        place: this process in a launch of several.
        start: catalogue and recorded model, where the caller has them.

    Raises:
        UsageError: anything that the person can mend, with the message that says how.
    """
    begin, place, start = time.monotonic(), place or Place(), start or Start()
    registry = ModelRegistry(config.plugin_packages)
    choice = choose_model(config, registry, given) if start.recorded is None else start.recorded.choice
    _refuse_check(config, choice, place)
    tariffs = tariffs_of(config)
    selection, plans = plan_run(config, registry, choice, place, start)
    baselines = _baselines(config, plans, place)
    sampling = None if start.recorded else _sampling(config, selection, plans, place)
    judge = _open_judge(config, plans, place, opened)
    model = start.recorded.model if start.recorded else _answering(config, registry, choice, plans, place, opened)
    ignored = start.recorded.ignored if start.recorded else refuse_unplaced(config, model)
    is_resumable = _is_known(config, choice, model)
    keys = run_keys(config, choice, plans, judge_key(config, judge))
    return Collected(
        selection=selection,
        plans=plans,
        model=model,
        choice=choice,
        key=keys.of(redact(dict(model.identity())), None if is_resumable else _launch_name(place)),
        scoring_key=run_key(keys.scoring),
        common_key=run_key(keys.common),
        is_resumable=is_resumable,
        judge=judge,
        baselines=baselines,
        tariffs=tariffs,
        ignored=ignored,
        sampling=sampling,
        asks=start.recorded is None,
        seconds=time.monotonic() - begin,
    )


def _open_judge(config: RunConfig, plans: tuple[TaskPlan, ...], place: Place, opened: ExitStack) -> Judge | None:
    judge = build_judge(config, plans, _own_device(place))
    if judge is not None:
        opened.callback(judge.close)
    return judge


def plan_run(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, place: Place, start: Start
) -> tuple[Selection, tuple[TaskPlan, ...]]:
    """Select the tasks, open their data and choose the documents; no model is needed for it.

    Raises:
        UsageError: a wrong name, or data that are not there or damaged.
    """
    selection = _sound(config, load_tasks(_selected(config, registry, task_options(config, choice), start)), place)
    return _planned(config, choice, selection)


def _planned(config: RunConfig, choice: ModelChoice, selection: Selection) -> tuple[Selection, tuple[TaskPlan, ...]]:
    """The documents of each task and of its controls, without the tasks whose files are not here where the model opens
    media."""
    chosen: Mapping[str, Sequence[int]] = {}
    if config.ids is not None or config.where is not None:
        selection, chosen = choose_documents(config, selection)
    plans = tuple(plan_task(task, config.limit, config.offset, chosen.get(task.name)) for task in selection.tasks)
    kept = with_files(selection, plans) if choice.opens_media else selection
    plans = tuple(plan for plan in plans if plan.task in kept.tasks)
    if not config.ablate and config.permute_choices is None:
        return kept, plans
    from lmms_eval.evaluation.controls import with_controls

    return kept, with_controls(config, plans, choice.legacy)


def _sampling(config: RunConfig, selection: Selection, plans: tuple[TaskPlan, ...], place: Place) -> Sampling | None:
    """The random order and the rules by which the run ends early; ``None`` for costliest first."""
    if config.order != "random" and not config.until:
        return None
    from lmms_eval.evaluation.sampling import sampling_of

    return sampling_of(config, selection, plans, place.rank == 0)


def _selected(config: RunConfig, registry: ModelRegistry, options: TaskOptions, start: Start) -> Selection:
    """Choose the tasks that are named, or those that a program gave, each with the options of this run."""
    if start.tasks:
        return selection_of({task.name: rebuilt(task, options) for task in start.tasks})
    known = start.catalogue or Catalogue([*config.include_paths, *map(str, registry.plugin_task_folders())])
    return select_tasks(config.task_names, known, options)


def _baselines(config: RunConfig, plans: Sequence[TaskPlan], place: Place) -> dict[str, Path]:
    """Find the samples to compare each task with, now rather than after the last answer.

    Raises:
        ConfigError: there is no such preset.
        DataError: a file cannot be found or fetched, or holds no samples; or no task has one.
    """
    if not config.baseline or place.rank:  # the first process writes the results
        return {}
    from lmms_eval.compare.baseline import check_baseline

    baseline = find_baseline(config.baseline, config.baseline_presets)
    found = {plan.task.name: baseline.file(plan.task.name) for plan in plans if not plan.task.control_of}
    absent = [task for task, file in found.items() if file is None]
    if len(absent) == len(found):
        raise DataError(f"--baseline {config.baseline}: it has no samples of {', '.join(absent)}")
    for task in absent:
        logger.warning("{}: --baseline {} has no samples of this task", task, config.baseline)
    for file in {file for file in found.values() if file is not None}:
        check_baseline(file)
    return {task: file for task, file in found.items() if file is not None}


def _sound(config: RunConfig, selection: Selection, place: Place) -> Selection:
    """The selection, checked by the first process where ``--check_integrity`` asks for it."""
    if config.check_integrity and place.rank == 0:
        check_integrity(selection.tasks)
    return selection


@dataclass(frozen=True, slots=True)
class RunKeys:
    """Parts of which the keys of a run are hashes.

    Controls are in none but the last: all that makes them is that of their tasks, so that a run and the same run with
    controls are one record.
    """

    asked: Mapping[str, Any]
    """All that can change an answer, the model itself apart."""
    scoring: Mapping[str, Any]
    """All that can change a score of given answers."""
    common: Mapping[str, Any]
    """All that must be the same in the processes of a launch."""

    def of(self, identity: Any, launch: str | None = None) -> str:
        """Compute the run key of a model of this identity. ``launch``: names a run that no other start may continue."""
        return run_key({**self.asked, "model": identity, "object": launch})


def run_keys(config: RunConfig, choice: ModelChoice, plans: Sequence[TaskPlan], judge: Any = None) -> RunKeys:
    """Gather what the keys are hashes of."""
    fingerprints = {plan.task.name: dict(plan.task.fingerprint()) for plan in plans if not plan.task.control_of}
    asked = {  # scoring functions change no answer: with others the same answers are only scored again
        task: {part: value for part, value in parts.items() if part != "scoring"}
        for task, parts in fingerprints.items()
    }
    questions = {"options": answer_options(config, choice.ignored_arguments), "backend": choice.backend}
    return RunKeys(
        asked={**questions, "tasks": asked},
        scoring={
            "tasks": fingerprints,
            "reasoning_tags": config.reasoning_tag_pairs,
            "thought_tags": [*THOUGHT_TAGS, *config.thinking_tag_pairs],
            "predict_only": config.predict_only,
            "media": config.process_with_media,
            "judge": judge,
            "version": package_version("lmms_eval") or "",
        },
        common={
            **questions,
            "tasks": {task: {part: parts[part] for part in ("config", "functions")} for task, parts in asked.items()},
            "documents": [[plan.task.name, plan.requested] for plan in plans],
            "judge": judge,
        },
    )


def _launch_name(place: Place) -> str:
    """A name that no other run has, the same in all processes of a launch."""
    if place.size == 1:
        return uuid.uuid4().hex
    return os.environ.get("TORCHELASTIC_RUN_ID", "") + os.environ.get("MASTER_PORT", "")


def _is_known(config: RunConfig, choice: ModelChoice, model: Model) -> bool:
    """Tell whether name, arguments and identity fix the answers.

    A plugin object from a program may hold any weights: a training loop evaluates the same object again and again, and
    answers of an earlier, broken-off evaluation must not be taken for its own.
    """
    if choice.object is None or config.model_args or config.resume:
        return True
    return not choice.legacy and bool(model.identity())


def _open_model(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, place: Place, opened: ExitStack
) -> Model:
    """Build the model, or adapt the object that was given.

    Raises:
        ModelError: it cannot be built.
    """
    options = BuildOptions(
        batch_size=config.batch_size,
        max_batch_size=config.max_batch_size,
        device=config.device or _own_device(place),
        force_simple=config.force_simple,
        trust_remote_code=config.trust_remote_code,
        chunk_size=config.chunk_size,
        no_media=config.no_media,
        image_format=_changed(config, "image_encode_format"),
        image_quality=_changed(config, "image_jpeg_quality"),
    )
    if choice.object is not None:
        return adapt_model(choice.object, options)
    arguments: Mapping[str, Any] = config.model_arguments
    try:
        model = registry.build(config.model, arguments, options)[0]
    except LmmsEvalError:
        raise
    except Exception as error:  # the constructor of a plugin may raise anything
        raise ModelError(
            f"model {config.model!r} cannot be built: {type(error).__name__}: {error}; check --model_args; "
            "--verbosity DEBUG shows where"
        ) from error
    opened.callback(model.close)
    return model


def _answering(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, plans: tuple[TaskPlan, ...], place: Place,
    opened: ExitStack,
) -> Model:  # fmt: skip
    """Open the model for these tasks and this process, with the pictures drawn that its answers describe (``--t2i``).

    Raises:
        ModelError: it, or what draws, cannot be built; or it cannot answer what is asked.
    """
    model = _open_model(config, registry, choice, place, opened)
    log_files([plan.task for plan in plans])
    draws = {"generate_visual_cot"} if config.t2i and not choice.legacy else set()
    _refuse_unanswered(plans, choice, model.kinds | draws)
    _refuse_check(config, choice, place, model.collective_forward)
    if place.size > 1 and isinstance(model, LegacyAdapter):
        model.set_world(place.rank, place.size)
    if not config.t2i:
        return model
    from lmms_eval.models.text_to_image.illustrated import IllustratedModel, open_text_to_image

    painter = open_text_to_image(str(config.t2i), config.t2i_arguments, config.device or _own_device(place))
    illustrated = IllustratedModel(model, painter, owns_inner=False)
    opened.callback(illustrated.close)
    return illustrated


def _refuse_unanswered(plans: Sequence[TaskPlan], choice: ModelChoice, kinds: Collection[str]) -> None:
    """Refuse tasks whose requests are none that the model answers, before a single question is asked."""
    of_types = {"loglikelihood": "loglikelihood", "multiple_choice": "loglikelihood"}
    for plan in plans:
        output_type = plan.task.output_type
        draws = output_type == "generate_visual_cot"
        needed = output_type if draws else of_types.get(output_type, "generate_until")
        if needed in kinds:
            continue
        hint = (
            "; give a model whose answers hold pictures (openai or gemini with such a checkpoint, another with --t2i), "
            "or a class plugin of the simple interface that defines generate_visual_cot"
        )
        raise ModelError(
            f"task {plan.task.name!r} ({output_type}) needs {needed} requests, which model {choice.name!r} does not "
            f"answer; it answers: {', '.join(sorted(kinds))}{hint if draws else ''}"
        )


def _own_device(place: Place) -> str | None:
    """The GPU of this process, where there are several processes and GPUs."""
    if place.size == 1 or not may_have_gpus() or find_spec("torch") is None:
        return None
    import torch

    count = torch.cuda.device_count()  # one of its own for each process, where a launcher shows it no other
    return f"cuda:{place.local_rank % count}" if count else None


def _changed(config: RunConfig, name: str) -> Any:
    """An option's value, or ``None`` where it is the default: most models encode nothing and take no such argument."""
    value = getattr(config, name)
    return None if value == option_table()[name].default else value


def _refuse_check(config: RunConfig, choice: ModelChoice, place: Place, collective_forward: bool = False) -> None:
    """Refuse ``--check_batch`` where a request cannot be asked alone, or not by one process."""
    if config.check_batch and choice.legacy:
        raise ModelError(
            f"--check_batch: model {choice.name!r} is a class plugin, which makes its batches itself and does not tell "
            "what was in one; leave the option out"
        )
    if config.check_batch and collective_forward and place.size > 1:
        raise ModelError(
            f"--check_batch: the forward passes of model {choice.name!r} need all {place.size} processes, so that one "
            "cannot ask alone; leave the option out, or start one process"
        )
