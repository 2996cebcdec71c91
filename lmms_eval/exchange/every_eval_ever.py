"""Writing of Every Eval Ever records: ``{uuid}.json`` for each selected task or group, with ``{uuid}_samples.jsonl``.

Format: Every Eval Ever (arXiv 2606.14516), schemas 0.3.0.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, field

from lmms_eval.compare.readers.harness_runs import rows_of
from lmms_eval.compare.runs import MetricColumn, RunRows
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.exchange.eee_samples import SCHEMA_VERSION, BestScore, Lines, Result, encoded
from lmms_eval.exchange.numbers import ReportedNumber, ReportedNumbers, ended, numbers_of, started
from lmms_eval.exchange.origins import DataSource, ModelFacts, RequestOptions, folder_name, judge_texts, recipe_facts
from lmms_eval.metrics.table import METRICS
from lmms_eval.results.facts import leaves_of, part_of
from lmms_eval.results.run import Choice, Run
from lmms_eval.results.sample import json_cell
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.numbers import ScoreRange

UNKNOWN = "unknown"
_PERCENT = 100


class Source(Struct, frozen=True):
    """Facts about the provider of records, which a run cannot know."""

    organization: str = UNKNOWN
    relationship: str = "other"
    """Evaluator and model: ``first_party``, ``third_party``, ``collaborative`` or ``other``."""
    developer: str = ""
    """Developer of the model; empty for the one that the model's name states."""


class WrittenRecord(Struct, frozen=True):
    """A record that was written."""

    record: Path
    results: int
    samples: Path | None = None
    rows: int = 0


class Export(Struct):
    """Files that an export wrote, and sentences about what the format cannot hold."""

    records: list[WrittenRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def export_records(run: Run, folder: Path, source: Source, tasks: Sequence[str] = ()) -> Export:
    """Write the records of a run below ``FOLDER/data/BENCHMARK/DEVELOPER/MODEL``.

    The same run gives the same files, whenever it is exported. A withheld number is in no record.

    Args:
        run: a run with results.
        folder: the folder that gets ``data``.
        source: who provides the records.
        tasks: only these selected tasks and groups; empty for all.

    Raises:
        DataError: a sample cannot be read.
        LmmsEvalError: a file cannot be written.
        UsageError: the run has no results, or no such task.
    """
    if not run.document:
        raise UsageError(f"{run.source}: no results yet, only a record holds its numbers; continue the run first")
    found = {numbers.name: numbers for numbers in numbers_of(run.document)}
    if missing := [name for name in tasks if name not in found]:
        raise UsageError(f"{run.source}: {missing[0]} was not selected by itself; there are: {', '.join(found)}")
    export = Export()
    maker = RecordMaker(run, source)
    if not maker.model.developer:
        export.notes.append(
            f"the developer of {maker.model.name} is not known, so readers find the records less easily (--developer)"
        )
    for numbers in found.values():
        if tasks and numbers.name not in tasks:
            continue
        export.notes += [f"withheld, so in no record: {text}" for text in numbers.withheld]
        if numbers.shown:
            try:
                export.records.append(_write(maker, numbers, folder, export.notes))
            except OSError as error:
                raise LmmsEvalError(f"cannot write into {folder}: {error.strerror or error}") from error
    return export


class RecordMaker:
    """Builds the records of one run."""

    def __init__(self, run: Run, source: Source) -> None:
        self.run, self.source, self.document = run, source, run.document
        self.model, self.judge = ModelFacts.of(run.document, source.developer), ModelFacts.of_judge(run.document)
        moment = ended(run.document)
        self.retrieved = str(int(moment.timestamp() if moment is not None else run.source.stat().st_mtime))
        self._rows: RunRows | None = None

    @property
    def rows(self) -> RunRows:
        """The numbers of the documents, with their ranges."""
        if self._rows is None:
            self._rows = rows_of(self.run, keeps_rest=True)
        return self._rows

    def uuid(self, name: str) -> uuid.UUID:
        """Return the id of a record: a hash of what identifies the run, in the form of a random UUID."""
        identity = [self.document.get("run_key"), self.document.get("date"), self.model.id, self.retrieved, name]
        return uuid.UUID(bytes=hashlib.sha256(json_cell(identity).encode()).digest()[:16], version=4)

    def evaluation_id(self, name: str) -> str:
        return f"{name}/{self.model.id}/{self.retrieved}"

    def results(self, numbers: ReportedNumbers) -> list[Result]:
        """Return the numbers with what samples need to know about them."""
        return [
            Result(number, f"{number.task}/{number.key}", self._scale(number), self._choices(number.task))
            for number in numbers.shown
        ]

    def column(self, number: ReportedNumber) -> MetricColumn | None:
        """Return the documents' numbers of a metric; ``None`` if the run has none."""
        task = self.rows.tasks.get(number.task) if number.task in self.run.tasks else None
        return None if task is None else task.columns.get(number.key)

    def _scale(self, number: ReportedNumber) -> BestScore:
        column = self.column(number)
        scores = [] if column is None else [score for score in column.scores.tolist() if not math.isnan(score)]
        within = None if column is None else column.score_range
        return BestScore.of(within, number.higher_is_better, scores)

    def _choices(self, task: str) -> str:
        stated = part_of(part_of(self.document, "configs", task), "choices").get("options")
        return stated if isinstance(stated, str) else ""

    def record(self, numbers: ReportedNumbers, results: Sequence[Result], lines: Lines | None) -> dict[str, Any]:
        """Return the record, without the reference to its samples."""
        document = self.document
        begin = started(document)
        versions = part_of(document, "library_versions")
        details = {
            "git_commit": document.get("git_hash"),
            "prompt_fingerprint": document.get("prompt_fingerprint"),
            "run_key": document.get("run_key"),
            "state": document.get("state"),
            "system_instruction_sha256": document.get("system_instruction_sha"),
        }
        record = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.evaluation_id(numbers.name),
            "retrieved_timestamp": self.retrieved,
            "source_metadata": {
                "source_name": "lmms_eval",
                "source_type": "evaluation_run",
                "source_organization_name": self.source.organization,
                "evaluator_relationship": self.source.relationship,
            },
            "eval_library": {
                "name": "lmms_eval",
                "version": str(versions.get("lmms_eval") or UNKNOWN),
                "additional_details": {name: str(text) for name, text in details.items() if text},
            },
            "model_info": model_info(self.model),
            "evaluation_results": [self._entry(result, lines) for result in results],
        }
        if begin is not None:
            record["evaluation_timestamp"] = begin.isoformat()
        return record

    def _entry(self, result: Result, lines: Lines | None) -> dict[str, Any]:
        number = result.number
        reasons = lines is not None and number.task in lines.reasoned
        return {
            "evaluation_result_id": result.id,
            "evaluation_name": number.task,
            "source_data": self._source_data(number.task),
            "metric_config": self._metric(number),
            "score_details": self._score(number),
            "generation_config": self._generation(number.task, reasons),
        }

    def _source_data(self, name: str) -> dict[str, Any]:
        if name not in part_of(self.document, "configs"):
            return {
                "dataset_name": name,
                "source_type": "other",
                "additional_details": {"tasks": ", ".join(leaves_of(self.document, name)) or name},
            }
        source = DataSource.of(self.document, name)
        kind: dict[str, Any] = {"dataset_name": source.repository or name, "source_type": "other"}
        if source.repository:
            kind |= {"source_type": "hf_dataset", "hf_repo": source.repository}
            if source.split:
                kind["hf_split"] = source.split
            if source.documents is not None:
                kind["samples_number"] = source.documents
        return kind | ({"additional_details": source.facts()} if source.facts() else {})

    def _metric(self, number: ReportedNumber) -> dict[str, Any]:
        is_general = number.metric in METRICS
        found: dict[str, Any] = {
            "metric_id": number.metric if is_general else f"{number.task}.{number.metric}",
            "metric_name": number.name,
            "lower_is_better": number.higher_is_better is False,
            **_range(number.score_range),
        }
        if is_general:
            found["metric_kind"] = number.metric
        if number.unit:
            found["metric_unit"] = number.unit
        if number.filter not in ("none", ""):
            found["metric_parameters"] = {"filter": number.filter}
        if number.higher_is_better is None:
            found["additional_details"] = {"lower_is_better": "the task states no direction"}
        if (scoring := self._judging(number.task)) is not None:
            found["llm_scoring"] = scoring
        return found

    def _judging(self, task: str) -> dict[str, Any] | None:
        part = part_of(self.document, "judge")
        if self.judge is None or task not in part_of(part, "by_task"):
            return None
        prints = [f"{name} {digest}" for name, digest in judge_texts(self.document, task).items()]
        stated = f"SHA-256 of its texts begins with: {', '.join(prints)}" if prints else "no fingerprint is recorded"
        counts = part_of(part_of(part, "by_task"), task)
        options = part_of(self.document, "config")
        repeats = part_of(options, "resolved_cli_args").get("judge_repeats")
        details = {**{name: str(value) for name, value in counts.items()}, "repeats": str(repeats or 1)}
        return {
            "judges": [{"model_info": model_info(self.judge)}],
            "input_prompt": f"not part of the results; {stated}",
            "additional_details": details,
        }

    def _score(self, number: ReportedNumber) -> dict[str, Any]:
        details, column = dict(number.marks), self.column(number)
        if number.n is not None:
            details["documents"] = str(number.n)
        if number.estimand:
            details["interval_is_about"] = number.estimand
        if number.low is None and number.method:
            details["no_interval"] = number.method
        clusters = part_of(self.document, "clusters", number.task)
        if clusters.get("by") not in (None, "none"):
            details["clusters"] = f"{clusters.get('count')} by {clusters.get('by')}"
        if column is not None and column.scale != 1:
            mean = "100 times the mean" if column.scale == _PERCENT else "not known to be the mean"
            details["aggregation"] = f"{mean} of the documents' scores"
        parts = {"details": details, "uncertainty": _uncertainty(number, column)}
        return {"score": number.value, **{name: part for name, part in parts.items() if part}}

    def _generation(self, task: str, reasons: bool) -> dict[str, Any]:
        config, sampling = part_of(self.document, "configs", task), RequestOptions.of(self.document, task)
        arguments: dict[str, Any] = {name: number for name in ("temperature", "top_p", "top_k")
                                     if (number := sampling.number(name)) is not None}  # fmt: skip
        if sampling.max_tokens is not None:
            arguments["max_tokens"] = sampling.max_tokens
        if self.run.command:
            arguments["execution_command"] = self.run.command
        if reasons:
            arguments["reasoning"] = True
        template = config.get("doc_to_text")
        if isinstance(template, str) and not template.startswith("<function"):
            arguments["prompt_template"] = template
        recipe = {f"recipe.{name}": text for name, text in recipe_facts(self.document).items()}
        details = {**sampling.others(), **recipe}
        for name, value in (
            ("num_fewshot", part_of(self.document, "n-shot").get(task)),
            ("repeats", config.get("repeats")),
            ("task_version", part_of(self.document, "versions").get(task)),
            ("request_sha256", part_of(self.document, "effective_requests", task).get("sha256")),
        ):
            if value is not None:
                details[name] = str(value)
        found: dict[str, Any] = {"generation_args": arguments} if arguments else {}
        return found | ({"additional_details": details} if details else {})


def model_info(model: ModelFacts) -> dict[str, Any]:
    """Return a model in the form of the format."""
    found: dict[str, Any] = {
        "name": model.name,
        "id": model.id,
        "developer": model.developer or UNKNOWN,
        "additional_details": {
            **model.details,
            "deployment_type": model.deployment,
            "model_availability": UNKNOWN,
        },
    }
    if model.platform:
        found["inference_platform"] = model.platform
    if model.engine:
        version = {"version": model.engine_version} if model.engine_version else {}
        found["inference_engine"] = {"name": model.engine, **version}
    return found


def _range(within: ScoreRange | None) -> dict[str, Any]:
    """Return the range of a metric, with texts for ends at infinity; empty if it is not known."""
    if within is None:
        return {}
    low = within.low if math.isfinite(within.low) else "-Infinity"
    high = within.high if math.isfinite(within.high) else "Infinity"
    return {"score_type": "continuous", "min_score": low, "max_score": high}


def _uncertainty(number: ReportedNumber, column: MetricColumn | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if number.error is not None:
        method = {"method": number.error_method} if number.error_method else {}
        found["standard_error"] = {"value": number.error, **method}
    if number.low is not None and number.high is not None:
        found["confidence_interval"] = {
            "lower": number.low,
            "upper": number.high,
            "confidence_level": number.level,
            "method": number.method or UNKNOWN,
        }
    if column is not None and column.scale == 1:
        known = [score for score in column.scores.tolist() if not math.isnan(score)]
        if len(known) > 1:
            found["standard_deviation"] = _deviation(known)
    return found | ({"num_samples": number.n} if number.n is not None and found else {})


def _deviation(scores: Sequence[float]) -> float:
    mean = math.fsum(scores) / len(scores)
    return math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1))


def _write(maker: RecordMaker, numbers: ReportedNumbers, folder: Path, notes: list[str]) -> WrittenRecord:
    """Write one record and its samples; both are put in place together."""
    name = str(maker.uuid(numbers.name))
    parts = [folder_name(part) for part in (numbers.name, maker.model.developer, maker.model.short)]
    place = Path("data", *parts)
    results = maker.results(numbers)
    lines = Lines(maker.evaluation_id(numbers.name), maker.model.id)
    samples, path = place / f"{name}_samples.jsonl", folder / place / f"{name}.json"
    with_lines = [result for result in results if _has_lines(maker, result, notes)]
    with ExitStack() as opened:
        file = opened.enter_context(replacing(path))
        written = _File(opened.enter_context(replacing(folder / samples))) if with_lines else None
        if written is not None:
            for line in _sample_lines(maker.run, with_lines, lines):
                written.add(line)
        record = maker.record(numbers, results, lines)
        if written is not None:
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": samples.as_posix(),
                "hash_algorithm": "sha256",
                "checksum": written.digest.hexdigest(),
                "total_rows": written.rows,
            }
        file.write(encoded(record) + b"\n")
    notes += [
        f"{reason}: {count} have no line, since the format needs a score" for reason, count in lines.left_out.items()
    ]
    if written is None:
        return WrittenRecord(path, len(results))
    return WrittenRecord(path, len(results), folder / samples, written.rows)


class _File:
    """A file of lines with its checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest, self.rows = file, hashlib.sha256(), 0

    def add(self, line: bytes) -> None:
        self.file.write(line)
        self.digest.update(line)
        self.rows += 1


def _has_lines(maker: RecordMaker, result: Result, notes: list[str]) -> bool:
    """Return whether the samples of a number can have lines, which must state whether each answer is correct."""
    number = result.number
    column = maker.column(number)
    if column is None:
        return False
    if all(math.isnan(score) for score in column.scores.tolist()):
        notes.append(f"{number.task} {number.name}: without lines of samples, since their values are not numbers")
        return False
    if result.scale.best is None:
        notes.append(f"{number.task} {number.name}: without lines of samples, since no score is known to be correct")
        return False
    return True


def _sample_lines(run: Run, results: Sequence[Result], lines: Lines) -> Iterator[bytes]:
    """Yield the lines of all samples of the tasks of these results."""
    of_task: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        of_task.setdefault(result.number.task, {}).setdefault(result.number.filter, []).append(result)
    for task, by_filter in of_task.items():
        for sample in run.task(task).samples(Choice()):
            yield from lines.of(sample, by_filter.get(sample.filter or "none", ()))
