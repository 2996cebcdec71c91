"""Whole runs as a team would start them: what is asked, what is scored from files, and what one bad item does."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.cli import evaluate
from lmms_eval.cli.general_bench import rank
from lmms_eval.errors import AbsentDataError, DataError, ItemError, MediaError
from lmms_eval.tasks.general_bench import utils
from lmms_eval.tasks.general_bench.data import documents
from lmms_eval.tasks.general_bench.facts import metrics
from lmms_eval.tasks.general_bench.report import JOURNAL, PREFIX, report, score_table
from lmms_eval.tasks.general_bench.summary import KEY, TaskScore
from tests.cases import for_each
from tests.servers.stub import StubServer
from tests.tasks.general_bench.demo_kit import SET, copied, edit, rows

FIRST = "nlp/Commonsense-Reasoning"
SPORTS = "image_comprehension_sports_image_classification"
SERIES = "nlp_time_series"
CAPTIONS = "image_comprehension_coco_image_captioning"


def run(root: Path, tasks: str, *more: str) -> int:
    return evaluate.run(["--tasks", tasks, "--data_root", str(root), *more])


def numbers(name: str, root: Path, *groups: str, strict: float | None = 50.0) -> TaskNumbers:
    metric = "accuracy" if name == SPORTS else "rmse"
    assert metric in metrics()
    score = TaskScore(name, metric, strict, strict, 5.0, 4, 4)
    details = {KEY: {**score.as_dict(), "options": {"data_root": str(root)}, "model": "toy"}}
    return TaskNumbers(details, groups=frozenset(groups))


@pytest.mark.parametrize(
    ("name", "groups", "scored"),
    [
        (SERIES, (), False),
        (SERIES, ("general_bench_nlp",), False),
        (SPORTS, ("general_bench_image_comprehension",), False),
        (SPORTS, ("general_bench_image", "general_bench_image_comprehension"), True),
        (SERIES, (KEY, "general_bench_nlp"), True),
    ],
    ids=["one task", "language", "one paradigm", "one modality", "all"],
)
def test_answers_in_files_are_scored_for_the_chosen_groups_only(
    tmp_path: Path, name: str, groups: tuple[str, ...], scored: bool
) -> None:
    root = copied(tmp_path / "data", "image/generation/Deraining")
    found = report({PREFIX + name: numbers(name, root, *groups)}, tmp_path / "out" / "stem")
    assert found is not None
    part = found.parts["general_bench_report"][KEY]
    assert part["from_files"] == (["image_generation_image_deraining"] if scored else [])
    assert ("from prediction.json" in found.text) == scored
    assert (tmp_path / "out" / JOURNAL).exists() == scored  # what was scored is not scored again


def test_a_closed_set_has_predictions_and_no_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copied(tmp_path, FIRST)
    (root / SET).rename(root / "General-Bench-Closeset")
    for file in root.rglob("annotation.json"):
        file.unlink()
    items = [{"id": n, "input": {"question": "?", "options": ["a", "b"]}} for n in range(2)]
    annotation = {"task": "Commonsense Reasoning", "type": "MultipleChoiceQA", "data": items}
    (root / "General-Bench-Closeset" / FIRST / "annotation.json").write_text(json.dumps(annotation))
    out = tmp_path / "out"
    model = ("--model", "baseline", "--model_args", "strategy=constant", "--output_path", str(out))
    # Nothing could be scored, which a script that waits for a score must hear.
    assert run(root, "general_bench", *model, "--task_kwargs", "subset=closed,prediction_form=object") == 3
    printed = capsys.readouterr().out
    assert "no task has a score, so there are no General-Level scores" in printed
    assert "not evaluated: closed set" in printed and "level reached" not in printed
    assert "|predictions" not in printed  # the file is named below the table
    (file,) = out.rglob("prediction.json")
    assert [record["id"] for record in json.loads(file.read_text())["data"]] == [0, 1]


def damaged(root: Path, count: int) -> None:
    """The first task of the benchmark, without a question in any item."""
    items = [{"id": n, "input": {}, "output": {"answer": "A"}} for n in range(count)]
    edit(root / SET / FIRST / "annotation.json", lambda content: {**content, "data": items})


def test_a_damaged_task_stops_neither_the_run_nor_the_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    root = copied(tmp_path, FIRST, "nlp/Defects", "image/comprehension/Captioning")
    damaged(root, 40)
    (root / SET / "image/comprehension/Captioning/images/0.png").unlink()
    with StubServer() as server:
        model = ("--model", "openai", "--model_args", f"model=stub,base_url={server.url},num_concurrent=4")
        code = run(root, "general_bench", *model, "--output_path", str(tmp_path / "out"))
        asked = server.stats()["total"]
    assert code == 3 and asked == 3 + 2  # three defects, two of three captions
    printed = capsys.readouterr()
    assert "stopped asking early" not in printed.out + printed.err
    (file,) = (tmp_path / "out").rglob("*_results.json")
    outcomes = {name.removeprefix(PREFIX): one for name, one in json.loads(file.read_text())["outcomes"].items()}
    assert {(one["scored"], one["failed"]) for one in outcomes.values()} == {(0, 40), (3, 0), (2, 1)}
    reasons = outcomes["nlp_commonsense_reasoning"]["reasons"]
    assert any(reason.startswith("failed: document: 'Commonsense Reasoning', item 0: no input.") for reason in reasons)


@for_each("function", [utils.doc_to_messages, utils.doc_to_visual])
def test_an_item_that_cannot_be_asked_fails_alone(tmp_path: Path, function: Any) -> None:
    root = copied(tmp_path, FIRST)
    damaged(root, 1)
    given = {"data_root": str(root)}
    (row,) = rows("nlp_commonsense_reasoning", given)
    with pytest.raises(ItemError, match="no input"):
        function(row, given)
    assert "no input" in utils.doc_to_text(row, given)


def test_a_missing_picture_is_its_own_error(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Captioning")
    (root / SET / "image/comprehension/Captioning/images/0.png").unlink()
    given = {"data_root": str(root)}
    with pytest.raises(MediaError, match=r"0\.png"):
        utils.doc_to_visual(rows(CAPTIONS, given)[0], given)


def test_the_table_says_why_items_are_unanswered() -> None:
    score = TaskScore(SPORTS, "accuracy", 50.0, 25.0, None, 2, 4, notes=("no number in it (2 items)",))
    assert "partially answered: no number in it (2 items)" in score_table([score])
    assert "from prediction.json; partially answered" in score_table([score], frozenset({SPORTS}))


def pictured(root: Path, *inputs: dict[str, Any]) -> None:
    items = [{"id": n, "input": given, "output": {"text": "cat"}} for n, given in enumerate(inputs)]
    edit(root / SET / "image/comprehension/Captioning/annotation.json", lambda content: {**content, "data": items})


def test_nothing_is_asked_without_its_picture_or_its_question(tmp_path: Path) -> None:
    """Unknown keys never make a picture's question one of text alone."""
    root = copied(tmp_path, "image/comprehension/Captioning")
    given = {"data_root": str(root)}
    known = {"image_file": "0.png", "prompt": "What is it?"}
    pictured(root, known, {"picture": "0.png", "prompt": "?"}, {"image_file": "0.png", "demand": "What is in it?"})
    fine, blind, mute = rows(CAPTIONS, given)
    assert [part["type"] for part in utils.doc_to_messages(fine, given)[0]["content"]] == ["image", "text"]
    with pytest.raises(ItemError, match=r"nothing to look at.*picture, prompt.*field_maps"):
        utils.doc_to_messages(blind, given)
    with pytest.raises(ItemError, match=r"no question.*demand, image_file.*field_maps"):
        utils.doc_to_messages(mute, given)
    pictured(root, {"picture": "0.png"})
    with pytest.raises(AbsentDataError, match="nothing to look at"):
        rows(CAPTIONS, given)


def test_a_class_needs_no_question_and_other_usual_keys_are_known(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Captioning")
    given = {"data_root": str(root)}
    pictured(root, {"image": "0.png", "category": "indoor scene"}, {"image": "0.png", "question": "What is it?"})
    named, asked = (utils.doc_to_messages(row, given)[0]["content"] for row in rows(CAPTIONS, given))
    assert [part["type"] for part in named] == ["image", "text"] and named[1]["text"].startswith("Task: ")
    assert asked[1]["text"].startswith("What is it?")


def test_documents_do_not_tell_where_the_data_lie(tmp_path: Path) -> None:
    """Their hashes, and with them comparisons of runs, hold on another machine."""
    first, second = (copied(tmp_path / name, "image/comprehension/Captioning") for name in ("here", "there"))
    given = {"data_root": str(first)}
    assert rows(CAPTIONS, given) == rows(CAPTIONS, {"data_root": str(second)})
    assert str(tmp_path) not in json.dumps(rows(CAPTIONS, given))
    (picture, _) = utils.doc_to_messages(rows(CAPTIONS, given)[0], given)[0]["content"]
    assert str(picture["url"]).startswith(str(first))


def test_a_run_leaves_the_table_that_rank_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Captioning")
    found = report({PREFIX + SPORTS: numbers(SPORTS, root)}, tmp_path / "stem")
    assert found is not None
    for suffix in ("csv", "xlsx"):
        (table,) = (path for path in found.files if path.endswith(f"_result.{suffix}"))
        words = ["-p", table, "-m", "toy", "--scope", "C:Image-Comprehension", "--draws", "0", "-o", str(tmp_path)]
        assert rank(words) == 0
        printed = capsys.readouterr().out
        assert "tasks without a score: 270 of 271, which count as 0" in printed
        assert "(this scope has levels up to 3)" in printed


def test_that_predictions_cannot_be_written_is_said_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied(tmp_path, FIRST)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != root / SET / FIRST or mode != os.W_OK)
    assert len(rows("nlp_commonsense_reasoning", {"data_root": str(root)})) == 3
    with pytest.raises(DataError, match=r"Commonsense-Reasoning cannot be written: omit `predictions=beside`"):
        rows("nlp_commonsense_reasoning", {"data_root": str(root), "predictions": "beside"})


def test_a_closed_set_is_asked_with_the_answers_of_the_open_one(tmp_path: Path) -> None:
    sports = "image/comprehension/Sports-Classification"
    root = copied(tmp_path, sports)
    shutil.copytree(root / SET, root / "General-Bench-Closeset")
    closed = root / "General-Bench-Closeset" / sports / "annotation.json"
    edit(closed, lambda content: {**content, "data": [item for item in content["data"] if item.pop("output")]})
    given = {"data_root": str(root), "subset": "closed"}
    asked, opened = rows(SPORTS, given), rows(SPORTS, {"data_root": str(root)})
    assert asked[0]["candidates"] == opened[0]["candidates"] != []
    assert asked[0]["folder"].startswith("General-Bench-Closeset") and utils.doc_to_target(asked[0], given) == ""
    (root / SET / sports / "annotation.json").unlink()
    documents.root.cache_clear()
    documents._root_of_run.cache_clear()
    assert rows(SPORTS, given)[0]["candidates"] == []
