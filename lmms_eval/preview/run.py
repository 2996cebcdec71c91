"""``--dry_run``: the tasks of a run are gathered and all their requests built and measured; nothing is asked."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from lmms_eval.api.media_form import MediaForm
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request
from lmms_eval.config import RunConfig, argument_text
from lmms_eval.engine.cache_file import cache_path
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.team import Place
from lmms_eval.evaluation.collect import choose_model, plan_run, run_keys
from lmms_eval.evaluation.controls import with_controls
from lmms_eval.evaluation.exporting import exported
from lmms_eval.evaluation.inputs import ModelChoice, Start
from lmms_eval.evaluation.judge import judge_options
from lmms_eval.evaluation.pricing import find_tariffs, model_names
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.services import NAMED_SERVICES
from lmms_eval.preview.earlier import earlier_runs, held_requests
from lmms_eval.preview.forecast import forecast_lines
from lmms_eval.preview.measure import Lens, measure, requests_of
from lmms_eval.preview.page import MAX_NAME, Page, chat_template
from lmms_eval.preview.rulers import find_ruler, tokenizer_file
from lmms_eval.preview.summary import TaskForecast
from lmms_eval.results.naming import model_folder
from lmms_eval.utils.names import sanitize_task_name
from lmms_eval.utils.prices import LITELLM, Tariffs, read_prices

BROKEN = 2
"""Exit code where something would not be asked as it should be."""
MOST_THREADS = 8
FOLDER = "dry_run"


@dataclass(frozen=True, slots=True)
class DryRun:
    """Text that the command line prints, and its exit code."""

    lines: list[str]
    exit_code: int
    tasks: tuple[TaskForecast, ...]


def dry_run(config: RunConfig, start: Start | None = None) -> DryRun:
    """Foretell a run: what each task asks, what it weighs and costs, and what is broken.

    No model and no judge is built, and no folder of a run is made; that of an earlier start is read.

    Raises:
        UsageError: what would end the run itself before its first question.
        JournalError: a page could not be written.
    """
    with exported(config):
        random.seed(config.seed[0])
        registry = ModelRegistry(config.plugin_packages)
        choice = choose_model(config, registry, None)
        form, tariffs = _media_form(config, registry, choice), _tariffs(config)
        _, named = plan_run(config, registry, choice, Place(), start or Start())
        plans = with_controls(config, named, choice.legacy)
        names = model_names(config)
        lens = Lens(
            ruler=find_ruler(names),
            form=form,
            max_tokens=_max_tokens(config),
            opens_media=choice.opens_media,
            judges=judge_options(config).is_given and not config.predict_only,
        )
        base = model_folder(Path(config.output_path), argument_text(config.model_args)) if config.output_path else None
        held = held_requests(base, config, run_keys(config, choice, named)) if base and base.is_dir() else set()
        tasks = tuple(_forecast(plan, lens, _threads(config)) for plan in plans)
        for task in tasks:
            task.held = _held(task.plan, held)
        lines = forecast_lines(tasks, lens, tariffs, earlier_runs(base, config))
        lines += _cache_lines(config)
        if config.dry_run is not True:
            lines += _pages(config, plans, names)
    return DryRun(lines, BROKEN if any(task.faults for task in tasks) else 0, tasks)


def _forecast(plan: TaskPlan, lens: Lens, threads: int) -> TaskForecast:
    """Measure all documents of a task, in threads."""
    found, sends = TaskForecast(plan), lens.form.wire is not None
    with ThreadPoolExecutor(threads, "dry-run") as pool:
        for document in pool.map(lambda doc_id: measure(plan.task, doc_id, lens), plan.doc_ids, chunksize=1):
            found.add(document, sends)
    return found


def _held(plan: TaskPlan, held: set[str]) -> int:
    chosen, name = set(map(str, plan.doc_ids)), plan.task.name
    parts = (request_id.rsplit("/", 4) for request_id in held)
    return sum(part[0] == name and part[1] in chosen for part in parts)


def _threads(config: RunConfig) -> int:
    return config.media_workers or min(MOST_THREADS, max(2, os.cpu_count() or 2))


def _media_form(config: RunConfig, registry: ModelRegistry, choice: ModelChoice) -> MediaForm:
    """Form in which the model takes media, from its arguments alone.

    Raises:
        ModelError: an argument is wrong.
    """
    cls = registry.resolve(config.model, config.force_simple).load()
    if not issubclass(cls, Model):
        return MediaForm()
    given: Mapping[str, Any] = {
        name: value for name, value in config.model_arguments.items() if name not in choice.ignored_arguments
    }
    service = NAMED_SERVICES.get(config.model)
    if service is not None:  # without its key, which nobody needs here
        is_named = any(given.get(name) for name in ("model", "model_version", "pretrained"))
        given = {**service.fixed, **({"model": service.model} if service.model and not is_named else {}), **given}
    return cls.media_form(given)


def _max_tokens(config: RunConfig) -> int | None:
    told = config.max_model_len or config.model_arguments.get("max_model_len")
    return int(told) if isinstance(told, int) else None


def _tariffs(config: RunConfig) -> Tariffs | None:
    """The prices of the table that is given; else litellm's, where that is installed and has the model."""
    if config.prices is not None:
        return find_tariffs(config, read_prices(config.prices))
    if find_spec(LITELLM) is None:
        return None
    table = read_prices(LITELLM)
    return find_tariffs(config, table) if table.find(model_names(config)) is not None else None


def _cache_lines(config: RunConfig) -> list[str]:
    """Say that there is a cache; which requests it answers would take reading all media to know."""
    if not config.use_cache or not (path := cache_path(config.use_cache)).is_file():
        return []
    return [f"answers in the response cache {path} are not counted: to find them all media would have to be read"]


def _pages(config: RunConfig, plans: Sequence[TaskPlan], names: Sequence[str]) -> list[str]:
    """Write the first requests of each task."""
    if config.output_path:
        folder = Path(config.output_path) / FOLDER
    else:
        folder = Path(tempfile.mkdtemp(prefix="lmms_eval_dry_run_"))
    tokenizer = next((path for name in names if (path := tokenizer_file(name)) is not None), None)
    template = chat_template(tokenizer.parent) if tokenizer is not None else None
    written, used = [], set[str]()
    for number, plan in enumerate(plans):
        stem = sanitize_task_name(plan.task.name)[:MAX_NAME]
        name = f"{stem}_{number}" if stem in used else stem  # names that differ in punctuation alone
        used.add(stem)
        requests = list(islice(_first_requests(plan), int(config.dry_run)))
        written.append(f"written: {Page(folder, plan.task.name, name, template).write(requests)}")
    return written


def _first_requests(plan: TaskPlan) -> Iterator[Request]:
    for doc_id in plan.doc_ids:
        try:
            yield from requests_of(plan.task, doc_id)
        except Exception:  # noqa: BLE001 - counted among what is broken
            continue
