"""The report of a whole run on General-Bench: a table of tasks, and the levels."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec import Struct

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.plots.figure import PlotUnavailable
from lmms_eval.tasks._task_utils.missing import bounds_dict, bounds_lines, without_bounds
from lmms_eval.tasks.general_bench.facts import TaskFacts, sheets, tasks_by_id
from lmms_eval.tasks.general_bench.levels import paper, picture, registering, sensitivity, tables, text
from lmms_eval.tasks.general_bench.levels.report import Ranked
from lmms_eval.tasks.general_bench.measures.text_math import BY_WORDS, tokenizer_label
from lmms_eval.tasks.general_bench.settings import PREDICTIONS, Settings
from lmms_eval.tasks.general_bench.standalone import FolderJob, score_folders
from lmms_eval.tasks.general_bench.summary import KEY, TaskScore, broken, not_evaluated
from lmms_eval.utils.names import sanitize_model_name

PREFIX, DEMO = "general_bench_", "general_bench_demo_"
DEMONSTRATION = "demonstration data: no General-Level of a model"
NO_BOUNDS = "levels are no means of items: some metrics are not, and scores count by comparison with a specialist's"
"""Why levels have no bounds if documents have no score."""
JOURNAL = ".general_bench_scores"
"""Folder below a run's output folder with the outcomes of answers in files, so that they are scored once."""


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Report scores by task and levels of the profile ``paper``, separately for the data set and for the demonstration.

    The levels are those of the run's own answers. If files next to the annotations hold answers too, the levels with
    them follow (``with_files``): another generator made those.

    With ``stem``, the result table (CSV, JSON, and a workbook if openpyxl is installed), the levels (JSON, CSV, log)
    and a picture are written to ``STEM_general_bench/``, those of the demonstration to ``STEM_general_bench_demo/``.
    Raises ``DataError`` if a file cannot be written.
    """
    texts: list[str] = []
    parts: dict[str, Any] = {}
    written: list[str] = []
    for label in (KEY, "general_bench_demo"):
        chosen = {name: one for name, one in tasks.items() if name.startswith(DEMO) == (label != KEY)}
        if not chosen:
            continue
        own, settings = _scores(chosen)
        made = _from_files(own, settings, _groups(chosen), stem)
        scores = own + made
        model = next((one.details[KEY]["model"] for one in chosen.values() if KEY in one.details), "model")
        table = score_table(scores, frozenset(score.task for score in made))
        parts[label] = {"tasks": [score.as_dict() for score in scores], "from_files": [score.task for score in made]}
        levels = _levels_of(model, own)
        if levels is None:
            texts.append(f"{table}\n\nno task has a score, so there are no General-Level scores")
            continue
        for problem in levels.filled.problems:
            logger.warning("General-Level: {}", problem)
        remark = DEMONSTRATION if label != KEY else ""
        lost = sum(sum(one.missing.values()) for one in chosen.values() if not one.withheld)
        bounds = without_bounds([f"level{n}" for n in levels.ranked.levels], lost, NO_BOUNDS) if lost else {}
        lines = bounds_lines({"General-Level": next(iter(bounds.values()))}) if bounds else ""
        blocks = [f"{remark}\n\n" if remark else "", f"{table}\n\n{text.summary(levels.ranked, levels.found)}"]
        texts.append("\n".join(filter(None, ["".join(blocks), lines])))
        if bounds:
            parts[label]["missing"] = bounds_dict(bounds)
        parts[label] |= levels.parts()
        if made and (whole := _levels_of(_with_files(model, len(made)), scores)) is not None:
            texts.append("\n\n".join(filter(None, [remark, text.summary(whole.ranked, whole.found)])))
            parts[label]["with_files"] = whole.parts()
        if stem is not None:
            written += levels.write(model, stem.with_name(f"{stem.name}_{label}"), remark)
    return BenchmarkReport("\n\n".join(texts), {"general_bench_report": parts}, tuple(written)) if texts else None


class _Levels(Struct, frozen=True):
    """The levels over some tasks' scores."""

    filled: registering.Filled
    ranked: Ranked
    found: text.Sensitivities

    def parts(self) -> dict[str, Any]:
        """Return the levels for the results document."""
        return {"levels": dict(self.ranked.levels), "general_level": text.numbers(self.ranked, self.found)}

    def write(self, model: str, folder: Path, remark: str) -> list[str]:
        """Write log, JSON, CSV, picture and result table, and return their paths. Raises ``DataError``."""
        written = [str(folder), *map(str, text.write(self.ranked, self.found, folder))]
        target = folder / f"{sanitize_model_name(model, full_path=True)}_levels.png"
        try:
            written += map(str, picture.draw(self.ranked, target, remark))
        except PlotUnavailable as absent:
            logger.info("{}", absent)
        return written + _write_results(self.filled.table, model, folder)


def _levels_of(model: str, scores: Sequence[TaskScore]) -> _Levels | None:
    """Return the levels over the tasks that have a score; ``None`` if none has."""
    results = [result for score in scores if (result := score.result()) is not None]
    if not results:
        return None
    filled = registering.register(model, results, tables.template(), "paper")
    ranked = paper.rank_paper(model, filled.table)
    return _Levels(filled, ranked, sensitivity.sensitivity(ranked))


def _with_files(model: str, count: int) -> str:
    """Return the words for a model together with answers in files, which are not its own."""
    tasks = "1 task" if count == 1 else f"{count} tasks"
    return f"{model} together with the {PREDICTIONS} of {tasks} in the data's folder, which this run did not make"


def _scores(tasks: Mapping[str, TaskNumbers]) -> tuple[list[TaskScore], Settings | None]:
    scores, settings = [], None
    for name, numbers in tasks.items():
        details = numbers.details.get(KEY)
        if details is None or numbers.withheld:
            facts = tasks_by_id()[name.removeprefix(DEMO).removeprefix(PREFIX)]
            if numbers.unscored:
                scores.append(not_evaluated(facts, "", numbers.unscored))
            else:
                scores.append(broken(facts, "", numbers.withheld or "nothing was scored"))
        else:
            scores.append(TaskScore.from_dict(details))
            settings = settings or Settings.of(details["options"])
    return scores, settings


def _groups(tasks: Mapping[str, TaskNumbers]) -> frozenset[str] | None:
    """Return the benchmark's groups in the run, without the mark of the demonstration, or ``None`` if unknown."""
    if any(one.groups is None for one in tasks.values()):
        return None
    names = {name for one in tasks.values() for name in one.groups or ()}
    return frozenset(name.replace(DEMO.rstrip("_"), KEY, 1) for name in names)


def _from_files(
    scores: Sequence[TaskScore], settings: Settings | None, groups: frozenset[str] | None, stem: Path | None
) -> list[TaskScore]:
    """Score tasks of the chosen groups with answers in files that a generator wrote next to their annotations."""
    if settings is None or settings.media_answers == "ask" or settings.root is None or settings.only:
        return []
    asked = {score.task for score in scores}

    def is_wanted(facts: TaskFacts) -> bool:
        if facts.id in asked or facts.needs == "offline-text":
            return False
        family = f"{PREFIX}{facts.modality.lower()}"
        return groups is None or not groups.isdisjoint({KEY, family, f"{family}_{facts.paradigm}"})

    job = FolderJob(settings, settings.prediction_name, None if stem is None else stem.parent / JOURNAL)
    return list(score_folders(job, is_wanted).scores)


def _write_results(table: tables.Table, model: str, folder: Path) -> list[str]:
    """Write the table that ``lmms-eval general-bench rank`` reads, for scopes other than the whole.

    Raises ``DataError`` if a file cannot be written.
    """
    stem = folder / f"{sanitize_model_name(model, full_path=True)}_result"
    paths = tables.write_rows(table, model, stem)
    if importlib.util.find_spec("openpyxl") is not None:
        paths.append(stem.with_name(f"{stem.name}.xlsx"))
        tables.write_workbook(table, paths[-1])
    return [str(path) for path in paths]


def score_table(scores: Sequence[TaskScore], from_files: frozenset[str] = frozenset()) -> str:
    """Lay out a line for each task: value, the official value if it differs, unit, answered items, status.

    Tasks of ``from_files`` are marked, because their scores belong to the generator of the files, not to the run's
    model.
    """
    order = {facts.id: place for place, facts in enumerate(one for rows in sheets().values() for one in rows)}
    rows = [_cells(score, score.task in from_files) for score in sorted(scores, key=lambda score: order[score.task])]
    headings = ("sheet", "task", "metric", "score", "±", "answered only", "items", "status")
    table = text.table(headings, rows, ("sheet", "task", "metric", "status"))
    if any(score.measure == BY_WORDS for score in scores):
        table += f"\nBLEU-1 counts the words of the tokenizer {tokenizer_label()}"
    return table


def _cells(score: TaskScore, is_from_file: bool) -> tuple[str, ...]:
    facts = score.facts
    answered = "" if score.official == score.strict or score.official is None else f"{score.official:.4g}"
    status = score.withheld or ("" if score.status == "scored" else ": ".join((score.status, *score.notes[:1])))
    status = "; ".join(filter(None, [f"from {PREDICTIONS}" if is_from_file else "", status]))
    return (
        facts.sheet,
        facts.short_name or facts.name,
        facts.spelling,
        "" if score.strict is None else f"{score.strict:.4g}",
        "" if score.stderr is None else f"{score.stderr:.2g}",
        answered,
        f"{score.answered} of {score.expected}",
        status[:120],
    )
