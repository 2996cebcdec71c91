"""Runs of a report against each other: the numbers of ``lmms-eval compare``, and the documents behind them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.cli.main import main
from lmms_eval.compare.matching import match_pair
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.viewer.chunks import FolderChunks
from lmms_eval.viewer.comparison import ComparisonWriter, kinds_of
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.compare.runs import column, run, task
from tests.viewer.test_report import columns, content, report_of


def table(path: Path, scores: list[float | None], shift: int = 0) -> Path:
    lines = [f"{number + shift},{'' if one is None else one},said {number}" for number, one in enumerate(scores)]
    path.write_text("\n".join(["id,score,answer", *lines]) + "\n")
    return path


def stated(capsys: Any, *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["compare", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Right-or-wrong scores and graded ones of three runs; the third lacks some documents."""
    folder, draw = tmp_path_factory.mktemp("three"), np.random.default_rng(5)
    paths = []
    for name, level, documents in (("a", 0.7, 90), ("b", 0.5, 90), ("c", 0.4, 70)):
        lines = ["id,task,metric,score,answer,target"]
        for number in range(documents):
            lines.append(f"{number},quiz,acc,{int(draw.random() < level)},said {number} by {name},t")
            lines.append(f"{number},text,f1,{round(level * draw.random(), 3)},said {number},t")
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return (paths[0], paths[1], paths[2])


def test_numbers_are_those_of_the_command(quiz_runs, three, tmp_path, capsys) -> None:
    for number, runs in enumerate((quiz_runs, three)):
        expected = stated(capsys, *map(str, runs))
        out = tmp_path / str(number)
        report_of(out, *runs, media="none")
        summary = content(out, "compare")
        assert summary["ranks"] == expected["ranks"]
        assert summary["rows"] == sum(len(pair["rows"]) for pair in expected["pairs"])
        names = [one["name"] for one in content(out, "runs")["runs"]]
        for pair, entry in zip(expected["pairs"], summary["pairs"], strict=True):
            assert (names[entry["first"]], names[entry["second"]]) == (pair["first"], pair["second"])
            assert content(out, f"compare-{entry['first']}-{entry['second']}")["rows"] == pair["rows"]
    assert summary["ranks"]


def divided(folder: Path) -> tuple[Path, ...]:
    """Three runs of two tasks, of which one has a column of few values and both one of many."""
    draw, paths = np.random.default_rng(9), []
    for name, level in (("a", 0.8), ("b", 0.5), ("c", 0.4)):
        lines = ["id,task,metric,score,answer,kind,number"]
        for number in range(120):
            kind = ("red", "<b>blue</b>", "")[number % 3]
            lines.append(f"{number},quiz,acc,{int(draw.random() < level)},said {number},{kind},{number // 2}")
            lines.append(f"{number},text,f1,{round(level * draw.random(), 3)},said {number},,{number // 2}")
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return tuple(paths)


def test_parts_by_a_column_are_those_of_the_command(tmp_path, capsys) -> None:
    runs = divided(tmp_path)
    report_of(tmp_path / "r", *runs)
    (entry,) = content(tmp_path / "r", "compare")["by"]  # 60 values are too many
    assert (entry["column"], entry["reason"]) == ("kind", "")
    expected = stated(capsys, *map(str, runs), "--by", "kind")
    for pair, (first, second) in zip(expected["pairs"], ((0, 1), (0, 2), (1, 2)), strict=True):
        assert content(tmp_path / "r", f"parts-{first}-{second}-0") == pair["cells"]["kind"]
    assert entry["rows"] == sum(len(pair["cells"]["kind"]) for pair in expected["pairs"]) == 9


def test_parts_of_what_is_left_out_or_too_many_are_not_told(tmp_path, monkeypatch) -> None:
    runs = divided(tmp_path)
    report_of(tmp_path / "hidden", *runs, redact=frozenset({"kind"}))
    assert content(tmp_path / "hidden", "compare")["by"] == []
    monkeypatch.setattr("lmms_eval.viewer.comparison.MOST_PARTS", 8)
    report_of(tmp_path / "many", *runs)
    (entry,) = content(tmp_path / "many", "compare")["by"]
    assert "lmms-eval compare --by kind" in entry["reason"]
    for name in ("hidden", "many"):
        assert not list((tmp_path / name / "data").glob("parts-*"))


def test_kinds_of_documents_add_up_to_the_numbers(three, tmp_path) -> None:
    report_of(tmp_path / "r", *three)
    pair = content(tmp_path / "r", "compare-0-2")
    quiz, text = pair["tasks"]
    rows = {row["name"]: row for row in pair["rows"]}
    kinds = quiz["columns"]["acc,none"]["kinds"]
    assert (kinds["f"], kinds["s"]) == tuple(rows["quiz"]["changed"])
    assert sum(kinds.values()) == rows["quiz"]["pairing"]["paired"] == 70
    graded = text["columns"]["f1,none"]["kinds"]
    assert (graded[">"], graded["<"]) == tuple(rows["text"]["changed"])
    documents = content(tmp_path / "r", quiz["piece"])
    index = [columns(tmp_path / "r", quiz[side])["s.acc,none"] for side in ("first", "second")]
    told = documents["columns"]["acc,none"]
    right = {(0, 0): "n", (1, 0): "f", (0, 1): "s", (1, 1): "b"}
    assert told["kinds"] == "".join(right[pair] for pair in zip(*index, strict=False))
    assert len(told["surprise"]) == kinds["f"] + kinds["s"]


def test_documents_that_the_report_leaves_out_are_counted(three, tmp_path, capsys) -> None:
    report_of(tmp_path / "r", *three[:2], limit=20)
    quiz = content(tmp_path / "r", "compare-0-1")["tasks"][0]
    assert (quiz["documents"], quiz["shown"]) == (90, 20)
    assert sum(quiz["columns"]["acc,none"]["kinds"].values()) == 90
    assert len(content(tmp_path / "r", quiz["piece"])["columns"]["acc,none"]["kinds"]) == 20


def test_places_are_those_of_the_lists(tmp_path) -> None:
    first = table(tmp_path / "a.csv", [1, 0, 1, 0, 1])
    second = table(tmp_path / "b.csv", [0, 1, 0, None, 1], shift=2)
    report_of(tmp_path / "r", first, second)
    piece = content(tmp_path / "r", "pairs-0-1-0")
    assert (piece["first"], piece["second"]) == ([2, 3, 4], None)  # documents 2, 3 and 4
    assert piece["columns"]["score,none"]["kinds"] == "fsf"
    counted = content(tmp_path / "r", "compare-0-1")["rows"][0]["pairing"]
    assert (counted["paired"], counted["only_first"], counted["only_second"]) == (3, 2, 2)


def test_runs_that_cannot_be_compared_are_said(quiz_runs, tmp_path) -> None:
    other = tmp_path / "other"
    shutil.copytree(quiz_runs[0], other)
    (samples,) = other.glob("*_samples_*")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    samples.write_text("".join(json.dumps(line | {"doc_hash": "0" * 64}) + "\n" for line in lines))
    runs = [str(quiz_runs[0]), str(other), str(table(tmp_path / "alone.csv", [1, 0]))]
    assert write_report(runs, tmp_path / "r", ReportOptions(media="none")).runs == 3
    reasons = [entry["reason"] for entry in content(tmp_path / "r", "compare")["pairs"]]
    assert "different content (doc_hash)" in reasons[0]
    assert all("no task in common" in reason for reason in reasons[1:])
    assert content(tmp_path / "r", "runs")["compared"] == []


def test_of_many_runs_each_is_compared_with_the_first(tmp_path, capsys) -> None:
    runs = [table(tmp_path / f"run{number}.csv", [int(k % (number + 2) > 0) for k in range(40)]) for number in range(6)]
    report_of(tmp_path / "r", *runs)
    assert content(tmp_path / "r", "runs")["compared"] == [[number, 0] for number in range(1, 6)]
    summary = content(tmp_path / "r", "compare")
    assert summary["reference"] == 0
    expected = stated(capsys, *map(str, runs), "--reference", str(runs[0]))
    assert content(tmp_path / "r", "compare-3-0")["rows"] == expected["pairs"][2]["rows"]


def test_of_many_runs_with_other_tasks_those_with_a_common_one_are_compared(tmp_path) -> None:
    sides = [run(str(number), task([1.0, float(number > 3)], name=f"task{number % 4}")) for number in range(8)]
    (tmp_path / "data").mkdir()
    shown = [[[0, 1]]] * 8
    writer = ComparisonWriter(sides, shown, FolderChunks(tmp_path / "data"))
    assert writer.write() == [(number, number + 4) for number in range(4)]
    assert content(tmp_path, "compare")["reference"] is None


def test_runs_are_not_compared_where_that_is_not_wanted(quiz_runs, tmp_path) -> None:
    assert main(["report", *map(str, quiz_runs), "--out", str(tmp_path / "r"), "--no_compare", "--no_media"]) == 0
    assert content(tmp_path / "r", "runs")["compared"] == []
    assert not list((tmp_path / "r/data").glob("compare*"))


def test_a_task_whose_documents_differ_leaves_the_others(tmp_path) -> None:
    sides = [
        run(name, task([1.0, 0.0], hashes=[mark, mark]), task([1.0, 0.0], name="other")) for name, mark in ("ax", "by")
    ]
    (tmp_path / "data").mkdir()
    shown = [[[0, 1], [0, 1]]] * 2
    assert ComparisonWriter(sides, shown, FolderChunks(tmp_path / "data")).write() == [(0, 1)]
    assert [row["name"] for row in content(tmp_path, "compare-0-1")["rows"]] == ["other"]
    (note,) = content(tmp_path, "compare")["pairs"][0]["notes"]
    assert "different content" in note


def kinds(first: list[float | None], second: list[float | None], **facts: Any) -> str:
    sides = [run(name, task([column(scores, **facts)])) for name, scores in (("a", first), ("b", second))]
    (paired,) = match_pair(*sides, CompareOptions()).columns
    return "".join(kinds_of(paired))


def test_kinds_of_scores() -> None:
    assert kinds([1, 1, 0, 0, None], [1, 0, 1, 0, 1]) == "bfsn-"
    assert kinds([0, 0], [0, 0], reported=0.5) == "nn"
    assert kinds([1, 0.5, 0], [0.5, 0.5, 1]) == ">=<"
    assert kinds([1, 0, 0], [0, 1, 0], higher_is_better=False) == "<>="
    assert Counter(kinds([100, 0], [100, 100], score_range=None)) == Counter("bs")
