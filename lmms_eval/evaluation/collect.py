"""The first phase of a run: builds tasks, plans and the model. It finds mistakes before it loads anything heavy."""

from __future__ import annotations

import inspect
import os
import shlex
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger
from msgspec import Struct, structs

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import MODEL_FACTS, Selection, Task, TaskOptions
from lmms_eval.config import RunConfig, answer_options, argument_text
from lmms_eval.config.convert import sample_design
from lmms_eval.config.options import option_table
from lmms_eval.engine.plan import TaskPlan, plan_task, run_key, sampled
from lmms_eval.engine.team import Place
from lmms_eval.errors import AbsentDataError, DataError, FunctionError, LmmsEvalError, ModelError, TaskError, UsageError
from lmms_eval.evaluation.generation import refuse_unplaced
from lmms_eval.evaluation.inputs import Collected, ModelChoice, Start
from lmms_eval.evaluation.judge import build_judge, judge_key, model_names, tariffs_of
from lmms_eval.filters.reasoning import THOUGHT_TAGS
from lmms_eval.models.building import BuildOptions, adapt_model, ignored_arguments
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.data.documents import plain
from lmms_eval.tasks.selection import rebuilt, selection_of
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.launch import may_have_gpus
from lmms_eval.utils.lazy import import_ahead
from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from lmms_eval.engine.looks import Sampling
    from lmms_eval.evaluation.recipe import RunRecipe
    from lmms_eval.utils.document_ids import DocumentIds
    from lmms_eval.utils.where import Where


def check_integrity(tasks: Sequence[Task]) -> None:
    """Check tasks as ``lmms-eval check`` does, and log the findings. Raises ``TaskError`` if a task is broken."""
    from lmms_eval.checks.findings import check_lines
    from lmms_eval.checks.workers import MOST_PROCESSES, CheckOptions, check_run

    checks = check_run(tasks, CheckOptions(processes=min(MOST_PROCESSES, os.cpu_count() or 1)))
    report = "\n".join(check_lines(checks))
    if not checks.is_sound():
        raise TaskError(f"--check_integrity: a task is broken, and nothing was asked\n{report}")
    logger.info("--check_integrity:\n{}", report)


LOGGED_TASKS, LOGGED_FILES = 20, 3
"""Limits of the log: tasks whose files it lists, and files of each."""


def load_tasks(selection: Selection) -> Selection:
    """Open the data of all tasks, and leave out the tasks of a group that have no data.

    Raises:
        AbsentDataError: a task that was named itself has no data, or no task has any.
        DataError: data are damaged.
        TaskError: a task's own functions raised.
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
        except Exception as error:  # raised by the task's own code, such as process_docs
            raise TaskError(
                f"task {task.name!r}: preparing its data raised {type(error).__name__}: {error}; see the task's own "
                "functions (process_docs); --verbosity DEBUG shows where"
            ) from error
    return _present(selection, absent)


def log_files(tasks: Sequence[Task]) -> None:
    """Log the local files that are read, unless there are many tasks. The results have them anyway."""
    read = [task for task in tasks if task.data_files]
    if len(read) > LOGGED_TASKS:
        logger.info("the data of {} tasks are local files; the results name them (data_files)", len(read))
        return
    for task in read:
        more = f" and {len(task.data_files) - LOGGED_FILES} more" if len(task.data_files) > LOGGED_FILES else ""
        logger.info("{}: documents from {}{}", task.name, ", ".join(task.data_files[:LOGGED_FILES]), more)


def with_files(selection: Selection, plans: Sequence[TaskPlan]) -> Selection:
    """Look up the files of all planned documents, and leave out tasks that lack some, as ``load_tasks`` does.

    Raises ``AbsentDataError`` if tasks that were named themselves lack files, or all tasks do.
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
    """Return the selection without the absent tasks. Raises ``AbsentDataError`` if no task is left."""
    if not absent:
        return selection
    if len(absent) == len(selection.tasks):
        first = next(iter(absent.values()))
        if all(error.kind == first.kind for error in absent.values()):
            raise first
        raise AbsentDataError(f"not one of {len(absent)} tasks can be run: {_reasons(absent)}")
    logger.warning("{} of {} tasks are left out: {}", len(absent), len(selection.tasks), _reasons(absent))
    return without(selection, absent)


def _reasons(absent: Mapping[str, AbsentDataError]) -> str:
    """Count the absent tasks by kind of reason, with an example of each. The rarest kind is the most informative."""
    kinds: dict[str, list[str]] = {}
    for name, error in absent.items():
        kinds.setdefault(error.kind, []).append(f"{name}: {error}")
    parts = sorted(kinds.items(), key=lambda pair: len(pair[1]))
    return "; ".join(f"{len(found)} {kind} ({found[0]}{', ...' if len(found) > 1 else ''})" for kind, found in parts)


def without(selection: Selection, absent: Mapping[str, Any]) -> Selection:
    """Return the selection without some tasks, and without the groups that become empty."""
    gone = set(absent)
    groups = list(selection.groups)
    while True:
        kept = [
            structs.replace(one, children=tuple(child for child in one.children if child not in gone)) for one in groups
        ]
        empty = {group.name for group in kept if not group.children}
        groups = [group for group in kept if group.children]
        if not empty:
            break
        gone |= empty
    return Selection(
        tuple(task for task in selection.tasks if task.name not in absent), tuple(groups), selection.direct
    )


Chosen = Mapping[str, Sequence[int]]
"""Chosen documents by task, in ascending order. A task without an entry has all of its documents."""
_SHOWN = 5


def choose_documents(config: RunConfig, selection: Selection) -> tuple[Selection, Chosen]:
    """Choose the documents of each task by ``--ids`` and ``--where``, and leave out tasks without a document.

    Raises:
        UsageError: a number is beyond a task's documents, a task or column is unknown, or no document is chosen.
    """
    from lmms_eval.utils.document_ids import parse_ids
    from lmms_eval.utils.where import parse_where

    ids = None if config.ids is None else parse_ids(config.ids)
    where = None if config.where is None else parse_where(config.where)
    if ids is not None and (unknown := set(ids.by_task) - {task.name for task in selection.tasks}):
        raise UsageError(f"--ids: {', '.join(sorted(unknown))}: not among the tasks of this run")
    chosen = {task.name: _of_task(task, ids, where) for task in selection.tasks}
    empty = {name: "" for name, doc_ids in chosen.items() if not doc_ids}
    if len(empty) == len(chosen):
        raise UsageError("--ids and --where choose no document of any task; choose others")
    if empty:
        shown = ", ".join(list(empty)[:_SHOWN]) + (", ..." if len(empty) > _SHOWN else "")
        logger.warning("{} tasks are left out, because no document of them is chosen: {}", len(empty), shown)
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
    """Return the documents whose columns match, without decoding any media."""
    from lmms_eval.results.columns import SAMPLE_ONLY

    if not isinstance(task, YamlTask):
        raise UsageError(f"--where: the documents of task {task.name!r} have no columns; leave the task or --where out")
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


def choose_model(
    config: RunConfig, registry: ModelRegistry, given: Model | lmms | None, checks: bool = False
) -> ModelChoice:
    """Look up the model's class. Raises ``UnknownNameError`` or ``ModelError``.

    ``checks``: also check the names of its arguments (no required one may be missing), and begin to import what the
    model needs when it is built.
    """
    if given is not None:
        legacy = isinstance(given, lmms)
        chat = not (legacy and getattr(given, "is_simple", True))
        return ModelChoice(config.model, _backend(type(given), chat), chat, legacy, object=given)
    for folder in registry.plugin_task_folders():  # model files may import helpers of tasks
        include(folder)
    resolved = registry.resolve(config.model, config.force_simple)
    if checks:
        registry.check_arguments(resolved, config.model, config.arguments("model_args"))
    cls = resolved.load()
    if checks and (library := getattr(cls, "imported_ahead", "")):
        import_ahead(library)
    chat = resolved.kind == "chat"
    return ModelChoice(
        name=config.model,
        backend=_backend(cls, chat),
        chat=chat,
        legacy=issubclass(cls, lmms),
        model_id=resolved.manifest.model_id,
        ignored_arguments=frozenset(ignored_arguments(cls, config.arguments("model_args"))),
        opens_media=not issubclass(cls, Model) or cls.opens_media(_media_arguments(config, cls)),
    )


def _media_arguments(config: RunConfig, cls: type[Any]) -> Mapping[str, Any]:
    """Return the model's arguments, with ``--no_media`` if its constructor takes it."""
    arguments = config.arguments("model_args")
    takes = config.no_media and "no_media" in inspect.signature(cls).parameters
    return {**arguments, "no_media": True} if takes else arguments


def _backend(cls: type[Any], chat: bool) -> str:
    return f"{cls.__module__}.{cls.__name__} ({'chat' if chat else 'simple'})"


def task_options(config: RunConfig, choice: ModelChoice) -> TaskOptions:
    """Gather the options of the command line that every task receives."""
    return TaskOptions(
        model_name=config.model,
        model_id=choice.model_id,
        chat=choice.chat,
        legacy=choice.legacy,
        model_args={name: value for name, value in config.arguments("model_args").items() if name in MODEL_FACTS},
        gen_kwargs=config.arguments("gen_kwargs"),
        task_kwargs=config.arguments("task_kwargs"),
        num_fewshot=config.num_fewshot,
        repeats=config.repeats,
        reduce=config.names("reduce"),
        system_instruction=config.system_instruction,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        agentic_trace_mode=config.agentic_trace_mode,
        process_with_media=config.process_with_media,
        predict_only=config.predict_only,
        reasoning_tags=config.tag_pairs("reasoning_tags"),
        keeps_thoughts=not config.tag_pairs("reasoning_tags"),
        thinking_tags=config.tag_pairs("thinking_tags"),
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
    """Find and build everything that a run needs: first the tasks (names, YAML, data), then the judge and the model.

    ``opened`` closes the judge and the model, also if a later step fails; a ``given`` model object stays open. Raises
    ``UsageError`` for a mistake that the user can correct.
    """
    begin, place, start = time.monotonic(), place or Place(), start or Start()
    registry = ModelRegistry(config.names("plugins"))
    choice = choose_model(config, registry, given, checks=True) if start.recorded is None else start.recorded.choice
    _refuse_check(config, choice, place)
    if isinstance(config.published, str):
        from lmms_eval.recipes.published import check_model

        check_model(config.published)
    tariffs = tariffs_of(config)
    says = start.recorded is None and not place.rank
    selection, plans = plan_run(config, registry, choice, place, start, lambda: _announce(config) if says else None)
    if says:
        _log_size(plans)
    baselines = _baselines(config, plans, place)
    if config.human_scores and not place.rank:
        from lmms_eval.results.human import check_labels

        check_labels(Path(config.human_scores), plans)
    sampling = None if start.recorded else _sampling(config, selection, plans, place)
    judge = build_judge(config, plans, _own_device(place))
    if judge is not None:
        opened.callback(judge.close)
    recipe = _recipe(config, plans)
    if recipe is None and start.recorded is None and not place.rank:
        _log_recipes(config)
    if start.recorded is None:
        bounded = config if recipe is None or choice.object is not None else recipe.bounding(config, registry)
        model = _open_model(bounded, registry, choice, plans, place, opened)
        ignored = refuse_unplaced(config, model)
        recipe = None if recipe is None else recipe.of_model(config, model)
    else:
        model, ignored = start.recorded.model, start.recorded.ignored
        recipe = None if recipe is None else structs.replace(recipe, missing=start.recorded.missing)
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
        recipe=recipe,
        asks=start.recorded is None,
        seconds=time.monotonic() - begin,
    )


def _with_reading(config: RunConfig, selection: Selection, start: Start) -> Selection:
    """Have the answers also read as a recipe states: that of the run, or one that is given to score it again."""
    if not (config.recipe or start.reading):
        return selection
    from lmms_eval.evaluation.recipe import with_reading

    return with_reading(start.reading or config.recipe or "", selection, must=bool(start.reading))


def _recipe(config: RunConfig, plans: Sequence[TaskPlan]) -> RunRecipe | None:
    if not config.recipe:
        return None
    from lmms_eval.evaluation.recipe import read_recipe

    return read_recipe(config, [plan.task for plan in plans])


def _log_recipes(config: RunConfig) -> None:
    """Log that there are recipes for the model that the arguments name."""
    names = [name for name in model_names(config)[:-1] if "-" in name]
    if not names:
        return
    from lmms_eval.recipes.recipe import fitting

    found = next((recipes for name in names if (recipes := fitting(name))), ())
    if found:
        logger.info(
            "recipes state how others evaluated this model: {}; `--recipe {}` uses the first, and `lmms-eval recipes "
            "describe {}` shows it",
            ", ".join(found), found[0], found[0],
        )  # fmt: skip


def plan_run(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, place: Place, start: Start,
    on_selected: Callable[[], None] = lambda: None,
) -> tuple[Selection, tuple[TaskPlan, ...]]:  # fmt: skip
    """Select the tasks, open their data, and plan the documents of each task and of its controls.

    ``on_selected`` is called when all names are known to be right.

    This needs no model. If the model opens media, tasks whose files are absent are left out. Raises ``UsageError`` if a
    name is wrong, or data are absent or damaged.
    """
    selection = _selected(config, registry, task_options(config, choice), start)
    on_selected()
    if config.recipe:
        from lmms_eval.evaluation.recipe import check_layouts, with_recipe  # most runs have no recipe

        selection = load_tasks(_with_reading(config, with_recipe(config, selection), start))
        check_layouts(config, selection.tasks)
    else:
        selection = load_tasks(_with_reading(config, selection, start))
    if config.check_integrity and place.rank == 0:
        check_integrity(selection.tasks)
    chosen: Chosen = {}
    if config.ids is not None or config.where is not None:
        selection, chosen = choose_documents(config, selection)
    plans = tuple(plan_task(task, config.limit, config.offset, chosen.get(task.name)) for task in selection.tasks)
    if config.sample:
        plans = _sampled(config, plans, start)
    kept = with_files(selection, plans) if choice.opens_media else selection
    plans = tuple(plan for plan in plans if plan.task in kept.tasks)
    adds = (config.ablate, config.permute_choices, config.prompt_variants, config.repeat_share)
    if not any(adds):
        return kept, plans
    from lmms_eval.evaluation.controls import with_controls

    return kept, with_controls(config, plans, choice.legacy)


def _announce(config: RunConfig) -> None:
    """Log what runs, where it writes and how to watch it. All names are right; nothing heavy has been imported."""
    arguments = argument_text(config.model_args)
    logger.info("model {}{}, tasks {}", config.model, f" ({arguments})" if arguments else "", config.tasks)
    if config.output_path:
        out = shlex.quote(config.output_path)
        logger.info("output in {}; to watch it: lmms-eval view {} (pages), lmms-eval tui {} (terminal)", out, out, out)
    else:
        logger.info("no --output_path: results are printed, not written; --output_path DIR also lets you watch the run")


def _log_size(plans: Sequence[TaskPlan]) -> None:
    """Log how much will be asked, before the model is loaded."""
    asked = [plan for plan in plans if plan.requested]
    documents = sum(plan.requested for plan in asked)
    logger.info("{:,} documents of {}", documents, f"{len(asked)} tasks" if len(asked) > 1 else asked[0].task.name)


def _sampled(config: RunConfig, plans: tuple[TaskPlan, ...], start: Start) -> tuple[TaskPlan, ...]:
    """Draw the documents of ``--sample``; those of a recorded run scored again are in its folder."""
    design, seed = sample_design(config.sample or ""), config.seed[0] or 0
    if design.kind != "neyman":
        return tuple(sampled(plan, design.size, design.kind == "stratified", seed) for plan in plans)
    from lmms_eval.evaluation.drawing import drawn_by_anchors, drawn_earlier

    if start.recorded:
        return drawn_earlier(Path(str(config.resume)), plans)
    return drawn_by_anchors(config.anchors or "", plans, design.size, seed)


def _sampling(config: RunConfig, selection: Selection, plans: tuple[TaskPlan, ...], place: Place) -> Sampling | None:
    """Return the random order and the stopping rules. ``None`` means the default order, costliest first."""
    if config.order != "random" and not config.until:
        return None
    from lmms_eval.evaluation.sampling import sampling_of

    return sampling_of(config, selection, plans, place.rank == 0)


def _selected(config: RunConfig, registry: ModelRegistry, options: TaskOptions, start: Start) -> Selection:
    """Select the tasks by name, or those that the caller gave, each with the options of this run."""
    if start.tasks:
        return selection_of({task.name: rebuilt(task, options) for task in start.tasks})
    folders = [*config.include_paths, *map(str, registry.plugin_task_folders())]
    known = start.catalogue or Catalogue(folders, pack_first=config.pack_first)
    return select_tasks(config.names("tasks"), known, options)


def _baselines(config: RunConfig, plans: Sequence[TaskPlan], place: Place) -> dict[str, Path]:
    """Find the samples to compare each task with. This is done early, so that mistakes show before the run.

    Raises:
        ConfigError: there is no such preset.
        DataError: a file cannot be found or fetched, or holds no samples; or no task has a file.
    """
    if not config.baseline or place.rank:  # the first process writes the results
        return {}
    from lmms_eval.compare.baseline import check_baseline
    from lmms_eval.results.baseline import find_baseline

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


class RunKeys(Struct, frozen=True):
    """The contents that the keys of a run are hashes of.

    Only ``common`` contains controls. They follow from their tasks, so a run and the same run with controls are one
    record.
    """

    asked: Mapping[str, Any]
    """Everything that can change an answer, except the model itself."""
    scoring: Mapping[str, Any]
    """Everything that can change the score of a given answer."""
    common: Mapping[str, Any]
    """Everything that must be the same in the processes of a launch."""

    def of(self, identity: Any, launch: str | None = None) -> str:
        """Compute the run key for a model's identity. ``launch`` is set if no other start may continue the run."""
        return run_key({**self.asked, "model": identity, "object": launch})


def run_keys(config: RunConfig, choice: ModelChoice, plans: Sequence[TaskPlan], judge: Any = None) -> RunKeys:
    """Gather the contents of the run's keys."""
    fingerprints = {plan.task.name: dict(plan.task.fingerprint()) for plan in plans if not plan.task.control_of}
    asked = {  # scoring functions change no answer: after a change of these, the same answers are scored again
        task: {part: value for part, value in parts.items() if part != "scoring"}
        for task, parts in fingerprints.items()
    }
    questions = {"options": answer_options(config, choice.ignored_arguments), "backend": choice.backend}
    draws = {plan.task.name: one.digest for plan in plans if (one := plan.sample) is not None and one.runs}
    if draws:  # what is drawn depends on earlier runs
        questions["draws"] = draws
    return RunKeys(
        asked={**questions, "tasks": asked},
        scoring={
            "tasks": fingerprints,
            "reasoning_tags": config.tag_pairs("reasoning_tags"),
            "thought_tags": [*THOUGHT_TAGS, *config.tag_pairs("thinking_tags")],
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
    """Return a name that no other run has and that all processes of the launch share."""
    if place.size == 1:
        return uuid.uuid4().hex
    return os.environ.get("TORCHELASTIC_RUN_ID", "") + os.environ.get("MASTER_PORT", "")


def _is_known(config: RunConfig, choice: ModelChoice, model: Model) -> bool:
    """Return whether name, arguments and identity of the model determine its answers.

    They do not if the caller gave a plugin object. A training loop, for example, evaluates the same object with
    different weights, and must not get answers of an earlier, interrupted evaluation.
    """
    if choice.object is None or config.model_args or config.resume:
        return True
    return not choice.legacy and bool(model.identity())


def _build_model(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, place: Place, opened: ExitStack
) -> Model:
    """Build the model, or adapt the object that the caller gave. Raises ``ModelError`` if it cannot be built."""
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
    arguments: Mapping[str, Any] = config.arguments("model_args")
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


def _open_model(
    config: RunConfig, registry: ModelRegistry, choice: ModelChoice, plans: tuple[TaskPlan, ...], place: Place,
    opened: ExitStack,
) -> Model:  # fmt: skip
    """Open the model for these tasks and this process. With ``--t2i``, a second model draws what its answers describe.

    Raises ``ModelError`` if one of them cannot be built, or the model cannot answer what is asked.
    """
    model = _build_model(config, registry, choice, place, opened)
    log_files([plan.task for plan in plans])
    draws = {"generate_visual_cot"} if config.t2i and not choice.legacy else set()
    _refuse_unanswered(plans, choice, model.kinds | draws)
    _refuse_check(config, choice, place, model.collective_forward)
    if place.size > 1 and choice.legacy and hasattr(model, "set_world"):  # the adapter of the class interface
        model.set_world(place.rank, place.size)
    if not config.t2i:
        return model
    from lmms_eval.models.text_to_image.illustrated import IllustratedModel, open_text_to_image

    painter = open_text_to_image(str(config.t2i), config.arguments("t2i_args"), config.device or _own_device(place))
    illustrated = IllustratedModel(model, painter, owns_inner=False)
    opened.callback(illustrated.close)
    return illustrated


_KIND_OF_TYPE = {
    "generate_visual_cot": "generate_visual_cot",
    "loglikelihood": "loglikelihood",
    "loglikelihood_rolling": "loglikelihood_rolling",
    "multiple_choice": "loglikelihood",
}
"""Kinds of requests by output type; all others generate texts."""
_HINTS = {
    "generate_visual_cot": (
        "; give a model whose answers hold pictures (openai or gemini with such a checkpoint, another with --t2i), "
        "or a class plugin of the simple interface that defines generate_visual_cot"
    ),
    "loglikelihood_rolling": (
        "; give hf, vllm or sglang, openai with api=completions and tokenizer=FOLDER, or a class plugin that defines "
        "loglikelihood_rolling"
    ),
}
"""What to do about a kind that a model does not answer."""


def _refuse_unanswered(plans: Sequence[TaskPlan], choice: ModelChoice, kinds: Collection[str]) -> None:
    """Refuse tasks with requests of a kind that the model does not answer."""
    for plan in plans:
        output_type = plan.task.output_type
        needed = _KIND_OF_TYPE.get(output_type, "generate_until")
        if needed in kinds:
            continue
        hint = _HINTS.get(needed, "")
        raise ModelError(
            f"task {plan.task.name!r} ({output_type}) needs {needed} requests, which model {choice.name!r} does not "
            f"answer; it answers: {', '.join(sorted(kinds))}{hint}"
        )


def _own_device(place: Place) -> str | None:
    """Return the GPU of this process, or ``None`` if there is only one process or no GPU."""
    if place.size == 1 or not may_have_gpus() or find_spec("torch") is None:
        return None
    import torch

    count = torch.cuda.device_count()  # 1 if a launcher shows each process only its own GPU
    return f"cuda:{place.local_rank % count}" if count else None


def _changed(config: RunConfig, name: str) -> Any:
    """Return an option's value, or ``None`` if it is the default: most models have no such argument."""
    value = getattr(config, name)
    return None if value == option_table()[name].default else value


def _refuse_check(config: RunConfig, choice: ModelChoice, place: Place, collective_forward: bool = False) -> None:
    """Refuse ``--check_batch`` if a request cannot be asked alone, or not by one process."""
    if config.check_batch and choice.legacy:
        raise ModelError(
            f"--check_batch: model {choice.name!r} is a class plugin, which makes its batches itself and does not "
            "report what was in one; leave the option out"
        )
    if config.check_batch and collective_forward and place.size > 1:
        raise ModelError(
            f"--check_batch: the forward passes of model {choice.name!r} need all {place.size} processes, so that one "
            "cannot ask alone; leave the option out, or start one process"
        )
