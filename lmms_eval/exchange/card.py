"""Report card of a run: what was measured, how certain it is, how it was made, and what is missing.

The content is the same in both forms, Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.exchange.checklists import ABSENT, ItemAnswer, answers
from lmms_eval.exchange.numbers import PERCENT, ReportedNumber
from lmms_eval.exchange.origins import recipe_facts
from lmms_eval.exchange.run_facts import RunDescription
from lmms_eval.exchange.table_marks import unit_of
from lmms_eval.exchange.table_numbers import ColumnKey, benchmark_numbers
from lmms_eval.results.facts import part_of
from lmms_eval.results.run import Run
from lmms_eval.results.sample import finite
from lmms_eval.results.tables import interval_text
from lmms_eval.utils.terminal import Column, escaped, markdown_table, printable
from lmms_eval.viewer.certainty import IN_WORDS
from lmms_eval.viewer.page import static_page

NO_RECIPE = "No recipe is recorded: the requests follow the tasks and the command line."
NO_CONTROLS = (
    "No control was run (--ablate, --permute_choices, --prompt_variants): the scores do not show what they owe to "
    "memory or shortcuts."
)
LONGEST = 600
"""Most characters of a fact."""


class CardSection(Struct, frozen=True):
    """A section: facts by name, a table, sentences; each may be empty."""

    title: str
    lines: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numeric: tuple[str, ...] = ()
    """Headings of columns of numbers."""
    level: int = 2
    """Level of the heading."""


class Card(Struct, frozen=True):
    """A report card."""

    title: str
    subtitle: str
    sections: tuple[CardSection, ...]

    def markdown(self) -> str:
        """Return the card as Markdown."""
        return "\n".join([f"# {escaped(self.title)}", "", escaped(self.subtitle), "", *map(_markdown, self.sections)])

    def html(self) -> str:
        """Return the card as a page that holds everything, without scripts."""
        body = "\n".join(map(_html, self.sections))
        head = f'<h1>{_text(self.title)}</h1>\n<p class="quiet wrapped">{_text(self.subtitle)}</p>'
        return static_page(self.title, f"<main>\n{head}\n{body}\n</main>")


def card_of(run: Run, about: Mapping[str, str]) -> Card:
    """Return the report card of a run.

    Args:
        run: a run with results.
        about: answers to items of the checklists, by key.

    Raises:
        UsageError: the run has no results, or ``about`` has an unknown key.
    """
    if not run.document:
        raise UsageError(f"{run.source}: no results yet, only a record holds its numbers; continue the run first")
    found = RunDescription(run)
    checked = answers(found, about)
    model = {"model": found.model_version(), "access": found.access(), "developer": found.model.developer}
    details = {name.replace("_", " "): text for name, text in found.model.details.items()}
    sections = (
        _results(found),
        _data(found),
        _certainty(found),
        _judge(found),
        _prompts(found),
        _recipe(found),
        CardSection("Model", facts=_facts({**model, **details})),
        CardSection("Machine and software", facts=_facts({"hardware": found.hardware(), "software": found.software()})),
        CardSection("Cost", facts=_facts({"all requests": found.cost()})),
        _controls(found),
        CardSection("Answers", facts=_facts({"counts": found.quality(), "samples": found.transcripts()})),
        *_checklists(checked),
    )
    state = f"state {run.state}; run {run.date or 'of an unknown date'}; key {run.document.get('run_key', 'unknown')}"
    return Card(f"Report card: {run.name}", state, sections)


def _facts(facts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the facts that are known, long ones shortened."""
    return tuple((name, text if len(text) <= LONGEST else f"{text[:LONGEST]}…") for name, text in facts.items() if text)


def _results(found: RunDescription) -> CardSection:
    own, absent = [], []
    for key, number, reason in benchmark_numbers(found.document):
        if number is None:
            absent.append(f"Not given: {key.task} {key.metric}: {reason or 'no score'}")
        else:
            own.append(_benchmark_row(key, number))
    rows = (*own, *(_row(number) for number in found.shown))
    withheld = (*absent, *(f"Not given: {text}" for numbers in found.numbers for text in numbers.withheld))
    nothing = ("The run gives no number.",) if not rows else ()
    headings = ("task", "metric", "value", "95 % interval", "about", "N", "limits")
    return CardSection("Results", (*nothing, *withheld), (), headings, rows, ("value", "N"))


def _benchmark_row(key: ColumnKey, number: ReportedNumber) -> tuple[str, ...]:
    """Return the row of a benchmark's own number, with its unit and what it counts."""
    task, metric, value, interval, about, n, limits = _row(number)
    n = f"{n} tasks" if n and unit_of(key) == "tasks" else n
    metric = f"{key.metric} (%) ↑" if number.score_range == PERCENT else metric
    return task, metric, value, interval, about, n, limits


def _row(number: ReportedNumber) -> tuple[str, ...]:
    reason = "" if number.low is not None else number.method or "not recorded"
    about = next((words for estimand, words in IN_WORDS.items() if estimand == number.estimand), number.estimand)
    about = "" if number.low is None else about
    direction = {True: "↑", False: "↓", None: ""}[number.higher_is_better]
    return (
        number.task,
        f"{number.name} {direction}".strip(),
        f"{number.value:.4f}",
        interval_text(number.low, number.high, reason) or reason,
        about,
        "" if number.n is None else f"{number.n:,}",
        "; ".join(number.marks.values()),
    )


def _data(found: RunDescription) -> CardSection:
    rows = []
    for source in found.sources:
        asked, whole = found.counts(source.task)
        rows.append(
            (
                source.task,
                source.repository or "local data",
                " ".join(filter(None, (source.configuration, source.split))),
                source.revision or source.stated_revision or "not recorded",
                source.task_hash[:16],
                "" if asked is None else f"{asked:,} of {whole:,}" if whole is not None else f"{asked:,}",
                str(found.part("versions").get(source.task, "")),
            )
        )
    headings = ("task", "data set", "part", "revision", "documents (hash)", "documents", "task version")
    return CardSection("Data", (), (), headings, tuple(rows), ("documents",))


def _certainty(found: RunDescription) -> CardSection:
    about = dict.fromkeys(number.estimand for number in found.shown if number.low is not None)
    sentences = {
        "generalised accuracy": "Intervals are about the expected score over questions like these.",
        "benchmark accuracy": "Intervals are about the score over all documents of the list.",
    }
    lines = [sentences[one] for one in about if one in sentences]
    facts: dict[str, str] = {"intervals": found.uncertainty()}
    for task in found.tasks:
        clusters = found.part("clusters", task)
        if clusters.get("by") not in (None, "none"):
            facts[f"clusters of {task}"] = f"{clusters.get('count')} by {clusters.get('by')}"
        for row, bounds in found.part("outcomes", task, "missing_bounds").items():
            if isinstance(bounds, Mapping) and finite(bounds.get("low")) is not None:
                ends = interval_text(finite(bounds["low"]), finite(bounds.get("high")))
                facts[f"{task} {row}"] = f"{ends} whatever {bounds.get('n')} documents without a score would score"
        for row, split in found.part("variance", task).items():
            facts[f"variance of {task} {row}"] = _shares(split)
    return CardSection("Certainty", tuple(lines), _facts(facts))


def _shares(split: Any) -> str:
    parts = (
        {name: finite(split.get(name)) for name in ("questions", "answers", "judge")}
        if isinstance(split, Mapping)
        else {}
    )
    known = {name: value for name, value in parts.items() if value is not None}
    total = sum(known.values())
    return ", ".join(f"{name} {value / total:.0%}" for name, value in known.items()) if total > 0 else ""


def _judge(found: RunDescription) -> CardSection:
    if found.judged is None:
        return CardSection("Judge", ("No judge was asked.",))
    part = found.part("judge")
    counts = {name: f"{part[name]:,}" for name in ("questions", "answered", "judge_unparsable", "failed")
              if isinstance(part.get(name), int)}  # fmt: skip
    validated = found.judge_validation()
    lines = () if validated else ("No scores by people are recorded: how far the judge agrees with them is not known.",)
    facts = {"judge": found.judge(), **counts, "scores by people": validated}
    for task, entry in found.part("judge_bias").items():
        length = part_of(entry, "length") if isinstance(entry, Mapping) else {}
        if finite(length.get("slope")) is not None:
            ends = interval_text(finite(length.get("low")), finite(length.get("high")), str(length.get("reason", "")))
            facts[f"length bias of {task}"] = f"{length['slope']:+.4g} for each doubling of the answer {ends}"
    return CardSection("Judge", lines, _facts({name.replace("_", " "): text for name, text in facts.items()}))


def _prompts(found: RunDescription) -> CardSection:
    facts = {
        "all prompts": str(found.document.get("prompt_fingerprint") or ""),
        "system instruction": str(found.document.get("system_instruction_sha") or "none"),
        "chat template": str(found.document.get("chat_template_sha") or ""),
        "examples and answers": found.shots_and_repeats(),
        "options": found.settings(),
    }
    rows = tuple(
        (task, str(request.get("sha256", "")))
        for task in found.tasks
        if (request := found.part("effective_requests", task))
    )
    return CardSection("Prompts and requests", (), _facts(facts), ("task", "options of its requests (SHA-256)"), rows)


def _recipe(found: RunDescription) -> CardSection:
    rows = []
    for task, entries in found.part("published").items():
        for one in entries if isinstance(entries, list) else ():
            if isinstance(one, Mapping):
                shown = " ".join(filter(None, (str(one.get("shown") or ""), str(one.get("reason") or ""))))
                rows.append((task, *(str(one.get(name) or "") for name in ("metric", "published", "source")), shown))
    facts = recipe_facts(found.document)
    lines = () if facts else (NO_RECIPE,)
    headings = ("task", "metric", "published", "source", "this run") if rows else ()
    return CardSection("Recipe and published numbers", lines, _facts(facts), headings, tuple(rows), headings[2:3])


def _controls(found: RunDescription) -> CardSection:
    rows = []
    for task, controls in found.part("controls").items():
        for name in controls if isinstance(controls, Mapping) else ():
            if name in ("chance", "rotations"):
                continue
            for row, gap in part_of(controls, name).items():
                if not isinstance(gap, Mapping):
                    continue
                interval = part_of(gap, "interval")
                ends = interval_text(
                    finite(interval.get("low")), finite(interval.get("high")), str(interval.get("reason", ""))
                )
                numbers = [finite(gap.get(key)) for key in ("plain", "score", "gap")]
                shown = ["" if number is None else f"{number:.4f}" for number in numbers]
                rows.append((task, name, row, *shown, ends))
    done = found.alternatives()
    lines = (f"{done[:1].upper()}{done[1:]}.",) if done else (NO_CONTROLS,)
    headings = ("task", "control", "metric", "score", "with the control", "gap", "95 % interval") if rows else ()
    return CardSection("Contamination and shortcuts", lines, (), headings, tuple(rows), headings[3:6])


def _checklists(checked: Sequence[ItemAnswer]) -> Iterator[CardSection]:
    for name in dict.fromkeys(answer.item.list for answer in checked):
        some = [answer for answer in checked if answer.item.list == name]
        absent, partly = sum(not one.text for one in some), sum(one.is_partial for one in some)
        counts = f"{len(some) - absent - partly} are filled, {partly} in part, {absent} are absent"
        words = "The items are in our words, in the order of the document; what people added is marked."
        yield CardSection(f"Checklist: {name}", (f"Of {len(some)} items {counts}. {words}",))
        for section in dict.fromkeys(one.item.section for one in some):
            rows = tuple(
                (one.item.text, f"{one.shown}{' (stated by people)' if one.is_stated else ''}")
                for one in some
                if one.item.section == section
            )
            yield CardSection(section, (), (), ("item", "answer"), rows, level=3)


def _markdown(section: CardSection) -> str:
    parts = [f"{'#' * section.level} {escaped(section.title)}\n"]
    parts += [f"{escaped(line)}\n" for line in section.lines]
    parts += ["\n".join(f"* {escaped(name)}: {escaped(text)}" for name, text in section.facts) + "\n"] * bool(
        section.facts
    )
    if section.rows:
        columns = zip(section.headings, zip(*section.rows, strict=True), strict=True)
        table = [Column(name, tuple(map(escaped, cells)), name not in section.numeric) for name, cells in columns]
        parts.append(markdown_table(table))
    return "\n".join(parts)


def _text(text: str) -> str:
    return escape(printable(text))


def _html(section: CardSection) -> str:
    parts = [f"<h{section.level}>{_text(section.title)}</h{section.level}>"]
    parts += [f'<p class="wrapped">{_text(line)}</p>' for line in section.lines]
    if section.facts:
        facts = "".join(f"<dt>{_text(name)}</dt><dd><bdi>{_text(text)}</bdi></dd>" for name, text in section.facts)
        parts.append(f'<dl class="facts">{facts}</dl>')
    if section.rows:
        kinds = [' class="number"' if name in section.numeric else "" for name in section.headings]
        head = "".join(f"<th{kind}>{_text(name)}</th>" for name, kind in zip(section.headings, kinds, strict=True))
        rows = "".join(
            "<tr>" + "".join(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
            for row in section.rows
        )
        label = escape(section.title, quote=True)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        parts.append(f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{table}</div>')
    return "\n".join(parts)


def _cell(text: str, kind: str) -> str:
    quiet = ' class="quiet"' if text.startswith(ABSENT) else ""
    return f"<td{kind}><bdi{quiet}>{_text(text)}</bdi></td>"
