"""``lmms-eval check``: tries tasks and models on this machine, without a network."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmms_eval.cli.arguments import CommandParser, TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.api.task import TaskOptions
    from lmms_eval.checks.findings import Checks
    from lmms_eval.checks.workers import CheckOptions

BROKEN = 2
_MODEL_TIMEOUT_S = 600.0


def run(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(list(arguments))
    from lmms_eval.checks.findings import check_lines, joined
    from lmms_eval.utils.logging import configure_logging

    configure_logging(given.verbosity)
    parts = []
    if given.model:
        parts.append(_check_model(given))
    if given.tasks or not given.model:
        parts.append(_check_tasks(given))
    checks = joined(parts)
    emit(_as_json(checks) if given.json else check_lines(checks))
    return 0 if checks.is_sound(given.strict) else BROKEN


def _parser() -> CommandParser:
    parser = command_parser("check", "try tasks and models here: no network, nothing downloaded, no model asked")
    parser.add_argument("--tasks", help="names, groups, tags, wildcards (all, if no --model is given)")
    parser.add_argument("--model", help="model name or alias, also of a plugin: imported, built, asked two questions")
    parser.add_argument("--model_args", "--model-args", default="", metavar="K=V,...", help="arguments of the model")
    parser.add_argument("--force_simple", "--force-simple", action="store_true", help="its simple class, if it has two")
    parser.add_argument("-b", "--batch_size", "--batch-size", default=1, help="of the model (1)")
    parser.add_argument("--device", help="of the model")
    parser.add_argument("--data_root", "--data-root", metavar="DIR", help="folder with local data of benchmarks")
    parser.add_argument("--documents", type=_positive, default=3, metavar="N", help="first documents to try (3)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="for each task (60) and for the model (600)")
    parser.add_argument("--processes", type=_positive, metavar="N", help="at a time (one a core, at most 16)")
    parser.add_argument("--strict", action="store_true", help="doubtful scores end with code 2 too")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_catalogue_flags(parser, "ERROR")
    return parser


def _check_tasks(given: argparse.Namespace) -> Checks:
    from lmms_eval.checks.workers import check_tasks

    source = replace(TaskSources.of_flags(given), data_root=given.data_root)
    return check_tasks(source.open(), comma_list(given.tasks), _options(given, source, 60.0))


def _check_model(given: argparse.Namespace) -> Checks:
    from lmms_eval.checks.workers import model_job, run_checks

    source = TaskSources.of_flags(given)
    job = model_job(
        given.model, given.model_args, source.plugins, given.force_simple, batch_size=given.batch_size,
        device=given.device,
    )  # fmt: skip
    return run_checks([job], _options(given, source, _MODEL_TIMEOUT_S))


def _options(given: argparse.Namespace, source: TaskSources, timeout_s: float) -> CheckOptions:
    from lmms_eval.checks.workers import MOST_PROCESSES, CheckOptions

    return CheckOptions(
        timeout_s=given.timeout or timeout_s,
        documents=given.documents,
        processes=given.processes or min(MOST_PROCESSES, _cores()),
        include_paths=[os.path.abspath(path) for path in source.include_paths],
        plugins=source.plugins,
        tasks=_task_options(given, source),
        verbosity=given.verbosity,
    )


def _task_options(given: argparse.Namespace, source: TaskSources) -> TaskOptions:
    """Return the options of the tasks, with those of the model if one is named."""
    from lmms_eval.api.task import TaskOptions

    options = TaskOptions(
        data_root=os.path.abspath(source.data_root) if source.data_root else None, run_options=source.run_options
    )
    if not given.model:
        return options
    from lmms_eval.models.registry import ModelRegistry

    try:
        resolved = ModelRegistry(source.plugins).resolve(given.model, given.force_simple)
    except UsageError:
        return options  # the check of the model reports it
    return replace(
        options, model_name=given.model, model_id=resolved.manifest.model_id, chat=resolved.kind == "chat"
    )  # fmt: skip


def _as_json(checks: Checks) -> str:
    import json

    document = {
        "counts": checks.counts(),
        "seconds": round(checks.seconds, 3),
        "processes": checks.processes,
        "checked": [each.as_record() for each in checks.checked],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return number


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
