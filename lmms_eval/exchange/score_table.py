"""A table of runs and tasks for a paper: headline numbers with intervals, marks of significance, and what limits them.

Every number is that of the run's results. A number that is withheld is a dash with a note, a partial one has a note,
and so has a column whose numbers are not equal in documents, prompts or settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.errors import UsageError
from lmms_eval.exchange.numbers import ReportedNumber
from lmms_eval.exchange.table_marks import (
    BEHIND,
    WORSE,
    Verdicts,
    best_runs,
    column_notes,
    compare_columns,
    unit_of,
)
from lmms_eval.exchange.table_numbers import (
    DEMONSTRATION,
    ColumnChoice,
    ColumnForm,
    ColumnKey,
    TableRun,
    choose_columns,
    column_form,
    is_demonstration,
    misfit,
    read_table_runs,
)
from lmms_eval.recipes.published import Published, check_model, full_marks, published_for, published_of
from lmms_eval.stats.interval import Interval
from lmms_eval.utils.names import some_of
from lmms_eval.viewer.certainty import IN_WORDS, LIKE_THESE
from lmms_eval.viewer.numbers import TASKS_LIKE_THESE

Uncertainty = Literal["ci", "se", "none"]
Bold = Literal["best", "significant", "none"]
DASH = "–"
_MOST_NAMED = 4


class TableOptions(Struct, frozen=True):
    """Content and form of a table. Raises ``UsageError`` for a number out of range."""

    choice: ColumnChoice = ColumnChoice()
    uncertainty: Uncertainty = "ci"
    bold: Bold = "best"
    published: tuple[str, ...] | None = None
    """Models whose published numbers are rows; empty for those of the runs, ``None`` for no such rows."""
    decimals: int | None = None
    names: tuple[str, ...] = ()
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.decimals is not None and not 0 <= self.decimals <= 6:
            raise UsageError(f"--digits {self.decimals}: give a number of decimals from 0 to 6")


class TableCell(Struct, frozen=True):
    """A number as it is shown."""

    value: str
    around: str = ""
    """Its interval or standard error."""
    mark: str = ""
    """Mark of significance."""
    is_bold: bool = False
    notes: tuple[int, ...] = ()
    """Places in the table's notes."""


class Heading(Struct, frozen=True):
    """The head of a row or column."""

    name: str
    detail: str = ""
    """The metric with its direction."""
    notes: tuple[int, ...] = ()
    is_apart: bool = False
    """Whether the row is no run of a model: a baseline, or published numbers."""


class TableRecord(Struct, frozen=True):
    """A number with everything that is known about it, for CSV."""

    run: str
    source: str
    task: str
    metric: str
    filter: str
    kind: str
    """``run``, ``baseline`` or ``published``."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    stderr: float | None = None
    n: int | None = None
    about: str = ""
    """What the interval is about."""
    higher_is_better: bool | None = None
    is_bold: bool = False
    mark: str = ""
    notes: str = ""


class ScoreTable(Struct, frozen=True):
    """A table of runs (rows) and tasks (columns)."""

    title: str
    caption: tuple[str, ...]
    """Sentences."""
    notes: tuple[str, ...]
    columns: tuple[Heading, ...]
    rows: tuple[Heading, ...]
    cells: tuple[tuple[TableCell, ...], ...]
    records: tuple[TableRecord, ...]

    def turned(self) -> ScoreTable:
        """Return the table with tasks as rows and runs as columns."""
        return ScoreTable(
            self.title, self.caption, self.notes, self.rows, self.columns, tuple(zip(*self.cells, strict=True)),
            self.records,
        )  # fmt: skip


def score_table(paths: Sequence[str], options: TableOptions) -> ScoreTable:
    """Make the table of the runs in files and folders.

    Raises:
        DataError: a path holds no run, or one that cannot be read.
        UsageError: there is no such task, metric or published model.
    """
    runs = read_table_runs(paths, options.names)
    keys = choose_columns(runs, options.choice)
    return _Maker(runs, keys, options).table()


class _Notes:
    """Notes in the order of their first use."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def of(self, *texts: str) -> tuple[int, ...]:
        """Return the places of notes; new ones are added."""
        return tuple(self.places.setdefault(text, len(self.places)) for text in texts if text)

    def text(self, places: Sequence[int]) -> str:
        """Return the notes at some places."""
        texts = tuple(self.places)
        return "; ".join(texts[place] for place in places)


class _Maker:
    """Builder of a table."""

    def __init__(self, runs: Sequence[TableRun], keys: Sequence[ColumnKey], options: TableOptions) -> None:
        self.runs, self.keys, self.options, self.notes = runs, keys, options, _Notes()
        self.forms = {
            key: column_form([run.numbers[key] for run in runs if key in run.numbers], options.decimals) for key in keys
        }
        models = [run for run in runs if not run.baseline]
        self.contest = models or list(runs)
        """The runs that are compared: baselines only if no run is that of a model."""
        self.verdicts = Verdicts({})
        if len(self.contest) > 1 and options.bold != "none":
            self.verdicts = compare_columns(self.contest, keys, CompareOptions(alpha=options.alpha))
        found = {key: list(column_notes(runs, key, self.forms[key])) for key in keys}
        self.common = [text for text in found[keys[0]] if len(keys) > 1 and all(text in one for one in found.values())]
        """Notes of every column, which are in the caption."""
        self.unequal = {key: [text for text in texts if text not in self.common] for key, texts in found.items()}
        self.best = {key: best_runs(self._values(key), self.forms[key]) for key in keys}
        self.about = Counter(
            about for run in runs for key in keys if (about := _about(self._number(run, key))) and self._has_ends
        )

    @property
    def is_demo(self) -> bool:
        """Whether all columns are of demonstration data."""
        return all(key.is_headline and is_demonstration(key) for key in self.keys)

    @property
    def _has_ends(self) -> bool:
        return self.options.uncertainty == "ci"

    def _number(self, run: TableRun, key: ColumnKey) -> ReportedNumber | None:
        number = run.numbers.get(key)
        return None if number is None or misfit(number, self.forms[key]) else number

    def _values(self, key: ColumnKey) -> dict[str, float]:
        found = {run.name: number.value for run in self.contest if (number := self._number(run, key)) is not None}
        return found if len(found) > 1 else {}

    def table(self) -> ScoreTable:
        columns = tuple(self._column(key) for key in self.keys)
        rows, lines, records = [], [], []
        for run in self.runs:
            rows.append(self._row(run))
            lines.append(tuple(self._cell(run, key) for key in self.keys))
            records += [self._record(run, key, cell) for key, cell in zip(self.keys, lines[-1], strict=True)]
        count = len(rows)
        for head, found in self._published():
            rows.append(head)
            lines.append(tuple(cell for cell, _ in found))
            records += [
                self._published_record(head, key, cell, row) for key, (cell, row) in zip(self.keys, found, strict=True)
            ]
        caption = tuple(self._caption(len(rows) > count, [cell for line in lines for cell in line]))
        runs, numbers = (
            f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((count, "run"), (len(self.keys), "number"))
        )
        return ScoreTable(
            f"Scores: {numbers} of {runs}", caption, tuple(self.notes.places), columns, tuple(rows), tuple(lines),
            tuple(records),
        )  # fmt: skip

    def _column(self, key: ColumnKey) -> Heading:
        form = self.forms[key]
        demo = DEMONSTRATION if key.is_headline and is_demonstration(key) and not self.is_demo else ""
        places = self.notes.of(demo, *self.unequal[key])
        arrow = " ↓" if form.higher_is_better is False else ""
        several = any(one.task == key.task and one.metric == key.metric and one != key for one in self.keys)
        metric = f"{key.metric}, {key.filter}" if several else key.metric
        return Heading(self._title(key), f"{metric}{arrow}", places)

    def _title(self, key: ColumnKey) -> str:
        if key.is_headline:
            return key.benchmark
        return next((run.alias(key.task) for run in self.runs if key in set(run.keys)), key.task)

    def _row(self, run: TableRun) -> Heading:
        recipe = run.document.get("recipe")
        settings = f"recipe {recipe.get('name')}:{recipe.get('variant')}" if isinstance(recipe, Mapping) else ""
        state = str(run.document.get("state") or "complete")
        limits = f"the run is {state}" if state not in ("complete", "stopped early", "withheld") else ""
        return Heading(run.name, "", self.notes.of(settings, limits), bool(run.baseline))

    def _cell(self, run: TableRun, key: ColumnKey) -> TableCell:
        number, form = run.numbers.get(key), self.forms[key]
        if number is None:
            return TableCell(DASH, notes=self.notes.of(run.reason(key)))
        if reason := misfit(number, form):
            return TableCell(DASH, notes=self.notes.of(f"not shown: {reason}"))
        around, missing = self._around(number, form)
        limits = [_limit(name, text) for name, text in number.marks.items() if name != "demonstration"]
        if form.within is not None and number.score_range is None:
            limits.append(f"its scale is not stated; taken as {form.within}")
        about = _about(number)
        other = f"interval for {about}" if around and about and about != self._usual_about else ""
        best = self.best[key]
        others = [one for one in self._values(key) if one not in best]
        is_bold = run.name in best and (
            self.options.bold == "best" or (self.options.bold == "significant"
                                            and self.verdicts.is_clear(key, best, others))
        )  # fmt: skip
        is_in_contest = any(one is run for one in self.contest)
        mark = self.verdicts.mark(key, run.name, best) if is_in_contest else ""
        return TableCell(form.text(number.value), around, mark, is_bold, self.notes.of(*limits, missing, other))

    @property
    def _usual_about(self) -> str:
        return self.about.most_common(1)[0][0] if self.about else LIKE_THESE

    def _around(self, number: ReportedNumber, form: ColumnForm) -> tuple[str, str]:
        """Return the text of the uncertainty, and why it is missing."""
        if self.options.uncertainty == "se":
            known = number.error is not None
            return (f"± {form.text(number.error)}" if number.error is not None else ""), (
                "" if known else "no standard error")  # fmt: skip
        if self.options.uncertainty == "ci":
            if number.low is None or number.high is None:
                return "", f"no interval{f': {number.method}' if number.method else ''}"
            return f"[{form.text(number.low)}, {form.text(number.high)}]", ""
        return "", ""

    def _record(self, run: TableRun, key: ColumnKey, cell: TableCell) -> TableRecord:
        number = None if cell.value == DASH else run.numbers.get(key)
        made = TableRecord(
            *(run.name, run.rows.source, key.task, key.metric, key.filter, "baseline" if run.baseline else "run"),
            higher_is_better=self.forms[key].higher_is_better,
            is_bold=cell.is_bold,
            mark=cell.mark,
            notes=self.notes.text(cell.notes),
        )
        if number is None:
            return made
        return replace(
            made, value=number.value, low=number.low, high=number.high, stderr=number.error, n=number.n,
            about=_about(number),
        )  # fmt: skip

    def _published(self) -> Iterator[tuple[Heading, list[tuple[TableCell, Published | None]]]]:
        """Yield a row for each model with published numbers of the table's columns, with and without thinking."""
        if self.options.published is None:
            return
        for model in self.options.published:
            check_model(model)
        models = self.options.published or [run.model for run in self.runs]
        for rows in dict.fromkeys(published_of(model) for model in models):
            for thinking in (False, True):
                own = [row for row in rows if row.thinking == thinking]
                cells = [self._published_cell(key, own) for key in self.keys]
                if any(row is not None for _, row in cells):
                    mode = ", thinking" if thinking else ""
                    yield Heading(f"{own[0].model} (published{mode})", is_apart=True), cells

    def _published_cell(self, key: ColumnKey, rows: Sequence[Published]) -> tuple[TableCell, Published | None]:
        fitting = [] if key.is_headline else published_for(rows, key.task, key.metric)
        form = self.forms[key]
        for row in fitting:
            whole = full_marks(row.unit)
            if form.within is None or whole is None or not form.is_percent:
                continue
            more = f"; {len(fitting) - 1} more in recipes" if len(fitting) > 1 else ""
            obstacle = f"; not comparable: {row.obstacle}" if row.obstacle else ""
            text = f"published ({row.kind}): {row.source}{f'; {row.note}' if row.note else ''}{obstacle}{more}"
            shown = f"{100 * row.number / whole:.{min(row.digits if whole == 100 else form.decimals, 6)}f}"
            return TableCell(shown, notes=self.notes.of(text)), row
        return TableCell(DASH), None

    def _published_record(self, head: Heading, key: ColumnKey, cell: TableCell, row: Published | None) -> TableRecord:
        form = self.forms[key]
        whole = None if row is None else full_marks(row.unit)
        return TableRecord(
            *(head.name, "" if row is None else row.source, key.task, key.metric, key.filter, "published"),
            value=None if row is None or whole is None else 100 * row.number / whole / form.scale,
            higher_is_better=form.higher_is_better,
            notes=self.notes.text(cell.notes),
        )

    def _caption(self, has_published: bool, cells: Sequence[TableCell]) -> Iterator[str]:
        """Yield the sentences of the caption."""
        yield self._units()
        if self.is_demo:
            yield f"All of it is {DEMONSTRATION}."
        if self._has_ends and any(cell.around for cell in cells):
            yield f"In brackets: 95 % intervals, for {self._all_about()}."
        if self.options.uncertainty == "se" and any(cell.around for cell in cells):
            yield "±: standard error."
        yield from self._significance(cells)
        if any(cell.value == DASH for cell in cells):
            yield f"{DASH}: not in the run, or no score for the reason in its note."
        yield self._counts()
        yield from (f"In every column: {text}." for text in self.common)
        judged = {judge for run in self.runs for key in self.keys if (judge := run.judge_of(key))}
        columns = [self._named(key) for key in self.keys if any(run.judge_of(key) for run in self.runs)]
        if judged:
            yield f"Judged by {', '.join(sorted(judged))}: {', '.join(columns)}."
        if any(run.baseline for run in self.runs) and any(not run.baseline for run in self.runs):
            yield "Baselines answer without a model, and are left out of bold and marks."
        if has_published:
            yield "Published numbers come from other runs: they have no interval and are never bold."

    def _all_about(self) -> str:
        """Return what the intervals are about; those over tasks take the tasks, not the questions, as the sample."""
        having = [key for key in self.keys if any(_about(self._number(run, key)) for run in self.runs)]
        named = [self._named(key) for key in having if unit_of(key) == "tasks"]
        if len(named) == len(having):
            return TASKS_LIKE_THESE
        others = f" ({some_of(named, _MOST_NAMED)}: for {TASKS_LIKE_THESE})" if named else ""
        return f"{self._usual_about}{others}"

    def _units(self) -> str:
        having = [key for key in self.keys if any(key in run.numbers for run in self.runs)]
        others = [self._named(key) for key in having if not self.forms[key].is_percent]
        if not others:
            return "Scores in percent."
        if len(others) == len(having):
            return "Scores in the units of their metrics."
        return f"Scores in percent; in the units of their metrics: {', '.join(others)}."

    def _significance(self, cells: Sequence[TableCell]) -> Iterator[str]:
        count = self.verdicts.tests
        tests = f"{count} test{'s' * (count != 1)} corrected together by Holm, level {self.verdicts.alpha:g}"
        settings = ", each model under the settings of its recipe" if self.verdicts.own_settings else ""
        test = f"by lmms-eval compare (paired over shared documents, {tests}{settings})"
        if any(self.best.values()) and self.options.bold == "best":
            yield "Bold: the best of each column; equal ones share it."
        elif any(self.best.values()) and self.options.bold == "significant":
            yield f"Bold: the best of a column if it is better than every other run {test}."
        own = "" if self.options.bold == "significant" else f" {test}"
        marks = {cell.mark for cell in cells}
        if WORSE in marks:
            yield f"{WORSE}: shown to be worse than the best of the column{own}."
        if BEHIND in marks:
            yield f"{BEHIND}: behind the best of the column on this list of documents only{own}."
        if self.verdicts.tests and not marks - {""} and self.options.bold == "best":
            yield f"No run is shown to be worse than the best of its column {test}."
        if self.verdicts.reasons:
            yield f"Without marks: {some_of(self.verdicts.reasons, _MOST_NAMED, '; ')}."

    def _counts(self) -> str:
        found: dict[str, list[str]] = {}
        for key in self.keys:
            known = {number.n for run in self.runs if (number := self._number(run, key)) is not None and number.n}
            ends = f"{min(known):,}" if len(known) == 1 else f"{min(known):,} to {max(known):,}" if known else ""
            if ends:
                unit = unit_of(key).removesuffix("s") if known == {1} else unit_of(key)
                found.setdefault(f"{ends} {unit}", []).append(self._named(key))
        if not found:
            return "N is not recorded."
        if len(found) == 1 and len(next(iter(found.values()))) == len(self.keys):
            return f"N = {next(iter(found))}."
        return f"N: {'; '.join(f'{text} ({some_of(names, _MOST_NAMED)})' for text, names in found.items())}."

    def _named(self, key: ColumnKey) -> str:
        several = sum(one.task == key.task for one in self.keys) > 1
        return f"{self._title(key)} {key.metric}" if several or key.is_headline else self._title(key)


def _about(number: ReportedNumber | None) -> str:
    """Return what a number's interval is about, in words; empty without an interval."""
    if number is None or number.low is None or number.high is None:
        return ""
    stated = {str(estimand): words for estimand, words in IN_WORDS.items()}
    if number.estimand in (*stated, *stated.values()):
        return stated.get(number.estimand, number.estimand)
    return IN_WORDS[Interval(number.low, number.high, number.method).estimand]


def _limit(name: str, text: str) -> str:
    return text if text.startswith(name) else f"{name.replace('_', ' ')}: {text}"
