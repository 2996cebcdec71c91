"""A file of answers for the stand-alone script: its samples, their outcomes and the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.tasks.mmie.data.records import Route, route
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts
from lmms_eval.tasks.mmie.scoring import NO_SCORE, Outcome, valid_score
from lmms_eval.tasks.mmie.submission import AnsweredRecord, RecordProblem, processed_record, read_records
from lmms_eval.tasks.mmie.summary import table
from lmms_eval.tasks.mmie.view import Find, View, ViewedPicture, ViewOptions, build_view

NAMED: tuple[Outcome, ...] = ("unparsable", "unscored", "skipped")
"""Outcomes with samples that the summary names."""
UNREADABLE = "media:"
"""Beginning of the reasons for missing replies about a picture that could not be read."""


class ViewedRecord(Struct, frozen=True):
    """A record and the judge's view of it."""

    position: int
    """Its place in the file, from 0."""
    record: AnsweredRecord
    view: View
    route: Route
    occurrence: int
    """Number among the records of the same id, from 0."""

    @property
    def id(self) -> Any:
        return self.record.id

    @property
    def key(self) -> tuple[str, int]:
        """A unique key of the sample, even if several share its id."""
        return json.dumps(self.id, sort_keys=True), self.occurrence

    @property
    def category(self) -> str:
        """Tag of the sample. Raises ``LookupError`` if it belongs to no category."""
        if self.route.category is None:
            raise LookupError(f"record {self.position} ({self.id!r}) belongs to no category")
        return self.route.category

    def processed(self) -> dict[str, Any]:
        return processed_record(self.record, self.view)

    def question(self, prompts: JudgeTexts) -> JudgeQuestion:
        from lmms_eval.tasks.mmie.judge_questions import judge_question  # it needs what asks models

        return judge_question(self.view, self.category, self.record.reference_text, prompts)


class Input(Struct, frozen=True):
    """The samples of a file."""

    samples: tuple[ViewedRecord, ...]
    """Samples for the judge, in the order of the file."""
    skipped: tuple[ViewedRecord, ...]
    """Samples with too many pictures."""
    problems: tuple[RecordProblem, ...]
    """Records that cannot be judged. A sample may be among them."""
    n_records: int

    def everyone(self) -> list[ViewedRecord]:
        """All samples, skipped ones included, in the order of the file."""
        return sorted((*self.samples, *self.skipped), key=lambda sample: sample.position)

    @property
    def to_judge(self) -> tuple[int, ...]:
        """Indices of the samples that have no problem."""
        bad = {problem.position for problem in self.problems}
        return tuple(index for index, sample in enumerate(self.samples) if sample.position not in bad)


def read_input(
    content: Any,
    where: str,
    find: Find,
    view: ViewOptions | None = None,
    strict_images: bool = False,
    category_by_name: bool = False,
) -> Input:
    """Read the samples of the content of a file, which ``where`` names. ``find`` finds pictures.

    If ``strict_images``, a missing picture fails its record. If ``category_by_name``, the record's category overrides
    that of its id. Raises ``DataError`` if the top level is not a list.
    """
    records, problems = read_records(content, where)
    samples: list[ViewedRecord] = []
    skipped: list[ViewedRecord] = []
    seen: Counter[str] = Counter()
    for position, record in records.items():
        shown = build_view(record.question, record.answer, find, view)
        name, way = json.dumps(record.id, sort_keys=True), route(record.id, record.category, category_by_name)
        (skipped if shown.is_skipped else samples).append(ViewedRecord(position, record, shown, way, seen[name]))
        seen[name] += 1
        if way.category is None:
            reason = f"id {record.id!r} belongs to no category: it does not hold SA, PBL or MSR (upper case)"
        elif strict_images and shown.missing:
            reason = f"{', '.join(shown.missing)} not found (--strict_images)"
        else:
            continue
        problems.append(RecordProblem(position, record.id, reason))
    problems.sort(key=lambda problem: problem.position)
    return Input(tuple(samples), tuple(skipped), tuple(problems), len(content))


def sample_rows(data: Input, feedback: Mapping[int, str], failures: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return a row for each sample that can be judged, in the order of the file, without failed ones.

    ``feedback`` holds the judge's replies by index of the sample, ``failures`` the reasons for missing ones.
    """
    bad = {problem.position for problem in _problems(data, failures)}
    rows = [
        {**_row(sample, "skipped"), "reason": f"{len(sample.view.images)} pictures"}
        for sample in data.skipped
        if sample.position not in bad
    ]
    for index, sample in enumerate(data.samples):
        if sample.position in bad:
            continue
        if index not in feedback:
            rows.append({**_row(sample, "unscored"), "reason": failures.get(index, "")})
        elif (score := valid_score(feedback[index])) is not None:
            rows.append({**_row(sample, "scored"), "score": score})
        else:
            rows.append({**_row(sample, "unparsable"), "reason": NO_SCORE})
    return sorted(rows, key=lambda row: int(row["position"]))


def _row(sample: ViewedRecord, outcome: Outcome) -> dict[str, Any]:
    record, view = sample.record, sample.view
    return {
        "id": sample.id,
        "position": sample.position,
        "category": sample.category,
        "field": record.field,
        "subfield": record.subfield,
        "outcome": outcome,
        "score": None,
        "answer_chars": len(view.answer),
        "answer_images": sum(isinstance(piece, ViewedPicture) for piece in view.answer_pieces),
        "lost_texts": view.lost_texts,
        "lost_images": view.lost_images,
        "missing_images": len(view.missing),
        "reason": "",
    }


def _problems(data: Input, failures: Mapping[int, str]) -> list[RecordProblem]:
    """Return the unusable records, those with an unreadable picture included, in the order of the file."""
    unreadable = ((data.samples[index], text) for index, text in failures.items() if text.startswith(UNREADABLE))
    problems = [*data.problems, *(RecordProblem(sample.position, sample.id, text) for sample, text in unreadable)]
    return sorted(problems, key=lambda problem: problem.position)


def summary(data: Input, rows: Sequence[Mapping[str, Any]], failures: Mapping[int, str]) -> dict[str, Any]:
    """Sum up the scores with their counts, and name every record that is not simply scored."""
    named: dict[str, list[dict[str, Any]]] = {outcome: [] for outcome in NAMED}
    for row in rows:
        if row["outcome"] in named:
            keys = ("position", "id", "reason") if row["reason"] else ("position", "id")
            named[row["outcome"]].append({key: row[key] for key in keys})
    everyone = data.everyone()
    return {
        "records": data.n_records,
        **table(rows).as_dict(),
        "failed": [{"position": one.position, "id": one.id, "error": one.message} for one in _problems(data, failures)],
        **named,
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


def warnings(data: Input) -> list[str]:
    """Return remarks on records that are irregular but judged."""
    found = []
    for sample in data.everyone():
        where = f"record {sample.position}"
        if sample.route.warning:
            found.append(f"{where}: {sample.route.warning}")
        if sample.occurrence:
            found.append(f"{where}: id {sample.id!r} occurs for the {sample.occurrence + 1}. time: both are judged")
        if sample.route.category == "MSR" and sample.record.reference_text is None:
            found.append(f"{where}: {sample.id!r} has no reference text: the judge is given an empty one")
    return found


def _place(sample: ViewedRecord) -> dict[str, Any]:
    return {"position": sample.position, "id": sample.id}
