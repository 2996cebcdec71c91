from __future__ import annotations

import csv
import io
from collections.abc import Callable

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


@pytest.mark.parametrize(("runs", "best", "least"), [(8, 3.0, 0.95)])
def test_planted_wrong_labels_come_first(runs: int, best: float, least: float) -> None:
    rows, planted = simulated(runs, has_answers=True, best=best)
    (found,) = suspects(rows)
    assert found.by == "answers" and found.documents == DOCUMENTS and not found.not_known
    assert precision(found, planted) >= least
    assert found.found[0].other_answer == "A"  # the true answer, which the label does not name
    lines = list(csv.DictReader(io.StringIO("".join(suspects_csv([found])))))
    assert float(lines[99]["expected_wrong"]) == pytest.approx(precision(found, planted), abs=0.04)
    assert float(lines[0]["probability"]) >= float(lines[-1]["probability"]) >= 0.1
    assert "by answers: " in found.line(0.05) and "wrong reference answers expected: " in found.line(0.05)


def test_without_answers_the_model_uses_scores_and_states_no_share() -> None:
    rows, planted = simulated(12, has_answers=False)
    (found,) = suspects(rows)
    assert found.by == "scores" and precision(found, planted) >= 0.75
    assert "share of wrong reference answers not known: without answers" in found.line(0.05)
    assert {one.probability for one in found.found} == {None} and {one.other_answer for one in found.found} == {""}


def test_long_answers_that_are_never_equal_count_as_scores() -> None:
    rows, _ = simulated(4, has_answers=True)
    essays = [
        run(one.name, task(list(one.tasks["quiz"].columns["acc,none"].scores), answer=essay(one.name))) for one in rows
    ]
    (found,) = suspects(essays)
    assert found.by == "scores"


def essay(name: str) -> Callable[[int], DocumentTexts]:
    return lambda row: DocumentTexts(f"{name} thinks about {row}", "B")


def test_letters_are_equal_however_they_are_written() -> None:
    answers = ["(b) because", "B.", "b: it is", "A"]
    rows = [
        run(
            one.name,
            task(
                list(one.tasks["quiz"].columns["acc,none"].scores), answer=lambda _, text=text: DocumentTexts(text, "A")
            ),
        )
        for one, text in zip(small(), answers, strict=True)
    ]
    (found,) = suspects(rows)
    assert found.by == "answers" and found.found[0].id == "0" and found.found[0].other_answer in answers[:3]


def test_two_runs_that_share_mistakes_are_named() -> None:
    rows, _ = simulated(6, has_answers=True)
    (found,) = suspects([*rows, run("copy", rows[2].tasks["quiz"])])
    assert "run2 and copy give" in found.not_known and "expected of independent runs" in found.not_known
    assert {one.probability for one in found.found} == {None}


def test_graded_scores_are_tested_by_their_order() -> None:
    graded = np.linspace(0.1, 0.9, 8)[:, None] * np.linspace(0.5, 1.0, 40)
    graded[:, 7] = graded[::-1, 7]
    (found,) = suspects([run(f"run{number}", task(list(scores))) for number, scores in enumerate(graded)])
    assert found.by == "correlation" and [one.id for one in found.found] == ["7"]
    (row,) = csv.DictReader(io.StringIO("".join(suspects_csv([found]))))
    assert float(row["p"]) < 0.001 and float(row["q"]) <= 0.05 and row["probability"] == row["expected_wrong"] == ""
    assert found.line(0.05).endswith("by correlation: 7; 1 with q ≤ 0.05")


def small() -> list[RunRows]:
    """Return four runs, of which the weakest alone is right about document 0."""
    scores = [[0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    return [run(name, task([float(one) for one in of_run])) for name, of_run in zip("abcd", scores, strict=True)]


def test_a_table_holds_scores_and_answers_of_all_runs() -> None:
    (found,) = suspects(small())
    assert found.by == "answers"
    (row,) = csv.DictReader(io.StringIO("".join(suspects_csv([found]))))
    assert (row["task"], row["rank"], row["id"], row["target"]) == ("quiz", "1", "0", "target 0")
    assert (row["share_right"], row["p"], row["other_answer"]) == ("0.25", "", "answer 0")
    assert float(row["statistic"]) == pytest.approx(found.found[0].correlation)
    assert (row["score d"], row["answer d"], row["score a"]) == ("1.0", "answer 0", "0.0")
    assert found.line(0.05) == (
        "quiz acc: 1 of 6 documents are suspect over 4 runs, by answers: 0; "
        "share of wrong reference answers not known: fewer than 200 documents"
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
