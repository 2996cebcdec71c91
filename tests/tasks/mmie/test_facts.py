from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.tasks.mmie import facts
from lmms_eval.tasks.mmie.facts import QUESTIONS
from lmms_eval.tasks.mmie.summary import CategoryRow, CategoryTable, weighted_average
from lmms_eval.utils.files import Row, read_table

TOLERANCE = 0.015
PUBLISHED = read_table(Path(facts.__file__).with_name("published.tsv"))


def percents(row: Row) -> dict[str, float]:
    return {tag: float(row[tag]) for tag in QUESTIONS}


def test_there_are_twenty_rows() -> None:
    assert len(PUBLISHED) == 20
    assert len({(row["text_model"], row["image_model"]) for row in PUBLISHED}) == 20
    assert sum(not row["image_model"] for row in PUBLISHED) == 4


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['text_model']}-{row['image_model']}")
def test_the_published_average_is_that_over_samples(row: Row) -> None:
    assert weighted_average(percents(row)) == pytest.approx(float(row["AVG"]), abs=TOLERANCE)
    assert sum(percents(row).values()) / 3 != pytest.approx(float(row["AVG"]), abs=TOLERANCE)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['text_model']}-{row['image_model']}")
def test_joined_categories_weigh_by_their_samples(row: Row) -> None:
    """The same by the report's own way: the tasks' rows joined, means over samples."""
    joined = CategoryTable({}, {}, {})
    for tag, count in QUESTIONS.items():
        total = round(percents(row)[tag] / 100 * 6 * count)
        part = CategoryRow(scored=count, total=total, squares=total * 6)
        joined = joined + CategoryTable({"AVG": part, tag: part}, {}, {})
    value = joined.categories["AVG"].as_dict()["percent"]
    assert value == pytest.approx(float(row["AVG"]), abs=TOLERANCE)
