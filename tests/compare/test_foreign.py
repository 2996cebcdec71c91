"""Files of other harnesses through the command; logs of inspect_ai are in ``readers/test_inspect_logs.py``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.tasks._task_utils import workbooks
from tests.cases import for_each
from tests.compare.readers.test_evalscope import LINE

COUNT = 30
FIRST = [1.0] * 20 + [0.0] * 10
SECOND = [1.0] * 10 + [0.0] * 19 + [1.0]
DIFFERENCE = "+30.00 pp ["

Write = Callable[[Path, str, Sequence[float]], Path]


def ours(folder: Path, model: str, scores: Sequence[float]) -> Path:
    """Results and samples as this project writes them."""
    folder = folder / "ours" / model
    folder.mkdir(parents=True)
    results = {
        "results": {"quiz": {"acc,none": sum(scores) / len(scores)}},
        "configs": {"quiz": {"metric_list": [{"metric": "acc", "aggregation": "mean", "range": [0, 1]}]}},
        "higher_is_better": {"quiz": {"acc": True}},
        "n-shot": {},
        "model_name": model,
        "run_key": model,
    }
    (folder / "20250101_000000_results.json").write_text(json.dumps(results))
    lines = [
        {"doc_id": number, "filtered_resps": f"{model} {number}", "target": "t", "filter": "none", "status": "scored"}
        for number in range(len(scores))
    ]
    text = [json.dumps({**line, "acc": score}) for line, score in zip(lines, scores, strict=True)]
    (folder / "20250101_000000_samples_quiz.jsonl").write_text("\n".join(text))
    return folder


def lm_eval(folder: Path, model: str, scores: Sequence[float]) -> Path:
    """Lines as lm-eval 0.4.9 logs them, of a multiple-choice task."""
    path = folder / "lm_eval" / model / "samples_quiz_2025-01-01T00-00-00.000000.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {
            "doc_id": number,
            "doc": {"question": f"question {number}"},
            "target": "0",
            "arguments": {"gen_args_0": {"arg_0": f"question {number}", "arg_1": " yes"}},
            "resps": [[["-1.5", "False"]], [["-2.5", "False"]]],
            "filtered_resps": [["-1.5", "False"], ["-2.5", "False"]],
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": f"{number:064x}",
            "prompt_hash": f"{number:064x}",
            "target_hash": "0" * 64,
            "acc": score,
        }
        for number, score in enumerate(scores)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def evalscope(folder: Path, model: str, scores: Sequence[float]) -> Path:
    path = folder / "reviews" / model / "quiz.jsonl"
    path.parent.mkdir(parents=True)
    lines = []
    for number, score in enumerate(scores):
        line = json.loads(LINE)
        line["index"] = number
        line["sample_score"] |= {"sample_id": number, "group_id": number}
        line["sample_score"]["score"] |= {"value": {"acc": score}}
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines))
    return path


def vlmevalkit(folder: Path, model: str, scores: Sequence[float]) -> Path:
    pytest.importorskip("openpyxl")
    path = folder / f"{model}_quiz.xlsx"
    rows = [
        {"index": number, "question": "Which?", "prediction": f"{model} {number}", "answer": "A", "hit": int(score)}
        for number, score in enumerate(scores)
    ]
    workbooks.write_rows(rows, path)
    return path


FOREIGN = {"lm-eval": lm_eval, "EvalScope": evalscope, "VLMEvalKit": vlmevalkit}


@for_each("write", FOREIGN.values(), ids=FOREIGN)
def test_two_files_of_one_harness(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write(tmp_path, name, scores) for name, scores in (("one", FIRST), ("two", SECOND))]
    files = [tmp_path / "c.json", tmp_path / "f.jsonl"]
    assert main(["compare", *map(str, runs), "--json", str(files[0]), "--flips", str(files[1])]) == 0
    (row,) = json.loads(files[0].read_text())["pairs"][0]["rows"]
    assert (row["name"], row["pairing"]["paired"], row["changed"]) == ("quiz", COUNT, [10, 1])
    assert row["p"] == pytest.approx(2 * 12 / 2**11)  # McNemar: 10 against 1
    assert row["verdict"] == "better"
    assert len(files[1].read_text().splitlines()) == 11
    out = capsys.readouterr().out
    assert DIFFERENCE in out and "one" in out.partition(" (first)")[0] and "two" in out.partition(" (second)")[0]


@for_each("write", FOREIGN.values(), ids=FOREIGN)
def test_ours_against_a_file_of_another_harness(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [ours(tmp_path, "mine", FIRST), write(tmp_path, "theirs", SECOND)]
    more = ["--metric", "acc=hit"] if write is vlmevalkit else []
    assert main(["compare", *map(str, runs), *more]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mine (first) against ")
    assert re.search(r"\|quiz\|acc ↑ *\|66.67%\|36.67%\|" + re.escape(DIFFERENCE), out)


def test_three_harnesses_at_once_are_one_family_with_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    third = [1.0] * 19 + [0.0] * 11
    runs = [ours(tmp_path, "mine", FIRST), lm_eval(tmp_path, "two", SECOND), evalscope(tmp_path, "three", third)]
    found = tmp_path / "c.json"
    assert main(["compare", *map(str, runs), "--json", str(found)]) == 0
    out = capsys.readouterr().out
    assert out.count("(first) against") == 3 and "corrected over 3 tests (Holm)" in out
    content = json.loads(found.read_text())
    ps = sorted(pair["rows"][0]["p"] for pair in content["pairs"])
    adjusted = sorted(pair["rows"][0]["p_holm"] for pair in content["pairs"])
    assert adjusted == pytest.approx([3 * ps[0], max(3 * ps[0], 2 * ps[1]), 1.0])
    ranks = {rank["run"]: (rank["rank"], rank["best"], rank["worst"]) for rank in content["ranks"]["quiz acc,none"]}
    assert ranks["mine"][0] == 1 and all(best <= rank <= worst for rank, best, worst in ranks.values())
    assert "Ranks: quiz acc,none (what each may be, 95% over all runs at once)" in out
    assert main(["compare", *map(str, runs), "--reference", "mine"]) == 0
    out = capsys.readouterr().out
    assert out.count(" against mine (second)") == 2 and "corrected over 2 tests (Holm)" in out
