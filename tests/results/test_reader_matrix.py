"""Every consumer of a run's record counts the same documents with the same scores, whatever the state of the run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Response
from lmms_eval.api.task import PipelineScore
from lmms_eval.cli.main import main
from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.runs import TaskRows
from lmms_eval.engine.headline import HeadlinePart, RandomOrder
from lmms_eval.engine.live import outline_of, write_outline
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import response_record
from lmms_eval.errors import DataError
from lmms_eval.results import load
from lmms_eval.results.samples_file import record_rows
from lmms_eval.storage.lines import JournalWriter
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.runs import read_report_runs
from tests.engine.fakes import FakeTask
from tests.engine.journaled import failed, scored
from tests.results.runs import KEY, document, write_record, write_run

OF = 10
Documents = dict[str, tuple[str, float | None]]
"""Status and score by document."""


class StratifiedTask(FakeTask):
    def strata(self, doc_ids: Iterable[int]) -> list[str]:
        return ["even" if doc_id % 2 == 0 else "odd" for doc_id in doc_ids]


QUIZ = FakeTask(OF, "quiz")


def finished(doc_id: int) -> dict[str, Any]:
    return scored(QUIZ, doc_id, PipelineScore("none", f"answer {doc_id}", {"acc": float(doc_id % 2)}))


def lost(doc_id: int) -> dict[str, Any]:
    return failed(QUIZ, doc_id, "timeout")


def expected(records: Iterable[Mapping[str, Any]]) -> Documents:
    return {
        str(one["doc_id"]): ("failed", None) if "failed" in one else ("scored", float(one["doc_id"] % 2))
        for one in records
    }


def write(
    folder: Path, records: list[dict[str, Any]], state: str, stop: Mapping[str, Any] | None = None, counted: int = OF
) -> Path:
    """Write a record, and results with samples if the run has ended; ``counted``: so many records count."""
    facts = {"metric_list": [{"metric": "acc", "aggregation": "mean"}], "higher_is_better": {"acc": True}}
    stops = {} if stop is None else {"quiz": dict(stop)}
    record = write_record(folder / ".runs" / KEY, *records[::-1], state=state, tasks={"quiz": facts}, early_stops=stops)
    if state != "running":
        parts = {"early_stop": stops} if stops else {}
        rows = [row for one in records[:counted] for row in record_rows(json.loads(json.dumps(one)))]
        write_run(folder, rows, document(state=state, **parts))
    return record


def complete(folder: Path) -> tuple[Path, Documents]:
    records = [finished(doc_id) for doc_id in range(OF)]
    return write(folder, records, "complete"), expected(records)


def withheld(folder: Path) -> tuple[Path, Documents]:
    records = [finished(doc_id) for doc_id in range(OF - 2)] + [lost(OF - 2), lost(OF - 1)]
    return write(folder, records, "withheld"), expected(records)


def interrupted(folder: Path) -> tuple[Path, Documents]:
    records = [finished(doc_id) for doc_id in range(5)] + [lost(5)]
    return write(folder, records, "interrupted"), expected(records)


def killed(folder: Path) -> tuple[Path, Documents]:
    """A run without results, in which a document is answered but not scored."""
    records = [finished(doc_id) for doc_id in range(5)] + [lost(5)]
    record = write(folder, records, "running")
    writer = JournalWriter(record / "responses-0.jsonl")
    writer.append(response_record(Response("quiz/7/0/0/0", text="waits"), "prompt"))
    writer.close()
    return record, expected(records) | {"7": ("unscored", None)}


def stopped(folder: Path, task: FakeTask = QUIZ) -> tuple[Path, Documents]:
    """A run that stopped after four documents, with two more finished."""
    plan, order = TaskPlan(task, tuple(range(OF)), original=OF), RandomOrder(3)
    records = [finished(doc_id) for doc_id in order.of(plan)[:6]]
    records[1] = lost(records[1]["doc_id"])
    stop = {"rule": "halfwidth<=0.25", "order": order.name(plan), "asked": 4, "of": OF}
    record = write(folder, records, "stopped early", stop, counted=4)
    part = HeadlinePart("quiz", "acc", "none", ScoreRange(0, 1))
    write_outline(record, outline_of([plan], Sampling(order, shown=(part,)), {"quiz": part}))
    return record, expected(records[:4])


def stopped_over_strata(folder: Path) -> tuple[Path, Documents]:
    return stopped(folder, StratifiedTask(OF, "quiz"))


def show(path: Path) -> Documents:
    return {one.doc_id: (one.status, one.score) for one in load(path).samples()}


def of_rows(task: TaskRows) -> Documents:
    scores = [None if math.isnan(score) else score for score in task.columns["acc,none"].scores.tolist()]
    return dict(zip(task.ids, zip(task.statuses, scores, strict=True), strict=True))


def compare(path: Path) -> Documents:
    (run,) = read_runs([str(path)])
    return of_rows(run.tasks["quiz"])


def report(path: Path) -> Documents:
    (run,) = read_report_runs([str(path)])
    return of_rows(run.rows.tasks["quiz"])


def export(path: Path) -> Documents:
    file = path.parent.parent / "exported.jsonl"
    assert main(["export", str(path), "--to", "jsonl", "--out", str(file)]) == 0
    rows = map(json.loads, file.read_text().splitlines())
    return {row["doc_id"]: (row["status"], row.get("score")) for row in rows}


STATES = (complete, withheld, interrupted, killed, stopped, stopped_over_strata)


@pytest.mark.parametrize("consumer", [show, compare, report, export])
@pytest.mark.parametrize("has_results", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_consumers_agree(
    tmp_path: Path,
    state: Callable[[Path], tuple[Path, Documents]],
    has_results: bool,
    consumer: Callable[[Path], Documents],
) -> None:
    record, documents = state(tmp_path / "model")
    if not has_results:
        for path in (tmp_path / "model").glob("2*"):
            path.unlink()
    assert consumer(record) == documents


@pytest.mark.parametrize("consumer", [show, compare, report])
@pytest.mark.parametrize("state", STATES)
def test_consumers_agree_on_the_output_folder(
    tmp_path: Path, state: Callable[[Path], tuple[Path, Documents]], consumer: Callable[[Path], Documents]
) -> None:
    _, documents = state(tmp_path / "model")
    assert consumer(tmp_path) == documents


@pytest.mark.parametrize("state", [stopped, stopped_over_strata])
def test_a_run_that_stopped_early_is_compared_with_itself(
    tmp_path: Path, state: Callable[[Path], tuple[Path, Documents]], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = state(tmp_path / "one")[0], state(tmp_path / "two")[0]
    assert main(["compare", str(first), str(second)]) == 0
    assert "no random order" not in capsys.readouterr().err


def test_older_results_of_a_resumed_run_do_not_take_its_newer_documents(tmp_path: Path) -> None:
    record, _ = complete(tmp_path)
    for path in tmp_path.glob("*_samples_*"):
        path.unlink()
    (results,) = tmp_path.glob("*_results.json")
    assert show(results) == compare(results) == report(results) == show(record)
    older = results.rename(tmp_path / "20230101_000000_results.json")
    assert load(older).tasks == {}
    (run,) = read_report_runs([str(older)])
    assert run.rows.tasks == {}
    with pytest.raises(DataError, match="found neither samples of this run"):
        read_runs([str(older)])
