"""The whole way over loopback: answers with pictures, a judge, and SIGKILL in the generation and in the judging."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.tasks.mmie.scores_file import compare_judges
from tests.faults.command import lmms_eval, results
from tests.servers.stub import StubServer
from tests.tasks.mmie.kit import UNREADABLE, judged_data, prompt_file, score_of, start, words

EACH = 12
RECORDS = 3 * EACH
CONCURRENCY = 4
SKIPPED = 2
"""Position of the record with five pictures."""
PAINTING = {"fault": "pictures", "share": 0.6}
ATTEMPTS = 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    judged_data(tmp_path / "data", EACH)
    return tmp_path / "data"


def numbers(out: Path) -> dict[str, Any]:
    """What must not depend on the way: the benchmark's numbers."""
    found = results(out)
    part = dict(found["mmie"]["mmie"])
    return {"mmie": part, "report": found["mmie_report"], "results": found["results"], "outcomes": found["outcomes"]}


def scores(out: Path) -> list[dict[str, str]]:
    with (out / "submissions" / "mmie_scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_so()


@dataclass(frozen=True)
class FinishedRun:
    """A run that nothing disturbed."""

    out: Path
    printed: str
    document: dict[str, Any]
    asked: int
    """Questions to the judge."""
    bodies: list[dict[str, Any]]

    @property
    def numbers(self) -> dict[str, Any]:
        part: dict[str, Any] = self.document["mmie"]["mmie"]
        return part


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    folder = tmp_path_factory.mktemp("finished")
    judged_data(folder / "data", EACH)
    with StubServer(**PAINTING) as model, StubServer() as judge:
        ended = lmms_eval(*words(folder / "data", folder / "out", model, judge))
        assert ended.code == 0, ended.shown
        out = folder / "out"
        return FinishedRun(out, ended.out, results(out), judge.stats()["total"], judge.bodies())


EXPECTED = [score_of(number) for number in range(RECORDS) if number != SKIPPED]
PARSED = [score for score in EXPECTED if score is not None]


def test_means_and_counts(finished: FinishedRun) -> None:
    average = finished.numbers["categories"]["AVG"]
    unparsable = len(EXPECTED) - len(PARSED)
    assert (average["scored"], average["unparsable"], average["skipped"]) == (len(PARSED), unparsable, 1)
    assert average["mean"] == pytest.approx(sum(PARSED) / len(PARSED))
    assert average["strict_mean"] == pytest.approx(sum(PARSED) / RECORDS)
    assert average["percent"] == pytest.approx(average["mean"] / 6 * 100)
    assert finished.document["results"]["mmie"]["mmie_judge,none"] == average["mean"]
    assert finished.document["judge"]["judge_unparsable"] == unparsable
    assert finished.asked == len(PARSED) + ATTEMPTS * unparsable
    assert finished.document["outcomes"]["mmie"]["reasons"] == {"unscored: skipped: 5 pictures, more than 4": 1}
    assert len(finished.numbers["fields"]) == 5 and len(finished.numbers["subfields"]) == 6
    assert "the token overlap that lmms-eval calls mmie is the task mmie_f1" in finished.printed
    assert "no published number" in finished.printed and "of 20103 questions" in finished.printed


def test_the_judge_saw_the_pictures(finished: FinishedRun) -> None:
    assert finished.numbers["notes"]["answers_with_pictures"] > RECORDS // 4
    assert finished.numbers["notes"]["skipped_ids"] == ["MSR-02"]
    contents = [body["messages"][-1]["content"] for body in finished.bodies]
    assert {sum(piece["type"] == "image_url" for piece in content) for content in contents} == {1, 2, 3}


def test_files(finished: FinishedRun) -> None:
    expected = [None if number == SKIPPED else score_of(number) for number in range(RECORDS)]
    assert [row["score"] for row in scores(finished.out)] == ["" if e is None else str(e) for e in expected]
    answers = json.loads((finished.out / "submissions" / "mmie_to_evaluate.json").read_text())
    stored = {segment["image"] for record in answers for segment in record["answer"] if segment["image"]}
    assert len(stored) == 1  # the stub has one picture, which is kept once
    assert all((finished.out / "submissions" / path).is_file() and "images" in path for path in stored)
    asked = {segment["image"] for record in answers for segment in record["question"] if segment["image"]}
    assert asked and all(path.startswith("images/") for path in asked)  # as the data set has them
    assert str(finished.out.parent) not in json.dumps(answers)
    (written,) = finished.out.rglob("report.json")
    assert {path.name for path in written.parent.iterdir()} >= {"report.json", "scores.csv"}


def test_the_script_judges_the_answers_of_a_run_alike(finished: FinishedRun, tmp_path: Path) -> None:
    with StubServer() as judge:
        ended = lmms_eval(
            "mmie", "judge", "--input_dir", finished.out / "submissions", "--input_file", "mmie_to_evaluate.json",
            "--output_dir", tmp_path, "--judge_model", "jury", "--judge_base_url", judge.url,
            "--data_root", finished.out.parent / "data",
        )  # fmt: skip
    assert ended.code == 0, ended.shown
    assert "not found" not in ended.out
    same = compare_judges(finished.out / "submissions" / "mmie_scores.csv", tmp_path / "eval_result.scores.csv")
    assert (same["n"], same["only_first"], same["only_second"]) == (len(PARSED), 0, 0)
    assert same["weighted_kappa"] == 1
    assert same["mean_first"] == pytest.approx(finished.numbers["categories"]["AVG"]["mean"])


def test_kills_in_generation_and_in_judging_change_nothing(finished: FinishedRun, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(delay=0.05, **PAINTING) as model, StubServer(delay=0.05) as judge:
        command = words(data, out, model, judge)
        killed = start(command)
        wait_until(lambda: model.stats()["completed"] >= RECORDS // 3)
        killed.kill()
        killed.wait()
        assert model.stats()["total"] < RECORDS
        killed = start(command)
        wait_until(lambda: model.stats()["completed"] >= RECORDS and judge.stats()["completed"] >= RECORDS // 2)
        killed.kill()
        killed.wait()
        assert judge.stats()["total"] < finished.asked
        ended = lmms_eval(*command)
        assert ended.code == 0, ended.shown
        asked_model, asked_judge = model.stats(), judge.stats()
    assert numbers(out) == numbers(finished.out)
    assert scores(out) == scores(finished.out)
    assert len(asked_model["by_body"]) == RECORDS
    assert asked_model["total"] - RECORDS <= 2 * CONCURRENCY  # what was in flight at the two kills
    assert len(asked_judge["by_body"]) == len(EXPECTED)
    assert asked_judge["total"] - finished.asked <= 2 * CONCURRENCY


def test_the_judge_may_come_later_and_be_asked_more_often(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(**PAINTING) as model, StubServer() as judge:
        without = lmms_eval(*words(data, out, model, None))
        assert without.code == 3 and "no judge: give --judge_model" in without.out
        asked = model.stats()["total"]
        human = tmp_path / "human.csv"
        rows = [f"{record['id']},{score_of(number) or 1}" for number, record in enumerate(read(data)) if number < 20]
        human.write_text("id,score\n" + "\n".join(rows))
        more = ("--judge_repeats", "2", "--human_scores", str(human))
        ended = lmms_eval("score", out, "--judge_model", "jury", "--judge_base_url", judge.url, *more)
        assert ended.code == 0, ended.shown
        assert model.stats()["total"] == asked
    part = results(out)["mmie"]["mmie"]
    n = RECORDS - 1
    assert part["repeats"]["askings"] == 2 and part["repeats"]["n"] == n
    assert part["repeats"]["weighted_kappa"] == part["repeats"]["krippendorff_alpha"] == 1
    assert part["calibration"]["n"] == 20 - 1 - 20 // UNREADABLE
    assert part["calibration"]["corrected"]["interval"][0] < part["calibration"]["corrected"]["mean"]
    assert "2 askings of 35 samples" in ended.out and "mean corrected for bias" in ended.out


def test_other_texts_ask_only_the_judge_again(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(**PAINTING) as model, StubServer() as judge:
        assert lmms_eval(*words(data, out, model, judge, "--limit", "6")).code == 0
        asked, first = model.stats()["total"], results(out)["mmie"]["mmie"]["prompts"]
        judge_asked = judge.stats()["total"]
        chosen = ("--judge_model", "jury", "--judge_base_url", judge.url, "--judge_prompts", prompt_file(tmp_path))
        ended = lmms_eval("score", out, *chosen)
        assert ended.code == 0, ended.shown
        assert model.stats()["total"] == asked == 6
        assert judge.stats()["total"] == 2 * judge_asked
    second = results(out)["mmie"]["mmie"]["prompts"]
    assert (first["source"], Path(second["source"]).name) == ("built-in", "prompts.py")
    assert not first["official"] and not second["official"]
    assert set(first["sha256"]) == set(second["sha256"]) == {"SA", "PBL", "MSR", "lead_in"}
    assert not set(first["sha256"].values()) & set(second["sha256"].values())


def read(data: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads((data / "data.json").read_text())
    return content
