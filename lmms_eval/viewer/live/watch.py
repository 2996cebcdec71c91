"""Follows the runs of a folder while they begin, continue and end."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loguru import logger
from msgspec.structs import replace

from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.facts import read_document
from lmms_eval.results.files import RUNS, STATE, ended_results, is_unfinished, read_state, results_date, run_mark
from lmms_eval.viewer.chunks import PageChunks, TaskIndex, chunk_text
from lmms_eval.viewer.comparison import ComparisonWriter
from lmms_eval.viewer.live.pieces import LazyMedia, PieceError, PieceName, index_piece, sample_piece
from lmms_eval.viewer.live.unfinished import Machine, UnfinishedRun
from lmms_eval.viewer.media import MediaStore
from lmms_eval.viewer.numbers import result_rows, warning
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import report_choices, run_details, run_entry, selection_entry, task_entry
from lmms_eval.viewer.runs import ReportRun, report_run
from lmms_eval.viewer.samples import IndexedTask, TaskWriter, redacted


class FinishedRun:
    """A run with results. It is thread-safe. Raises ``DataError`` if the results file cannot be read."""

    def __init__(self, path: Path, number: int, options: ReportOptions, media: LazyMedia) -> None:
        self.path, self.number, self._options, self._media = path, number, options, media
        self._run: ReportRun = report_run(path, options.allowed)
        self._lock = threading.Lock()
        self._writers = [
            TaskWriter(self._run, task, f"{number}-{place}", options, media)
            for place, task in enumerate(self._run.rows.tasks.values())
        ]
        self._indices: dict[int, TaskIndex] = {}

    @property
    def name(self) -> str:
        return self._run.rows.name

    @property
    def rows(self) -> RunRows:
        return self._run.rows

    def entry(self, name: str) -> dict[str, Any]:
        """Return the summary of the run, which the first page and its own page show."""
        entry = run_entry(self._run, self.number, name, result_rows(self._run))
        entry["tasks"] = [task_entry(writer, len(writer.task.ids)) for writer in self._writers]
        entry["selection"] = selection_entry(self._run, entry["tasks"], self._options)
        if not self.path.is_file():
            text = f"{self.path} was deleted or moved: what was read before is shown"
            entry["warnings"] = [warning("problem", "", text), *entry["warnings"]]
        found: dict[str, Any] = redacted(entry, self._options.redact)
        return found

    def piece(self, name: PieceName) -> Any:
        """Make a piece. Raises ``PieceError`` if the run has no piece of this name."""
        with self._lock:
            if name.kind == "run":
                facts = {writer.task.task: self._facts(place) for place, writer in enumerate(self._writers)}
                return run_details(self._run, facts, self._options.redact)
            if name.kind == "audit":
                audits = [audit for place in range(len(self._writers)) for audit in self._facts(place).audits]
                return redacted(audits, self._options.redact)
            if name.task >= len(self._writers):
                raise PieceError(name)
            writer = self._writers[name.task]
            if name.kind in ("text", "media"):
                return sample_piece(writer, len(writer.task.ids), name, self._media.store)
            return index_piece(self._index(name.task), name)

    def _facts(self, place: int) -> IndexedTask:
        self._index(place)
        return self._writers[place].facts(range(len(self._writers[place].task.ids)))

    def _index(self, place: int) -> TaskIndex:
        """Return the index of a task. The first call reads all samples of the task."""
        if place not in self._indices:
            writer = self._writers[place]
            rows = range(len(writer.task.ids))
            for row in rows:
                writer.add(row)
            self._indices[place] = TaskIndex(writer.columns(rows))
        return self._indices[place]


_COMPARED = re.compile(r"of-((?:\d{1,9}-){2,5})((?:compare|pairs|parts)(?:-\d{1,9}){0,3})")
"""A piece of the comparison of two to five runs: their numbers, and its name in a report of these runs."""
_MOST_COMPARISONS = 8


class RunComparisons:
    """Compares runs with results when a page requests it, and keeps the latest comparisons. It is thread-safe."""

    def __init__(self, options: ReportOptions) -> None:
        self._divides: frozenset[str] | None = frozenset() if options.redact else None
        self._lock = threading.Lock()
        self._made: dict[tuple[FinishedRun, ...], Mapping[str, str]] = {}

    def piece(self, runs: Sequence[tuple[str, FinishedRun]], name: str) -> str | None:
        """Return a piece of the comparison of runs, which have unique names; ``None`` if it has no such piece."""
        key = tuple(run for _, run in runs)
        with self._lock:
            found = self._made.pop(key, None)
            self._made[key] = found = self._compare(runs) if found is None else found
            while len(self._made) > _MOST_COMPARISONS:
                del self._made[next(iter(self._made))]
        return found.get(name)

    def _compare(self, runs: Sequence[tuple[str, FinishedRun]]) -> Mapping[str, str]:
        chunks = PageChunks()
        shown = {run.number: [range(len(task.ids)) for task in run.rows.tasks.values()] for _, run in runs}
        rows = [replace(run.rows, name=name) for name, run in runs]
        ComparisonWriter(rows, shown, chunks, self._divides, [run.number for _, run in runs]).write()
        return chunks.texts


LOOK_EVERY_S, SHORT_REST_S = 1.0, 0.05
"""Seconds between two looks. The short one is used while journals that existed at the start are read."""
MOST_CHANGES = 20_000
"""Most names of changed pieces that are kept. A page that is further behind loads everything again."""


class _Seen(NamedTuple):
    """A run of the view. Its number and name never change."""

    run: UnfinishedRun | FinishedRun
    results: Path | None
    mark: tuple[Any, ...] = ()


class Watch:
    """Follows the runs of a folder in a thread, and makes the pieces that pages request.

    ``folder`` is an output folder, a model's folder in one, or the record of one run. Raises ``DataError`` if there is
    no such folder.
    """

    def __init__(self, folder: Path, options: ReportOptions) -> None:
        if not folder.is_dir():
            why = (
                "is not a folder: give the one that holds it"
                if folder.exists()
                else "no such folder: make it, or begin a run"
            )
            raise DataError(f"{folder}: {why}")
        self.folder, self._options = folder.absolute(), options
        self._scratch = Path(tempfile.mkdtemp(prefix="lmms-eval-view-"))
        self._media = LazyMedia(MediaStore(self._scratch / "media", options.media))
        self._comparisons = RunComparisons(options)
        self._machine = Machine()
        self._lock = threading.Lock()
        self._seen: dict[Path, _Seen] = {}
        """Runs by their records or, without a record, by their results files."""
        self._names: list[str] = []
        self._documents: dict[Path, tuple[tuple[int, int], str]] = {}
        self._changed: dict[str, int] = {}
        self._oldest = 0
        self.version = 1
        self.view = uuid.uuid4().hex
        """Random id of this start of the view."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)
        self._failure = ""
        self._problems: dict[Path, str] = {}
        """Problems by file that cannot be read."""

    def __enter__(self) -> Watch:
        self.look()
        self._machine.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._machine.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._media.store.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _follow(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S if self._is_read else SHORT_REST_S):
            try:
                self.look()
            except OSError as error:  # the folder was deleted, or a file system is unavailable for a while
                self._note({"runs"}, f"{self.folder} cannot be looked at: {error.strerror or error}")
            except Exception as error:  # noqa: BLE001 - a damaged run must not end the view of the others
                logger.opt(exception=error).debug("looking at the runs failed")
                self._note({"runs"}, f"a look at the runs failed: {type(error).__name__}: {error}")

    @property
    def _is_read(self) -> bool:
        runs = [seen.run for seen in [*self._seen.values()]]
        return all(run.is_read for run in runs if isinstance(run, UnfinishedRun))

    def look(self) -> None:
        """Find new runs, and read what was added since the last look."""
        known = dict(self._problems)
        changed = self._find_runs()
        if known != self._problems:
            changed.add("runs")
        for seen in [*self._seen.values()]:
            if isinstance(seen.run, UnfinishedRun):
                changed |= seen.run.look()
        self._note(changed, "" if self.folder.is_dir() else f"{self.folder} is gone: what was read before is shown")

    def _note(self, changed: set[str], failure: str) -> None:
        with self._lock:
            if failure != self._failure:
                self._failure = failure
                changed = changed | {"runs"}
            if not changed:
                return
            self.version += 1
            if "*" in changed or len(self._changed) + len(changed) > MOST_CHANGES:
                self._changed, self._oldest = {}, self.version
            self._changed.update(dict.fromkeys(changed - {"*"}, self.version))

    def changes(self, view: str, since: int) -> dict[str, Any]:
        """Return the ``names`` of the pieces that have changed since a version that a page has, ``*`` for all pieces.

        ``view`` and ``version`` are those for the next call.
        """
        with self._lock:
            is_known = view == self.view and self._oldest <= since <= self.version
            names = [name for name, version in self._changed.items() if version > since] if is_known else ["*"]
            return {"view": self.view, "version": self.version, "names": names}

    def piece(self, text: str) -> str:
        """Make a piece as JSON. Raises ``PieceError`` if there is no piece of this name."""
        if text == "runs":
            return chunk_text(text, self._runs())
        if (compared := _COMPARED.fullmatch(text)) is not None:
            return self._compared(text, [int(number) for number in compared[1].split("-")[:-1]], compared[2])
        name = PieceName.read(text)
        runs = [seen.run for seen in [*self._seen.values()]]
        run = None if name is None else next((run for run in runs if run.number == name.run), None)
        if name is None or run is None:
            raise PieceError(text)
        return chunk_text(text, run.piece(name))

    def _compared(self, text: str, numbers: Sequence[int], name: str) -> str:
        seen = {seen.run.number: seen.run for seen in [*self._seen.values()]}
        runs = [
            (self._names[number], run)
            for number in dict.fromkeys(numbers)
            if isinstance(run := seen.get(number), FinishedRun)
        ]
        found = self._comparisons.piece(runs, name) if len(runs) == len(numbers) else None
        if found is None:
            raise PieceError(text)
        return found

    def medium(self, name: str) -> tuple[bytes, str] | None:
        """Return a picture or sound that a piece has named."""
        return self._media.read(name)

    def _runs(self) -> dict[str, Any]:
        runs = []
        for seen in [*self._seen.values()]:
            run = seen.run
            name = self._names[run.number]
            runs.append(run.entry(name, self._machine) if isinstance(run, UnfinishedRun) else run.entry(name))
        return {
            "written": time.time(),
            "runs": runs,
            "options": report_choices(self._options),
            "view": {
                "folder": str(self.folder),
                "problems": [*filter(None, [self._failure]), *self._problems.values()],
            },
        }

    def _find_runs(self) -> set[str]:
        changed: set[str] = set()
        for place, results in self._places():
            known = self._seen.get(place)
            mark = _mark(results)
            if known is not None and (known.results, known.mark) == (results, mark):
                continue
            changed |= self._open(place, results, mark, known)
        return changed

    def _open(self, place: Path, results: Path | None, mark: tuple[Any, ...], known: _Seen | None) -> set[str]:
        number = len(self._seen) if known is None else known.run.number
        run: UnfinishedRun | FinishedRun | None = None
        try:
            if results is not None:
                run = FinishedRun(results, number, self._options, self._media)
                self._problems.pop(results, None)
        except DataError as error:
            self._problems[results or place] = str(error)
        if run is None and place.is_file():
            return set()
        run = run or UnfinishedRun(place, number, self._options, self._media)  # without results, the journals are shown
        if known is None:
            self._names.append(self._free_name(run.name, place, results))
        self._seen[place] = _Seen(run, results, mark)
        return {"*"}

    def _free_name(self, name: str, place: Path, results: Path | None) -> str:
        """Return a unique name, which stays when other runs are found later."""
        inner = place.parent.parent if place.parent.name == RUNS else place.parent
        stamp = None if results is None else results_date(results.name)
        labels = [label for label in (inner.name, stamp) if label and label != name]
        for free in (name, *[f"{name}@{label}" for label in labels]):
            if free not in self._names:
                return free
        count = 2
        while f"{name}#{count}" in self._names:
            count += 1
        return f"{name}#{count}"

    def _places(self) -> Iterator[tuple[Path, Path | None]]:
        """Yield the runs: the record of each one, and its results if it has ended with results."""
        if (self.folder / STATE).is_file():
            yield self.folder, ended_results(self.folder)
            return
        for place in self._inner():
            records = [state.parent for state in sorted((place / RUNS).glob(f"*/{STATE}"))]
            dates = {results_date(path.name) or "" for path in place.glob("*.json")} - {""}
            keys = set()
            for record in records:
                results = ended_results(record)
                if results is not None or record in self._seen or is_unfinished(record, read_state(record), dates):
                    keys.add(record.name)
                    yield record, results
            newest: dict[str, Path] = {}
            for path in sorted(path for path in place.glob("*.json") if results_date(path.name) is not None):
                mark = self._run_mark(path)
                if mark and mark not in keys:
                    newest[mark] = path
            for path in newest.values():
                yield path, path

    def _inner(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [self.folder, *sorted(item for item in self.folder.iterdir() if item.is_dir() and item.name != RUNS)]

    def _run_mark(self, path: Path) -> str:
        """Identify a run by its results file. Returns an empty text for a file of something else."""
        mark = _mark(path)
        if (known := self._documents.get(path)) is not None and known[0] == mark:
            return known[1]
        document = None
        try:
            document = read_document(path)
            self._problems.pop(path, None)
        except DataError as error:
            self._problems[path] = str(error)
        tasks = document.get("configs") if isinstance(document, dict) else None
        found = run_mark(document) if isinstance(document, dict) and isinstance(tasks, dict) and tasks else ""
        self._documents[path] = (mark, found)
        return found


def _mark(path: Path | None) -> tuple[int, int]:
    """Return size and modification time of a file, or zeros if there is no file."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        found = None
    return (0, 0) if found is None else (found.st_size, found.st_mtime_ns)
