"""``lmms-eval check``: tries tasks and models on this machine, without a network."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmms_eval.cli.arguments import TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import comma_list, simple_parse_args_string

if TYPE_CHECKING:
    from lmms_eval.checks.workers import CheckOptions

BROKEN = 2
_TASK_TIMEOUT_S, _MODEL_TIMEOUT_S = 60.0, 600.0


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("check", "try tasks and models here: no network, nothing downloaded, no model asked")
    parser.add_argument(
        "--tasks", help="names, groups, tags or wildcards to check; default: all, or none if --model is given"
    )
    parser.add_argument("--model", help="model name or alias to check: it is imported, built, and asked two questions")
    parser.add_argument("--model_args", "--model-args", default="", metavar="K=V,...", help="arguments of the model")
    parser.add_argument(
        "--force_simple", "--force-simple", action="store_true", help="check the simple class of a model that has two"
    )
    parser.add_argument(
        "-b", "--batch_size", "--batch-size", default=1, help="batch size of the model; default: %(default)s"
    )
    parser.add_argument("--device", help="device of the model: cuda, cuda:1, cpu, mps")
    parser.add_argument("--data_root", "--data-root", metavar="DIR", help="folder with local data of benchmarks")
    parser.add_argument(
        "--documents",
        type=_positive,
        default=3,
        metavar="N",
        help="documents to try of each task, from the first; default: %(default)s",
    )
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="time limit; default: 60 for each task, 600 for the model"
    )
    parser.add_argument(
        "--processes", type=_positive, metavar="N", help="tasks checked at a time; default: number of cores, at most 16"
    )
    parser.add_argument("--strict", action="store_true", help="end with exit code 2 for warnings too")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_catalogue_flags(parser, "ERROR")
    given = parser.read(arguments)
    from lmms_eval.checks.findings import check_lines, joined
    from lmms_eval.checks.workers import check_tasks, model_job, run_checks

    source = replace(TaskSources.of_flags(given), data_root=given.data_root)
    parts = []
    if given.model:
        built = {"batch_size": given.batch_size, "device": given.device}
        job = model_job(given.model, given.model_args, source.plugins, given.force_simple, **built)
        parts.append(run_checks([job], _options(given, source, _MODEL_TIMEOUT_S)))
    if given.tasks or not given.model:
        parts.append(check_tasks(source.open(), comma_list(given.tasks), _options(given, source, _TASK_TIMEOUT_S)))
    checks = joined(parts)
    if given.json:
        document = {
            "counts": checks.counts(),
            "seconds": round(checks.seconds, 3),
            "processes": checks.processes,
            "checked": [each.as_record() for each in checks.checked],
        }
        emit(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        emit(check_lines(checks))
    return 0 if checks.is_sound(given.strict) else BROKEN


def _options(given: argparse.Namespace, source: TaskSources, timeout_s: float) -> CheckOptions:
    """Return the settings of the check. The options of the tasks include those of the model if one is named."""
    from lmms_eval.api.task import MODEL_FACTS, TaskOptions
    from lmms_eval.checks.workers import MOST_PROCESSES, CheckOptions

    root = os.path.abspath(source.data_root) if source.data_root else None
    facts = {name: value for name, value in simple_parse_args_string(given.model_args).items() if name in MODEL_FACTS}
    tasks = TaskOptions(data_root=root, run_options=source.run_options, model_args=facts)
    if given.model:
        from lmms_eval.models.registry import ModelRegistry

        with contextlib.suppress(UsageError):  # the check of the model reports it
            found = ModelRegistry(source.plugins).resolve(given.model, given.force_simple)
            chat = found.kind == "chat"
            tasks = replace(tasks, model_name=given.model, model_id=found.manifest.model_id, chat=chat)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return CheckOptions(
        timeout_s=given.timeout or timeout_s,
        documents=given.documents,
        processes=given.processes or min(MOST_PROCESSES, cores),
        include_paths=[os.path.abspath(path) for path in source.include_paths],
        plugins=source.plugins,
        tasks=tasks,
        verbosity=given.verbosity,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return number
