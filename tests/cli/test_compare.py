from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.config.options import options
from tests.tex import compiled, engines

Write = Callable[..., str]


@pytest.fixture
def samples(tmp_path: Path) -> Write:
    """Writes a samples file of the task ``quiz`` and returns its path."""

    def write(name: str, scores: Sequence[float | None], task: str = "quiz", **facts: Any) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        path = folder / f"20250101_000000_samples_{task}.jsonl"
        lines = [
            {
                "doc_id": number,
                "target": "gold",
                "filtered_resps": f"answer {number}",
                "doc_hash": f"{number:064x}",
                facts.get("metric", "acc"): score,
                "filter": "none",
                "status": "scored" if score is not None else "failed",
                "doc": {"app": "xy"[number % 2]},
            }
            for number, score in enumerate(scores)
        ]
        for line in lines:
            line.update(facts.get("more", {}))
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)

    return write


def right(count: int, of: int = 40) -> list[float]:
    return [float(number < count) for number in range(of)]


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_two_runs_as_a_table(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples("a", right(33)), samples("b", right(20)), "--draws", "500"]) == 0
    out = capsys.readouterr().out
    assert "|+32.50 pp [" in out and "|better " in out
    of_both = "20250101_000000_samples_quiz@a vs 20250101_000000_samples_quiz@b"
    assert f"quiz acc: 13 documents changed; largest changes ({of_both}): 20 (first better)" in out
    assert max(map(len, (line for line in out.splitlines() if line.startswith("|")))) <= 120


def test_all_files_at_once(samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    words = ["compare", samples("a", right(33)), samples("b", [0.0, *right(20, 39)]), "--draws", "500"]
    files = {"--json": "c.json", "--csv": "c.csv", "--markdown": "c.md", "--flips": "f.jsonl"}
    for option, name in files.items():
        words += [option, str(out / name)]
    assert main([*words, "--by", "app", "--margin", "0.05"]) == 0
    assert listed(out) == sorted(files.values())
    found = json.loads((out / "c.json").read_text())
    (row,) = found["pairs"][0]["rows"]
    assert row["value"] == pytest.approx((33 - 20) / 40) and row["verdict"] == "better"
    assert {cell["cell"] for cell in found["pairs"][0]["cells"]["app"]} == {"x", "y"}
    flips = [json.loads(line) for line in (out / "f.jsonl").read_text().splitlines()]
    assert len(flips) == row["changed"][0] + row["changed"][1]
    assert flips[0]["first"]["answer"] == "answer 0" and flips[0]["hash"] == f"{0:064x}"
    assert [flip["surprise"] for flip in flips] == sorted((flip["surprise"] for flip in flips), reverse=True)
    assert (out / "c.csv").read_text().startswith("first_run,second_run,name,")
    assert "# Comparison" in (out / "c.md").read_text()
    assert "written: " in capsys.readouterr().err


def test_suspects_need_four_runs(samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        samples(name, [float(name == "d"), *right(count)]) for name, count in zip("abcd", (33, 30, 20, 10), strict=True)
    ]
    file = tmp_path / "suspects.csv"
    assert main(["compare", *runs[:3], "--suspects", str(file)]) == 2
    assert "--suspects: 3 runs are named; it needs at least 4" in capsys.readouterr().err and not file.exists()
    assert main(["compare", *runs, "--draws", "100", "--suspects", str(file)]) == 0
    assert "quiz acc: 1 of 41 documents are suspect over 4 runs" in capsys.readouterr().out
    header, row = file.read_text().splitlines()
    assert (
        header.startswith("task,metric,rank,id,hash,target,share_right,probability,expected_wrong,")
        and "quiz,acc,1,0," in row
    )


def test_json_on_standard_output_is_json_alone(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples("a", right(3, 9)), samples("b", right(2, 9)), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["rows"][0]["name"] == "quiz"


def test_latex_is_written_or_printed(samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", samples("a", right(33)), samples("b_1", right(20)), "--draws", "500", "--latex"]
    assert main([*words, str(tmp_path / "c.tex")]) == 0
    capsys.readouterr()
    text = (tmp_path / "c.tex").read_text()
    assert text.startswith("% needs \\usepackage{booktabs") and "b\\_1 (second)" in text and "better \\\\" in text
    assert text.count("\\begin{table*}") == text.count("\\toprule") == 1
    assert main(words) == 0
    assert capsys.readouterr().out == text
    assert main([*words, "-", "--json", "-"]) == 2
    assert "--json and --latex would both be printed" in capsys.readouterr().err
    for engine in engines():
        compiled(text, tmp_path / engine, engine)


def test_a_plot_as_pdf(samples: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = [samples("a", right(33)), samples("b", right(20))]
    assert main(["compare", *runs, "--draws", "500", "--plot", str(tmp_path / "p.pdf")]) == 0
    assert (tmp_path / "p.pdf").read_bytes().startswith(b"%PDF-")


def test_the_same_seed_gives_the_same_bytes(samples: Write, tmp_path: Path) -> None:
    graded = [[(7 * number * step) % 11 / 10 for number in range(60)] for step in (1, 3)]
    words = ["compare", samples("a", graded[0]), samples("b", graded[1]), "--draws", "500", "--json"]
    assert main([*words, str(tmp_path / "1.json")]) == main([*words, str(tmp_path / "2.json")]) == 0
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


def test_three_runs_and_a_reference(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [samples(name, right(count)) for name, count in (("a", 30), ("b", 20), ("c", 21))]
    assert main(["compare", *runs]) == 0
    assert capsys.readouterr().out.count("(first) against") == 3
    assert main(["compare", *runs, "--reference", runs[2]]) == 0
    assert capsys.readouterr().out.count("(first) against") == 2


def test_tasks_and_metrics_of_other_names(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [samples("a", right(30)), samples("b", right(20), task="other", metric="hit")]
    assert main(["compare", *runs]) == 2
    error = capsys.readouterr().err
    assert "no task in common: quiz against other" in error and "--task quiz=other" in error
    assert main(["compare", *runs, "--task", "quiz=other"]) == 2
    assert "no metric in common" in capsys.readouterr().err
    assert main(["compare", *runs, "--task", "quiz=other", "--metric", "acc=hit"]) == 0
    assert "|+25.00 pp" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--alpha", "2"], "--alpha 2: give a probability"),
        (["--margin", "-1"], "--margin -1.0: give a difference above 0"),
        (["--draws", "1"], "--draws 1: give at least 100"),
        (["--by", "size"], "--by size: no task has such a column; they have: app"),
        (["--metric", "f1"], "no metric in common"),
        (["--tasks", "w"], "--tasks: no run has w"),
        (["--task", "w"], "--task w: write A=B"),
        (["--reference", "w"], "--reference w: name one of the runs"),
        (["--plot", "x.gif"], "--plot x.gif: give a file that ends with .pdf, .svg or .png"),
        (["--csv", "same", "--markdown", "./same"], "--csv writes the same file"),
    ],
)
def test_bad_words_are_one_line_and_write_nothing(
    words: list[str], message: str, samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [samples("a", right(30)), samples("b", right(20))]
    before = listed(tmp_path)
    assert main(["compare", *runs, "--json", str(tmp_path / "c.json"), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"more": {"doc_hash": "f" * 64}}, "40 of 40 documents have the same id in"),
        ({"metric": "f1"}, "no metric in common"),
        ({"task": "other"}, "no task in common"),
    ],
)
def test_runs_that_cannot_be_compared(
    second: dict[str, Any], message: str, samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [samples("a", right(30)), samples("b", right(20), **second)]
    before = listed(tmp_path)
    assert main(["compare", *runs, "--flips", str(tmp_path / "f.jsonl")]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ") and message in captured.err and captured.err.count("\n") == 1
    assert listed(tmp_path) == before


def test_no_document_with_both_scores_is_an_error(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples("a", [1.0, None]), samples("b", [None, 1.0])]) == 2
    assert "nothing can be compared" in capsys.readouterr().err


def test_a_run_is_never_written_over(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [samples("a", right(30)), samples("b", right(20))]
    before = Path(runs[0]).read_bytes()
    assert main(["compare", *runs, "--csv", runs[0]]) == 2
    assert "that is a file of the run" in capsys.readouterr().err
    assert Path(runs[0]).read_bytes() == before


def test_a_place_that_cannot_be_written(samples: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    words = ["compare", samples("a", right(30)), samples("b", right(20)), "--csv", str(tmp_path / "file" / "c.csv")]
    assert main(words) == 2
    assert "file is not a folder" in capsys.readouterr().err


def test_control_characters_never_reach_the_terminal(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        samples(name, right(count), metric="acc\x1b[2J|\n", more={"doc": {"\x1bapp": "\x1b]0;x\x07|=cmd()"}})
        for name, count in (("a", 30), ("b", 20))
    ]
    assert main(["compare", *runs, "--by", "\x1bapp"]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err and "\x07" not in captured.out
    assert "\\u001b" in captured.out


def test_one_run_alone(samples: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples("a", right(30))]) == 2
    assert "at least two runs" in capsys.readouterr().err


def test_the_table_and_the_options_of_the_page_are_as_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text("utf-8")
    (table,) = re.findall(r"```text\n(id,score,cluster,category\n.*?)```", page, re.DOTALL)
    for name, text in (("a", table), ("b", table.replace("q1,1", "q1,0.2").replace("q2,0.5", "q2,0.9"))):
        (tmp_path / f"{name}.csv").write_text(text + "".join(f"p{n},0.{n},v{n},reading\n" for n in range(9)))
    words = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--by", "category"]
    assert main(["compare", *words]) == 0
    assert "by category" in capsys.readouterr().out
    for command in ("compare", "gate"):
        assert main([command, "--help"]) == 0
    known = set(re.findall(r"--[a-z_]+", capsys.readouterr().out)) | {"--until", "--baseline", "--ids"}
    known |= {option.flag for option in options()} | {"--where"}  # of runs, and of show and export
    commands, _, _ = page.partition("```bash\nlmms-eval --model")[2].partition("```")
    known |= set(re.findall(r"--[a-z_]+", commands))
    assert set(re.findall(r"(?<![-\w])--[a-z_]+", page)) <= known
