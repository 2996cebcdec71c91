"""A run that goes on, by its journals: numbers, samples as they come, and what may happen to them meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.results.breakdown import breakdown
from lmms_eval.results.files import read_state
from lmms_eval.results.journals import Journals
from lmms_eval.results.run import read_run
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.viewer.live.pieces import LazyMedia, PieceError, PieceName
from lmms_eval.viewer.live.unfinished import Machine, UnfinishedRun
from lmms_eval.viewer.media import MediaStore
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.records import Record
from tests.viewer.conftest import quiz_rows, run_task, write_task
from tests.viewer.test_comparison import content


@pytest.fixture
def media(tmp_path: Path) -> Iterator[LazyMedia]:
    store = MediaStore(tmp_path / "media", "thumbnails")
    yield LazyMedia(store)
    store.close()


def piece(run: UnfinishedRun, name: str) -> Any:
    found = PieceName.read(name)
    assert found
    return run.piece(found)


def columns(run: UnfinishedRun) -> dict[str, list[Any]]:
    """Columns of the first task's index, as a page puts them together."""
    index = piece(run, "index-0-0")
    found = {}
    for number, facts in enumerate(index["columns"]):
        per = index["per_rows"] if facts["kind"] == "texts" else index["per_column"]
        if facts.get("empty"):
            values = [None] * index["count"]
        elif "from" in facts:
            values = [str(facts["from"] + row) for row in range(index["count"])]
        elif facts.get("same"):
            values = [0] * index["count"]
        elif "all" in facts:
            values = facts["all"]
        else:
            form = f"column-0-0-{number}-{{}}" if facts["kind"] != "texts" else "rows-0-0-{}"
            parts = [piece(run, form.format(part)) for part in range(-(-index["count"] // per))]
            values = [value for part in parts for value in (part[facts["key"]] if facts["kind"] == "texts" else part)]
        if facts["kind"] == "codes" and not facts.get("empty"):
            told = facts.get("values") or piece(run, f"values-0-0-{number}")
            values = [None if code < 0 else told[code] for code in values]
        found[facts["key"]] = values
    return found


def live(run: UnfinishedRun) -> dict[str, Any]:
    return run.entry("modest", Machine(program="none"))["live"]


def test_numbers_and_samples_come_as_the_journal_grows(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    assert run.look() == {"runs"}
    assert (live(run)["done"], live(run)["requested"], live(run)["is_going"]) == (0, 40, True)
    for place, doc_id in enumerate(record.order[:10]):
        record.score(doc_id, float(place % 2))
    record.fail(record.order[10])
    assert run.look() >= {"runs", "index-0-0", "rows-0-0-0", "text-0-0-0"}
    told = live(run)
    assert (told["done"], told["scored"], told["failed"]) == (11, 10, 1)
    assert (told["tokens_in"], told["tokens_out"]) == (100, 20)
    assert told["reasons"] == [("timeout: no answer", 1)]
    (task,) = told["tasks"]
    assert (task["done"], task["score"]["n"], task["score"]["value"]) == (11, 11, 0.5)
    assert task["score"]["low"] < 0.5 < task["score"]["high"]
    index = columns(run)
    assert index["id"] == [str(doc_id) for doc_id in record.order[:11]]
    assert index["s.acc,none"] == [0, 1] * 5 + [None]
    assert index["status"] == ["scored"] * 10 + ["failed"]
    (text, *_) = piece(run, "text-0-0-0")
    assert text["lines"][0]["filtered_resps"] == "B"
    assert run.look() == {"runs"}  # the time goes on, and nothing else


def test_the_latest_samples_come_with_their_scores_the_newest_first(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    for doc_id in range(12):
        record.score(doc_id, float(doc_id % 2))
    record.fail(30, "timeout: no answer")
    record.score(11, 0.0, rank=1)  # once more: it is shown once, as it is now
    run.look()
    latest = live(run)["latest"]
    assert [one["id"] for one in latest] == ["11", "30", "10", "9", "8", "7", "6"]
    assert [one["score"] for one in latest[:4]] == [0, None, 0, 1]
    assert latest[1]["status"] == "failed" and latest[1]["reason"] == "timeout: no answer"
    assert latest[0]["answer"] == "B" and latest[0]["task"] == "quiz"


def test_redacted_answers_are_not_among_the_latest_samples(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    record.score(3, 1.0)
    options = ReportOptions(redact=frozenset({"filtered_resps"}))
    run = UnfinishedRun(record.path, 0, options, media, budget_s=60)
    run.look()
    assert [one["answer"] for one in live(run)["latest"]] == ["[REDACTED]"]


def test_other_metrics_have_a_mean_so_far_and_no_interval(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40, sampled=False)
    for doc_id in range(20):
        record.score(doc_id, float(doc_id < 5))
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    (row,) = run.entry("modest", Machine(program="none"))["rows"]
    assert (row["value"], row["low"], row["high"], row["n"]) == (0.25, None, None, 20)
    assert "--order random" in live(run)["tasks"][0]["reason"]
    parts = piece(run, "run-0")["tasks"]["quiz"]["breakdowns"][0]["metrics"]["acc,none"]
    assert [(part["n"], part["low"], part["method"]) for part in parts] == [(10, None, "the run has not ended")] * 2


def test_a_document_has_one_row_whatever_becomes_of_it(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    record.fail(3)
    record.score(5, 1.0)
    run.look()
    record.score(3, 1.0)
    record.fail(5)  # no failure replaces a score
    record.score(5, 0.0, rank=1)  # asked again, since all answers were blank
    assert "index-0-0" in run.look()
    index = columns(run)
    assert (index["id"], index["status"], index["s.acc,none"]) == (["3", "5"], ["scored"] * 2, [1, 0])
    told = live(run)
    assert (told["done"], told["scored"], told["failed"], told["tokens_in"]) == (2, 2, 0, 20)
    assert told["reasons"] == []


def test_scores_by_other_settings_do_not_count(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(6):
        record.score(doc_id, 0.0)
        record.score(doc_id + 6, 0.0, rank=1)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    assert live(run)["done"] == 12
    for doc_id in range(3):
        record.score(doc_id, 1.0, key="two")
    os.utime(record.path / "scores-1.jsonl", (1, 1))
    assert "*" in run.look()
    assert live(run)["done"] == 3
    assert columns(run)["s.acc,none"] == [1, 1, 1]


def test_a_torn_line_is_told_when_nobody_writes_any_more(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    record.score(0, 1.0)
    with open(record.path / "scores-0.jsonl", "ab") as file:
        file.write(b'{"task":"quiz","doc_id":1,')
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    assert run.entry("modest", Machine(program="none"))["warnings"] == []
    record.folder.release()
    run.look()
    entry = run.entry("modest", Machine(program="none"))
    assert entry["state"] == "interrupted"
    assert [one["text"].split(": ")[-1] for one in entry["warnings"]] == [
        "the run is interrupted",
        "1 torn or damaged lines of the journal are passed over",
    ]


def test_a_run_that_an_error_has_ended_is_failed(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    record.score(0, 1.0)
    record.folder.write({**read_state(record.path), "state": "failed", "error": "ArithmeticError: overflow"})
    record.folder.release()
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    entry = run.entry("modest", Machine(program="none"))
    assert entry["state"] == "failed"
    assert [one["text"] for one in entry["warnings"]] == ["the run failed: ArithmeticError: overflow"]


def test_damaged_records_are_told_and_the_rest_is_shown(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    record._append({"task": "quiz", "doc_id": 0, "key": "one"}, 0)
    record.score(1, 1.0, scores="none")
    record._append({"task": ["quiz"], "doc_id": "0"}, 0)
    record.score(2, 1.0)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    entry = run.entry("modest", Machine(program="none"))
    assert entry["live"]["done"] == 1
    (warning,) = entry["warnings"]
    assert "3 torn or damaged lines" in warning["text"]


def test_a_run_that_is_begun_anew_is_read_from_its_beginning(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(5):
        record.score(doc_id, 1.0)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    assert live(run)["done"] == 5
    record.folder.clear()
    record.write_state(date="2026-01-02")
    record.score(7, 0.0)
    run.look()
    assert columns(run)["id"] == ["7"]


def test_a_deleted_run_keeps_what_was_read(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(5):
        record.score(doc_id, 1.0)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    shutil.rmtree(record.path)
    assert "runs" in run.look()
    entry = run.entry("modest", Machine(program="none"))
    assert (entry["state"], entry["live"]["done"]) == ("deleted", 5)
    assert "was deleted or moved" in entry["warnings"][0]["text"]
    assert len(piece(run, "text-0-0-0")) == 5
    assert piece(run, "text-0-0-0")[4]["lines"][0]["filtered_resps"] == "B"
    assert "runs" not in run.look()


@pytest.mark.parametrize("name", ["index-0-1", "column-0-0-99-0", "text-0-0-9", "media-0-0-77"])
def test_a_piece_that_is_not_there_is_refused(tmp_path: Path, media: LazyMedia, name: str) -> None:
    record = Record(tmp_path / "out", 40)
    record.score(0, 1.0)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    with pytest.raises(PieceError):
        piece(run, name)


def test_what_is_followed_is_what_the_reader_of_finished_runs_finds(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    for doc_id in record.order[:30]:
        record.fail(doc_id) if doc_id % 5 == 0 else record.score(doc_id, float(doc_id % 3 == 0))
        if doc_id % 4 == 0:
            run.look()
    run.look()
    index = columns(run)
    lines = [line.record for line in Journals.read(record.path).samples("quiz", {}).lines()]
    found = {str(line["doc_id"]): line.get("acc") for line in lines}
    assert dict(zip(index["id"], index["s.acc,none"], strict=True)) == found


@pytest.mark.parametrize("key", ["", "question"])
def test_an_interrupted_run_has_the_clusters_of_its_results(tmp_path: Path, media: LazyMedia, key: str) -> None:
    """Sixty questions about six pictures: without a ``cluster_key`` the pictures are the clusters."""
    task = write_task(tmp_path / "task", quiz_rows(tmp_path / "task")[:60])
    text = (task / "quiz.yaml").read_text()
    (task / "quiz.yaml").write_text(text if key else text.replace("cluster_key: question\n", ""))
    out = run_task(task, tmp_path / "out", "strategy=constant,text=A")
    write_report([str(out)], tmp_path / "report", ReportOptions(media="none"))
    expected = content(tmp_path / "report", "run-0")["tasks"]["quiz"]["breakdowns"]
    (record,) = out.rglob(".runs/*/run.json")
    RunFolder(record.parent).write({**read_state(record.parent), "state": "interrupted"})
    run = UnfinishedRun(record.parent, 0, ReportOptions(media="none"), media, budget_s=60)
    run.look()
    assert piece(run, "run-0")["tasks"]["quiz"]["breakdowns"] == expected
    (kind,) = (part for part in expected if part["column"] == "kind")
    (even, _) = kind["metrics"]["exact_match,none"]
    assert (even["n"], even["few"]) == (30, not key)  # three pictures, or thirty independent questions
    for path in out.glob("*_*"):
        path.unlink()
    unfinished = read_run(record.parent)
    shown = {(cell.by, cell.value): cell for cell in breakdown(unfinished, unfinished.task("quiz")).cells}
    assert (shown["kind", "even"].low, shown["kind", "even"].high) == (even["low"], even["high"])


def test_a_run_that_an_earlier_version_began_has_declared_clusters(tmp_path: Path, media: LazyMedia) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(10):
        record.score(doc_id, float(doc_id % 3 == 0), media=["one.png"])
    record.folder.release()
    run = UnfinishedRun(record.path, 0, ReportOptions(), media, budget_s=60)
    run.look()
    (kind,) = (part for part in piece(run, "run-0")["tasks"]["quiz"]["breakdowns"] if part["column"] == "kind")
    assert all(part["low"] is not None for part in kind["metrics"]["acc,none"])
