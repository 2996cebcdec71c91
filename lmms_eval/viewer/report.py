"""Reports: runs as a folder, or a file, that opens from disk in any browser."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.compare.readers import unique_names
from lmms_eval.errors import UsageError
from lmms_eval.viewer.chunks import Chunks, FolderChunks, PageChunks, forget_others, write_file
from lmms_eval.viewer.distributions import histogram
from lmms_eval.viewer.media import MediaStore
from lmms_eval.viewer.numbers import breakdowns, result_rows
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.page import SCRIPT, STYLE, bundle, folder_page, single_page
from lmms_eval.viewer.runs import ReportRun, read_report_runs
from lmms_eval.viewer.samples import PER_INDEX, PER_TEXT, TaskFacts, TaskWriter, redacted
from lmms_eval.viewer.warnings import outcome_counts, warnings

PAGE, DATA, MEDIA = "index.html", "data", "media"


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written."""

    page: Path
    runs: int
    samples: int
    missing_media: int
    problems: tuple[str, ...]
    """Sentences about what could not be read."""


def write_report(paths: Sequence[str], out: Path, options: ReportOptions) -> Report:
    """Write a report of runs.

    Args:
        paths: folders and files of runs, of any format that ``compare`` reads.
        out: folder to write to; with ``options.single_file`` the file. What an earlier report left there is replaced.

    Raises:
        DataError: a path holds no run.
        UsageError: ``out`` is a folder of something else.
        LmmsEvalError: a file cannot be written.
    """
    _check_place(out, options)
    runs = read_report_runs(paths)
    chunks = PageChunks() if options.single_file else FolderChunks(out / DATA)
    media = MediaStore(None if options.single_file else out / MEDIA, options.media)
    try:
        written = _write_runs(runs, chunks, options, media)
    finally:
        media.close()
    if isinstance(chunks, PageChunks):
        page = out
        write_file(page, single_page(chunks.texts).encode())
    else:
        page = out / PAGE
        for name in (SCRIPT, STYLE):
            write_file(out / name, bundle(name).encode())
        write_file(page, folder_page().encode())
        forget_others(out / DATA, chunks.names)
        forget_others(out / MEDIA, media.names)
    return Report(page, len(runs), written.samples, media.missing, tuple(written.problems))


@dataclass(frozen=True, slots=True)
class _Written:
    samples: int
    problems: list[str]


def _check_place(out: Path, options: ReportOptions) -> None:
    if options.single_file:
        if out.is_dir():
            raise UsageError(f"{out} is a folder: with --single_file give --out the name of a file")
    elif out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / PAGE).is_file()):
        raise UsageError(f"{out} holds something else than a report: give --out another name")


def _write_runs(runs: Sequence[ReportRun], chunks: Chunks, options: ReportOptions, media: MediaStore) -> _Written:
    entries, samples, problems = [], 0, []
    names = unique_names([run.rows for run in runs])
    for number, (run, name) in enumerate(zip(runs, names, strict=True)):
        tasks: list[dict[str, Any]] = []
        details: dict[str, Any] = {}
        torn: list[str] = []
        for place, task in enumerate(run.rows.tasks.values()):
            writer = TaskWriter(run, task, f"{number}-{place}", options, media)
            facts = writer.write(chunks)
            torn += writer.problems[:1]
            samples += len(facts.rows)
            tasks.append(_task_entry(run, task.task, writer.key, facts))
            details[task.task] = _task_details(run, task.task, facts, options)
        rows = result_rows(run)
        problems += [*run.problems, *torn]
        entry = _run_entry(run, number, name, rows) | {"tasks": tasks}
        entry["warnings"] = [*({"kind": "problem", "task": "", "text": text} for text in torn), *entry["warnings"]]
        entries.append(redacted(entry, options.redact))
        document = {key: value for key, value in run.document.items() if key not in ("results", "intervals")}
        chunks.write(
            f"run-{number}",
            redacted({"tasks": details, "document": document, "state": dict(run.state)}, options.redact),
        )
    chunks.write("runs", {"written": time.time(), "runs": entries, "options": _told(options)})
    return _Written(samples, problems)


def _task_entry(run: ReportRun, task: str, key: str, facts: TaskFacts) -> dict[str, Any]:
    count = len(facts.rows)
    return {
        "name": task,
        "key": key,
        "samples": count,
        "index_parts": max(1, -(-count // PER_INDEX)),
        "per_index": PER_INDEX,
        "per_text": PER_TEXT,
        "outcomes": outcome_counts(run, task),
    }


def _task_details(run: ReportRun, task: str, facts: TaskFacts, options: ReportOptions) -> dict[str, Any]:
    rows = run.rows.tasks[task]
    metadata = facts.metadata
    if len(facts.rows) < len(rows.ids):  # samples were left out of the report, not of the numbers
        metadata = {name: values for name, values in rows.metadata().items() if name not in options.redact}
    return {
        "breakdowns": breakdowns(run, rows, metadata),
        "latency": histogram(facts.latencies),
        "tokens_in": histogram(facts.tokens_in),
        "tokens_out": histogram(facts.tokens_out),
        "finish": dict(Counter(facts.finish)),
        "reasons": dict(Counter(reason for reason in facts.reasons if reason).most_common(20)),
    }


def _run_entry(run: ReportRun, number: int, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    document, state = run.document, run.state
    config = document.get("config") if isinstance(document.get("config"), Mapping) else {}
    return {
        "number": number,
        "name": name,
        "source": run.rows.source,
        "kind": run.rows.kind,
        "model": document.get("model_name") or document.get("model_source") or run.rows.name,
        "model_args": (config or {}).get("model_args") or "",
        "date": document.get("date") or state.get("date") or "",
        "state": document.get("state") or state.get("state") or "",
        "usage": document.get("usage") or {},
        "timing": document.get("timing") or {},
        "seconds": document.get("total_evaluation_time_seconds"),
        "command": state.get("command") or "",
        "rows": list(rows),
        "groups": {group: list(leaves) for group, leaves in run.rows.groups.items()},
        "warnings": warnings(run, rows),
        "notes": list(run.rows.notes),
    }


def _told(options: ReportOptions) -> dict[str, Any]:
    return {
        "media": options.media,
        "only_failed": options.only_failed,
        "limit": options.limit,
        "redact": sorted(options.redact),
        "single_file": options.single_file,
    }
