"""The last phase of a run: writes samples, results and the HTML report, and sends them to trackers."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
from loguru import logger
from msgspec import Struct, structs

from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.config.tracking import HUB, OTLP, Destination, destination_arguments, named_destinations
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.live import ProgressLine
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.evaluation.caching import cache_part
from lmms_eval.evaluation.generation import effective_requests
from lmms_eval.evaluation.inputs import Collected, Start
from lmms_eval.evaluation.judge import judge_options
from lmms_eval.evaluation.record import RunRecord, RunReport
from lmms_eval.processes import Child, ChildError
from lmms_eval.results.baseline import PairedScores, baseline_lines
from lmms_eval.results.controls import control_findings
from lmms_eval.results.document import GitState, RunFacts, git_state, judge_part, results_document
from lmms_eval.results.files import ResultFiles
from lmms_eval.results.samples_file import json_text, sample_rows
from lmms_eval.results.summary import benchmark_reports, estimand_lines, header, notes
from lmms_eval.results.tables import control_lines, tables
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.utils import baseline_display_name, model_name_from_args, sanitize_model_name
from lmms_eval.utils.prompt_variants import parse_variants
from lmms_eval.utils.redaction import LEAST_KNOWN, known_secrets, mask_known, note_secrets, redact
from lmms_eval.viewer.renewing import FIRST_S

if TYPE_CHECKING:
    from lmms_eval.api.request import Request, Response
    from lmms_eval.trackers.contract import AskedModel, Beginning, Role
    from lmms_eval.trackers.session import Session

WRITER = "lmms_eval.viewer.renewing"
PATIENCE_S, PER_DOCUMENT_S = 120.0, 0.1
"""Seconds that the report of a finished run may take: a base, and more for each document."""


class RunReporter:
    """Has the report of a run written by a child process. As a context manager, it keeps the report up to date during
    the run."""

    def __init__(self, record: RunRecord, files: ResultFiles) -> None:
        self._files = files
        self._live: Child | None = None
        try:
            self._live = self._writer(record.folder.path, is_live=True)
        except (OSError, ChildError) as error:  # the final report is still tried
            logger.debug("no report during the run: {}", error)

    def __enter__(self) -> RunReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_live()

    def finish(self, patience_s: float) -> str:
        """Have the final report written. Returns a line for the user about it."""
        self._end_live()
        logger.info("writing the report {}", self._files.report)
        try:
            writer = self._writer(self._files.results, is_live=False)
        except (OSError, ChildError) as error:
            return self._failed(str(error))
        try:
            answer: dict[str, Any] = orjson.loads(writer.receive(patience_s))
        except (ChildError, orjson.JSONDecodeError) as error:
            writer.kill()
            return self._failed(f"{error}; `lmms-eval report {self._files.results} --out {self._files.report}` does it")
        finally:
            writer.close()
        if "problem" in answer:
            return self._failed(answer["problem"])
        return f"report: {self._files.report / 'index.html'}"

    def _failed(self, problem: str) -> str:
        return f"the report {self._files.report} could not be written: {problem}"

    def _writer(self, run: Path, is_live: bool) -> Child:
        process = Child(WRITER, errors="discarded")
        job = {
            "run": str(run.absolute()),
            "out": str(self._files.report.absolute()),
            "is_live": is_live,
            "first_s": FIRST_S,
            "secrets": known_secrets(),
        }
        process.send(orjson.dumps(job))
        return process

    def _end_live(self) -> None:
        if self._live is not None:
            self._live.close()
        self._live = None


def lines_of_report(reporter: RunReporter | None, result: RunScores, grace_s: float) -> list[str]:
    """Write the report of a run that has ended, and return lines for the user about it.

    ``grace_s``: seconds that this may take if the run was interrupted.
    """
    if reporter is None:
        return []
    patience_s = PATIENCE_S + PER_DOCUMENT_S * sum(task.plan.requested for task in result.tasks)
    return [reporter.finish(patience_s if result.asking.interrupted is None else grace_s)]


WITHHELD, BROKEN = 3, 1
"""Exit codes: a result is withheld; a task is broken."""


def write_results(
    config: RunConfig, collected: Collected, record: RunRecord, result: RunScores, store: RunStore, start: Start
) -> RunReport:
    """Write the results file, and return what the command prints. Raises ``JournalError`` if it cannot be written."""
    written = []
    if record.files is not None and config.log_samples:  # they were written while the scores were aggregated
        paths = [record.files.samples(task.task.name) for task in result.tasks]
        written += [str(path) for path in paths if path.is_file()]
    paired = _paired(config, collected, result, store)
    facts = _facts(config, collected, record, result, start)
    controls = control_findings(result.tasks, collected.selection.groups, store)
    document = results_document(result, collected.selection, facts, paired, controls)
    if record.media is not None and (stored := record.media.stated()):
        document["stored_media"] = stored
    if controls.tasks:
        from lmms_eval.results.breakdown import needs_media

        if needing := needs_media(result.tasks, store):
            document["needs_media"] = needing
    found = [
        *_about_readings(result),
        *_against_published(config, collected, result, start, document),
        *_over_prompts(config, result, store, document),
        *_about_judge(config, result, store, document),
    ]
    stem = record.files.benchmark if record.files is not None else None
    named = model_name_from_args(argument_text(config.model_args)) or config.model
    reports = benchmark_reports(result.tasks, stem, collected.selection.groups, redact(named).rpartition("/")[2])
    for report in reports:
        document |= {part: content for part, content in report.parts.items() if part not in document}
        written += report.files
    document = redact(document, by_name=False)
    if record.files is not None:
        write_atomically(record.files.results, json_text(document, indent=2).encode("utf-8", "replace"))
        written.append(str(record.files.results))
    lines = [*estimand_lines(result), *control_lines(controls), *baseline_lines(paired), *found]
    lines += [] if collected.recipe is None else collected.recipe.lines()
    lines += notes(result, facts, written)
    if config.show_config:
        lines.append(json_text(document, indent=2))
    parts = [header(config), tables(document, result, controls)]
    parts += [report.text.rstrip("\n") for report in reports]
    table, shown = mask_known("\n\n".join(parts)), [mask_known(line) for line in lines]
    return RunReport(_exit_code(config, result), table, shown, document, record.end)


def _against_published(
    config: RunConfig, collected: Collected, result: RunScores, start: Start, document: dict[str, Any]
) -> list[str]:
    """Add the comparison with published numbers to the document, and return sentences about it."""
    wanted = config.published
    if wanted is None:  # a recipe switches it on
        wanted = bool(config.recipe or start.reading)
    if not wanted:
        return []
    from lmms_eval.recipes.published import compare_published, run_numbers

    asked = str(collected.model.identity().get("model", ""))
    model = wanted if isinstance(wanted, str) else model_name_from_args(argument_text(config.model_args)) or asked
    judge, recipe = judge_options(config), collected.recipe
    by_recipe = () if recipe is None else tuple(recipe.tasks)
    found = compare_published(model, run_numbers(result, by_recipe, judge.name if judge.is_given else ""))
    if not found:
        return [f"published: no number of {model or 'this model'} on these tasks is known"]
    document["published"] = {task: [one.as_dict() for one in of_task] for task, of_task in found.items()}
    return [f"published: {one.line(task)}" for task, of_task in found.items() for one in of_task]


def _about_readings(result: RunScores) -> list[str]:
    """Return a sentence about each task whose answers are read in two ways."""
    found = []
    for one in result.tasks:
        options = getattr(one.task, "options", None)
        second = getattr(options, "second_reading", None)
        if second is not None and not one.task.control_of:
            own = [metric for metric in one.task.metrics if not metric.pipelines]
            found.append(second.line(one.task.name, own))
            names = {metric.name for metric in second.metrics(own)}
            found += [
                f"reading: {one.task.name}: {metric.metric} is withheld: {metric.withheld_reason}"
                for metric in one.metrics
                if metric.metric in names and metric.withheld_reason
            ]
    return found


def _over_prompts(config: RunConfig, result: RunScores, store: RunStore, document: dict[str, Any]) -> list[str]:
    """Add the scores over variants of the prompt to the document, and return sentences about them."""
    if not config.prompt_variants:
        return []
    from lmms_eval.results.prompts import prompt_findings, prompt_lines

    found = prompt_findings(result.tasks, store, parse_variants(config.prompt_variants).has_own)
    document["prompt_variants"] = {name: one.as_dict() for name, one in found.items()}
    return prompt_lines(found)


def _about_judge(config: RunConfig, result: RunScores, store: RunStore, document: dict[str, Any]) -> list[str]:
    """Add human scores and biases of the judge to the document, and return sentences about them."""
    if not any(one.task.is_judged for one in result.tasks):
        return []
    from lmms_eval.results.human import human_findings
    from lmms_eval.results.judge_bias import bias_lines, judge_biases

    found, without = human_findings(Path(config.human_scores), result.tasks, store) if config.human_scores else ({}, [])
    if found:
        document["human_scores"] = {name: one.as_dict() for name, one in found.items()}
    if biases := judge_biases(result.tasks, store, found):
        document["judge_bias"] = biases
    lines = [*(one.line(name) for name, one in found.items()), *without]
    return [*lines, *bias_lines(biases, only_clear=True)]


def _exit_code(config: RunConfig, result: RunScores) -> int:
    if result.asking.interrupted is not None:
        return 128 + result.asking.interrupted
    if result.broken:
        return BROKEN
    # With --max_restarts, a launcher would restart the run against a dead server again and again. The state is in the
    # results anyway.
    return WITHHELD if result.state == "withheld" and not config.max_restarts else 0


def _paired(
    config: RunConfig, collected: Collected, result: RunScores, store: RunStore
) -> dict[str, dict[str, PairedScores]]:
    if not collected.baselines:
        return {}
    from lmms_eval.compare.baseline import compare_baseline  # with the readers of all formats

    named = str(config.baseline)
    presets = () if Path(named).exists() else (named.partition(":")[0],)  # if it is not a file, it names a preset
    shown = baseline_display_name(named, presets)
    found = {}
    for task in result.tasks:
        file = collected.baselines.get(task.task.name)
        if file is None:
            continue
        try:
            scores = compare_baseline(task, store, file, shown)
        except DataError as error:  # the run's own numbers do not depend on the baseline
            logger.warning("{}: not compared with --baseline: {}", task.task.name, error)
            continue
        if scores:
            found[task.task.name] = scores
        else:
            logger.warning("{}: no metric has numbers of two shared documents here and in --baseline", task.task.name)
    return found


def _facts(config: RunConfig, collected: Collected, record: RunRecord, result: RunScores, start: Start) -> RunFacts:
    git, judge = git_state(), collected.judge
    return RunFacts(
        config=config,
        model_backend=collected.choice.backend,
        command=start.command,
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
        model_asked=str(collected.model.identity().get("model", "")),
        cache=cache_part(config, result.asking.cache),
        judge={} if judge is None else judge_part(judge.describe(), result.tasks, result.asking),
        tariffs=collected.tariffs,
        requests=effective_requests(collected.model, collected.plans),
        ignored=collected.ignored,
        recipe={} if collected.recipe is None else collected.recipe.as_record(),
    )


FOLDER = "trackers"
"""Folder in the run's folder, for the results document and small pictures while trackers receive them."""


class RunTrackers(Struct, frozen=True):
    """Sends a run's numbers and files to its trackers."""

    session: Session
    config: RunConfig
    record: RunRecord
    is_first: bool = True

    def follow(self, progress: ProgressLine) -> None:
        """Send live numbers, from the first process, and the requests of this one. Other processes only count."""
        if self.is_first or self.config.otlp:
            self.session.follow(progress)

    def on_call(self, role: Role) -> Callable[[Request, Response], None] | None:
        """Return the function that receives the requests to the model or to the judge; ``None`` if no tracker does."""
        if not self.config.otlp:
            return None
        from lmms_eval.trackers.content import call_of

        note, with_texts = self.session.note_call, self.config.otlp_content
        return lambda request, response: note(call_of(role, request, response, with_texts))

    def leave(self, grace_s: float) -> None:
        """Send the rest of a process whose numbers the first process sends."""
        from lmms_eval.trackers.contract import RunEnding

        self.session.end(RunEnding("ended"), grace_s)

    @property
    def folder(self) -> Path:
        return self.record.folder.path / FOLDER

    def finish(self, report: RunReport, result: RunScores, store: RunStore, grace_s: float) -> RunReport:
        """Send the results to the trackers, wait for them, and add their outcome to the results.

        ``grace_s``: seconds that the trackers may take after a signal. Raises ``JournalError`` if the results file
        cannot be written again.
        """
        from lmms_eval.trackers.content import results_of
        from lmms_eval.trackers.contract import RunEnding
        from lmms_eval.trackers.session import report_lines, report_part

        documents = sum(len(task.doc_ids) - task.outcome.not_asked for task in result.tasks)
        self.session.stop()
        names = {one.name for one in named_destinations(self.config)}
        try:
            self.folder.mkdir(exist_ok=True)
            results = results_of(report.results, documents, str(self._results_file(report.results)))
            self.session.send(results, names)
            self._send_files(result.tasks, documents)
            with_samples = {
                one.name
                for one in named_destinations(self.config)
                if one.samples_option and getattr(self.config, one.samples_option)
            }
            if with_samples:
                self._send_samples(with_samples, result.tasks, store, documents)
        except Exception as error:  # noqa: BLE001 - a fault in a task's samples must not spoil the results
            self.session.fail(f"{type(error).__name__}: {error}", names)
        ending = RunEnding(result.state, has_succeeded=result.state in ("complete", "stopped early"))
        reports = self.session.end(ending, grace_s, result.asking.interrupted)
        shutil.rmtree(self.folder, ignore_errors=True)
        document = {**report.results, "trackers": report_part(reports)}
        if self.record.files is not None:
            write_atomically(self.record.files.results, json_text(document, indent=2).encode("utf-8", "replace"))
        return replace(report, results=document, lines=[*report.lines, *report_lines(reports)])

    def _results_file(self, document: Mapping[str, Any]) -> Path:
        if self.record.files is not None:
            return self.record.files.results.absolute()
        file = self.folder / "results.json"
        file.write_bytes(json_text(document, indent=2).encode("utf-8", "replace"))
        return file.absolute()

    def _send_files(self, tasks: Sequence[TaskResult], documents: int) -> None:
        """Send the paths of the samples files to the hub, which uploads them whole."""
        from lmms_eval.trackers.contract import TaskSamples

        if not destination_arguments(HUB, self.config.hf_hub_log_args).get("push_samples_to_hub"):
            return
        for task in tasks:
            if file := self._samples_file(task.task.name):
                self.session.send(TaskSamples(task.task.name, documents, (), (), file=file), {HUB.name})

    def _samples_file(self, task: str) -> str:
        """Return the path of a task's samples file, or an empty text if it was not written."""
        files = self.record.files
        path = None if files is None or not self.config.log_samples else files.samples(task).absolute()
        return str(path) if path is not None and path.is_file() else ""

    def _send_samples(self, names: set[str], tasks: Sequence[TaskResult], store: RunStore, documents: int) -> None:
        from lmms_eval.trackers.content import TrackedSamples, limits_of, task_samples
        from lmms_eval.viewer.media import MediaStore

        files = self.record.files
        folders = [self.folder.parent, *([] if files is None else [files.results.parent])]
        media = MediaStore(self.folder / "media", "thumbnails")
        try:
            for task in tasks:
                found = TrackedSamples(
                    task.task.name,
                    task.doc_ids,
                    tuple(metric.name for metric in task.task.metrics),
                    lambda doc_ids, task=task.task: sample_rows(task, store, doc_ids),
                    self._samples_file(task.task.name),
                )
                self.session.send(task_samples(found, documents, media, folders, limits_of(len(tasks))), names)
        finally:
            media.close()


def begin_tracking(
    config: RunConfig, collected: Collected, record: RunRecord, opened: ExitStack, rank: int
) -> RunTrackers:
    """Start the trackers that the options name.

    Args:
        config: the options.
        collected: the models.
        record: the run's record.
        opened: closes the trackers.
        rank: number of this process. The first one sends to all trackers, the others only their requests.
    """
    from lmms_eval.trackers.session import Session

    session, is_first = Session(), rank == 0
    opened.callback(session.close)
    if config.otlp:
        note_secrets(header_secrets(os.environ))
    if is_first and destination_arguments(HUB, config.hf_hub_log_args).get("hub_repo_name"):
        logger.warning("--hf_hub_log_args: hub_repo_name is deprecated: give details_repo_name and results_repo_name")
    for one in named_destinations(config):
        if is_first or one is OTLP:
            beginning = _beginning(config, one, record)
            if one is OTLP:
                beginning = structs.replace(beginning, asked=_asked(config, collected), rank=rank, began=time.time())
            session.begin(one, beginning)
    return RunTrackers(session, config, record, is_first)


def _asked(config: RunConfig, collected: Collected) -> dict[Role, AskedModel]:
    from lmms_eval.trackers.contract import AskedModel

    named = collected.model.identity().get("model") or model_name_from_args(argument_text(config.model_args))
    asked: dict[Role, AskedModel] = {"model": AskedModel(config.model, str(redact(str(named or ""))))}
    if collected.judge is not None:
        asked["judge"] = AskedModel(collected.judge.provider, collected.judge.name)
    return asked


def header_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the values of the headers that OpenTelemetry's variables give, plain and URL-encoded."""
    found = []
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"):
        for pair in environment.get(name, "").split(","):
            value = pair.partition("=")[2].strip()
            found += [part for form in (value, unquote(value)) for part in (form, form.rpartition(" ")[2])]
    return [value for value in found if len(value) >= LEAST_KNOWN]


def _beginning(config: RunConfig, destination: Destination, record: RunRecord) -> Beginning:
    from lmms_eval.trackers.content import run_name
    from lmms_eval.trackers.contract import Beginning
    from lmms_eval.trackers.session import run_id

    arguments: Mapping[str, Any] = destination_arguments(destination, getattr(config, destination.option))
    return Beginning(
        arguments=arguments,
        run_id=run_id(record.key, record.date),
        name=run_name(
            config.model, argument_text(config.model_args), str(record.content.get("stamp") or record.date[:19])
        ),
        config={"cli_configs": resolved_cli_args(config), "run_key": record.key},
        is_continued=int(record.content.get("starts", 1)) > 1,
        model=sanitize_model_name(model_name_from_args(argument_text(config.model_args))),
    )
