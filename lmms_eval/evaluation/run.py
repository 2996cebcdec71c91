"""A run: collect the tasks and the model, open the run's folder, evaluate, write and report the results."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, SimpleNamespace, TracebackType
from typing import TYPE_CHECKING

from loguru import logger
from msgspec import structs

from lmms_eval.api.model import Model, lmms
from lmms_eval.config import RunConfig, check_config, resolved_cli_args
from lmms_eval.config.convert import truncation_budget
from lmms_eval.config.options import variables_without_effect
from lmms_eval.config.rules import names_trackers, options_without_effect
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.live import outline_of, write_outline
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.scoring import WorkerOptions
from lmms_eval.engine.stopping import Limits
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Place, Team, join
from lmms_eval.engine.watchdog import guarded_exit
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.collect import collect
from lmms_eval.evaluation.inputs import Collected, Start, this_command
from lmms_eval.evaluation.judge import open_setup
from lmms_eval.evaluation.record import RunRecord, RunReport, open_record
from lmms_eval.storage.run_folder import check_output_path
from lmms_eval.tasks import Catalogue
from lmms_eval.utils.launch import STORE_PORT, accelerate_started_one, share_heap

if TYPE_CHECKING:
    from lmms_eval.engine.headline import HeadlinePart
    from lmms_eval.engine.looks import Sampling
    from lmms_eval.engine.response_cache import ResponseCache
    from lmms_eval.engine.share import Share
    from lmms_eval.evaluation.writing import RunReporter, RunTrackers

_runs = itertools.count()


@functools.cache
def _joined() -> Team | None:
    team = join(os.environ)
    if team is not None:
        atexit.register(team.close)
    elif accelerate_started_one(os.environ):
        logger.warning(
            "accelerate has started one process, which does all the work: with --cpu, or without an accelerator, it "
            "ignores --num_processes; for N processes: torchrun --nproc_per_node N -m lmms_eval ..."
        )
    return team


def this_team(processes: int = 1) -> Team | None:
    """Prepare the team of processes for the next run. Returns ``None`` if this process is alone.

    Raises:
        UsageError: several ``processes`` are requested, but this one was not started by the command that starts them.
    """
    team = _joined()
    if processes > 1 and STORE_PORT not in os.environ:
        raise UsageError(
            f"processes={processes} starts the command `lmms-eval eval --processes {processes} ...` several times, "
            "which a call from Python, or a process of accelerate or torchrun, cannot do: leave it out, or use the "
            "command alone"
        )
    if team is not None:
        team.begin(next(_runs))
    return team


VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "datasets_cache": "HF_DATASETS_CACHE",  # read by the package datasets, also in the processes that it starts
        "nltk_data": "NLTK_DATA",  # read by the package nltk, which task files use
        "media_root": "LMMS_EVAL_MEDIA_ROOT",  # read by task files of the family and by find_media
    }
)
"""Environment variable of each option, for other packages. Our own code reads ``TaskOptions.run_options``."""


@contextmanager
def exported(config: RunConfig) -> Iterator[None]:
    """Set the environment variables of the given options, and restore the earlier values at the end."""
    given = {variable: str(value) for name, variable in VARIABLES.items() if (value := getattr(config, name))}
    earlier = {variable: os.environ.get(variable) for variable in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for variable, value in earlier.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def run(
    config: RunConfig,
    model: Model | lmms | None = None,
    command: str = "",
    catalogue: Catalogue | None = None,
    ends: bool = True,
) -> RunReport:
    """Evaluate a model on the tasks of a configuration.

    Args:
        config: the options.
        model: a model object, which the caller keeps; by default the model that the configuration names.
        command: the command line that continues the run.
        catalogue: the tasks by name, if the caller has loaded them already.
        ends: call the report's ``end``.

    Raises:
        LmmsEvalError: ``docs/commands.md`` lists what ends a run. ``exit_code`` of the error is the command's.
    """
    return EvaluationRun(config, model, Start(command or this_command(), catalogue)).report(ends)


class EvaluationRun:
    """One evaluation, from its options to its report.

    Everything that it opens is entered into one exit stack, which closes it in reverse order however the run ends.
    """

    def __init__(self, config: RunConfig, model: Model | lmms | None = None, start: Start | None = None) -> None:
        self._config, self._given, self._start = config, model, start or Start()
        self._team: Team | None = None
        self._opened = ExitStack()

    def report(self, ends: bool = True) -> RunReport:
        """Evaluate, which is possible once. ``ends``: call the report's ``end``. Raises what ``run`` raises."""
        share_heap()  # before the first thread starts
        check_config(self._config)
        with self._opened as opened:
            opened.enter_context(guarded_exit())  # before any code of tasks and models is imported
            opened.enter_context(exported(self._config))
            # Find these mistakes now, not after the last answer.
            if self._config.output_path:
                check_output_path(Path(self._config.output_path))
            if self._config.use_cache:
                from lmms_eval.evaluation.caching import check_cache

                check_cache(self._config)
            self._team = this_team(self._config.processes)
            if self._team is None or self._team.is_first:
                for line in (*options_without_effect(self._config), *variables_without_effect(os.environ)):
                    logger.warning(line)
            opened.push(self._fail_team)
            _seed(self._config)
            place = Place() if self._team is None else self._team.place
            report = self._evaluated(collect(self._config, opened, self._given, place, self._start))
        if ends:
            report.end()
        return report

    def _fail_team(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End the other processes of the launch too, which would wait for this one."""
        if self._team is not None and error is not None:
            self._team.fail(f"{type(error).__name__}: {error}")

    def _note_failure(
        self, record: RunRecord, _kind: type[BaseException] | None, error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Record the error that ends the run, unless it is an interrupt. Only the first process of a launch does."""
        if isinstance(error, Exception | SystemExit) and (self._team is None or self._team.is_first):
            record.fail(error, self._start.command)

    def _evaluated(self, collected: Collected) -> RunReport:
        """Open the run's folder, evaluate and write. The report is empty in all processes but the first."""
        config, opened, team = self._config, self._opened, self._team
        record = opened.enter_context(open_record(config, collected, team))
        if record.report is not None:
            return RunReport(**record.report, end=record.end).shown_again(record.date)
        if record.is_kept and not config.output_path:
            logger.info("no --output_path: answers are kept in {}", record.folder.path)
        rank = 0 if team is None else team.place.rank
        opened.push(functools.partial(self._note_failure, record))
        began = datetime.fromisoformat(record.date).timestamp()
        store = opened.enter_context(
            closing(RunStore(record.folder.path, record.scoring_key, rank, record.images, began))
        )
        reporter = _reporter(config, record, rank, opened)
        cache = _cache(config, collected, opened)
        options = _engine_options(config, team, record, store)
        judge = open_setup(config, collected.judge, record.folder.path, team, options.stream, opened)
        judge = judge and structs.replace(judge, keeper=record.media)
        if config.write_out and rank == 0:
            _log_prompts(collected)
        share = None if team is None else _share(team, record)
        sampling = _sampling(config, collected, record, rank)
        if rank == 0:
            _write_outline(config, collected, sampling, record.folder.path)
        options = structs.replace(
            options, cache=cache, judge=judge, sampling=sampling, limits=_limits(config, collected),
            checks_continued=collected.asks, forgets_blank=collected.asks and not config.allow_blank,
            keeper=record.media,
        )  # fmt: skip
        tracked = _tracked(config, collected, record, opened, rank)
        if tracked is not None:
            judge = judge and structs.replace(judge, on_call=tracked.on_call("judge"))
            options = structs.replace(options, follow=tracked.follow, on_call=tracked.on_call("model"), judge=judge)
        result = evaluate(collected.plans, collected.selection, collected.model, store, options, share)
        if result is None:
            if tracked is not None:
                tracked.leave(options.grace_s)
            return RunReport(0, "")
        from lmms_eval.evaluation.caching import log_cache
        from lmms_eval.evaluation.writing import lines_of_report, write_results  # not before the answers are there

        log_cache(config, result.asking.cache)
        report = write_results(config, collected, record, result, store, self._start)
        if tracked is not None:
            report = tracked.finish(report, result, store, options.grace_s)
        early_stops = {one.task.name: one.early_stop.as_record() for one in result.tasks if one.early_stop is not None}
        record.finish(result.state, self._start.command, report.as_json(), early_stops)
        report = replace(report, lines=[*report.lines, *lines_of_report(reporter, result, options.grace_s)])
        if self._start.returns_samples:
            from lmms_eval.results.samples_file import returned_samples

            file_of = record.files.samples if record.files is not None and config.log_samples else None
            samples = returned_samples(result.tasks, store, file_of)
            report = replace(report, results={**report.results, "samples": samples})
        return report


def _cache(config: RunConfig, collected: Collected, opened: ExitStack) -> ResponseCache | None:
    if not config.use_cache:
        return None
    from lmms_eval.evaluation.caching import open_cache

    return open_cache(config, collected, opened)


def _share(team: Team, record: RunRecord) -> Share:
    from lmms_eval.engine.share import Share

    return Share(team, record.shares_files, record.media)


def _reporter(config: RunConfig, record: RunRecord, rank: int, opened: ExitStack) -> RunReporter | None:
    """Start the reporter in the first process of a run with ``--report``. Returns ``None`` otherwise."""
    if not config.report or rank > 0 or record.files is None:
        return None
    from lmms_eval.evaluation.writing import RunReporter

    return opened.enter_context(RunReporter(record, record.files))


def _tracked(
    config: RunConfig, collected: Collected, record: RunRecord, opened: ExitStack, rank: int
) -> RunTrackers | None:
    """Start the trackers that the options name. Returns ``None`` without any, and if a recorded run is scored again."""
    if not collected.asks or not names_trackers(config):
        return None
    from lmms_eval.evaluation.writing import begin_tracking

    return begin_tracking(config, collected, record, opened, rank)


def _log_prompts(collected: Collected) -> None:
    """Log the prompt of each task's first document (``--write_out``)."""
    for plan in collected.plans:
        if plan.requested:
            requests = plan.task.exchange(plan.doc_ids[0], 0).open()
            logger.info("{}: prompt of document {}:\n{}", plan.task.name, plan.doc_ids[0], requests[0].context)


def _engine_options(config: RunConfig, team: Team | None, record: RunRecord, store: RunStore) -> EngineOptions:
    threads = config.media_workers or min(4, max(2, os.cpu_count() or 2))
    # A process of several prefetches as little as it can: no other process can take what it has prefetched.
    limits = StreamLimits(max_bytes=config.prefetch_mb << 20, threads=threads)
    share, withholds = truncation_budget(config.truncation_budget)
    read = None
    if (files := record.files) is not None and config.log_samples:
        from lmms_eval.results.samples_file import with_samples

        read = lambda task, doc_ids: with_samples(files.samples(task.name), store, task, doc_ids)  # noqa: E731
    return EngineOptions(
        stream=limits if team is None else structs.replace(limits, least_requests=1),
        aggregate=AggregateOptions(
            error_budget=config.error_budget,
            judge_error_budget=config.judge_error_budget,
            truncation_budget=share,
            withholds_truncated=withholds,
            bootstrap_iters=config.bootstrap_iters,
            arguments=SimpleNamespace(**resolved_cli_args(config)),
            allow_blank=config.allow_blank,
            read=read,
        ),
        grace_s=config.grace_seconds(under_launcher="TORCHELASTIC_RUN_ID" in os.environ),
        score_workers=WorkerOptions("lmms_eval.tasks.scoring_worker", config.score_workers, config.verbosity),
        check_batch=config.check_batch,
        retry_truncated=config.retry_truncated or "",
        show_progress=team is None or team.is_first,
    )


def _sampling(config: RunConfig, collected: Collected, record: RunRecord, rank: int) -> Sampling | None:
    """Return the random order and the rules, with the anchors of the run's first start.

    If a recorded run is scored again, its early stops take the place of the rules.
    """
    folder = record.folder.path
    if any(plan.sample is not None and plan.sample.runs for plan in collected.plans):
        return _kept_draw(collected, folder, rank)
    if not collected.asks:
        from lmms_eval.evaluation.anchors import KeptAnchors

        kept = KeptAnchors.read(folder)
        if kept is None and not record.early_stops:
            return None
        anchors = {} if kept is None else kept.anchors
        from lmms_eval.engine.headline import RandomOrder
        from lmms_eval.engine.looks import Sampling

        return Sampling(RandomOrder(config.seed[0] or 0), recorded=record.early_stops, anchors=anchors)
    sampling = collected.sampling
    if sampling is None or not config.anchors or rank:
        return sampling
    from lmms_eval.evaluation.anchors import kept_anchors

    is_first_start = record.content.get("starts", 1) == 1
    return sampling.with_anchors(kept_anchors(config.anchors, sampling.anchors, folder, is_first_start))


def _kept_draw(collected: Collected, folder: Path, rank: int) -> Sampling | None:
    """Keep the draw of a sample by earlier scores, whose documents have no random order with equal chances."""
    if collected.asks and not rank:
        from lmms_eval.evaluation.drawing import keep_draw

        keep_draw(folder, collected.plans)
    return collected.sampling


def _write_outline(config: RunConfig, collected: Collected, sampling: Sampling | None, folder: Path) -> None:
    """Describe the run for ``lmms-eval watch`` and the like. The run continues if the file cannot be written."""
    parts: dict[str, HeadlinePart | str] = {}
    if sampling is not None:
        from lmms_eval.evaluation.sampling import looked_at

        plans = [plan for plan in collected.plans if not plan.task.control_of]
        for plan in plans:
            part = looked_at(plan, not config.predict_only)
            parts[plan.task.name] = part if isinstance(part, str) else sampling.anchored(part)
    with suppress(OSError):
        write_outline(folder, outline_of(collected.plans, sampling, parts))


def _limits(config: RunConfig, collected: Collected) -> Limits | None:
    if not collected.asks or (config.max_tokens is None and config.max_cost is None):
        return None
    return Limits(config.max_tokens, config.max_cost, collected.tariffs)


def _seed(config: RunConfig) -> None:
    python_seed, numpy_seed, torch_seed, _ = (*config.seed, None, None, None, None)[:4]
    if python_seed is not None:
        random.seed(python_seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and numpy_seed is not None:
        numpy.random.seed(numpy_seed)
    if torch is not None and torch_seed is not None:
        torch.manual_seed(torch_seed)
