from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from lmms_eval.compare.matching import match_runs
from lmms_eval.compare.runs import DocumentTexts, RunRows
from lmms_eval.compare.suspects import Suspects, find_suspects, suspect_lines, suspects_csv
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.errors import UsageError
from tests.compare.runs import column, run, task

DOCUMENTS, PLANTED = 5_000, 200


def suspects(runs: list[RunRows]) -> list[Suspects]:
    return find_suspects(match_runs(runs, CompareOptions(reference=runs[0].name)))


def simulated(runs: int, has_answers: bool, best: float = 3.0, seed: int = 0) -> tuple[list[RunRows], set[str]]:
    """Simulate runs over questions with four choices, some with a wrong label, and return the ids of the latter.

    15 % of the questions are far too hard. A run that does not know the answer guesses.
    """
    generator = np.random.default_rng(seed)
    ability = np.linspace(-2, best, runs)
    hard = np.where(generator.random((DOCUMENTS, 1)) < 0.15, 3.5, 0) + generator.standard_normal((DOCUMENTS, 1))
    slope = np.exp(generator.normal(0, 0.4, (DOCUMENTS, 1)))
    knows = generator.random((DOCUMENTS, runs)) < 1 / (1 + np.exp(-slope * (ability - hard)))
    answers = np.where(knows, 0, generator.integers(0, 4, (DOCUMENTS, runs)))
    planted = generator.choice(DOCUMENTS, PLANTED, replace=False)
    labels = np.zeros(DOCUMENTS, int)
    labels[planted] = generator.integers(1, 4, PLANTED)
    scores = (answers == labels[:, None]) * 1.0

    def of_run(number: int) -> RunRows:
        def answer(row: int) -> DocumentTexts | None:
            return DocumentTexts("ABCD"[answers[row, number]], "ABCD"[labels[row]]) if has_answers else None

        return run(f"run{number}", task(list(scores[:, number]), answer=answer))

    return [of_run(number) for number in range(runs)], set(map(str, planted.tolist()))


def precision(found: Suspects, planted: set[str], most: int = 100) -> float:
    return sum(one.id in planted for one in found.found[:most]) / most


@pytest.mark.parametrize(("runs", "best", "least"), [(8, 3.0, 0.9), (12, 3.0, 0.95)])
def test_planted_wrong_labels_come_first(runs: int, best: float, least: float) -> None:
    rows, planted = simulated(runs, has_answers=True, best=best)
    (found,) = suspects(rows)
    assert found.has_votes and found.documents == DOCUMENTS
    assert precision(found, planted) >= least
    assert found.found[0].other_answer == "a"  # the true answer, which the label does not name


def test_without_answers_more_runs_of_more_different_ability_are_needed() -> None:
    rows, planted = simulated(24, has_answers=False, best=5.0)
    (found,) = suspects(rows)
    assert not found.has_votes and precision(found, planted) >= 0.9
    certain = [one for one in found.found if one.q is not None and one.q <= 0.05]
    assert all(one.correlation is not None and one.correlation < 0 for one in certain)
    assert sum(one.id not in planted for one in certain) <= 0.1 * max(1, len(certain))


def small() -> list[RunRows]:
    """Return four runs, of which the weakest alone is right about document 0."""
    scores = [[0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    return [run(name, task([float(one) for one in of_run])) for name, of_run in zip("abcd", scores, strict=True)]


def test_a_table_holds_scores_and_answers_of_all_runs() -> None:
    (found,) = suspects(small())
    assert not found.has_votes  # each answer is a text of its own
    (row,) = csv.DictReader(io.StringIO("".join(suspects_csv([found]))))
    assert (row["task"], row["rank"], row["id"], row["target"]) == ("quiz", "1", "0", "target 0")
    assert (row["share_right"], row["p"], row["other_answer"], row["lead"]) == ("0.25", "0.25", "", "")
    assert float(row["statistic"]) == pytest.approx(found.found[0].correlation)
    assert (row["score d"], row["answer d"], row["score a"]) == ("1.0", "answer 0", "0.0")
    assert found.line(0.05) == (
        "quiz acc: 1 of 6 documents are suspect over 4 runs, by correlation with ability: 0; 0 with q ≤ 0.05"
    )


def test_texts_cannot_become_formulas() -> None:
    rows = [
        run(f"={one.name}", task(list(one.tasks["quiz"].columns["acc,none"].scores), ids=[f"={n}" for n in range(6)]))
        for one in small()
    ]
    text = "".join(suspects_csv(suspects(rows)))
    assert ",'=0," in text and ",=" not in text


def test_lower_may_be_better_and_documents_without_a_score_are_left_out() -> None:
    facts = {"higher_is_better": False, "score_range": None}
    rows = []
    for one in small():
        scores = [*(1 - one.tasks["quiz"].columns["acc,none"].scores), None if one.name == "b" else 0.0]
        rows.append(run(one.name, task([column(scores, **facts)])))
    (found,) = suspects(rows)
    assert found.documents == 6 and [one.id for one in found.found] == ["0"]


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(UsageError, match="--suspects: 3 runs are named; it needs at least 4"):
        suspects(small()[:3])
    # two tasks, each of two runs
    both = [run(one.name, *one.tasks.values(), task([1.0, 0.0], name="other")) for one in small()[:2]]
    others = [run(name, task([float(name == "e"), 1.0], name="other")) for name in "ef"]
    rest = [run(name, task([1.0], ids=["4"])) for name in "gh"]
    with pytest.raises(UsageError, match="no metric has scores of 4 runs over the same documents"):
        suspects([both[0], small()[1], *others, *rest])


def test_one_line_if_nothing_is_suspect() -> None:
    rows = [run(name, task([1.0] * right + [0.0] * (6 - right))) for right, name in enumerate("abcd", start=1)]
    assert list(suspect_lines(suspects(rows), 0.05)) == ["no document is suspect over 4 runs"]
