from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.readers.samples import read_lines
from lmms_eval.errors import DataError
from lmms_eval.results.baseline import BaselineRow
from lmms_eval.results.journals import FileSamples
from tests.cases import for_each

# Lines that lm_eval 0.4.13 wrote with its dummy model.
LM_EVAL = [
    '{"doc_id": 0, "doc": {"q": "question 0?", "a": "0", "topic": "a"}, "target": "0", "arguments": {"gen_args_0": '
    '{"arg_0": "question 0?", "arg_1": {"until": ["\\n"], "max_gen_toks": 8}}}, "resps": [["lol"]], "filtered_resps": '
    '["[invalid]"], "filter": "strict", "metrics": ["exact_match"], "doc_hash": "ab166c77b5a23c65976e7f23bc4b64f7e9cc62'
    '3d802b7d2ae054022e48c71482", "prompt_hash": "91bd6a70e42ae66d4773469495953cbb627e5577d75ac8a4df97866d5a723c66", '
    '"target_hash": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9", "exact_match": 0.0}',
    '{"doc_id": 0, "doc": {"q": "question 0?", "a": "0", "topic": "a"}, "target": "0", "arguments": {"gen_args_0": '
    '{"arg_0": "question 0?", "arg_1": {"until": ["\\n"], "max_gen_toks": 8}}}, "resps": [["lol"]], "filtered_resps": '
    '["lol"], "filter": "loose", "metrics": ["exact_match"], "doc_hash": "ab166c77b5a23c65976e7f23bc4b64f7e9cc623d802b'
    '7d2ae054022e48c71482", "prompt_hash": "91bd6a70e42ae66d4773469495953cbb627e5577d75ac8a4df97866d5a723c66", '
    '"target_hash": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9", "exact_match": 1.0}',
]


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plain(doc_id: int, **more: Any) -> dict[str, Any]:
    """A line as lmms-eval writes it: without status and pipeline."""
    return {"doc_id": doc_id, "target": "a", "filtered_resps": "b", **more}


def test_files_of_lm_eval_are_read_with_their_results(tmp_path: Path) -> None:
    (tmp_path / "samples_tiny_qa_2026-11-23T02-26-55.766585.jsonl").write_text("\n".join(LM_EVAL) + "\n")
    results = {
        "results": {"tiny_qa": {"exact_match,strict": 0.0, "exact_match,loose": 1.0}},
        "configs": {"tiny_qa": {"metric_list": [{"metric": "exact_match"}]}},
        "higher_is_better": {"tiny_qa": {"exact_match": True}},
        "n-shot": {"tiny_qa": 0},
        "model_name": "org/dummy",
        "lm_eval_version": "0.4.13",
    }
    (tmp_path / "results_2026-11-23T02-26-55.766585.json").write_text(json.dumps(results))
    for path in (tmp_path, *sorted(tmp_path.iterdir())):
        (run,) = read_runs([str(path)])
        task = run.tasks["tiny_qa"]
        assert (run.name, run.kind, run.notes, run.results) == ("org/dummy", "lm_eval", (), None)
        assert list(task.ids) == ["0"] and set(task.statuses) == {"scored"}
        facts = {name: (one.scores.tolist(), one.higher_is_better, one.reported) for name, one in task.columns.items()}
        assert facts == {"exact_match,strict": ([0.0], True, 0.0), "exact_match,loose": ([1.0], True, 1.0)}
        assert {one.score_range for one in task.columns.values()} == {None}
        answer = task.answer(0)
        assert answer is not None
        assert (answer.text, answer.target, answer.prompt) == ("[invalid]", "0", "question 0?")


def test_lines_without_a_pipeline_may_be_compared_with_any(tmp_path: Path) -> None:
    rows = [plain(0, acc=1.0), plain(1, acc=0.0), plain(0, acc=0.0)]
    (run,) = read_runs([str(lines(tmp_path / "20240101_000000_samples_quiz.jsonl", rows))])
    column = run.tasks["quiz"].columns["acc,none"]
    assert (column.scores.tolist(), column.states_filter) == ([1.0, 0.0], False)
    assert run.kind == "lmms-eval family"
    assert run.notes == ("quiz: further lines of documents that were there already: the first counts (1)",)


def test_lines_without_any_metric_have_equality(tmp_path: Path) -> None:
    rows = [plain(0, filtered_resps=["a"]), plain(1)]
    (run,) = read_runs([str(lines(tmp_path / "x.jsonl", rows))])
    assert run.tasks["x"].columns["exact_match,none"].scores.tolist() == [1.0, 0.0]
    assert "equality of answer and target" in run.notes[0]


@for_each(
    ("metric", "row", "score"),
    [
        ("score", plain(0, gpt_score=0.25), 0.25),
        ("score", plain(0, my_score={"score": 0.5}), 0.5),
        ("score", plain(0, my_score={"pred": "Cat", "answer": "cat"}), 1.0),
        ("score", plain(0, my_score={"pred_answer": "dog", "answer": "cat"}), 0.0),
        ("acc", plain(0, gpt_score=0.25), None),
        ("acc", plain(0), 0.0),
        ("exact_match", plain(0, filtered_resps=["a"]), 1.0),
        ("rouge", plain(0), None),
        ("acc", plain(0, acc=1.0, filter="other"), None),
        ("acc", plain(0, acc=float("nan")), None),
    ],
)
def test_wanted_columns_have_fallbacks(tmp_path: Path, metric: str, row: dict[str, Any], score: float | None) -> None:
    rows = read_lines(FileSamples(lines(tmp_path / "x.jsonl", [row])), "x", wanted=[BaselineRow(metric, "none")]).rows
    found = [] if f"{metric},none" not in rows.columns else rows.columns[f"{metric},none"].scores.tolist()
    assert [value for value in found if not np.isnan(value)] == ([] if score is None else [score])
    assert list(rows.statuses) == ["unscored" if score is None else "scored"]


def test_a_line_that_was_not_scored_gives_way_to_one_that_was(tmp_path: Path) -> None:
    rows = [{"doc_id": 0, "status": "failed", "error": "x"}, plain(0, acc=1.0, status="scored", filter="none")]
    task = read_lines(FileSamples(lines(tmp_path / "x.jsonl", rows)), "x").rows
    assert (task.statuses, task.columns["acc,none"].scores.tolist()) == (["scored"], [1.0])
    answer = task.answer(0)
    assert answer is not None and answer.text == "b"


@for_each("row", ['{"doc_id": 0}', '{"doc_id": [1], "filtered_resps": ""}', "[1]", "{", '{"a": 1}'])
def test_a_line_that_is_no_sample_is_named(tmp_path: Path, row: str) -> None:
    path = lines(tmp_path / "x.jsonl", [plain(0)])
    path.write_text(path.read_text() + "\n" + row)
    with pytest.raises(DataError, match=r"x.jsonl, line 3: "):
        read_runs([str(path)])


def test_hostile_texts_stay_as_they_are(tmp_path: Path) -> None:
    text = "\x1b[31m=cmd|' /C calc'!A0 <script>"
    rows = [plain(n, doc={"topic": text}, acc=1.0) | {"doc_id": f"{text}{n}"} for n in range(2)]
    task = read_lines(FileSamples(lines(tmp_path / "x.jsonl", rows)), "x").rows
    assert list(task.ids) == [f"{text}0", f"{text}1"]
    assert task.metadata() == {"topic": [text, text]}


def test_memory_holds_no_lines_and_time_grows_with_the_documents(tmp_path: Path) -> None:
    rows = 20_000
    text = "The answer is A, since the picture shows it. " * 20
    with open(tmp_path / "x.jsonl", "w") as file:
        for n in range(rows):
            doc = {"topic": f"t{n % 5}", "question": f"q{n}"}
            line = plain(n, filtered_resps=text, acc=n % 2, f1=n / rows, doc_hash=f"{n:064x}", doc=doc)
            file.write(json.dumps(line) + "\n")
    begin = time.process_time()
    tracemalloc.start()
    try:
        (run,) = read_runs([str(tmp_path / "x.jsonl")])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 600 * rows  # of lines of more than a thousand bytes
    assert set(run.tasks["x"].metadata()) == {"topic"}
    assert time.process_time() - begin < 10  # a second here; quadratic work takes far longer
