from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.evaluation.judged_kit import rated_task
from tests.faults.command import in_process


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    rated_task(folder / "tasks", 40)
    replies = [{"id": f"rated/{n}/judge/rating/0", "text": str(n % 10)} for n in range(40)]
    (folder / "replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    ended = in_process(
        "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "rated", "--include_path", folder / "tasks",
        "--output_path", folder / "out", "--log_samples", "--judge_model", f"replay:{folder / 'replies.jsonl'}",
    )  # fmt: skip
    assert ended.code == 0, ended.shown
    return folder


def test_draw_fill_score(judged: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    ended = in_process("judge", "plan", judged / "out", "--labels", "16", "--csv", table, "--xlsx", tmp_path / "l.xlsx")
    assert ended.code == 0, ended.shown
    assert "16 of 40 judged documents of rated, drawn at random in 2 strata by the judge's score" in ended.out
    assert "here 0 to 9" in ended.out and (tmp_path / "l.xlsx").is_file()
    lines = table.read_text().splitlines()
    filled = [lines[0], *(line.replace(",,", ",5,", 1) for line in lines[1:])]
    table.write_text("\n".join(filled) + "\n")
    ended = in_process("score", judged / "out", "--human_scores", table)
    assert ended.code == 0, ended.shown
    assert "judge's rating 4.5000; corrected by 16 human scores of 40 documents: 5.0000" in ended.out


def test_bad_input_is_one_line(judged: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("id,score\n0,1\n40,1\n")
    for words, shown in (
        (("score", judged / "out", "--human_scores", wrong), "row 2: task 'rated' has no document '40'"),
        (("judge", "plan", judged / "out", "--labels", "41"), "rated has 40 judged documents"),
        (("judge", "plan", judged / "out", "--labels", "9", "--csv", wrong), "may hold scores"),
        (("judge", "plan", judged / "out", "--labels", "9", "--csv", "labels.txt"), "end the name with .csv"),
        (("judge", "plan", judged / "out", "--labels", "9", "--xlsx", "labels.csv"), "end the name with .xlsx"),
        (("judge", "plan", judged / "out"), "required: --labels"),
        (("judge",), "required: action"),
    ):
        ended = in_process(*words)
        assert ended.code == 2 and shown in ended.err, ended.shown
        assert len([line for line in ended.err.splitlines() if "error:" in line]) == 1
