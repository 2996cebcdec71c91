"""The report phase: samples, results file and the text that is printed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.engine.evaluate import RunResult
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.evaluation.caching import cache_part
from lmms_eval.evaluation.generation import effective_requests
from lmms_eval.evaluation.inputs import Collected, Start
from lmms_eval.evaluation.judge import recorded_judge
from lmms_eval.evaluation.record import RunRecord
from lmms_eval.results.baseline import PairedScores, baseline_lines
from lmms_eval.results.benchmarks import benchmark_reports
from lmms_eval.results.control_rows import control_lines
from lmms_eval.results.controls import control_findings
from lmms_eval.results.document import RunFacts, results_document
from lmms_eval.results.environment import GitState, git_state
from lmms_eval.results.report import ReportFacts, header, notes
from lmms_eval.results.rows import tables
from lmms_eval.results.samples import json_text, write_samples
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.utils import baseline_display_name, model_name_from_args, sanitize_model_name
from lmms_eval.utils.redaction import mask_known, redact


@dataclass(frozen=True, slots=True)
class Written:
    """The results document and what is printed of it."""

    document: dict[str, Any]
    table: str
    lines: list[str] = field(default_factory=list)


def write_results(
    config: RunConfig, collected: Collected, record: RunRecord, result: RunResult, store: RunStore, start: Start
) -> Written:
    """Samples first, then the results file, each as a whole.

    Raises:
        JournalError: a file could not be written; the journal keeps every answer and score.
    """
    written = _samples(config, record, result, store)
    paired = _paired(config, collected, result, store)
    facts = replace(
        _facts(config, collected, record, start),
        cache=cache_part(config, result.asking.cache),
        judge=recorded_judge(collected.judge, result.tasks, result.asking),
        requests=effective_requests(collected.model, collected.plans),
        ignored=collected.ignored,
    )
    controls = control_findings(result.tasks, collected.selection.groups, store)
    document = results_document(result, collected.selection, facts, paired, controls)
    stem = record.files.benchmark if record.files is not None else None
    reports = benchmark_reports(result.tasks, stem, collected.selection.groups)
    for report in reports:
        document |= {part: content for part, content in report.parts.items() if part not in document}
        written += report.files
    document = redact(document, by_name=False)
    if record.files is not None:
        write_atomically(record.files.results, json_text(document, indent=2).encode("utf-8", "replace"))
        written.append(str(record.files.results))
    shown = ReportFacts(
        model=config.model,
        model_args=str(redact(argument_text(config.model_args))),
        gen_kwargs=argument_text(config.gen_kwargs),
        limit=config.limit,
        offset=config.offset,
        num_fewshot=config.num_fewshot,
        batch_size=config.batch_size,
        command=start.command,
        files=tuple(written),
        model_asked=str(collected.model.identity().get("model", "")),
        tariffs=collected.tariffs,
        ids=config.ids,
        where=config.where,
        ignored=collected.ignored,
        ignored_of_tasks=tuple(facts.model.get("ignored_generation_options", ())),
    )
    lines = [*control_lines(controls), *baseline_lines(paired), *notes(result, shown)]
    if config.show_config:
        lines.append(json_text(document, indent=2))
    parts = [header(shown), tables(result, collected.selection, paired, controls)]
    parts += [report.text.rstrip("\n") for report in reports]
    return Written(document, mask_known("\n\n".join(parts)), [mask_known(line) for line in lines])


def _samples(config: RunConfig, record: RunRecord, result: RunResult, store: RunStore) -> list[str]:
    """Write the samples file of each task; returns the paths."""
    if record.files is None or not config.log_samples:
        return []
    paths = [(record.files.samples(task.task.name), task) for task in result.tasks]
    return [str(path) for path, task in paths if write_samples(path, task, store)]


def _paired(
    config: RunConfig, collected: Collected, result: RunResult, store: RunStore
) -> dict[str, dict[str, PairedScores]]:
    if not collected.baselines:
        return {}
    from lmms_eval.compare.baseline import compare_baseline  # with the readers of all formats

    named = str(config.baseline)
    presets = () if Path(named).exists() else (named.partition(":")[0],)  # a text that is no file was found to be one
    shown = baseline_display_name(named, presets)
    found = {}
    for task in result.tasks:
        file = collected.baselines.get(task.task.name)
        if file is None:
            continue
        try:
            scores = compare_baseline(task, store, file, shown)
        except DataError as error:  # the run's own numbers do not depend on it
            logger.warning("{}: not compared with --baseline: {}", task.task.name, error)
            continue
        if scores:
            found[task.task.name] = scores
        else:
            logger.warning("{}: no metric has a number of two documents both here and in --baseline", task.task.name)
    return found


def _facts(config: RunConfig, collected: Collected, record: RunRecord, start: Start) -> RunFacts:
    git, arguments = git_state(), resolved_cli_args(config)
    name = model_name_from_args(argument_text(config.model_args))
    seeds = (*config.seed, None, None, None, None)[:4]
    block = {
        "model": config.model,
        "model_args": arguments["model_args"],
        "model_backend": collected.choice.backend,
        "batch_size": config.batch_size,
        "batch_sizes": [],
        "device": config.device,
        "use_cache": config.use_cache,
        "limit": config.limit,
        "offset": config.offset,
        "bootstrap_iters": config.bootstrap_iters,
        "gen_kwargs": arguments["gen_kwargs"],
        "random_seed": seeds[0],
        "numpy_seed": seeds[1],
        "torch_seed": seeds[2],
        "fewshot_seed": seeds[3],
        "resolved_cli_args": arguments,
    }
    return RunFacts(
        config=block,
        model_source=config.model,
        model_name=name,
        model_name_sanitized=sanitize_model_name(name),
        date=record.date,
        git=GitState(git.commit or config.git_commit, git.branch or config.git_branch),
        start_time=start.began,
        end_time=time.time(),
        seconds={"collect": collected.seconds},
        run_key=record.key,
        model={
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in dict(collected.model.describe()).items()
        },
        system_instruction=config.system_instruction,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        log_samples=config.log_samples,
        error_budget=config.error_budget,
        tariffs=collected.tariffs,
    )
