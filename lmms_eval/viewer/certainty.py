"""The section "Certainty" of a run's page: for each task, what its numbers are about and what they rest on.

``PARTS`` holds a function for each part. It gets the results document and the name of a task, and yields
``CertaintyPart``. The page shows all parts in the same form, so that a new part needs one function here and no code in
the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from lmms_eval.compare.verdicts import metric_text
from lmms_eval.errors import ConfigError
from lmms_eval.results.facts import part_of
from lmms_eval.results.sample import finite
from lmms_eval.results.summary import decision_lines
from lmms_eval.results.tables import WITHOUT, gap_lines, p_value_text
from lmms_eval.stats.interval import BENCHMARK, GENERALISED, Estimand, Interval
from lmms_eval.utils.records import to_dict

Document = Mapping[str, Any]
"""A results document."""
LIST, LIKE_THESE = "this list", "questions like these"
IN_WORDS: Mapping[Estimand, str] = {BENCHMARK: LIST, GENERALISED: LIKE_THESE}


class CertaintyNumber(Struct, frozen=True):
    """A number with its 95 % interval."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    about: str = ""
    """What the interval is about; empty without one."""
    note: str = ""
    """The method of the interval, or why it is missing."""
    unit: str = ""
    """Unit of a difference: ``pp`` for percentage points."""
    is_difference: bool = False
    """A difference is shown with its sign, on an axis that includes 0."""
    verdict: str = ""
    """What the interval of a difference shows, such as ``ahead on this list``."""


class CertaintyShare(Struct, frozen=True):
    """A piece of a stacked bar."""

    name: str
    value: float


class CertaintyPart(Struct, frozen=True):
    """A part of the section: a sentence, and the numbers that it is about."""

    title: str
    sentence: str
    numbers: Sequence[CertaintyNumber] = ()
    shares: Sequence[CertaintyShare] = ()
    """Pieces of a bar, which together are the whole."""
    notes: Sequence[str] = ()
    """Further sentences, in smaller print."""


def certainty(document: Document) -> dict[str, Any]:
    """Return the section of a run: ``lines`` about all tasks together, and the parts of each task that has any."""
    found = {
        task: [to_dict(part) for make in PARTS for part in make(document, task)]
        for task in part_of(document, "results")
    }
    return {"lines": _of_all_tasks(document), "tasks": {task: parts for task, parts in found.items() if parts}}


def estimand_of(interval: Mapping[str, Any]) -> str:
    """Return what an interval of a results document is about, in plain words; empty if there is no interval."""
    low, high = finite(interval.get("low")), finite(interval.get("high"))
    if low is None or high is None:
        return ""
    stated, method = interval.get("estimand"), str(interval.get("method", ""))
    return IN_WORDS[stated if stated in (BENCHMARK, GENERALISED) else Interval(low, high, method).estimand]


def number(name: str, value: Any, interval: Mapping[str, Any], about: str = "") -> CertaintyNumber:
    """Make a number from an interval of the results document: ``low``, ``high``, and ``method`` or ``reason``."""
    low, high = finite(interval.get("low")), finite(interval.get("high"))
    note = str(interval.get("method") or interval.get("reason") or "")
    if low is None or high is None:
        return CertaintyNumber(name, finite(value), note=note)
    return CertaintyNumber(name, finite(value), low, high, about or estimand_of(interval), note)


def named(key: str) -> str:
    """Return the name of a metric from ``METRIC,FILTER``."""
    metric, _, pipeline = key.rpartition(",")
    return metric_text(metric, pipeline) if metric else key


def _of_all_tasks(document: Document) -> list[str]:
    """Return lines about the decisions and tests of all tasks together."""
    until = part_of(part_of(document, "config"), "resolved_cli_args").get("until")
    tasks = sum("@" not in task for task in part_of(document, "n-samples"))
    controls = part_of(document, "controls")
    tests = [
        finite(part_of(gaps, row).get("p"))
        for task in controls
        for control in part_of(controls, task)
        if control not in _NO_CONTROL and (gaps := part_of(part_of(controls, task), control))
        for row in gaps
        if "p" in part_of(gaps, row)
    ]
    try:
        return [*decision_lines(until if isinstance(until, str) else "", tasks), *gap_lines(tests)]
    except ConfigError:  # a rule of another version
        return gap_lines(tests)


def _value(document: Document, task: str, key: str) -> float | None:
    return finite(part_of(document, "results", task).get(key))


def _interval(document: Document, task: str, key: str) -> Mapping[str, Any]:
    return part_of(part_of(document, "intervals", task), key)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _p_note(p: float | None, depends: str = "") -> str:
    """Return ``p = ...``, with a star below 0.05 or with what it depends on; empty without a p-value."""
    return f"p = {p_value_text(p, depends)}".replace("= <", "<") if p is not None else ""


def _early_stop(document: Document, task: str) -> Iterator[CertaintyPart]:
    stop = part_of(document, "early_stop", task)
    asked, of = finite(stop.get("asked")), finite(stop.get("of"))
    if asked is None or of is None:
        return
    has_anchors = bool(part_of(document, "anchors", task))  # the interval is then that of their estimate
    numbers = [
        number(named(key), value, interval)
        for key in part_of(document, "intervals", task)
        if (value := _value(document, task, key)) is not None
        and estimand_of(interval := _interval(document, task, key))
        and not has_anchors
    ]
    difference = part_of(stop, "difference")
    if difference:
        numbers.append(_difference_on_list(document, task, difference))
    yield CertaintyPart(
        "Stopped early",
        f"{asked:,.0f} of {of:,.0f} documents count: the run stopped once {stop.get('rule', 'a rule')} was met.",
        numbers,
        notes=[
            "This is no official score. Intervals hold at every look, for the score over all documents of the list."
        ],
    )


def _difference_on_list(document: Document, task: str, difference: Mapping[str, Any]) -> CertaintyNumber:
    """Make the difference from the baseline of a rule. It shows who is ahead on the list, never who is better."""
    made = number("difference from the baseline", None, difference, LIST)
    directions = part_of(document, "higher_is_better", task)
    first = next(iter(part_of(document, "intervals", task)), "").rpartition(",")[0]
    verdict = ""
    if made.low is not None and made.high is not None and (made.low > 0 or made.high < 0):
        is_ahead = (made.low > 0) == (directions.get(first) is not False)
        verdict = "ahead on this list" if is_ahead else "behind on this list"
    return structs.replace(made, is_difference=True, verdict=verdict or "cannot tell")


def _sampled(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "sampled", task)
    asked, of = finite(found.get("asked")), finite(found.get("of"))
    if asked is None or of is None:
        return
    kind = " by strata" if found.get("design") == "stratified" else ""
    numbers = []
    for key in part_of(found, "intervals"):
        value = _value(document, task, key)
        numbers.append(number(named(key), value, part_of(part_of(found, "intervals"), key), LIST))
        numbers.append(number(named(key), value, _interval(document, task, key)))
        if numbers[-2].low is None and numbers[-1].low is None:
            del numbers[-2:]
    yield CertaintyPart(
        "Random sample",
        f"{asked:,.0f} of {of:,.0f} documents, drawn at random{kind} by seed {found.get('seed')}.",
        numbers,
    )


def _first_documents(document: Document, task: str) -> Iterator[CertaintyPart]:
    counts, limit = part_of(document, "n-samples", task), part_of(document, "config").get("limit")
    asked, of = finite(counts.get("effective")), finite(counts.get("original"))
    if limit in (None, -1) or asked is None or of is None or asked >= of:
        return
    yield CertaintyPart(
        "First documents only",
        f"The first {asked:,.0f} of {of:,.0f} documents (--limit). Intervals are as wide as those of a random sample, "
        "which the first documents are not.",
    )


def _anchors(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "anchors", task)
    estimate, asked, of = (finite(found.get(key)) for key in ("estimate", "asked", "of"))
    if estimate is None or asked is None or of is None:
        return
    stop = part_of(document, "early_stop", task)
    key = f"{found.get('metric')},{found.get('filter')}"
    names = found.get("runs")
    runs = [str(name) for name in names] if isinstance(names, list) else []
    explained = finite(found.get("r_squared"))
    share = "" if explained is None else f", which explain {_percent(explained)} of the variance (R² = {explained:.2f})"
    notes = [f"{of - asked:,.0f} documents were not asked."] if asked < of else []
    yield CertaintyPart(
        "Anchors",
        f"An estimate over all {of:,.0f} documents from {asked:,.0f} of them and the scores of {len(runs)} earlier "
        f"{'run' if len(runs) == 1 else 'runs'}{share}.",
        [
            number(f"{named(key)}, estimate", estimate, part_of(stop, "interval") or _interval(document, task, key)),
            CertaintyNumber(f"{named(key)}, mean of what was asked", _value(document, task, key)),
        ],
        notes=[*notes, f"Earlier runs: {', '.join(runs)}"],
    )


def _baseline(document: Document, task: str) -> Iterator[CertaintyPart]:
    numbers, names = [], []
    rows, stop = part_of(document, "paired", task), part_of(document, "early_stop", task)
    for key in rows:
        row = part_of(rows, key)
        if (value := finite(row.get("difference"))) is None:
            continue
        early, p = str(row.get("baseline_early") or ""), finite(row.get("pvalue"))
        note = _p_note(p, str(row.get("depends") or "")) or early
        ends = {"low": row.get("ci_lower"), "high": row.get("ci_upper"), "method": note}
        made = number(named(key), value, ends, LIST if early or stop else LIKE_THESE)
        numbers.append(structs.replace(made, unit="pp" if row.get("unit") == "percent" else "", is_difference=True))
        names.append(f"{row.get('baseline')}, {finite(row.get('n')) or 0:,.0f} documents")
    if numbers:
        yield CertaintyPart("Against the baseline", f"Difference from {names[0]} that both runs have.", numbers)


def _published(document: Document, task: str) -> Iterator[CertaintyPart]:
    listed = part_of(document, "published").get(task)
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    numbers, notes = [], []
    for row in rows:
        unit = str(row.get("unit", ""))
        stated = str(row.get("published")) if unit == "%" else f"{row.get('published')} {unit}"
        where = f"{row.get('kind')}: {row.get('source')}"
        if row.get("reason"):
            notes.append(f"{stated} ({where}): {row.get('verdict')}, for {row.get('reason')}.")
            continue
        made = number(f"{named(str(row.get('metric')))}, here less {stated}", row.get("difference"), row, LIKE_THESE)
        made = structs.replace(made, verdict=str(row.get("verdict", "")), note=where)
        numbers.append(structs.replace(made, unit="pp" if unit == "%" else "", is_difference=True))
    if rows:
        yield CertaintyPart(
            "Published numbers",
            f"{rows[0].get('model')}: the difference from what is published. The interval is that of this run, wider "
            "by the rounding of the published number, whose own error is not known.",
            numbers,
            notes=notes,
        )


_SOURCES = {"questions": "questions", "answers": "sampling the answers", "judge": "the judge"}
_AGAIN = {"like_these": LIKE_THESE, "again": "this list, if run again", "rejudged": "these answers, if judged again"}


def _variance(document: Document, task: str) -> Iterator[CertaintyPart]:
    rows = part_of(document, "variance", task)
    for key in rows:
        row = part_of(rows, key)
        known = {name: part for name in _SOURCES if (part := finite(row.get(name))) is not None}
        if len(known) < 2:
            continue
        whole = sum(known.values())
        if not whole:
            continue
        first, *others = (f"{_percent(part / whole)}{{}} from {_SOURCES[name]}" for name, part in known.items())
        comes = f" of the variance of one answer's score ({named(key)}) comes"
        value = _value(document, task, key)
        intervals = {about: part_of(row, name) for name, about in _AGAIN.items()}
        absent = {
            "answers": "Without repeats of the questions, the variance of answers counts as that of the questions.",
            "judge": "Without repeats of the judge, the variance of verdicts counts as that of the answers.",
        }
        of_judge = bool(part_of(document, "judge"))
        yield CertaintyPart(
            "Sources of variance",
            ", ".join([first.format(comes), *(other.format("") for other in others)]) + ".",
            [number(named(key), value, one, about) for about, one in intervals.items() if "low" in one and _told(one)],
            [CertaintyShare(_SOURCES[name], part) for name, part in known.items()],
            [text for name, text in absent.items() if name not in known and (name != "judge" or of_judge)],
        )


def _told(interval: Mapping[str, Any]) -> bool:
    """Return whether a source's interval exists, or is missing for another reason than a lack of repeats."""
    return not str(interval.get("reason", "")).startswith("no repeats")


def _noise(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "noise_floor", task)
    asked, answered = finite(found.get("asked")), finite(found.get("answered"))
    if asked is None or answered is None:
        return
    scores = part_of(found, "scores")
    rows = {"answers": part_of(found, "answers"), **{named(key): part_of(scores, key) for key in scores}}
    yield CertaintyPart(
        "Noise floor",
        f"{asked:,.0f} documents were asked a second time with the same requests; {answered:,.0f} have both answers.",
        [
            number(f"share of changed {name}", row["share"], {"method": "exact", **row}, _AGAIN["again"])
            for name, row in rows.items()
            if finite(row.get("share")) is not None
        ],
    )


_REDUCED = re.compile(r"(.+)_((?:pass@|pass\^|maj@|mean@)\d+)")


def _several_answers(document: Document, task: str) -> Iterator[CertaintyPart]:
    numbers: list[CertaintyNumber] = []
    for key in part_of(document, "intervals", task):
        metric, _, pipeline = key.rpartition(",")
        if (found := _REDUCED.fullmatch(metric)) is None or _value(document, task, key) is None:
            continue
        name, base = metric_text(found[1], pipeline), f"{found[1]},{pipeline}"
        if all(one.name != name for one in numbers):
            numbers.append(number(name, _value(document, task, base), _interval(document, task, base)))
        reduced = number(f"{name} {found[2]}", _value(document, task, key), _interval(document, task, key))
        numbers.append(reduced)
    if numbers:
        sentence = "Exact averages over all ways to draw k of a document's answers."
        yield CertaintyPart("Several answers to a document", sentence, numbers)


def _clusters(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "clusters", task)
    count, documents = finite(found.get("count")), finite(found.get("documents"))
    if count is None or documents is None or count >= documents or part_of(document, "early_stop", task):
        return  # an interval about this list needs no clusters, since the order is random
    kind, _, column = str(found.get("by", "")).partition(" ")
    by = f"by the column {column}" if kind == "column" else f"by the {kind} {column} of a document".replace("  ", " ")
    effective = finite(found.get("effective"))
    most = "" if effective is None else f" They allow at most the certainty of {effective:,.1f} clusters of one size."
    yield CertaintyPart(
        "Clusters", f"Intervals are over {count:,.0f} clusters ({documents:,.0f} documents) {by}.{most}"
    )


def _human_scores(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "human_scores", task)
    corrected, labels, documents = (finite(found.get(key)) for key in ("corrected", "labels", "documents"))
    if corrected is None or labels is None or documents is None:
        return
    key = str(found.get("metric", ""))
    agreement = part_of(found, "agreement")
    bias, pearson = finite(agreement.get("bias")), finite(agreement.get("pearson"))
    notes = [] if found.get("drawn") == "planned" else ["The labelled documents are taken as drawn at random."]
    if bias is not None:
        alike = "" if pearson is None else f"; correlation {pearson:.2f}"
        notes.append(f"Over the labelled documents the judge's mean differs from people's by {bias:+.4f}{alike}.")
    yield CertaintyPart(
        "Human scores",
        f"{labels:,.0f} human scores of {documents:,.0f} documents correct the judge's score ({named(key)}).",
        [
            number("corrected", corrected, part_of(found, "interval"), LIKE_THESE),
            number("corrected", corrected, part_of(found, "on_list"), LIST),
            number("by the judge alone", found.get("judge"), _interval(document, task, key)),
        ],
        notes=notes,
    )


def _missing(document: Document, task: str) -> Iterator[CertaintyPart]:
    outcome = part_of(document, "outcomes", task)
    numbers, counts = [], []
    for key, bounds in part_of(outcome, "missing_bounds").items():
        if not isinstance(bounds, Mapping) or not (count := finite(bounds.get("n"))):
            continue
        counts.append(f"{count:,.0f} of {count + (finite(part_of(outcome, 'n').get(key)) or 0):,.0f}")
        found = {"method": "worst case", **bounds} if finite(bounds.get("low")) is not None else bounds
        about = estimand_of(_interval(document, task, key)) or LIKE_THESE
        numbers.append(number(named(key), _value(document, task, key), found, about))
    if numbers:
        sentence = f"{counts[0]} documents have no score. The bounds hold whatever they would score."
        yield CertaintyPart("Documents without a score", sentence, numbers)


_NO_CONTROL = ("chance", "rotations")


def _controls(document: Document, task: str) -> Iterator[CertaintyPart]:
    found = part_of(document, "controls", task)
    numbers = []
    for control in found:
        for key, gap in part_of(found, control).items():
            if control in _NO_CONTROL or not isinstance(gap, Mapping) or "gap" not in gap:
                continue
            made = number(f"{named(key)} {WITHOUT.get(control, control)}", gap["gap"], part_of(gap, "interval"))
            note = _p_note(finite(gap.get("p"))) or made.note
            numbers.append(structs.replace(made, note=note, is_difference=True))
    if numbers:
        sentence = (
            "What the score loses in each control. A loss around 0 does not show that the model uses what is left out."
        )
        yield CertaintyPart("Controls", sentence, numbers)


PARTS: tuple[Callable[[Document, str], Iterator[CertaintyPart]], ...] = (
    _early_stop,
    _sampled,
    _first_documents,
    _missing,
    _anchors,
    _baseline,
    _published,
    _variance,
    _noise,
    _several_answers,
    _clusters,
    _human_scores,
    _controls,
)
"""The parts of a task, in the order of the page."""
