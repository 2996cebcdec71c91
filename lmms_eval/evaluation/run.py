"""One run: collect, take the run's folder, evaluate, write, report."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval.api.model import Model, lmms
from lmms_eval.config import RunConfig, check_config, resolved_cli_args
from lmms_eval.engine.aggregate import AggregateOptions
from lmms_eval.engine.evaluate import EngineOptions, RunResult, evaluate
from lmms_eval.engine.scoring import WorkerOptions
from lmms_eval.engine.share import Share
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Place, Team
from lmms_eval.errors import LmmsEvalError
from lmms_eval.evaluation.caching import check_cache, log_cache, open_cache
from lmms_eval.evaluation.collect import Collected, collect
from lmms_eval.evaluation.exporting import exported
from lmms_eval.evaluation.judge import close_setup, open_setup
from lmms_eval.evaluation.launch import this_team
from lmms_eval.evaluation.record import RunRecord, open_record
from lmms_eval.evaluation.writing import Timing, write_results
from lmms_eval.results.baseline import read_baseline
from lmms_eval.results.samples import json_text
from lmms_eval.storage.run_folder import check_output_path
from lmms_eval.tasks import Catalogue
from lmms_eval.utils.heap import share_heap
from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from lmms_eval.evaluation.rescore import RecordedModel

WITHHELD, BROKEN = 3, 1


@dataclass(frozen=True, slots=True)
class RunReport:
    """What the command line prints and ends with."""

    exit_code: int
    table: str
    lines: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    """The results document (``results.json``)."""
    end: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """To be called when whoever asked has got everything: a completed run then begins anew on the next start, and
    until then is only shown again."""

    def as_json(self) -> bytes:
        """All but ``end``, for ``shown_again`` after a kill."""
        shown = {"exit_code": self.exit_code, "table": self.table, "lines": self.lines, "results": self.results}
        return json_text(shown).encode("utf-8", "replace")

    def shown_again(self, date: str) -> RunReport:
        """The report of a run whose command was killed when it was complete."""
        line = f"This run, of {date}, is complete: its results are shown again, and nothing was asked or scored."
        return replace(self, lines=[*self.lines, line])


def run(
    config: RunConfig,
    model: Model | lmms | None = None,
    command: str = "",
    catalogue: Catalogue | None = None,
    ends: bool = True,
) -> RunReport:
    """Evaluate. ``model`` may be an object that the caller keeps; ``command`` is what continues the run.

    ``catalogue``: the tasks that names stand for, where a program has one already. ``ends``: call the report's ``end``.

    Raises:
        LmmsEvalError: see ``docs/commands.md`` for what ends a run; ``exit_code`` of the error is the command's.
    """
    report = start_run(config, model, Start.now(command, catalogue))
    if ends:
        report.end()
    return report


def start_run(config: RunConfig, model: Model | lmms | None, start: Start) -> RunReport:
    """``run`` with everything that may be said of its start."""
    share_heap()  # before the first thread starts
    check_config(config)
    with exported(config):
        if config.output_path:
            check_output_path(Path(config.output_path))
        check_cache(config)
        if config.baseline:
            read_baseline(Path(config.baseline))  # a file that is no samples file: said now, not after the last answer
        team = this_team()
        try:
            return _run(config, model, start, team)
        except BaseException as error:
            if team is not None:  # the others end too, instead of waiting for this one
                team.fail(f"{type(error).__name__}: {error}")
            raise


@dataclass(frozen=True, slots=True)
class Start:
    """When the run began (seconds since 1970), by which command, and over which tasks."""

    time: float
    command: str
    catalogue: Catalogue | None = None
    recorded: RecordedModel | None = None
    """The model of an earlier run, which is only scored again."""

    @classmethod
    def now(cls, command: str = "", catalogue: Catalogue | None = None, recorded: RecordedModel | None = None) -> Start:
        return cls(time.time(), command or _command(), catalogue, recorded)


def _run(config: RunConfig, model: Model | lmms | None, start: Start, team: Team | None) -> RunReport:
    _seed(config)
    begin = time.monotonic()
    place = team.place if team is not None else Place()
    collected = collect(config, model, place, start.catalogue, start.recorded)
    timing = Timing(start.time, {"collect": time.monotonic() - begin}, start.command)
    try:
        report = _recorded(config, collected, timing, team)
    finally:
        if collected.owns_model:
            collected.model.close()
        if collected.judge is not None:
            collected.judge.close()
    return report or RunReport(0, "")


def _recorded(config: RunConfig, collected: Collected, timing: Timing, team: Team | None) -> RunReport | None:
    """Evaluate with the run's folder taken; ``None`` in the processes that leave the results to the first one."""
    record = open_record(config, collected, team)
    is_kept = collected.is_resumable or not record.is_temporary
    is_complete = False
    try:
        if record.report is not None:
            is_complete = True
            return RunReport(**record.report, end=record.end).shown_again(record.date)
        if record.is_temporary and is_kept:
            logger.info("no --output_path: answers are kept in {}", record.folder.path)
        share = None if team is None else Share(team, record.shares_files)
        report = _evaluate(config, collected, record, timing, share)
        is_complete = report is not None and report.results["state"] == "complete"
        return report
    finally:
        if is_complete and is_kept:
            record.hold()
        else:
            record.folder.release()
        if not is_kept:
            shutil.rmtree(record.folder.path, ignore_errors=True)  # nobody could ever find it again


def _evaluate(
    config: RunConfig, collected: Collected, record: RunRecord, timing: Timing, share: Share | None
) -> RunReport | None:
    rank = 0 if share is None else share.team.place.rank
    store = RunStore(record.folder.path, record.scoring_key, rank, record.images)
    cache, judge = None, None
    try:
        if collected.asks and not config.allow_blank:
            store.forget_blank()
        cache = open_cache(config, collected)
        options = _engine_options(config, share is not None, rank)
        judge = open_setup(config, collected.judge, record.folder.path, rank, options.stream)
        if config.write_out and rank == 0:
            _log_prompts(collected)
        options = replace(options, cache=cache, judge=judge)
        result = evaluate(collected.plans, collected.selection, collected.model, store, options, share)
        if result is None:
            return None
        log_cache(config, result.asking.cache)
        written = write_results(config, collected, record, result, store, timing)
        report = RunReport(_exit_code(config, result), written.table, written.lines, written.document, record.end)
        record.finish(result.state, timing.command, report.as_json())
    except LmmsEvalError:
        raise
    except Exception:
        logger.warning("what was finished is kept in {}: the same command goes on from there", record.folder.path)
        raise
    finally:
        store.close()
        close_setup(judge)
        if cache is not None:
            cache.close()
    return report


def _command() -> str:
    """The command line of this process, secrets redacted."""
    return str(redact(shlex.join(["lmms-eval", *sys.argv[1:]])))


def _engine_options(config: RunConfig, is_shared: bool, rank: int) -> EngineOptions:
    threads = config.media_workers or min(4, max(2, os.cpu_count() or 2))
    # What a process has taken ahead nobody else can take: beside others it holds no more than it needs.
    limits = StreamLimits(max_bytes=config.prefetch_mb << 20, threads=threads)
    return EngineOptions(
        stream=replace(limits, least_requests=1) if is_shared else limits,
        aggregate=AggregateOptions(
            error_budget=config.error_budget,
            bootstrap_iters=config.bootstrap_iters,
            arguments=SimpleNamespace(**resolved_cli_args(config)),
            allow_blank=config.allow_blank,
        ),
        grace_s=config.grace_seconds(under_launcher="TORCHELASTIC_RUN_ID" in os.environ),
        score_workers=WorkerOptions("lmms_eval.tasks.scoring_worker", config.score_workers),
        check_batch=config.check_batch,
        show_progress=rank == 0,
    )


def _exit_code(config: RunConfig, result: RunResult) -> int:
    if result.asking.interrupted is not None:
        return 128 + result.asking.interrupted
    if result.broken:
        return BROKEN
    # A launcher that restarts on failure would ask a dead server again and again: the state is in the results.
    return WITHHELD if result.state == "withheld" and not config.max_restarts else 0


def _seed(config: RunConfig) -> None:
    python_seed, numpy_seed, torch_seed, _ = (*config.seed, None, None, None, None)[:4]
    if python_seed is not None:
        random.seed(python_seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and numpy_seed is not None:
        numpy.random.seed(numpy_seed)
    if torch is not None and torch_seed is not None:
        torch.manual_seed(torch_seed)


def _log_prompts(collected: Collected) -> None:
    for plan in collected.plans:
        if plan.requested:
            requests = plan.task.exchange(plan.doc_ids[0], 0).open()
            logger.info("{}: prompt of document {}:\n{}", plan.task.name, plan.doc_ids[0], requests[0].context)
