"""Writes reports: runs as a folder or a file that opens from disk in any browser."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.readers import unique_names
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.viewer.certainty import certainty
from lmms_eval.viewer.chunks import Chunks, FolderChunks, PageChunks, delete_others, write_file
from lmms_eval.viewer.comparison import ComparisonWriter
from lmms_eval.viewer.media import MediaStore
from lmms_eval.viewer.numbers import (
    breakdowns,
    counted,
    distributions,
    headlines,
    outcome_counts,
    result_rows,
    warning,
    warnings,
)
from lmms_eval.viewer.page import (
    PAGE,
    SCRIPT,
    STYLE,
    ReportOptions,
    bundle,
    check_place,
    folder_page,
    single_page,
    writing_alone,
)
from lmms_eval.viewer.runs import ReportRun, read_report_runs
from lmms_eval.viewer.samples import PER_TEXT, IndexedTask, TaskWriter, check_columns, choosing_options, redacted

DATA, MEDIA = "data", "media"


class WrittenReport(Struct, frozen=True):
    """A written report."""

    page: Path
    runs: int
    samples: int
    missing_media: int
    problems: tuple[str, ...]
    """Sentences about things that could not be read."""


def write_report(
    paths: Sequence[str], out: Path, options: ReportOptions, before_piece: Callable[[], None] | None = None
) -> WrittenReport:
    """Write a report of runs.

    Args:
        paths: folders and files of runs, of any format that ``compare`` reads.
        out: the folder to write to, or the file with ``options.single_file``. An earlier report there is replaced, but
            its thumbnails are kept if their sources are unchanged.
        options: the contents of the report.
        before_piece: called before each piece of a folder. It may raise to end the writing.

    Raises:
        DataError: a path holds no run.
        UsageError: ``out`` is something else than a report, or another process is writing it.
        LmmsEvalError: a file cannot be written.
    """
    check_place(out, options.single_file)
    runs = check_columns(read_report_runs(paths, options.allowed), options.choice.where)
    command = shlex.join(["lmms-eval", "report", *paths, "--out", str(out)])
    if not options.single_file:
        with writing_alone(out):
            return _write_folder(runs, out, options, command, before_piece or (lambda: None))
    chunks, media = PageChunks(), MediaStore(None, options.media)
    with closing(media):
        samples, problems = _write_runs(runs, chunks, options, media, command)
    write_file(out, single_page(chunks.texts).encode())
    return WrittenReport(out, len(runs), samples, media.missing, tuple(problems))


def _write_folder(
    runs: Sequence[ReportRun], out: Path, options: ReportOptions, command: str, before_piece: Callable[[], None]
) -> WrittenReport:
    # The page comes first, so that an interrupted writing leaves a folder that is recognised as a report.
    write_file(out / PAGE, folder_page().encode())
    for name in (SCRIPT, STYLE):
        write_file(out / name, bundle(name).encode())
    chunks, media = FolderChunks(out / DATA, before_piece), MediaStore(out / MEDIA, options.media)
    with closing(media):
        samples, problems = _write_runs(runs, chunks, options, media, command)
    delete_others(out / DATA, chunks.names)
    delete_others(out / MEDIA, media.names)
    return WrittenReport(out / PAGE, len(runs), samples, media.missing, tuple(problems))


def _unfinished(run: ReportRun, command: str) -> list[dict[str, str]]:
    """Return a warning on the page of an unfinished run, which also says how to renew the page."""
    if run.document or run.state.get("state") not in ("running", "interrupted", "failed"):
        return []
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    text = f"unfinished: this is what was there at {now}; `{command}` writes these pages again"
    return [warning("state", "", text)]


def _write_runs(
    runs: Sequence[ReportRun], chunks: Chunks, options: ReportOptions, media: MediaStore, command: str
) -> tuple[int, list[str]]:
    """Write the pieces of all runs. Returns the number of samples, and sentences about problems."""
    entries, samples, problems = [], 0, []
    names = unique_names([run.rows for run in runs])
    shown: list[list[Sequence[int]]] = []
    divides: set[str] = set()
    for number, (run, name) in enumerate(zip(runs, names, strict=True)):
        tasks: list[dict[str, Any]] = []
        shown.append([])
        torn: list[str] = []
        written: dict[str, IndexedTask] = {}
        for place, task in enumerate(run.rows.tasks.values()):
            writer = TaskWriter(run, task, f"{number}-{place}", options, media)
            facts = writer.write(chunks)
            torn += writer.problems[:1]
            shown[-1].append(facts.rows)
            samples += len(facts.rows)
            written[task.task] = facts
            divides |= {name for name, values in facts.metadata.items() if REDACTED not in values}
            tasks.append(task_entry(writer, len(facts.rows)))
        rows = result_rows(run)
        problems += [*run.problems, *torn]
        entry = run_entry(run, number, name, rows) | {"tasks": tasks}
        damage = [warning("problem", "", text) for text in torn]
        entry["warnings"] = [*_unfinished(run, command), *damage, *entry["warnings"]]
        entries.append(redacted(entry, options.redact))
        entry["selection"] = selection_entry(run, tasks, options)
        audits = [audit for facts in written.values() for audit in facts.audits]
        chunks.write(f"audit-{number}", redacted(audits, options.redact))
        chunks.write(f"run-{number}", run_details(run, written, options.redact))
    compared = []
    if options.compare and len(runs) > 1:
        rows_of = [replace(run.rows, name=name) for run, name in zip(runs, names, strict=True)]
        compared = ComparisonWriter(rows_of, shown, chunks, divides if options.redact else None).write()
    content = {"written": time.time(), "runs": entries, "compared": compared, "options": report_choices(options)}
    chunks.write("runs", content)
    return samples, problems


def task_entry(writer: TaskWriter, samples: int) -> dict[str, Any]:
    """Return the summary of a task. ``samples``: the number of samples that are shown."""
    return {
        "name": writer.task.task,
        "key": writer.key,
        "samples": samples,
        "per_text": PER_TEXT,
        "outcomes": outcome_counts(writer.run, writer.task.task),
        "verdicts": writer.verdicts,
    }


def run_details(
    run: ReportRun, facts: Mapping[str, IndexedTask], redact: frozenset[str], without_interval: str = ""
) -> dict[str, Any]:
    """Make the piece of a run: breakdowns and distributions of each task, the results document and the run's record.

    ``without_interval`` is the reason why parts have no interval.
    """
    found: dict[str, Any] = redacted(
        {
            "tasks": {
                task: {
                    "breakdowns": breakdowns(run, run.rows.tasks[task], of_task, without_interval),
                    **distributions([of_task]),
                    "finish": dict(Counter(of_task.finish)),
                    "reasons": dict(Counter(reason for reason in of_task.reasons if reason).most_common(20)),
                }
                for task, of_task in facts.items()
            },
            "all": distributions(list(facts.values())),
            "certainty": certainty(redacted(run.document, redact)),
            "document": {key: value for key, value in run.document.items() if key not in ("results", "intervals")},
            "state": dict(run.state),
        },
        redact,
    )
    return found


def run_entry(run: ReportRun, number: int, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the summary of a run, which the first page and its own page show, without its tasks."""
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
        "headlines": headlines(document),
        "counts": counted(document),
        "groups": {group: list(leaves) for group, leaves in run.rows.groups.items()},
        "warnings": warnings(run, rows),
        "notes": list(run.rows.notes),
    }


def selection_entry(run: ReportRun, tasks: Sequence[Mapping[str, Any]], options: ReportOptions) -> dict[str, Any]:
    """Return how samples were chosen, and how many."""
    of = sum(len(task.ids) for task in run.rows.tasks.values())
    return {"how": choosing_options(options), "shown": sum(task["samples"] for task in tasks), "of": of}


def report_choices(options: ReportOptions) -> dict[str, Any]:
    """Return the options of the report that the page shows."""
    return {
        "media": options.media,
        "chosen": choosing_options(options),
        "redact": sorted(options.redact),
        "single_file": options.single_file,
        "compare": options.compare,
    }
