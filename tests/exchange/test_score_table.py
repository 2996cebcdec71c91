from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError, UsageError
from lmms_eval.exchange.score_table import ScoreTable, TableOptions, score_table
from lmms_eval.exchange.table_numbers import ColumnChoice
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import values_of
from tests.exchange.table_runs import right, table_document, write_table_run
from tests.results.runs import KEY, sample, write_record, write_run

LOWER: dict[str, Any] = {"higher_is_better": {"quiz": {"acc": False}}}


def made(*runs: Path, **options: Any) -> ScoreTable:
    return score_table([str(run) for run in runs], TableOptions(**options))


def values(table: ScoreTable) -> list[list[str]]:
    return [[("*" if cell.is_bold else "") + cell.value + cell.mark for cell in line] for line in table.cells]


def notes_of(table: ScoreTable, row: int, column: int = 0) -> list[str]:
    return [table.notes[place] for place in table.cells[row][column].notes]


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Runs that are clearly different from one another."""
    return [
        write_table_run(tmp_path / name, f"org/{name}", right(count))
        for name, count in (("a", 36), ("b", 20), ("c", 4))
    ]


def test_the_best_is_bold_and_worse_ones_are_marked(three: list[Path]) -> None:
    table = made(*three)
    assert values(table) == [["*90.0"], ["50.0†"], ["10.0†"]]
    assert [row.name for row in table.rows] == ["a", "b", "c"]
    assert (table.columns[0].name, table.columns[0].detail) == ("quiz", "acc")
    assert table.cells[0][0].around == "[10.0, 90.0]"
    caption = " ".join(table.caption)
    for text in (
        "Scores in percent.",
        "95 % intervals, for questions like these",
        "3 tests corrected together by Holm",
        "N = 40 documents.",
    ):
        assert text in caption, caption


def test_lower_is_better(tmp_path: Path) -> None:
    runs = [write_table_run(tmp_path / name, name, right(count), **LOWER) for name, count in (("a", 36), ("b", 10))]
    table = made(*runs)
    assert values(table) == [["90.0†"], ["*25.0"]]
    assert table.columns[0].detail == "acc ↓"


def test_bold_only_if_better_than_every_other_run(tmp_path: Path, three: list[Path]) -> None:
    assert values(made(*three, bold="significant"))[0] == ["*90.0"]
    close = write_table_run(tmp_path / "d", "d", right(35))
    table = made(*three, close, bold="significant")
    assert values(table) == [["90.0"], ["50.0†"], ["10.0†"], ["87.5"]]
    assert "if it is better than every other run by lmms-eval compare" in " ".join(table.caption)
    assert values(made(*three, bold="none")) == [["90.0"], ["50.0"], ["10.0"]]


def test_equal_numbers_share_bold(tmp_path: Path) -> None:
    runs = [write_table_run(tmp_path / name, name, right(count)) for name, count in (("a", 30), ("b", 30), ("c", 29))]
    assert values(made(*runs)) == [["*75.0"], ["*75.0"], ["72.5"]]
    assert values(made(*runs[:2])) == [["75.0"], ["75.0"]]  # nothing is best
    assert values(made(*runs, bold="significant")) == [["75.0"], ["75.0"], ["72.5"]]


def test_a_withheld_score_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    withheld = table_document("b", [None] * 4)
    withheld["outcomes"]["quiz"] |= {"partial": {"acc,none": {"value": 0.5, "n": 0, "reason": ""}}}
    runs = [write_table_run(tmp_path / "a", "a", right(3, 4)), write_run(tmp_path / "b", [sample(0)], withheld)]
    table = made(*runs)
    assert values(table) == [["75.0"], ["–"]]
    assert notes_of(table, 1) == ["withheld (4 failed)"]
    assert (table.records[1].value, table.records[1].low) == (None, None)


LIMITED = {
    "limit": ({"n-samples": {"quiz": {"original": 400, "effective": 40}}}, "part of split: 40 of 400 documents"),
    "early stop": (
        {"early_stop": {"quiz": {"asked": 40, "of": 400, "order": "o", "rule": "r", "interval": {}}}},
        "stopped early: 40 of 400 documents, by the rule r",
    ),
    "sample": (
        {"sampled": {"quiz": {"asked": 40, "of": 400, "design": "simple"}}},
        "random sample: 40 of 400 documents, design simple",
    ),
}


@for_each("parts, note", LIMITED.values(), ids=LIMITED)
def test_partial_scores_have_a_note(tmp_path: Path, parts: dict[str, Any], note: str) -> None:
    table = made(write_table_run(tmp_path / "a", "a", right(20), **parts))
    assert notes_of(table, 0) == [note]


UNEQUAL = {
    "counts": ({}, right(10, 20), "over different numbers of documents: a 40, b 20"),
    "options": (
        {"effective_requests": {"quiz": {"options": {"temperature": 1.0}}}}, right(20), "b differs from a in: options",
    ),
    "examples": ({"n-shot": {"quiz": 5}}, right(20), "b differs from a in: examples"),
    "documents": ({"task_hashes": {"quiz": "0" * 64}}, right(20), "b differs from a in: documents"),
    "prompts": ({"prompt_fingerprint": "0" * 64}, right(20), "b differs from a in: prompts"),
    "instructions": ({"system_instruction_sha": "0" * 64}, right(20), "b differs from a in: system instructions"),
}  # fmt: skip


@for_each("parts, scores, note", UNEQUAL.values(), ids=UNEQUAL)
def test_unequal_runs_have_a_note_at_their_column(
    tmp_path: Path, parts: dict[str, Any], scores: list[float], note: str
) -> None:
    usual = {
        "effective_requests": {"quiz": {"options": {"temperature": 0}}},
        "task_hashes": {"quiz": "f" * 64},
        "prompt_fingerprint": "f" * 64,
    }
    runs = [
        write_table_run(tmp_path / "a", "a", right(30), **usual),
        write_table_run(tmp_path / "b", "b", scores, **usual | parts),
    ]
    table = made(*runs)
    assert [table.notes[place] for place in table.columns[0].notes] == [note]


def test_standard_errors_or_neither(three: list[Path]) -> None:
    table = made(*three, uncertainty="se")
    assert table.cells[0][0].around == "± 6.2" and "±: standard error." in table.caption
    assert made(*three, uncertainty="none").cells[0][0].around == ""


def test_a_number_without_an_interval_says_why(tmp_path: Path) -> None:
    parts = {"intervals": {"quiz": {"acc,none": {"low": None, "high": None, "reason": "n = 1"}}}}
    table = made(write_table_run(tmp_path / "a", "a", right(1, 1), **parts))
    assert table.cells[0][0].around == "" and notes_of(table, 0) == ["no interval: n = 1"]


def test_baselines_are_no_models(tmp_path: Path) -> None:
    gold = {"config": {"model": "baseline", "model_args": "strategy=gold"}}
    runs = [
        write_table_run(tmp_path / "a", "a", right(30)),
        write_table_run(tmp_path / "b", "b", right(20)),
        write_table_run(tmp_path / "gold", "baseline", right(40), **gold),
    ]
    table = made(*runs)
    assert values(table) == [["*75.0"], ["50.0†"], ["100.0"]]
    assert table.rows[2].name == "baseline (gold)" and table.rows[2].is_apart
    assert "Baselines answer without a model, and are left out of bold and marks." in table.caption
    assert table.records[2].kind == "baseline"


def test_judged_numbers_name_the_judge(tmp_path: Path) -> None:
    judge = {"judge": {"model": "jury", "provider": "openai", "by_task": {"quiz": {}}}}
    runs = [write_table_run(tmp_path / name, name, right(20), **judge) for name in "ab"]
    assert "Judged by jury: quiz." in made(*runs).caption
    other = write_table_run(tmp_path / "c", "c", right(20))
    table = made(runs[0], other)
    assert [table.notes[place] for place in table.columns[0].notes] == ["different judges: a jury, c none"]


def _as_mmmu(model: str, scores: list[float]) -> dict[str, Any]:
    found = table_document(model, scores)
    renamed: dict[str, Any] = {}
    for part, content in found.items():
        is_by_task = isinstance(content, dict) and list(content) == ["quiz"]
        renamed[part] = {"mmmu_val": content["quiz"]} if is_by_task else content
    entry = renamed["results"]["mmmu_val"]
    renamed["results"]["mmmu_val"] = {
        "alias": "mmmu_val",
        "mmmu_acc,none": entry["acc,none"],
        "mmmu_acc_stderr,none": 0.01,
    }
    renamed["configs"]["mmmu_val"] = {"metric_list": [{"metric": "mmmu_acc", "range": [0, 1]}]}
    renamed["outcomes"]["mmmu_val"]["n"] = {"mmmu_acc,none": len(scores)}
    renamed["intervals"]["mmmu_val"] = {"mmmu_acc,none": {"low": 0.4, "high": 0.6, "method": "wilson"}}
    renamed["higher_is_better"] = {"mmmu_val": {"mmmu_acc": True}}
    return renamed


def test_published_numbers_are_rows_only_if_asked_for(tmp_path: Path) -> None:
    model = "Qwen/Qwen2.5-VL-7B-Instruct"
    run = write_run(tmp_path / "a", [], _as_mmmu(model, right(20)))
    assert len(made(run).rows) == 1
    table = made(run, published=())
    assert [row.name for row in table.rows] == ["Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B-Instruct (published)"]
    assert table.cells[1][0].value == "58.6" and not table.cells[1][0].is_bold
    assert notes_of(table, 1)[0].startswith("published (own): QwenLM/Qwen3-VL README.md")
    assert (table.records[1].kind, table.records[1].value) == ("published", pytest.approx(0.586))
    assert len(made(run, published=("Qwen2.5-VL-3B-Instruct",)).rows) == 2
    with pytest.raises(UsageError, match="no-such-model"):
        made(run, published=("no-such-model",))


def test_scales_do_not_mix(tmp_path: Path) -> None:
    percent = table_document("b", right(20))
    percent["results"]["quiz"]["acc,none"] = 62.5
    percent["configs"]["quiz"]["metric_list"][0]["range"] = [0, 100]
    runs = [write_table_run(tmp_path / "a", "a", right(30)), write_run(tmp_path / "b", [sample(0)], percent)]
    table = made(*runs)
    assert values(table) == [["75.0"], ["–"]]
    assert notes_of(table, 1) == ["not shown: its scale is 0 to 100, that of the column 0 to 1"]


def test_a_folder_of_several_runs_and_runs_of_other_harnesses(tmp_path: Path, three: list[Path]) -> None:
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("id,score,task,metric\n" + "".join(f"{n},{int(n < 30)},quiz,acc\n" for n in range(40)))
    table = made(tmp_path / "a", foreign)
    assert [row.name for row in table.rows] == ["a", "foreign"]
    assert values(table) == [["*90.0"], ["75.0†"]]
    assert notes_of(table, 1) == ["its scale is not stated; taken as 0 to 1"]
    assert [row.name for row in made(tmp_path).rows] == ["a", "b", "c"]


def test_numbers_without_samples_have_no_marks(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [], table_document(name, right(count))) for name, count in (("a", 30), ("b", 3))]
    for run in runs:
        run.with_name("20240101_000000_samples_quiz.jsonl").unlink()
    table = made(*runs)
    assert values(table) == [["*75.0"], ["7.5"]]
    assert "Without marks: a has no samples of these tasks; b has no samples of these tasks." in table.caption


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    task = FakeTask(4, "quiz")
    write_record(tmp_path / ".runs" / KEY, *values_of(task, "acc", right(3, 4)))
    table = made(tmp_path)
    assert notes_of(table, 0) == ["unfinished: 4 documents so far"]
    assert values(table) == [["0.750"]]


def test_columns_are_chosen_by_task_and_metric(tmp_path: Path) -> None:
    two = table_document("a", right(20))
    two["results"]["quiz"]["f1,none"] = 0.25
    two["outcomes"]["quiz"]["n"]["f1,none"] = 40
    two["results"]["other"] = {"alias": "The other", "acc,none": 0.125}
    two["configs"]["other"] = {"metric_list": [{"metric": "acc"}]}
    run = write_run(tmp_path / "a", [sample(0)], two)
    assert [one.name for one in made(run).columns] == ["quiz", "The other"]
    assert [one.name for one in made(run, choice=ColumnChoice(("The other", "quiz"))).columns] == ["The other", "quiz"]
    every = made(run, choice=ColumnChoice(("quiz",), ("all",)))
    assert [one.detail for one in every.columns] == ["acc", "f1"]
    assert values(made(run, choice=ColumnChoice((), ("f1",)))) == [["0.250"]]
    with pytest.raises(UsageError, match="--tasks: no run has a number of nothing; they have quiz, other"):
        made(run, choice=ColumnChoice(("nothing",)))
    with pytest.raises(UsageError, match="--metric: no run has recall; they have acc, f1"):
        made(run, choice=ColumnChoice((), ("recall",)))


def test_turned_tables_have_tasks_as_rows(three: list[Path]) -> None:
    table = made(*three).turned()
    assert [row.name for row in table.rows] == ["quiz"] and len(table.columns) == 3
    assert values(table) == [["*90.0", "50.0†", "10.0†"]]


def test_results_of_the_family_have_their_numbers_and_no_more(tmp_path: Path) -> None:
    for name, value, count in (("a", 12.5, 900), ("b", 31.25, 100)):
        found = {
            "results": {"asr": {"alias": "asr", "wer,none": value, "wer_stderr,none": "N/A"}},
            "configs": {"asr": {"task": "asr", "metric_list": [{"metric": "wer"}]}},
            "n-shot": {"asr": 0},
            "n-samples": {"asr": {"original": 900, "effective": count}},
            "higher_is_better": {"asr": {"wer": False}},
            "model_name": name,
        }
        write_run(tmp_path / name, [], found).with_name("20240101_000000_samples_quiz.jsonl").unlink()
    table = made(tmp_path)
    assert values(table) == [["*12.50"], ["31.25"]] and table.columns[0].detail == "wer ↓"
    assert [table.notes[place] for place in table.columns[0].notes] == [
        "over different numbers of documents: a 900, b 100"
    ]
    assert "part of split: 100 of 900 documents" in notes_of(table, 1)
    assert "Scores in the units of their metrics." in table.caption


def test_the_benchmarks_numbers_are_in_place_of_their_tasks(tmp_path: Path) -> None:
    parts = {"core": {"score": 0.25, "ci95": [0.2, 0.3], "num_eval_tasks": 440},
             "open": {"score": 0.5, "ci95": [0.4, 0.6], "num_eval_tasks": 65},
             "overall": {"score": 0.28, "ci95": [0.25, 0.31], "num_eval_tasks": 505}}  # fmt: skip
    found = table_document("a", right(1, 2))
    found["results"]["megabench_core"] = {"alias": "megabench_core", "macro_mean,none": 0.25, "scored,none": 440}
    found["configs"]["megabench_core"] = {"metric_list": [{"metric": "macro_mean"}]}
    found["megabench_breakdown"] = {"full": {"intervals": {"model_summary": parts}, "gaps": ["open is absent"]}}
    found["general_bench_report"] = {"general_bench": {"general_level": {"levels": {"level2": 12.5, "level3": 3.0}}}}
    table = made(write_run(tmp_path / "a", [sample(0)], found))
    assert [(one.name, one.detail) for one in table.columns] == [
        ("MEGA-Bench", "overall"), ("MEGA-Bench", "core"), ("MEGA-Bench", "open"), ("General-Bench", "level 2"),
        ("General-Bench", "level 3"), ("quiz", "acc"),
    ]  # fmt: skip
    assert values(table) == [["28.0", "25.0", "50.0", "12.5", "3.0", "50.0"]]
    assert notes_of(table, 0) == ["partial: open is absent"]
    about = "questions like these (MEGA-Bench overall, MEGA-Bench core, MEGA-Bench open: for tasks like these)."
    assert any(about in sentence for sentence in table.caption)
    assert made(tmp_path, choice=ColumnChoice(("General-Bench", "megabench_core"))).columns[2].detail == "macro_mean"


def test_names_of_runs(three: list[Path]) -> None:
    assert [row.name for row in made(*three, names=("x", "y", "z")).rows] == ["x", "y", "z"]
    with pytest.raises(UsageError, match="--names: 2 names for 3 runs: "):
        made(*three, names=("x", "y"))
    with pytest.raises(UsageError, match="the same name"):
        made(*three, names=("x", "x", "z"))


def test_digits(three: list[Path]) -> None:
    assert values(made(*three, decimals=0))[0] == ["*90"]
    with pytest.raises(UsageError, match="--digits 9"):
        TableOptions(decimals=9)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        made(tmp_path / "absent")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "20240101_000000_results.json").write_text("{")
    with pytest.raises(DataError, match="20240101_000000_results"):
        made(broken)


def test_one_document_is_counted_in_the_singular(tmp_path: Path) -> None:
    table = made(write_table_run(tmp_path / "a", "a", right(1, 1)))
    assert "N = 1 document." in " ".join(table.caption)
