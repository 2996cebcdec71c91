"""``lmms-eval eval``: reads the options, runs each configuration and prints its report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.cli.output import INTERNAL_ERROR, at_end, emit, report_error, shows_traceback
from lmms_eval.errors import LmmsEvalError, UsageError

if TYPE_CHECKING:
    from lmms_eval.config import RunConfig

LISTINGS = {"list": "list", "list_groups": "groups", "list_subtasks": "subtasks", "list_tags": "tags"}
STOPPED = (129, 130, 143)


def run(arguments: Sequence[str]) -> int:
    """Run an evaluation's command line. The exit code is that of the first run that did not end with 0.

    Raises ``UsageError`` if an option is wrong; nothing was run.
    """
    if any(word in ("--help", "-h") for word in arguments):
        from lmms_eval.cli.help import evaluation_help

        emit(evaluation_help())
        return 0
    from lmms_eval.config import parse_flags

    return run_options(parse_flags(arguments), arguments)


def run_options(given: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Run an evaluation with options by name, as ``run`` does.

    Args:
        given: the options.
        arguments: the same options as a command line, for further processes.
    """
    from lmms_eval.config import check_config, load_configs

    loaded = load_configs(given)
    if any(name in LISTINGS for config in loaded.configs for name in config.names("tasks")):
        return _list(loaded.configs)
    several = len(loaded.configs) > 1
    for number, config in enumerate(loaded.configs, start=1):
        try:
            check_config(config)
        except UsageError as error:
            raise UsageError(f"run {number} of {len(loaded.configs)}: {error}" if several else str(error)) from error
    from lmms_eval.utils.launch import STORE_PORT
    from lmms_eval.utils.logging import configure_logging, log_lines, process_number

    if any(config.dry_run for config in loaded.configs):
        configure_logging(loaded.configs[0].verbosity, process_number(os.environ))
        from lmms_eval.evaluation.preview.run import dry_run

        codes = []
        for config in loaded.configs:
            os.environ["VERBOSITY"] = config.verbosity
            lines, code = dry_run(config)
            emit(lines)
            codes.append(code)
        return max(codes)
    counts = {config.processes for config in loaded.configs}
    if len(counts) > 1:
        raise UsageError(f"--processes: the runs of a batch share their processes; give one number, not {counts}")
    if (count := counts.pop()) > 1 and STORE_PORT not in os.environ:
        if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
            raise UsageError("--processes: a launcher (accelerate, torchrun) has started several already; leave it out")
        from lmms_eval.cli.processes import run_processes

        return run_processes(arguments, count)
    configure_logging(loaded.configs[0].verbosity, process_number(os.environ))
    log_lines(loaded.notes)
    return _run_batch(loaded.configs) if several else _run_one(loaded.configs[0])


def _list(configs: Sequence[RunConfig]) -> int:
    from lmms_eval.cli.arguments import TaskSources
    from lmms_eval.cli.tasks import listing

    for config in configs:
        for name in config.names("tasks"):
            if name not in LISTINGS:
                raise UsageError(
                    f"--tasks: {name!r} cannot be combined with a listing; give either tasks or one of {[*LISTINGS]}"
                )
            emit(listing(LISTINGS[name], TaskSources.of_config(config)))
    return 0


def _run_one(config: RunConfig) -> int:
    os.environ["VERBOSITY"] = config.verbosity  # plugins and task files read it
    if config.power_analysis:
        from lmms_eval.cli.power import report_for_config

        emit(report_for_config(config))
        return 0
    from lmms_eval.evaluation.run import run as evaluate

    try:
        report = evaluate(config, ends=False)
    except SystemExit as stop:  # an exit() in foreign code is not the end of a run
        raise LmmsEvalError(
            f"the code of a model or of a task called exit ({stop.code!r}); what was finished is kept, and the same "
            "command resumes from there; --verbosity DEBUG shows where"
        ) from stop
    emit([part for part in (report.table, *report.lines) if part])
    at_end(report.end)
    return int(report.exit_code)


def _run_batch(configs: Sequence[RunConfig]) -> int:
    """Run the configurations in turn. A failed one is reported and the others still run; an interrupt ends them all."""
    from lmms_eval.utils.logging import configure_logging, process_number

    first = 0
    for number, config in enumerate(configs, start=1):
        configure_logging(config.verbosity, process_number(os.environ))
        try:
            code = _run_one(config)
        except Exception as error:  # noqa: BLE001 - the other runs of the batch do not depend on this one
            place = f"run {number} of {len(configs)} ({config.model} on {config.tasks}): "
            code = report_error(error, shows_traceback(["--verbosity", config.verbosity]), place) or INTERNAL_ERROR
        if code in STOPPED:
            return code
        first = first or code
    return first
