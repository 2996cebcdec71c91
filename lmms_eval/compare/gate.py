"""The gate: one-sided tests of non-inferiority of RUN to BASE by a policy, task by task.

A check is ``held`` if the test rejects, at α, that RUN is worse by the margin or more. It ``fell`` if the test rejects,
with p corrected over all checks, that RUN is worse by at most the margin; in other words, if the one-sided interval
lies below −margin. Otherwise its outcome is "cannot tell". The gate as a whole is held only if every check is, which
needs no correction (intersection-union test; Berger 1982, "Multiparameter hypothesis testing and acceptance sampling",
Technometrics 24).
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Literal
from xml.etree import ElementTree as ET

import yaml
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmms_eval import stats
from lmms_eval.compare.differences import sequential
from lmms_eval.compare.headlines import HeadlineFinding, find_headlines
from lmms_eval.compare.matching import PairedColumn, match_runs
from lmms_eval.compare.redrawing import Redrawing
from lmms_eval.compare.requests import request_notes
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.verdicts import CompareOptions, Pairing, metric_text
from lmms_eval.errors import ConfigError
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import escaped, named_table, printable
from lmms_eval.utils.yaml_bounds import load_bounded, yaml_mistake

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray

    from lmms_eval.stats.differences import PairedFinding

Correction = Literal["holm", "bh", "none"]
_Margin = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Override(_Strict):
    """Keys that override the policy for a pattern of tasks; ``None`` keeps the policy's value."""

    metric: str | None = None
    margin: _Margin | None = None
    minimum_coverage: _Share | None = None
    minimum_documents: _Count | None = None


class GatePolicy(_Strict):
    """The rules of a gate, read from a YAML file."""

    tasks: dict[str, Override] = Field(min_length=1)
    """Overrides by name or pattern (``*``, ``?``, ``[...]``) of tasks, groups and benchmarks' numbers. The first match
    applies."""
    margin: _Margin | None = None
    """How much worse RUN may be, in the units of the score (for scores from 0 to 1, 0.01 is one percentage point)."""
    metric: str | None = None
    """``METRIC`` or ``METRIC,FILTER``; needed if a task has several metrics."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    correction: Correction = "holm"
    minimum_coverage: _Share = 1.0
    """Least share of the documents with a number in both runs."""
    minimum_documents: _Count = 2

    @field_validator("tasks", mode="before")
    @classmethod
    def _without_values(cls, value: object) -> object:
        """Convert a list of names, and names without keys, to patterns without overrides."""
        if isinstance(value, list):
            if not all(isinstance(name, str) for name in value):
                raise ValueError("give names or patterns of tasks")
            value = dict.fromkeys(value)
        return {key: one or {} for key, one in value.items()} if isinstance(value, dict) else value

    def rule(self, pattern: str) -> Rule:
        """Return the rule for the tasks that match a pattern."""
        own = self.tasks[pattern]
        margin = self.margin if own.margin is None else own.margin
        if margin is None:
            raise ConfigError(f"policy: {pattern!r} has no margin; give one for it, or for all tasks")
        return Rule(
            pattern=pattern,
            metric=self.metric if own.metric is None else own.metric,
            margin=margin,
            minimum_coverage=self.minimum_coverage if own.minimum_coverage is None else own.minimum_coverage,
            minimum_documents=self.minimum_documents if own.minimum_documents is None else own.minimum_documents,
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of the file."""
        return tuple(self.rule(pattern) for pattern in self.tasks)


class Rule(_Strict):
    """The limits for the tasks that match a pattern."""

    pattern: str
    metric: str | None
    margin: float
    minimum_coverage: float
    minimum_documents: int

    def fits(self, name: str) -> bool:
        return fnmatch.fnmatchcase(name, self.pattern)


def read_policy(path: Path) -> GatePolicy:
    """Read a policy.

    Raises:
        ConfigError: the file cannot be read or is not a policy; the message names the key and the nearest valid one.
    """
    try:
        content = load_bounded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"policy {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"policy {path} cannot be read: not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"policy {path} is not valid YAML: {yaml_mistake(error)}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"policy {path}: give keys and values, at least tasks and margin")
    try:
        policy = GatePolicy.model_validate(content)
        policy.rules  # noqa: B018 - reports a pattern without a margin
    except ValidationError as error:
        raise ConfigError(f"policy {path}: {'; '.join(_mistakes(error))}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return policy


def _mistakes(error: ValidationError) -> Iterable[str]:
    """Yield a sentence for each mistake, with the nearest valid key for an unknown one."""
    for one in error.errors():
        where = [str(part) for part in one["loc"]]
        if one["type"] == "extra_forbidden":
            known = list(Override.model_fields if len(where) > 1 else GatePolicy.model_fields)
            close = difflib.get_close_matches(where[-1], known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"keys: {', '.join(known)}"
            yield f"unknown key {'.'.join(where)!r}; {hint}"
        elif one["type"] == "missing":
            yield f"the key {'.'.join(where)!r} is missing"
        elif one["type"] in ("dict_type", "model_type"):
            yield f"{'.'.join(where)}: give {'keys and values' if len(where) > 1 else 'names or patterns of tasks'}"
        elif one["type"] == "too_short":
            yield f"{'.'.join(where)}: name at least one task"
        else:
            yield f"{'.'.join(where)}: {one['msg']}"


Outcome = Literal["held", "fell", "cannot tell"]


class Check(Struct, frozen=True):
    """The check of one number."""

    name: str
    metric: str
    margin: float
    outcome: Outcome = "cannot tell"
    reason: str = ""
    """Why the outcome is "cannot tell" for another reason than the data; empty otherwise."""
    run: float | None = None
    base: float | None = None
    difference: float | None = None
    """RUN minus BASE, in the units of the score."""
    interval: stats.Interval | None = None
    """Two-sided interval of the difference with level 1 − 2α, so that each end is a one-sided limit at α."""
    p_held: float | None = None
    p_fell: float | None = None
    """p-values; ``p_fell`` is corrected over the checks."""
    documents: int = 0
    """Documents with a number in both runs."""
    coverage: float = 0.0
    higher_is_better: bool = True
    missing: int = 0
    """Documents that both runs have, without a number in one of them."""
    p_missing: tuple[float, float] | None = None
    """``p_held`` if their numbers were those that speak most against RUN, and most in its favour; ``None`` if there
    are no such documents, or an interval takes them into account."""


class GateResult(Struct, frozen=True):
    """All checks of a gate."""

    run: str
    base: str
    alpha: float
    correction: Correction
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """Sentences about other differences between the runs than their models."""

    @property
    def outcome(self) -> Outcome:
        """``fell`` if a check fell, ``held`` if all are held."""
        outcomes = {check.outcome for check in self.checks}
        return "fell" if "fell" in outcomes else "held" if outcomes == {"held"} else "cannot tell"


_Candidates = Mapping[tuple[str, str, str], PairedColumn | HeadlineFinding]
"""The numbers that a rule can name, by name, metric and filter: columns of tasks, and headline numbers."""


def check_gate(run: RunRows, base: RunRows, policy: GatePolicy) -> GateResult:
    """Test RUN against BASE by a policy.

    Raises:
        UsageError: the runs have no task or document in common, or a rule matches a task of several metrics and names
            none.
        DataError: the same id means different documents.
    """
    (pair,) = match_runs([run, base], CompareOptions(alpha=2 * policy.alpha))
    shared = {column.task: column.shared for column in pair.columns}
    headlines = find_headlines(pair.first, pair.second, shared, Redrawing(level=1 - 2 * policy.alpha))
    found: dict[tuple[str, str, str], PairedColumn | HeadlineFinding] = {
        (one.row.name, one.row.metric, one.row.filter): one for one in headlines
    }
    for column in pair.columns:
        key = column.task, column.metric, column.filter
        if key not in found and column.is_mean and column.has_both.any():
            found[key] = column
    checks: list[Check] = []
    taken: set[str] = set()
    for rule in policy.rules:
        checks += _checks_of(rule, found, (pair.first, pair.second), policy.alpha, taken)
    count = len(checks)
    checks = [_early(check, found, policy.alpha / count) for check in checks]
    decided, notes = tuple(_decide(checks, policy)), tuple(request_notes(pair.first, pair.second))
    return GateResult(run.name, base.name, policy.alpha, policy.correction, decided, notes)


def _checks_of(
    rule: Rule, known: _Candidates, runs: tuple[RunRows, RunRows], alpha: float, taken: set[str]
) -> Iterator[Check]:
    names = dict.fromkeys([*(name for run in runs[::-1] for name in run.tasks), *(name for name, _, _ in known)])
    fitting = [name for name in names if rule.fits(name)]
    if not fitting:
        yield Check(rule.pattern, rule.metric or "", rule.margin, reason="neither run has such a task or number")
    for name in fitting:
        if name in taken:
            continue
        taken.add(name)
        own = {
            f"{metric},{pipeline}": source
            for (task, metric, pipeline), source in known.items()
            if task == name and rule.metric in (None, metric, f"{metric},{pipeline}")
        }
        if len(own) > 1:
            raise ConfigError(f"policy: {name} has several metrics; name one of them (metric): {', '.join(own)}")
        lacking = [run.name for run in runs if name not in run.tasks]
        if own:
            yield _tested(next(iter(own.values())), rule, alpha)
        elif lacking and len(lacking) < len(runs):
            yield Check(name, rule.metric or "", rule.margin, reason=f"{lacking[0]} does not have this task")
        else:
            what = f"{rule.metric} " if rule.metric else "number "
            reason = f"no document has a {what}in both runs that can be compared"
            yield Check(name, rule.metric or "", rule.margin, reason=reason)


def _tested(source: PairedColumn | HeadlineFinding, rule: Rule, alpha: float) -> Check:
    """Test one number, unless it misses a minimum of the policy, which is then its reason."""
    check = _of_column(source, rule, alpha) if isinstance(source, PairedColumn) else _of_headline(source, rule)
    if check.documents < rule.minimum_documents:
        return replace(check, reason=f"{check.documents} documents, fewer than {rule.minimum_documents}", p_held=None)
    if check.coverage < rule.minimum_coverage:
        shown, least = math.floor(check.coverage * 10_000) / 100, 100 * rule.minimum_coverage
        reason = f"{shown:.2f} % of the documents have a number in both runs, fewer than {least:g} %"
        return replace(check, reason=reason, p_held=None)
    return check


def _coverage(pairing: Pairing) -> float:
    """Return the share of documents with a number in both runs; documents without one in both count twice."""
    lost = pairing.only_first + pairing.only_second + sum(pairing.unscored) + sum(pairing.failed)
    return pairing.paired / (pairing.paired + lost) if pairing.paired else 0.0


def _of_headline(found: HeadlineFinding, rule: Rule) -> Check:
    row = found.row
    check = Check(
        row.name, metric_text(row.metric, row.filter), rule.margin, run=row.first, base=row.second,
        difference=row.value, interval=row.interval, documents=row.pairing.paired, coverage=_coverage(row.pairing),
        higher_is_better=row.higher_is_better,
    )  # fmt: skip
    if row.interval is None or not found.error > 0:
        return replace(check, reason=row.no_interval or "no standard error")
    check = replace(check, p_held=_headline_p(found, rule.margin))
    if not found.missing:
        return check
    worst, best = 1.0, 0.0  # an unknown p neither holds nor falls
    if found.ends is not None:
        ends = found.ends if row.higher_is_better else found.ends[::-1]
        ps = [_headline_p(one, rule.margin) for one in ends]
        worst, best = worst if ps[0] is None else ps[0], best if ps[1] is None else ps[1]
    return replace(check, missing=found.missing, p_missing=(worst, best))


def _headline_p(found: HeadlineFinding, margin: float) -> float | None:
    """Return the p of the hypothesis that RUN is worse by the margin or more."""
    if found.row.higher_is_better:
        return found.tail(-margin)
    above = found.tail(margin)
    return None if above is None else 1 - above


def _of_column(column: PairedColumn, rule: Rule, alpha: float) -> Check:
    import numpy as np

    from lmms_eval.stats.differences import non_inferiority_p

    both = column.has_both
    first, second = column.first[both], column.second[both]
    everywhere = np.ones(len(both), bool)
    pairing = column.shared.counts(np.isfinite(column.first), np.isfinite(column.second), everywhere)
    check = Check(
        column.task, metric_text(column.metric, column.filter), rule.margin, run=float(first.mean()),
        base=float(second.mean()), difference=float((first - second).mean()), documents=pairing.paired,
        coverage=_coverage(pairing), higher_is_better=column.higher_is_better,
    )  # fmt: skip
    if column.shared.stopped_early:
        return check
    found = _paired(column, (column.first, column.second), both, alpha)
    check = _with_missing(check, column, rule, alpha)
    if isinstance(found.interval, stats.NoInterval):
        return _alike(check, column, found.interval.reason)
    low, high = found.interval.low, found.interval.high
    ends = (low, high) if column.higher_is_better else (-high, -low)
    bounds = stats.Interval(*ends, found.interval.method)
    return replace(check, interval=bounds, p_held=non_inferiority_p(found, rule.margin))


def _paired(
    column: PairedColumn, scores: tuple[NDArray[float64], NDArray[float64]], where: NDArray[bool_], alpha: float
) -> PairedFinding:
    """Compare the scores of the marked documents, with positive differences if RUN is better."""
    from lmms_eval.stats.differences import PairOptions, compare_pairs

    names = column.shared.clusters
    clusters = None if names is None else [name for name, has in zip(names, where, strict=True) if has]
    first, second = scores if column.higher_is_better else scores[::-1]
    return compare_pairs(first[where], second[where], clusters, PairOptions(level=1 - 2 * alpha, within=column.within))


def _with_missing(check: Check, column: PairedColumn, rule: Rule, alpha: float) -> Check:
    """Add the p-values if documents without a number speak against RUN, and in its favour."""
    from lmms_eval.stats.differences import non_inferiority_p

    expected = column.expected
    missing = int(expected.sum()) - check.documents
    if not missing:
        return check
    ps = []
    for favours_first, unknown in ((False, 1.0), (True, 0.0)):  # an unknown p neither holds nor falls
        scores = column.completed(favours_first)
        p = None if scores is None else non_inferiority_p(_paired(column, scores, expected, alpha), rule.margin)
        ps.append(unknown if p is None else p)
    return replace(check, missing=missing, p_missing=(ps[0], ps[1]))


def _alike(check: Check, column: PairedColumn, reason: str) -> Check:
    """Test scores without any difference as right-or-wrong scores, which vary most, since they have no spread."""
    from lmms_eval.stats.differences import Discordant, score_statistic

    width = column.within.high - column.within.low
    both = column.has_both
    if not math.isfinite(width) or bool((column.first[both] != column.second[both]).any()) or check.documents < 2:
        return replace(check, reason=reason)
    names = column.shared.clusters
    units = check.documents if names is None else len({name for name, has in zip(names, both, strict=True) if has})
    statistic = score_statistic(Discordant(0, 0, units), max(-1.0, -check.margin / width))
    return replace(check, p_held=NormalDist().cdf(-statistic))


def _early(check: Check, found: _Candidates, alpha: float) -> Check:
    """Decide a check of runs that stopped early by the interval that holds at every look, at α / number of checks."""
    columns = [
        source
        for (name, metric, pipeline), source in found.items()
        if isinstance(source, PairedColumn) and (name, metric_text(metric, pipeline)) == (check.name, check.metric)
    ]
    if not columns or check.reason or not columns[0].shared.stopped_early:
        return check
    made = sequential(columns[0], CompareOptions(alpha=2 * alpha))
    if isinstance(made.interval, stats.NoInterval):
        return replace(check, reason=made.interval.reason)

    def outcome(bounds: stats.Interval) -> Outcome:
        low, high = (bounds.low, bounds.high) if check.higher_is_better else (-bounds.high, -bounds.low)
        return "held" if low > -check.margin else "fell" if high < -check.margin else "cannot tell"

    here = outcome(made.interval)
    if made.anywhere is not None and outcome(made.anywhere) != "cannot tell":
        return replace(check, interval=made.anywhere, outcome=outcome(made.anywhere))
    reason = "" if here == "cannot tell" else f"{here} on this list of documents; unknown for questions like these"
    return replace(check, interval=made.interval, reason=reason)


def _decide(checks: Sequence[Check], policy: GatePolicy) -> Iterator[Check]:
    from lmms_eval.stats.differences import benjamini_hochberg, holm

    def corrected(ps: list[float | None]) -> list[float | None]:
        if policy.correction == "none":
            return ps
        return holm(ps) if policy.correction == "holm" else benjamini_hochberg(ps)

    def outcome(held: float, fell: float) -> Outcome:
        return "held" if held <= policy.alpha else "fell" if fell <= policy.alpha else "cannot tell"

    fell = corrected([None if check.p_held is None else 1 - check.p_held for check in checks])
    # Documents without a number must not be able to change an outcome.
    ends = [(check.p_held, check.p_held) if check.p_missing is None else check.p_missing for check in checks]
    fell_whatever = corrected([
        None if check.p_held is None or best is None else 1 - best
        for check, (_, best) in zip(checks, ends, strict=True)
    ])  # fmt: skip
    for check, p_fell, (worst, _), p_whatever in zip(checks, fell, ends, fell_whatever, strict=True):
        if check.p_held is None or p_fell is None or worst is None or p_whatever is None:
            yield check
            continue
        seen, found = outcome(check.p_held, p_fell), outcome(worst, p_whatever)
        reason = ""
        if seen != found:
            documents = "1 document" if check.missing == 1 else f"{check.missing} documents"
            reason = f"depends on {documents} without a score: {seen} over the others"
        yield replace(check, outcome=found, reason=reason, p_fell=p_fell)


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_WORDS = {"held": "HELD", "fell": "FELL", "cannot tell": "CANNOT TELL"}


def gate_table(result: GateResult, shown: Callable[[str], str] = str) -> str:
    """Format the checks as a table; ``shown`` escapes names and reasons for the output format."""
    columns = {
        "Outcome": [_WORDS[check.outcome] for check in result.checks],
        "Task": [shown(check.name) for check in result.checks],
        "Metric": [shown(check.metric) for check in result.checks],
        "RUN": [_number(check.run) for check in result.checks],
        "BASE": [_number(check.base) for check in result.checks],
        "Difference": [_number(check.difference) for check in result.checks],
        f"{100 * (1 - 2 * result.alpha):.4g} % interval": [_interval(check) for check in result.checks],
        "Margin": [f"{check.margin:g}" for check in result.checks],
        "N": [str(check.documents) for check in result.checks],
        "Why": [shown(why(check)) for check in result.checks],
    }
    return named_table(columns)


def headline(result: GateResult) -> str:
    """Return a one-line summary."""
    counts = [
        f"{sum(check.outcome == one for check in result.checks)} {one}" for one in ("held", "fell", "cannot tell")
    ]
    return f"gate {_WORDS[result.outcome]}: {result.run} against {result.base}, {', '.join(counts)}"


def gate_markdown(result: GateResult) -> str:
    """Format the result as Markdown, for summaries of CI systems."""
    note = (
        f"One-sided tests at {result.alpha:g}, p of a fall corrected: {result.correction}. Differences: RUN minus BASE."
    )
    lines = [note, *map(escaped, result.notes)]
    return f"## {escaped(headline(result))}\n\n{gate_table(result, escaped)}\n" + "\n\n".join(lines) + "\n"


def gate_json(result: GateResult) -> str:
    """Format everything as JSON, unrounded."""
    return (
        json.dumps({"outcome": result.outcome, **to_dict(result)}, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    )


def gate_junit(result: GateResult) -> str:
    """Format the result as JUnit XML: a fall is a failure, and an unsettled check is an error."""
    fell = sum(check.outcome == "fell" for check in result.checks)
    unknown = sum(check.outcome == "cannot tell" for check in result.checks)
    counts = {"tests": str(len(result.checks)), "failures": str(fell), "errors": str(unknown)}
    suites = ET.Element("testsuites", {"name": "lmms-eval gate", **counts})
    name = _allowed(f"{result.run} against {result.base}")
    suite = ET.SubElement(suites, "testsuite", {"name": name, **counts, "skipped": "0"})
    for check in result.checks:
        case = ET.SubElement(
            suite, "testcase", {"classname": _allowed(f"gate.{check.metric or 'task'}"), "name": _allowed(check.name)}
        )
        text = _allowed(f"{why(check)} (n = {check.documents})")
        if check.outcome == "fell":
            ET.SubElement(case, "failure", {"type": "fell", "message": text}).text = text
        elif check.outcome == "cannot tell":
            ET.SubElement(case, "error", {"type": "cannot tell", "message": text}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    if result.notes:
        ET.SubElement(suite, "system-out").text = _allowed("\n".join(result.notes))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def why(check: Check) -> str:
    """Return what an outcome is based on."""
    if check.reason:
        return check.reason
    ends = "" if check.interval is None else f", interval {_interval(check)}"
    found = f"difference {_number(check.difference)}{ends}, margin {check.margin:g}"
    if check.outcome == "cannot tell":
        return f"the documents do not settle it: {found}"
    return found


def _interval(check: Check) -> str:
    return "" if check.interval is None else f"[{_number(check.interval.low)}, {_number(check.interval.high)}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("", printable(text))
