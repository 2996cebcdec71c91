from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.tasks.mmie.summary import Row, Table, repeat_agreement, sensitivity, table


def sample(category: str, score: int | None, outcome: str = "scored", **more: Any) -> dict[str, Any]:
    return {
        "category": category, "field": f"F{category}", "subfield": "s", "score": score, "outcome": outcome,
        "repeats": [], "answer_chars": 10, "answer_images": 0, **more,
    }  # fmt: skip


SAMPLES = [
    sample("SA", 4), sample("SA", 1), sample("PBL", 6), sample("PBL", None, "unparsable"),
    sample("MSR", None, "skipped"), sample("MSR", None, "unscored"), sample("PBL", 3),
]  # fmt: skip


def test_means_and_counts() -> None:
    found = table(SAMPLES)
    average = found.categories["AVG"]
    assert list(found.categories) == ["AVG", "SA", "PBL", "MSR"]
    assert (average.n, average.scored, average.unparsable, average.skipped, average.unscored) == (7, 4, 1, 1, 1)
    assert average.mean == average.official == 3.5
    assert average.strict == pytest.approx(14 / 7)
    assert average.ends == [pytest.approx(0.998, abs=1e-3), pytest.approx(5.446, abs=1e-3)]
    assert found.categories["PBL"].mean == 4.5 and found.categories["PBL"].strict == 3
    empty = found.categories["MSR"]
    assert empty.mean is empty.strict is empty.ends is empty.official is None
    assert found.fields["FSA"].as_dict()["percent"] == pytest.approx(2.5 / 6 * 100)


def test_the_official_mean_is_rounded_and_the_other_is_not() -> None:
    row = Row(scored=3, total=10, squares=36)
    assert row.official == 3.333 and row.mean == 10 / 3


def test_tables_of_categories_join_to_that_of_all() -> None:
    whole = table(SAMPLES)
    parts = [table([item for item in SAMPLES if item["category"] == tag]) for tag in ("MSR", "SA", "PBL")]
    joined = Table.from_dict(parts[0].as_dict()) + parts[1] + parts[2]
    assert joined == whole
    assert list(joined.categories) == list(whole.categories)


def test_repeats() -> None:
    assert repeat_agreement(SAMPLES) is None
    units = [[4, 4], [2, 3], [None, 5], [6, 6]]
    found = repeat_agreement([sample("SA", unit[0], repeats=unit) for unit in units])
    assert found is not None
    assert found["askings"] == 2 and found["n"] == 4 and found["all_alike"] == 0.5
    # (4,4), (2,3), (6,6): observed 1/3; expected (0+1+4 + 4+1+16 + 4+9+0) / 9
    assert found["weighted_kappa"] == pytest.approx(1 - (1 / 3) / (39 / 9))
    assert found["means"] == [4, 4.5]
    assert 0.9 < found["krippendorff_alpha"] < 1


def test_sensitivity() -> None:
    samples = [sample("SA", score, answer_chars=10 * score, answer_images=6 - score) for score in range(7)]
    assert sensitivity(samples) == {"length": pytest.approx(1), "pictures": pytest.approx(-1)}
    assert sensitivity(SAMPLES) == {"length": None, "pictures": None}
