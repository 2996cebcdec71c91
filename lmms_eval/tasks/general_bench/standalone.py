"""Scoring of the prediction files in a data set's folders, for ``register`` and for tasks with answers in files.

Every item's outcome is a line of a journal, under a hash of the item, its prediction and its scoring. A run that was
killed resumes from it, and failed items are tried again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.storage.lines import JournalWriter, read_lines
from lmms_eval.tasks.general_bench import scoring, summary
from lmms_eval.tasks.general_bench.data.documents import fields_of, open_annotation, root
from lmms_eval.tasks.general_bench.data.reading import Items, read_items
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.data.scanning import TaskFolder
from lmms_eval.tasks.general_bench.facts import TaskFacts, tasks
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures import judged, registry
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.measures.registry import scoring_identity
from lmms_eval.tasks.general_bench.prompts.forms import candidate_answers
from lmms_eval.tasks.general_bench.readers.sides import MEDIA_FOLDERS
from lmms_eval.tasks.general_bench.scoring import MISSING, ItemOutcome
from lmms_eval.tasks.general_bench.settings import Settings
from lmms_eval.tasks.general_bench.submission import read_predictions
from lmms_eval.tasks.general_bench.summary import TaskScore

_LONGEST_PATH = 4096


class OutcomeJournal:
    """A journal (``lmms_eval.storage.lines``) that is opened for writing at the first line. Without a path it is
    disabled.

    Raises ``JournalError`` if it cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._known: dict[str, ItemOutcome] = {}
        for _, record in () if path is None else read_lines(path):
            with contextlib.suppress(KeyError, TypeError):  # lines of other code: their keys are never asked for
                self._known[record["key"]] = ItemOutcome.from_record(record["outcome"])
        self._writer: JournalWriter | None = None

    def __enter__(self) -> OutcomeJournal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> ItemOutcome:
        return self._known[key]

    def add(self, key: str, outcome: ItemOutcome) -> None:
        """Add a line, except for a failed item, which is tried again. Raises ``JournalError`` if that fails."""
        if self.path is None or outcome.status == "failed":
            return
        if self._writer is None:
            self._writer = JournalWriter(self.path)
        self._writer.append({"key": key, "outcome": outcome.as_record()})


def hash_of_scoring(measure: Measure, context: Context, judge: str = "") -> str:
    """Hash the code of the measures, the installed tokenizer, the judge, weights, ratings and options."""
    folders = [context.weights, *(value for value in context.options.values() if isinstance(value, Path))]
    stamps = [_stamp(context.ratings), *map(_stamps, folders)]
    used = f"{context.weights}|{context.ratings}|{stamps}|{sorted(context.options.items())}"
    text = f"{measure.name}|{scoring_identity()}|{judge}|{used}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_of(item: Item, prediction: Any, by: str) -> str:
    """Hash the item, its prediction, the files of both, and its scoring."""
    given = None if prediction is MISSING else prediction
    text = json.dumps([item.id, item.raw, given, item.form, str(item.folder), str(item.prediction_folder)], default=str)
    files: list[object] = []
    if item.form not in ("text", "number"):
        files += [_stamp(item.prediction_folder / path.strip()) for path in _paths(given)]
        for path in _paths(item.reference):
            files += [_stamp(item.folder / folder / path.strip()) for folder in MEDIA_FOLDERS]
        files += [_stamp(path) for medium in item.media for path in medium.paths]
    return hashlib.sha256(f"{by}|{text}|{files}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _paths(value: Any) -> Iterator[str]:
    """Yield the texts that may be paths."""
    if isinstance(value, str):
        if 0 < len(value) < _LONGEST_PATH and "\0" not in value:
            yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _paths(one)


def _stamps(folder: Path | None) -> object:
    """Return the stamps of a folder and of the folders in it."""
    if folder is None or not folder.is_dir():
        return _stamp(folder)
    return [_stamp(folder), *(_stamp(entry) for entry in sorted(folder.iterdir()) if entry.is_dir())]


def _stamp(path: Path | None) -> object:
    """Return size and time of a file, or those of a folder's entries, or ``None`` if nothing is there."""

    def state(found: os.stat_result) -> tuple[int, int]:
        return found.st_size, found.st_mtime_ns

    try:
        if path is None:
            return None
        if path.is_dir():
            with os.scandir(path) as entries:
                return sorted((entry.name, *state(entry.stat())) for entry in entries)
        return state(path.stat())
    except (OSError, ValueError):
        return None


Asker = Callable[[Sequence[JudgeQuestion]], Sequence[Verdict]]


class FolderJob(Struct, frozen=True):
    """The prediction files to score, and the settings for scoring them."""

    settings: Settings
    name: str
    """Name of the prediction files."""
    journal: Path | None = None
    """Folder for the outcomes of items. ``None`` keeps no outcomes."""
    ask: Asker | None = None
    """Asks the judge. Without it, the judged metric is not evaluated."""
    judge: str = ""
    """Identity of that judge. Replies of another judge are not reused."""
    passed_over: frozenset[Path] = frozenset()
    """Files of that name (resolved) that hold results, not predictions."""


@dataclass(frozen=True, slots=True)
class FolderScores:
    """The scores of the folders."""

    scores: tuple[TaskScore, ...]
    """Scores of every task with a prediction file, in the order of the workbook."""
    problems: tuple[str, ...]
    """Folders that belong to no task, and remarks on predictions."""
    without: tuple[TaskFacts, ...] = field(default=(), repr=False)
    """Tasks without a prediction file to score in their folder."""


def score_folders(
    job: FolderJob,
    wanted: Callable[[TaskFacts], bool] = lambda facts: True,  # noqa: ARG005 - all of them
    progress: Callable[[TaskScore], None] = lambda score: None,  # noqa: ARG005
) -> FolderScores:
    """Score the prediction files below ``job.settings.root``.

    Args:
        wanted: selects the tasks.
        progress: called after each task.

    Raises:
        DataError: there is no such folder. JournalError: the journal cannot be read or written.
    """
    folders, faults = root(str(job.settings.root), job.settings.subset)
    problems, scores, without = list(faults), [], []
    for facts in tasks():
        if facts not in folders or not wanted(facts):
            continue
        folder = folders[facts]
        file = folder.path / job.name
        if not file.is_file() or file.resolve() in job.passed_over:
            without.append(facts)
            continue
        score, remarks = _score(facts, folder, file, job)
        problems += remarks
        scores.append(score)
        progress(score)
    return FolderScores(tuple(scores), tuple(problems), tuple(without))


def _score(facts: TaskFacts, folder: TaskFolder, file: Path, job: FolderJob) -> tuple[TaskScore, Sequence[str]]:
    """Return a file's score, and problems with its predictions. Damaged or missing data becomes the task's reason."""
    try:
        annotation = open_annotation(folder, job.settings)
        predictions, faults = read_predictions(file)
    except DataError as error:
        return summary.broken(facts, "", str(error)), ()
    try:
        read = read_items(facts, annotation, file.parent, fields_of(facts, job.settings))
    except NotEvaluated as error:
        reason = error.reason.removeprefix("not evaluated: ")
        return summary.not_evaluated(facts, "", reason, len(annotation.data)), ()
    lost = [ItemOutcome(problem.id, "failed", note=problem.message) for problem in read.problems]
    expected = len(read.items) + len(lost)
    problems = (*faults, *(one.message for one in read.duplicates), *_strays(file, predictions, read))
    if not read.items:
        reason = lost[0].note if lost else f"{folder.annotation}: no items in it"
        return summary.broken(facts, "", reason, expected), problems
    try:
        measure = registry.measure_for(facts, read.items[0].form)
    except LmmsEvalError as error:
        return summary.broken(facts, "", str(error), expected), problems
    score = summary.evaluated(
        lambda: summary.combine(facts, measure, [*lost, *_outcomes(facts, read.items, predictions, measure, job)]),
        facts, measure.name, expected,
    )  # fmt: skip
    return score, problems


def _outcomes(
    facts: TaskFacts, items: tuple[Item, ...], predictions: Mapping[str, Any], measure: Measure, job: FolderJob
) -> Iterator[ItemOutcome]:
    """Yield the outcome of each item, from the journal if it is there."""
    context = job.settings.context.having(candidates=list(candidate_answers(facts, items)))
    by = hash_of_scoring(measure, context, job.judge if measure.name == judged.QUESTION else "")
    given = [(item, predictions.get(id_key(item.id), MISSING)) for item in items]
    keys = [key_of(item, prediction, by) for item, prediction in given]
    is_open = any(item.reference is not None for item in items)
    with OutcomeJournal(None if job.journal is None else job.journal / f"{facts.id}.jsonl") as journal:
        if measure.name == judged.QUESTION and job.ask is not None:
            unknown = [pair for pair, key in zip(given, keys, strict=True) if key not in journal]
            context = context.having(**{judged.VERDICTS: _verdicts(unknown, job.ask)})
        for (item, prediction), key in zip(given, keys, strict=True):
            if key in journal:
                yield journal[key]
                continue
            if is_open and item.reference is None and facts.paradigm != "generation":
                yield ItemOutcome(item.id, "failed", note=f"{item.where}: it has no reference answer")
                continue
            outcome = scoring.score_item(item, prediction, measure, context)
            journal.add(key, outcome)
            yield outcome


def _verdicts(given: Sequence[tuple[Item, Any]], ask: Asker) -> dict[str, Verdict]:
    """Ask the judge about the answers, and return its replies."""
    questions: dict[str, JudgeQuestion] = {}
    for item, prediction in given:
        with contextlib.suppress(LmmsEvalError):  # scoring reports the fault
            questions[id_key(item.id)] = judged.question(item, prediction)
    return dict(zip(questions, ask(list(questions.values())), strict=True))


def _strays(file: Path, predictions: Mapping[str, Any], read: Items) -> Iterator[str]:
    """Yield a remark on predictions with ids that no item has, if all items are readable."""
    if read.problems or read.duplicates or not read.items:
        return
    dropped = {id_key(one.id) for one in read.dropped if isinstance(one.id, str | int)}
    stray = sorted(predictions.keys() - {id_key(item.id) for item in read.items} - dropped)
    if stray:
        shown = ", ".join(key[:40] for key in stray[:3])
        yield f'{file}: {len(stray)} predictions are of no item (ids {shown}); 1 and "1" are two ids'
