"""A file of answers as the stand-alone script judges it: samples, the benchmark's files, our own summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.tasks.mmie.data.records import Placed, Problem, read_records
from lmms_eval.tasks.mmie.data.routing import Route, route
from lmms_eval.tasks.mmie.judge_prompts import JudgePrompts, judge_question
from lmms_eval.tasks.mmie.scoring import read_score
from lmms_eval.tasks.mmie.submission import FEEDBACK
from lmms_eval.tasks.mmie.summary import table
from lmms_eval.tasks.mmie.view import Find, Picture, View, ViewOptions, build_view, processed_record

Outcome = Literal["scored", "unparsable", "unscored", "skipped"]
NAMED: tuple[Outcome, ...] = ("unparsable", "unscored", "skipped")
"""Outcomes whose samples the summary names."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read."""

    find: Find
    view: ViewOptions = field(default_factory=ViewOptions)
    strict_images: bool = False
    """A picture that is not there fails its record."""
    category_by_name: bool = False
    """The record's own category decides where the id says another."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A record with what its judge sees."""

    placed: Placed
    view: View
    route: Route
    occurrence: int
    """Number among the records of the same id, from 0."""

    @property
    def id(self) -> Any:
        return self.placed.record.id

    @property
    def key(self) -> tuple[str, int]:
        """Names the sample, also where several have its id."""
        return json.dumps(self.id, sort_keys=True), self.occurrence

    @property
    def category(self) -> str:
        """Its tag. Raises ``LookupError`` where the sample belongs to no category."""
        if self.route.category is None:
            raise LookupError(f"record {self.placed.position} ({self.id!r}) belongs to no category")
        return self.route.category

    def processed(self) -> dict[str, Any]:
        return processed_record(self.placed.record, self.view)

    def question(self, prompts: JudgePrompts) -> JudgeQuestion:
        reference = self.placed.record.source.reference_text
        return judge_question(self.view, self.category, reference, prompts)


@dataclass(frozen=True, slots=True)
class Input:
    """What is in a file."""

    samples: tuple[Sample, ...]
    """Those that are shown to a judge or would be, in the order of the file."""
    skipped: tuple[Sample, ...]
    """Those with too many pictures."""
    problems: tuple[Problem, ...]
    """Records that cannot be judged; a sample may be among them."""
    n_records: int

    def everyone(self) -> list[Sample]:
        """All samples, skipped ones included, in the order of the file."""
        return sorted((*self.samples, *self.skipped), key=lambda sample: sample.placed.position)

    @property
    def to_judge(self) -> tuple[int, ...]:
        """Indices of the samples that have no problem."""
        bad = {problem.position for problem in self.problems}
        return tuple(index for index, sample in enumerate(self.samples) if sample.placed.position not in bad)


@dataclass(slots=True)
class Judgements:
    """What the judge said, by index of the sample; an index is in one of the three at most."""

    feedback: dict[int, str] = field(default_factory=dict)
    unanswered: dict[int, str] = field(default_factory=dict)
    """No reply came, and why."""
    unreadable: dict[int, str] = field(default_factory=dict)
    """A picture could not be read, and why."""


def read_input(content: Any, where: str, reading: Reading) -> Input:
    """The samples of a file's content.

    Raises:
        DataError: the top level is no list.
    """
    placed, problems = read_records(content, where)
    samples: list[Sample] = []
    skipped: list[Sample] = []
    seen: Counter[str] = Counter()
    for place in placed:
        source = place.record.source
        view = build_view(source.question, place.record.answer, reading.find, reading.view)
        name = json.dumps(source.id, sort_keys=True)
        sample = Sample(place, view, route(source.id, source.category, reading.category_by_name), seen[name])
        seen[name] += 1
        (skipped if view.is_skipped else samples).append(sample)
        reason = _problem(sample, reading)
        if reason:
            problems.append(Problem(place.position, source.id, reason))
    problems.sort(key=lambda problem: problem.position)
    return Input(tuple(samples), tuple(skipped), tuple(problems), len(placed) + _unread(problems, placed))


def _unread(problems: Sequence[Problem], placed: Sequence[Placed]) -> int:
    return len({problem.position for problem in problems} - {place.position for place in placed})


def _problem(sample: Sample, reading: Reading) -> str | None:
    if sample.route.category is None:
        return f"id {sample.id!r} belongs to no category: it holds none of SA, PBL, MSR (upper case)"
    if reading.strict_images and sample.view.missing:
        return f"{', '.join(sample.view.missing)} not found (--strict_images)"
    return None


class OutputText:
    """The benchmark's output and temporary file, written again and again: every record is rendered once."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        self._texts = [_indented(record) for record in records]

    def judged(self, index: int, feedback: str) -> None:
        """From now on the record has this feedback."""
        self._texts[index] = _indented({**self._records[index], FEEDBACK: feedback})

    def snapshot(self) -> Callable[[], bytes]:
        """Gives the text as it is now, whenever it is called: as ``json.dumps`` with an indent of 4, ASCII only."""
        texts = tuple(self._texts)
        return lambda: ("[\n" + ",\n".join(texts) + "\n]" if texts else "[]").encode("ascii")


def _indented(record: Mapping[str, Any]) -> str:
    return "    " + json.dumps(record, indent=4).replace("\n", "\n    ")


def sample_rows(data: Input, judgements: Judgements) -> list[dict[str, Any]]:
    """A row for each sample that can be judged, in the order of the file; failed ones are not among them."""
    bad = {problem.position for problem in data.problems}
    rows = [
        {**_row(sample, "skipped"), "reason": f"{len(sample.view.images)} pictures"}
        for sample in data.skipped
        if sample.placed.position not in bad
    ]
    for index, sample in enumerate(data.samples):
        if sample.placed.position not in bad and index not in judgements.unreadable:
            rows.append(_judged_row(sample, index, judgements))
    return sorted(rows, key=lambda row: int(row["position"]))


def _judged_row(sample: Sample, index: int, judgements: Judgements) -> dict[str, Any]:
    if index not in judgements.feedback:
        return {**_row(sample, "unscored"), "reason": judgements.unanswered.get(index, "")}
    reading = read_score(judgements.feedback[index])
    if not reading.counted:
        return {**_row(sample, "unparsable"), "reason": "the judge's reply holds no score from 0 to 6"}
    return {**_row(sample, "scored"), "score": reading.score}


def _row(sample: Sample, outcome: Outcome) -> dict[str, Any]:
    source, view = sample.placed.record.source, sample.view
    return {
        "id": sample.id,
        "position": sample.placed.position,
        "category": sample.category,
        "field": source.field,
        "subfield": source.subfield,
        "outcome": outcome,
        "score": None,
        "answer_chars": len(view.answer),
        "answer_images": sum(isinstance(piece, Picture) for piece in view.answer_pieces),
        "lost_texts": view.lost_texts,
        "lost_images": view.lost_images,
        "missing_images": len(view.missing),
        "reason": "",
    }


def summary(data: Input, rows: Sequence[Mapping[str, Any]], judgements: Judgements) -> dict[str, Any]:
    """Scores with their counts, and every record that is not simply scored, by name."""
    problems = [*data.problems, *(_named(data, index, text) for index, text in sorted(judgements.unreadable.items()))]
    problems.sort(key=lambda problem: problem.position)
    everyone = data.everyone()
    return {
        "records": data.n_records,
        **table(rows).as_dict(),
        "failed": [{"position": one.position, "id": one.id, "error": one.message} for one in problems],
        **{outcome: [_of(row) for row in rows if row["outcome"] == outcome] for outcome in NAMED},
        "cut": [
            {**_place(sample), "texts": sample.view.lost_texts, "images": sample.view.lost_images}
            for sample in everyone
            if sample.view.is_cut
        ],
        "missing_images": [
            {**_place(sample), "images": list(sample.view.missing)} for sample in everyone if sample.view.missing
        ],
        "warnings": warnings(data),
    }


def _of(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {"position": row["position"], "id": row["id"]}
    return {**found, "reason": row["reason"]} if row["reason"] else found


def warnings(data: Input) -> list[str]:
    """What is odd about records that are judged all the same."""
    found = []
    for sample in data.everyone():
        where = f"record {sample.placed.position}"
        if sample.route.warning:
            found.append(f"{where}: {sample.route.warning}")
        if sample.occurrence:
            found.append(f"{where}: id {sample.id!r} occurs for the {sample.occurrence + 1}. time: both are judged")
        if sample.route.category == "MSR" and sample.placed.record.source.reference_text is None:
            found.append(f"{where}: {sample.id!r} has no reference text: the judge is given an empty one")
    return found


def _place(sample: Sample) -> dict[str, Any]:
    return {"position": sample.placed.position, "id": sample.id}


def _named(data: Input, index: int, text: str) -> Problem:
    sample = data.samples[index]
    return Problem(sample.placed.position, sample.id, text)
