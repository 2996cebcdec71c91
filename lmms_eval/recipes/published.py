"""Published numbers of models, and the comparison of a run's numbers with them.

``published.tsv`` holds the numbers that a source states in writing, with the source. The comparison takes a published
number as a constant that is known up to its rounding: the error of the run that it comes from is not known.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.errors import UnknownNameError
from lmms_eval.recipes.reading import ACCURACY, PREFIX
from lmms_eval.tasks.facts import facts_of
from lmms_eval.utils.files import read_table
from lmms_eval.utils.numbers import ScoreRange

TABLE = Path(__file__).with_name("published.tsv")
Verdict = Literal["agrees", "differs", "not comparable"]
_UNITS = {"%": 100.0, "points of 1000": 1000.0, "points of 2800": 2800.0}
"""Full marks by unit."""
_KINDS = ("own", "cited", "third-party run")
"""The authors' own numbers, numbers that others quote, and numbers of others' runs, in the order of the table."""
_FORMS = re.compile(r"mathvista_testmini_(cot|format|solution)")
"""Our tasks of MathVista: three forms of the prompt, each of the whole benchmark."""
_WORDS = re.compile(r"[a-z]+|\d+(?:\.\d+)*[a-z]*")
_DATE = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
_SAME_WEIGHTS = frozenset({"hf"})
"""Words of a name that leave the weights as they are."""
_MOST_DIGITS = 2
_IN_SNAPSHOT = 2


class Published(Struct, frozen=True):
    """A published number."""

    model: str
    benchmark: str
    """Name of our task or group."""
    metric: str
    """Name of our metric."""
    value: str
    """The number as it is printed."""
    unit: str
    thinking: bool
    kind: str
    source: str
    note: str
    obstacle: str
    """Why no run of ours is comparable with it; empty if one can be."""

    @property
    def number(self) -> float:
        return float(self.value)

    @property
    def digits(self) -> int:
        """Number of decimals."""
        return len(self.value.partition(".")[2])

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit."""
        return 0.5 * 10.0**-self.digits

    @property
    def label(self) -> str:
        """Number, unit and origin, in words."""
        unit = "" if self.unit == "%" else f" {self.unit}"
        mode = ", with thinking" if self.thinking else ""
        note = f"; {self.note}" if self.note else ""
        return f"{self.value}{unit} ({self.kind}{mode}: {self.source}{note})"


class Ours(Struct, frozen=True):
    """A number of the run."""

    metric: str
    filter: str
    value: float | None
    """``None``: there is no number; ``reason`` states why."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval."""
    within: ScoreRange = ScoreRange(-math.inf, math.inf)
    reason: str = ""
    """Why the number cannot be compared."""

    @property
    def key(self) -> str:
        return f"{self.metric},{self.filter}"


class PublishedPair(Struct, frozen=True):
    """A published number next to one of the run, both in the published unit."""

    row: Published
    key: str = ""
    """``METRIC,FILTER`` of the run's number; empty if the run has none."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends of the run's 95 % interval."""
    reason: str = ""
    """Why the two cannot be compared; empty if they can be."""

    @property
    def difference(self) -> float | None:
        """The run's number less the published one."""
        return None if self.value is None else self.value - self.row.number

    @property
    def ends(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference, wider at both ends by the rounding of the published number."""
        if self.reason or self.low is None or self.high is None:
            return None
        rounding = self.row.rounding
        return self.low - self.row.number - rounding, self.high - self.row.number + rounding

    @property
    def verdict(self) -> Verdict:
        ends = self.ends
        if ends is None:
            return "not comparable"
        return "agrees" if ends[0] <= 0 <= ends[1] else "differs"

    @property
    def shown(self) -> str:
        """The verdict in words, with the difference or the reason."""
        if self.ends is None:
            return f"not comparable: {self.reason}"
        if self.verdict == "agrees":
            return "agrees"
        digits = min(self.row.digits + 1, _MOST_DIGITS)
        low, high = (f"{end:+.{digits}f}" for end in self.ends)
        return f"differs by {self.difference:+.{digits}f} [{low}, {high}]"

    @property
    def cell(self) -> str:
        """The verdict for a table: as ``shown``, without the reason."""
        return self.verdict if self.ends is None else self.shown

    def line(self, name: str) -> str:
        """Return a sentence about the comparison for the task or group ``name``."""
        ours = ""
        if self.ends is not None and self.value is not None:
            digits = min(self.row.digits + 1, _MOST_DIGITS)
            ours = f"; here {self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{name}: published {self.row.label}{ours}: {self.shown}"

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as it is written into the results."""
        row, ends = self.row, self.ends
        return {
            "model": row.model,
            "metric": self.key or row.metric,
            "published": row.value,
            "unit": row.unit,
            "thinking": row.thinking,
            "kind": row.kind,
            "source": row.source,
            "note": row.note,
            "verdict": self.verdict,
            "shown": self.cell,
            "value": self.value,
            "difference": self.difference,
            "low": None if ends is None else ends[0],
            "high": None if ends is None else ends[1],
            "reason": self.reason,
        }


class RunNumbers(Struct, frozen=True):
    """The numbers of one task or group of the run."""

    name: str
    numbers: Sequence[Ours]
    by_recipe: bool = False
    """A recipe sets the prompts."""
    reason: str = ""
    """Why its numbers cannot be compared, such as ``the first 8 of 900 documents``."""
    needs_judge: bool = False
    """Metrics of the task are absent because the run has no judge."""


def normalised(model: str) -> tuple[str, ...]:
    """Return the words of a model's name, so that ``OpenGVLab/InternVL2_5-8B`` and ``InternVL-2.5-8B`` are equal.

    Of a path or a repository the last part counts.
    """
    name = model.strip().rstrip("/")
    parts = name.split("/")
    is_snapshot = len(parts) > _IN_SNAPSHOT and parts[-2] == "snapshots"  # models--OWNER--NAME/snapshots/REVISION
    name = parts[-3].rpartition("--")[2] if is_snapshot else parts[-1]
    name = re.sub(r"(?<=\d)_(?=\d)", ".", _DATE.sub(r"\1\2\3", name.lower()))
    words = [word.removesuffix(".0") if word[0].isdigit() else word for word in _WORDS.findall(name)]
    return tuple(word for word in words if word not in _SAME_WEIGHTS)


@functools.cache
def _by_model() -> dict[tuple[str, ...], list[Published]]:
    found: dict[tuple[str, ...], list[Published]] = {}
    for row in read_table(TABLE):
        texts = {name: text for name, text in row.items() if name != "thinking"}
        made = Published(**texts, thinking=row["thinking"] == "yes")
        found.setdefault(normalised(made.model), []).append(made)
    return found


def published_of(model: str) -> tuple[Published, ...]:
    """Return the published numbers of a model, by any spelling of its name; empty without any."""
    return tuple(_by_model().get(normalised(model), ()))


def full_marks(unit: str) -> float | None:
    """Return the full marks in a published unit; ``None`` if they are not known."""
    return _UNITS.get(unit)


def published_for(rows: Sequence[Published], task: str, metric: str) -> list[Published]:
    """Return the published numbers of a task's or group's metric, the authors' own first."""
    found = [
        row
        for row in rows
        if row.benchmark in (task, _benchmark_of(task)) and metric in (row.metric, ACCURACY, f"{PREFIX}{row.metric}")
    ]
    return sorted(found, key=lambda row: _KINDS.index(row.kind) if row.kind in _KINDS else len(_KINDS))


def models() -> tuple[str, ...]:
    """Return the names of all models with published numbers, sorted."""
    return tuple(sorted({row.model for rows in _by_model().values() for row in rows}))


def check_model(name: str) -> None:
    """Raise ``UnknownNameError`` if no number of a model is published."""
    if not published_of(name):
        raise UnknownNameError("model", name, models(), "(--published: the table holds no number of it)")


def compare_published(model: str, tasks: Iterable[RunNumbers]) -> dict[str, list[PublishedPair]]:
    """Compare the numbers of a run with the published ones of a model.

    Returns the comparisons by task or group: those with a verdict first, then the authors' own numbers, quoted ones and
    those of others' runs.
    """
    rows, found = published_of(model), dict[str, list[PublishedPair]]()
    for task in tasks:
        made = [_compared(row, task) for row in rows if row.benchmark in (task.name, _benchmark_of(task.name))]
        if made:
            found[task.name] = sorted(made, key=_place)
    return found


def _benchmark_of(name: str) -> str:
    return name.rpartition("_")[0] if _FORMS.fullmatch(name) else name


def _place(one: PublishedPair) -> tuple[bool, int]:
    return one.ends is None, _KINDS.index(one.row.kind) if one.row.kind in _KINDS else len(_KINDS)


def _compared(row: Published, task: RunNumbers) -> PublishedPair:
    by_metric = {one.metric: one for one in reversed(task.numbers)}
    names = (ACCURACY, f"{PREFIX}{row.metric}", row.metric)  # the recipe's reading first
    ours = next((by_metric[name] for name in names if name in by_metric), None)
    if row.obstacle or task.reason:
        return PublishedPair(row, "" if ours is None else ours.key, reason=row.obstacle or task.reason)
    if _FORMS.fullmatch(task.name) and not task.by_recipe:
        form = task.name.rpartition("_")[2]
        return PublishedPair(row, reason=f"the source does not state that its prompt is the form {form}")
    if ours is None:
        here = ", ".join(dict.fromkeys(one.metric for one in task.numbers)) or "no number"
        absent = "the run has no judge" if task.needs_judge else f"the run has {here}"
        return PublishedPair(row, reason=f"the published metric is {row.metric}, and {absent}")
    return _placed(row, ours)


def _placed(row: Published, ours: Ours) -> PublishedPair:
    """Return the comparison with our number in the published unit."""
    if ours.reason or ours.value is None:
        return PublishedPair(row, ours.key, reason=ours.reason or "the run has no number")
    whole = _UNITS.get(row.unit, math.nan)
    if ours.within.low != 0 or not math.isfinite(whole / ours.within.high):
        return PublishedPair(
            row, ours.key, reason=f"the range of {ours.metric} is not stated, so its unit is not known"
        )
    scale = whole / ours.within.high
    if ours.low is None or ours.high is None:
        return PublishedPair(row, ours.key, scale * ours.value, reason="the run's number has no interval")
    return PublishedPair(row, ours.key, scale * ours.value, scale * ours.low, scale * ours.high)


def run_numbers(run: RunScores, by_recipe: Collection[str] = (), judge: str = "") -> list[RunNumbers]:
    """Return the numbers of a run's tasks and groups that published ones can be compared with.

    Args:
        run: the numbers of the run.
        by_recipe: names of the tasks whose prompts a recipe sets.
        judge: the run's judge, if it has one.
    """
    tasks = {one.task.name: one for one in run.tasks if not (one.task.control_of or one.task.asks_again)}
    found = [
        RunNumbers(
            name,
            tuple(_number(metric, judge) for metric in one.metrics),
            name in by_recipe,
            _obstacle(one),
            one.task.is_judged and not judge,
        )
        for name, one in tasks.items()
    ]
    for group in run.groups:
        reasons = [reason for leaf in group.leaves if leaf in tasks and (reason := _obstacle(tasks[leaf]))]
        numbers = tuple(_number(metric, judge) for metric in group.metrics)
        found.append(RunNumbers(group.group.name, numbers, reason=next(iter(reasons), "")))
    return found


def _number(metric: MetricResult, judge: str) -> Ours:
    facts = metric.details.get("readings", {}).get(metric.metric, {})
    value = metric.value if isinstance(metric.value, int | float) else None
    interval = metric.interval
    reason = ""
    if value is None:
        reason = metric.withheld_reason or "the run has no number"
    elif interval is None:
        reason = f"the run's number has no interval ({metric.certainty.no_interval or 'no error is known'})"
    elif facts.get("by_judge") and judge != facts["judge"]:
        shown = f"{facts['by_judge']} of {facts['n']}"
        reason = f"{judge} read {shown} answers, and the source's judge is {facts['judge']}"
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return Ours(metric.metric, metric.filter, value, low, high, metric.certainty.score_range, reason)


def _obstacle(task: TaskResult) -> str:
    """Return why no number of a task is comparable with one over the whole benchmark; empty if it is."""
    plan, stop, outcome = task.plan, task.early_stop, task.outcome
    if stop is not None:
        return f"the task stopped early, after {stop.asked:,} of {plan.original:,} documents"
    if plan.requested < plan.original:
        return f"the run has {plan.requested:,} of {plan.original:,} documents"
    facts = facts_of(plan.task.name)
    if facts is not None and facts.documents not in (None, plan.original):
        return f"the data have {plan.original:,} documents, the benchmark has {facts.documents:,}"
    if plan.task.num_fewshot:
        return f"the prompts show {plan.task.num_fewshot} examples, and the source states none"
    if outcome.withheld:
        return f"the score is withheld ({outcome.withheld})"
    if outcome.over_truncation_budget:
        return f"{outcome.answers.truncated / outcome.answers.total:.1%} of the answers were truncated"
    return ""
