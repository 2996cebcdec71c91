"""Facts about metrics in a results document: which count documents instead of scoring them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import lmms_eval.tasks
from lmms_eval.results.facts import count_label, is_count
from tests.cases import for_each


@for_each(
    "metric, value, aggregation",
    [
        ("submission", None, ""),
        ("submission", "N/A", ""),
        ("submission", 999, ""),
        ("mmou_submission", None, ""),
        ("predictions", None, ""),
        ("coco_passthrough", None, ""),
        ("nocaps_passthrough", [], ""),
        ("scored", 59, ""),
        ("scored", 59.0, ""),
        ("scored", None, ""),
        ("bypass", 999, ""),
        ("extracted_answers", 999, ""),
        ("any_name", 999, "bypass"),
    ],
)
def test_counts_are_no_scores(metric: str, value: object, aggregation: str) -> None:
    assert is_count(metric, value, aggregation)


@for_each(
    "metric, value",
    [
        ("exact_match", 1.0),
        ("exact_match", None),
        ("", None),
        ("submission", 0.25),
        ("submission", 57),
        ("submission_score", None),
        ("scored", 0.75),
        ("scored", math.nan),
        ("scored", math.inf),
        ("count_accuracy", 0.5),
        ("passthrough_rate", None),
        ("submission\x1b[31m", None),
    ],
)
def test_scores_are_no_counts(metric: str, value: object) -> None:
    assert not is_count(metric, value)


def test_labels_say_what_is_counted() -> None:
    assert count_label("submission") == count_label("mmou_submission") == "answers for submission"
    assert count_label("coco_passthrough") == "answers for submission"
    assert count_label("predictions") == "stored predictions"
    assert count_label("scored") == "scored documents"
    assert count_label("bypass") == "answers, not scored"
    assert count_label("of_another_name") == "documents"


METRIC = re.compile(r"- metric: (\S+)\n\s+aggregation: (?:!function )?(\S+)")
WRITES = re.compile(r"\.(write_\w+|aggregate_(submission|predictions|scored))$")


def test_the_counts_of_all_native_tasks_are_known() -> None:
    files = sorted(Path(lmms_eval.tasks.__file__).parent.rglob("*.yaml"))
    listed = {found.groups() for path in files for found in METRIC.finditer(path.read_text(encoding="utf-8"))}
    counting = {metric for metric, aggregation in listed if WRITES.search(aggregation)}
    assert counting == {"submission", "predictions", "scored", "coco_passthrough"}
    assert {metric for metric, _ in listed if is_count(metric)} == counting
