"""Reading a run back as typed objects, finished or not.

``load`` takes an output folder, a results file, a samples file, or a record (``.runs/KEY``).
"""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from lmms_eval.api.outcome import Status
from lmms_eval.config import argument_text
from lmms_eval.config.options import options
from lmms_eval.config.rules import is_asked_again
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results.columns import column_names, data_frame, value_of
from lmms_eval.results.facts import (
    EarlyStop,
    early_stop_of,
    group_leaves,
    model_of,
    part_of,
    read_document,
    record_facts,
    sample_keys,
)
from lmms_eval.results.files import (
    NAMINGS,
    RUNS,
    STATE,
    ended_results,
    find_run,
    read_state,
    results_date,
    run_path,
    samples_beside,
    state_of,
)
from lmms_eval.results.journals import (
    JOURNALS,
    FileSamples,
    JoinedLines,
    Journals,
    JournalSamples,
    SampleLines,
    load_json,
)
from lmms_eval.results.sample import JudgePrompts, Sample, SampleKeys, doc_text
from lmms_eval.results.tables import document_tables, make_latex
from lmms_eval.storage.lines import unsealed
from lmms_eval.storage.run_folder import has_live_owner
from lmms_eval.utils import model_name_from_args
from lmms_eval.utils.document_ids import DocumentIds
from lmms_eval.utils.where import Where

if TYPE_CHECKING:
    import pandas


_CODES: tuple[Status, ...] = ("scored", "unscored", "failed")


class SampleIndex(Struct):
    """Places of a task's samples, in their order; about 120 bytes per sample."""

    doc_ids: list[str] = msgspec.field(default_factory=list)
    filters: list[str] = msgspec.field(default_factory=list)
    statuses: bytearray = msgspec.field(default_factory=bytearray)
    places: array[int] = msgspec.field(default_factory=lambda: array("q"))
    damaged: int = 0
    """Lines that are not samples and were skipped."""

    def status(self, number: int) -> Status:
        return _CODES[self.statuses[number]]


class RunTask:
    """A task of a run. Samples are read one by one from the sources; only their places are kept in memory.

    ``record`` is the folder of the run's journals, which hold the judge's prompts.
    """

    def __init__(
        self,
        name: str,
        keys: SampleKeys,
        sources: tuple[SampleLines, ...],
        record: Path | None = None,
        early_stop: EarlyStop | None = None,
    ) -> None:
        self.name, self.keys, self.sources, self.early_stop = name, keys, sources, early_stop
        self.lines: SampleLines = sources[0] if len(sources) == 1 else JoinedLines(sources)
        self._prompts = JudgePrompts(record)

    def __repr__(self) -> str:
        return f"RunTask({self.name!r}, {[source.where for source in self.sources]})"

    def __len__(self) -> int:
        return len(self.index.places)

    @cached_property
    def index(self) -> SampleIndex:
        """The places of all samples. Raises ``DataError`` if a file cannot be read."""
        found = SampleIndex()
        known: dict[str, str] = {}
        for line in self.lines.lines():
            record = line.record
            if "doc_id" not in record:
                found.damaged += 1
                continue
            pipeline = str(record.get("filter") or "")
            status = record.get("status", "scored")
            found.doc_ids.append(doc_text(record["doc_id"]))
            found.filters.append(known.setdefault(pipeline, pipeline))
            found.statuses.append(_CODES.index(status) if status in _CODES else 2)
            found.places.append(line.offset)
        found.damaged += self.lines.damaged
        return found

    @cached_property
    def _first(self) -> dict[str, int]:
        """Index of each document's first sample."""
        found: dict[str, int] = {}
        for number, doc_id in enumerate(self.index.doc_ids):
            found.setdefault(doc_id, number)
        return found

    def at(self, number: int) -> Sample:
        """Read the sample at an index. Raises ``DataError`` if the sample can no longer be read."""
        return Sample(self.name, self.lines.at(self.index.places[number]), self.keys, self._prompts)

    def sample(self, doc_id: int | str, pipeline: str | None = None) -> Sample:
        """Read the sample of a document through a filter pipeline, or through its first one.

        Raises:
            UsageError: the task has no such sample.
        """
        wanted = str(doc_id)
        for number in range(self._first.get(wanted, len(self)), len(self)):
            if self.index.doc_ids[number] == wanted and pipeline in (None, self.index.filters[number]):
                return self.at(number)
        through = "" if pipeline is None else f" through {pipeline!r}"
        raise UsageError(f"{self.name}: no document {wanted}{through} among {len(self)} samples")

    def samples(self, chosen: Choice | None = None) -> Iterator[Sample]:
        """Iterate over all or the chosen samples. Raises ``DataError`` if a file cannot be read."""
        for line in self.lines.lines():
            if "doc_id" in line.record:
                sample = Sample(self.name, line.record, self.keys, self._prompts)
                if chosen is None or chosen.takes(sample):
                    yield sample

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each sample and typed columns (``docs/results.md``)."""
        return data_frame(self.samples)


class Choice(Struct, frozen=True):
    """The samples that ``--ids`` and ``--where`` choose."""

    ids: DocumentIds | None = None
    where: Where | None = None

    def takes(self, sample: Sample) -> bool:
        if self.ids is not None:
            doc_id = sample.doc_id
            is_number = doc_id.isascii() and doc_id.isdigit() and len(doc_id) < 20
            if not is_number or int(doc_id) not in self.ids.of(sample.task):
                return False
        return self.where is None or self.where.holds(lambda name: value_of(sample, name))


_SHOWN = "shown.json"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of this project or of the lmms-eval family."""

    name: str
    """The model's name."""
    source: Path
    """The results file, samples file or record that was read."""
    tasks: Mapping[str, RunTask]
    """Tasks with samples, by name. ``notes`` names the tasks without."""
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The results document; empty if the run has none."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The options of the run, by name."""
    date: str = ""
    state: str = "unknown"
    """``complete``, ``stopped early``, ``withheld``, ``interrupted``, ``running`` or ``unknown``."""
    command: str = ""
    """The command that continues the run; empty if it is not known."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Leaf tasks of each group that has a number."""
    notes: tuple[str, ...] = ()
    """Sentences about what is missing or damaged."""
    record: Path | None = None
    """The folder of the run's journals."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The results document; for a run without results, the facts of its record in the same form."""
        if self.document or self.record is None:
            return self.document
        return record_facts(read_state(self.record))

    @property
    def table(self) -> str:
        """The table of results, as it was printed; empty if the run has no results yet.

        Raises:
            DataError: the results file is damaged.
        """
        if not self.document:
            return ""
        shown = {} if self.record is None else _shown(self.record, self.document)
        if isinstance(shown.get("table"), str):
            return str(shown["table"])
        try:
            return document_tables(self.document)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.source}: no table can be made of this results file: {error!r}") from error

    @property
    def latex(self) -> str:
        """The table of results as LaTeX.

        Raises:
            DataError: the run has no results yet, or they are damaged.
        """
        if not self.document:
            raise DataError(f"{self.source}: the run has no results yet, so it has no table")
        try:
            return make_latex(self.document)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.source}: no table can be made of this results file: {error!r}") from error

    def task(self, name: str) -> RunTask:
        """Return a task. Raises ``UsageError`` if the run has no task of that name."""
        if name not in self.tasks:
            raise UsageError(f"{self.source}: no samples of a task {name!r}; there are: {', '.join(self.tasks)}")
        return self.tasks[name]

    def check(self, where: Where) -> None:
        """Check that each column of an expression exists in some sample. Raises ``WhereError``."""
        wanted, known = set(where.columns), set[str]()
        for sample in self.samples():
            known |= column_names(sample)
            if wanted <= known:
                return
        where.check(known)

    def samples(self, chosen: Choice | None = None) -> Iterator[Sample]:
        """Iterate over all or the chosen samples of all tasks. Raises ``DataError``."""
        for task in self.tasks.values():
            yield from task.samples(chosen)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each sample and typed columns (``docs/results.md``)."""
        return data_frame(self.samples)


def load(run: str | Path) -> Run:
    """Read a run from an output folder, a results file (or ``FOLDER/STAMP``), a samples file, or a record.

    Samples are read lazily. Lines torn by a kill are skipped and counted in ``notes``.

    Raises:
        DataError: the path holds no run or several runs, or its files cannot be read.
    """
    path = run_path(run)
    if path.is_dir():
        found = find_run(path)
        if found is None:
            raise DataError(
                f"{path}: no run in this folder; looked for *_results.json, results_*.json and {RUNS}/*/{STATE}, here "
                "and one folder below"
            )
        read = read_run(found.path)
        return replace(read, notes=(*read.notes, found.note)) if found.note else read
    return read_run(path)


def read_run(path: Path, is_strict: bool = False) -> Run:
    """Read the run of a results file, a samples file or a record (``.runs/KEY``).

    A record is read by its results file if the run has ended and the file exists, else by its journals.

    Args:
        path: the file or folder.
        is_strict: whether a damaged line of a samples file is an error when the samples are read.

    Raises:
        DataError: a file cannot be read, or its form is unknown.
    """
    if path.is_dir():
        results = results_of_record(path)
        if results is not None:
            return _of_results(results, is_strict)
        journals = Journals.read(path)
        return run_of(journals, read_state(path), journals.unscored())
    return run_of_samples(path, is_strict) if path.suffix == ".jsonl" else _of_results(path, is_strict)


def _of_results(path: Path, is_strict: bool) -> Run:
    document = read_document(path)
    parts = [document.get(name) or {} for name in ("results", "groups")] if isinstance(document, dict) else []
    have_rows = all(
        isinstance(part, Mapping) and all(isinstance(one, Mapping) for one in part.values()) for part in parts
    )
    if not isinstance(document, dict) or not part_of(document, "configs") or not have_rows:
        raise DataError(f"{path}: not a results file (JSON with results and configs)")
    record = path.parent / RUNS / str(document["run_key"]) if "run_key" in document else None
    record = record if record is not None and record.is_dir() else None
    state = {} if record is None else read_state(record)
    is_newest = bool(state) and state.get("stamp") == results_date(path.name)
    has_journals = bool(record) and state.get("stamp") in (None, results_date(path.name))
    journals = None
    tasks: dict[str, RunTask] = {}
    missing = []
    for name in part_of(document, "configs"):
        file = samples_beside(path, name)
        if file is None and record is not None and has_journals and journals is None:
            journals = Journals.read(record)
        if file is not None:
            tasks[name] = _task(document, name, FileSamples(file, is_strict), record)
        elif journals is not None and name in journals.tasks:
            tasks[name] = _task(document, name, journals.samples(name, document), record)
        else:
            missing.append(name)
    notes = journals.notes if journals is not None else ()
    if missing:
        notes += (f"without samples (--log_samples) or journal: {', '.join(missing)}",)
    arguments = part_of(part_of(document, "config"), "resolved_cli_args")
    return Run(
        name=model_of(document) or path.stem,
        source=path,
        tasks=tasks,
        document=document,
        arguments=arguments,
        date=str(document.get("date", "")),
        state=state_of(state, has_live_owner(record))
        if is_newest and record
        else str(document.get("state", "unknown")),
        command=str(state.get("command") or "") or command_of(arguments),
        groups=group_leaves(document),
        notes=notes,
        record=record if is_newest else None,
    )


def _task(document: Mapping[str, Any], name: str, lines: SampleLines, record: Path | None) -> RunTask:
    return RunTask(name, sample_keys(document, name), (lines,), record, early_stop_of(document, name))


def results_of_record(folder: Path) -> Path | None:
    """Return the results file of a record whose run has ended; ``None`` if the run has not, or it has no such file."""
    results = ended_results(folder)
    document = None if results is None else read_document(results)
    return results if isinstance(document, dict) and str(document.get("run_key", folder.name)) == folder.name else None


def run_of(journals: Journals, state: Mapping[str, Any], waiting: Mapping[str, JournalSamples] | None = None) -> Run:
    """Return the run of a record, as far as its journals were read. ``state`` is the content of ``run.json``.

    ``waiting``: the documents that are answered but not scored yet, by task. Raises ``DataError`` if the documents
    that count of a task that stopped early are not known.
    """
    folder, facts, waiting = journals.folder, record_facts(state), waiting or {}
    tasks = {}
    for name in dict.fromkeys((*journals.tasks, *waiting)):
        if is_asked_again(name):
            continue
        lines: list[SampleLines] = [journals.samples(name, facts)]
        if name in waiting and not part_of(facts, "early_stop", name):
            lines.append(waiting[name])
        tasks[name] = RunTask(name, record_keys(facts, name), tuple(lines), folder, early_stop_of(facts, name))
    arguments = part_of(state, "arguments")
    notes = journals.notes if tasks else (*journals.notes, f"{folder}: nothing has been answered yet ({JOURNALS})")
    return Run(
        name=record_name(folder, state),
        source=folder,
        tasks=tasks,
        arguments=arguments,
        date=str(state.get("date", "")),
        state=state_of(state, has_live_owner(folder)),
        command=str(state.get("command") or "") or command_of(arguments),
        notes=notes if state else (*notes, f"{folder / STATE} is missing or damaged"),
        record=folder,
    )


def record_keys(facts: Mapping[str, Any], name: str) -> SampleKeys:
    """Return how to read a task's samples from a record, which does not name all metrics of its journals."""
    return structs.replace(sample_keys(facts, name), metrics=())


def record_name(folder: Path, state: Mapping[str, Any]) -> str:
    """Return the name of a record's run: its model."""
    arguments = part_of(state, "arguments")
    name = model_name_from_args(argument_text(arguments.get("model_args") or "")) or arguments.get("model")
    return str(name or folder.name)


def run_of_samples(path: Path, is_strict: bool) -> Run:
    """Read one samples file, with the facts of the results file of the same date stamp."""
    task, results = path.stem, None
    for naming in NAMINGS:
        if (found := naming.task(path.name)) is not None:
            task, beside = found[1], path.with_name(naming.results.replace("DATE", found[0]))
            results = beside if beside.is_file() else None
            break
    lines = (FileSamples(path, is_strict),)
    if "doc_id" not in next((line.record for line in lines[0].lines()), {}):
        raise DataError(f"{path}: not samples of lmms-eval (JSON lines with doc_id); compare reads other formats too")
    if results is None:
        return Run(path.stem, path, {task: RunTask(task, SampleKeys(), lines)}, notes=("its results file is missing",))
    whole = _of_results(results, is_strict)
    return Run(
        whole.name, path, {task: _task(whole.document, task, lines[0], whole.record)}, whole.document,
        whole.arguments, whole.date, whole.state, whole.command, record=whole.record,
    )  # fmt: skip


def command_of(arguments: Mapping[str, Any]) -> str:
    """Return the command line of a run's recorded options; empty if none are recorded."""
    words = ["lmms-eval"]
    for option in options():
        value = arguments.get(option.name, option.default)
        default = list(option.default) if isinstance(option.default, tuple) else option.default
        if value in (default, option.default, None, "", {}, []):
            continue
        if option.is_switch:
            words.append(option.flag if value else f"--no_{option.name}")
        elif value is True:
            words.append(option.flag)
        else:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += [option.flag, argument_text(dict(value)) if isinstance(value, Mapping) else text]
    return shlex.join(words) if arguments else ""


def _shown(record: Path, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read what a complete run printed, if it belongs to this document."""
    try:
        content = unsealed((record / _SHOWN).read_bytes())
        shown = load_json(content) if content is not None else {}
    except (OSError, ValueError):
        return {}
    same = isinstance(shown, dict) and part_of(shown, "results").get("date") == document.get("date")
    return shown if same else {}
