from __future__ import annotations

import pytest

from lmms_eval.tasks.mmie.facts import QUESTIONS, PublishedRow, published
from lmms_eval.tasks.mmie.summary import CategoryRow, CategoryTable, weighted_average
from tests.cases import for_each

TOLERANCE = 0.015


def test_there_are_twenty_rows() -> None:
    assert len(published()) == 20
    assert len({(row.text_model, row.image_model) for row in published()}) == 20
    assert sum(not row.image_model for row in published()) == 4


@for_each("row", published(), ids=lambda row: f"{row.text_model}-{row.image_model}")
def test_the_published_average_is_that_over_samples(row: PublishedRow) -> None:
    assert weighted_average(row.by_category) == pytest.approx(row.avg, abs=TOLERANCE)
    assert sum(row.by_category.values()) / 3 != pytest.approx(row.avg, abs=TOLERANCE)


@for_each("row", published(), ids=lambda row: f"{row.text_model}-{row.image_model}")
def test_joined_categories_weigh_by_their_samples(row: PublishedRow) -> None:
    """The same by the report's own way: the tasks' rows joined, means over samples."""
    joined = CategoryTable({}, {}, {})
    for tag, count in QUESTIONS.items():
        total = round(row.by_category[tag] / 100 * 6 * count)
        part = CategoryRow(scored=count, total=total, squares=total * 6)
        joined = joined + CategoryTable({"AVG": part, tag: part}, {}, {})
    value = joined.categories["AVG"].as_dict()["percent"]
    assert value == pytest.approx(row.avg, abs=TOLERANCE)
