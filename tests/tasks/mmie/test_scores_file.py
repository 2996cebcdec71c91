from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie import compare
from lmms_eval.tasks.mmie.scores_file import calibration, compare_judges, planned, read_scores, scores_csv
from tests.cases import for_each


def sample(number: int, score: int | None, **more: Any) -> dict[str, Any]:
    return {"id": f"SA-{number}", "position": number, "score": score, "field": "A, B", "repeats": [], **more}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(scores_csv([sample(0, 4), sample(1, None, reason='a "quote"'), sample(2, 0)]))
    assert read_scores(path) == {("SA-0", 0): 4, ("SA-2", 2): 0}


def test_other_forms(tmp_path: Path) -> None:
    listed = tmp_path / "human.json"
    listed.write_text(json.dumps([{"id": "SA-0", "score": 2.5}, {"id": "SA-1", "score": None}]))
    assert read_scores(listed) == {("SA-0", None): 2.5}
    script = tmp_path / "eval_result.json"
    replies = ["### Feedback\nx\n### Score\n5", "### Score\n9", None]
    script.write_text(json.dumps([{"id": f"SA-{n}", "gpt_feedback": reply} for n, reply in enumerate(replies)]))
    assert read_scores(script) == {("SA-0", None): 5}


@for_each(
    ("text", "words"),
    [
        ("id,score\nSA-1,x", "row 1: the score 'x' is no number"),
        ("id,score\nSA-1,7", "does not lie between 0 and 6"),
        ("id,score\nSA-1,3\nSA-1,4", "row 2: a second score of 'SA-1'"),
        ("id,position,score\nSA-1,a,3", "the position 'a'"),
        ("name,score\nSA-1,3", "row 1: needs id and score"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "human.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_scores(path)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent"):
        read_scores(tmp_path / "absent.csv")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DataError, match="a list of scores"):
        read_scores(tmp_path / "x.json")


def test_two_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_bytes(scores_csv([sample(number, score) for number, score in enumerate([1, 2, 3, None])]))
    second.write_bytes(scores_csv([sample(number, score) for number, score in enumerate([1, 2, 2, 5])]))
    found = compare_judges(first, second)
    assert (found["n"], found["only_first"], found["only_second"]) == (3, 0, 1)
    assert found["weighted_kappa"] == pytest.approx(2 / 3)
    assert (found["mean_first"], found["mean_second"]) == (2, pytest.approx(5 / 3))
    assert compare.main([str(first), str(second)]) == 0
    assert json.loads(capsys.readouterr().out)["weighted_kappa"] == found["weighted_kappa"]
    assert compare.main([str(first), str(tmp_path / "absent.csv")]) == 2
    assert "absent.csv" in capsys.readouterr().err


def test_calibration() -> None:
    samples = [sample(number, min(6, number % 6 + 1)) for number in range(60)] + [sample(60, None)]
    human = {(f"SA-{number}", None): float(number % 6) for number in range(12)}
    found = calibration(samples, human)
    assert (found["human_scores"], found["n"], found["bias"], found["mse"], found["mae"]) == (12, 12, 1, 1, 1)
    assert found["pearson"] == pytest.approx(1)
    assert found["corrected"]["mean"] == pytest.approx(2.5)
    assert found["corrected"]["percent"] == pytest.approx(2.5 / 6 * 100)
    assert calibration(samples, {("SA-0", 0): 1.0})["corrected"] is None


def test_probabilities_of_a_plan_weight_the_scores(tmp_path: Path) -> None:
    """40 stories that the judge gives 1 and 10 that it gives 5; people give 2 to the former, 3 and 4 to the latter."""
    samples = [sample(number, 1 if number < 40 else 5) for number in range(50)]
    rows = [f"SA-{number},{number},2,low,0.1" for number in range(4)]
    rows += [f"SA-{number},{number},{3 + number % 2},high,0.4" for number in range(40, 44)]
    path = tmp_path / "labels.csv"
    path.write_text("id,position,score,stratum,probability\n" + "\n".join(rows) + "\n")
    found = calibration(samples, read_scores(path), planned(path))
    assert found["corrected"]["mean"] == pytest.approx(0.8 * 2 + 0.2 * 3.5)
    low, high = found["corrected"]["interval"]
    assert 1.5 < low < 2.3 < high < 3.5
    plain = tmp_path / "plain.csv"
    plain.write_text("id,score\nSA-1,2\n")
    assert planned(plain) == []
    path.write_text("id,position,score,stratum,probability\n" + "\n".join(rows[:4]) + "\n")
    with pytest.raises(DataError, match="drawn from 40 judged documents, but the run has 50"):
        calibration(samples, read_scores(path), planned(path))
