from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from lmms_eval.api.task import PipelineScore
from lmms_eval.compare.readers import read_runs
from lmms_eval.engine.headline import RandomOrder
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results.facts import EarlyStop
from lmms_eval.storage.lines import sealed
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import failed, scored, store_of

STAMP = "20240101_000000"
CONFIG = {
    "score_key": "score",
    "cluster_key": "video",
    "metric_list": [
        {"metric": "acc", "aggregation": "mean"},
        {"metric": "graded", "aggregation": "<function utils.percent>", "range": [0, 100]},
        {"metric": "macro", "aggregation": "<function utils.macro>", "range": [0, 1]},
        {"metric": "loss", "aggregation": "mean"},
    ],
}


def results(**parts: Any) -> dict[str, Any]:
    return {
        "results": {"quiz": {"acc,none": 0.5, "graded,none": 37.5, "macro,none": 0.5, "alias": "quiz"}},
        "configs": {"quiz": CONFIG},
        "higher_is_better": {"quiz": {"acc": True, "graded": True, "macro": True, "loss": False}},
        "model_name": "org/model",
        "run_key": "key1",
        "n-shot": {},
        **parts,
    }


def sample(doc_id: int, **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "target": "right",
        "filtered_resps": f"said {doc_id}",
        "doc_hash": f"{doc_id:064x}",
        "input": "asked",
        "filter": "none",
        "status": "scored",
        **more,
    }


def samples() -> list[dict[str, Any]]:
    return [
        sample(
            number,
            acc=float(number % 2),
            graded={"score": number / 4, "video": f"v{number // 2}"},
            macro={"score": number % 2, "kind": "ab"[number // 2]},
            loss=float(number),
            doc={"topic": "xy"[number % 2], "question": f"question {number}"},
        )
        for number in range(4)
    ]


def write_run(folder: Path, rows: list[dict[str, Any]], document: dict[str, Any], stamp: str = STAMP) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stamp}_results.json"
    path.write_text(json.dumps(document))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{stamp}_samples_quiz.jsonl").write_text(lines)
    return path


def write_journal(folder: Path, *records: dict[str, Any]) -> Path:
    store = store_of(folder, *records)
    store.close()
    write_state(folder)
    return folder


def write_state(folder: Path, **more: Any) -> None:
    state = {"state": "interrupted", "arguments": {"model": "openai", "model_args": "model=org/model"}, **more}
    (folder / "run.json").write_bytes(sealed(orjson.dumps(state)))


def test_rows_carry_ids_scores_hashes_and_clusters(tmp_path: Path) -> None:
    path = write_run(tmp_path / "out" / "org__model", samples(), results())
    (run,) = read_runs([str(path)])
    task = run.tasks["quiz"]
    assert (run.name, run.kind, run.source, run.notes) == ("org/model", "lmms_eval", str(path), ())
    assert list(task.ids) == ["0", "1", "2", "3"]
    assert task.hashes == [f"{number:064x}" for number in range(4)]
    assert task.clusters == ["v0", "v0", "v1", "v1"]
    assert set(task.statuses) == {"scored"}
    assert task.columns["graded,none"].scores.tolist() == [0, 0.25, 0.5, 0.75]


def test_the_results_document_tells_ranges_directions_and_what_was_reported(tmp_path: Path) -> None:
    path = write_run(tmp_path, samples(), results())
    columns = read_runs([str(path)])[0].tasks["quiz"].columns
    facts = {name: (one.score_range, one.higher_is_better, one.reported, one.scale) for name, one in columns.items()}
    assert facts == {
        "acc,none": (ScoreRange(0, 1), True, 0.5, 1.0),
        "graded,none": (ScoreRange(0, 1), True, 37.5, 100.0),
        # Its values say more than a score: that it equals the mean of four documents is no proof that it is one.
        "macro,none": (ScoreRange(0, 1), True, 0.5, 0.0),
        "loss,none": (None, False, None, 1.0),
    }


def test_a_metric_that_only_writes_a_file_is_marked(tmp_path: Path) -> None:
    path = write_run(tmp_path, samples(), results(outcomes={"quiz": {"wrote_files": ["loss,none"]}}))
    columns = read_runs([str(path)])[0].tasks["quiz"].columns
    assert (columns["loss,none"].reported, columns["loss,none"].scale) == (None, 0.0)


def test_answers_raw_values_and_metadata_are_read_when_asked_for(tmp_path: Path) -> None:
    task = read_runs([str(write_run(tmp_path, samples(), results()))])[0].tasks["quiz"]
    answer = task.answer(2)
    assert answer is not None
    assert (answer.text, answer.target, answer.prompt) == ("said 2", "right", "asked")
    assert task.raw("macro,none", 3) == {"score": 1, "kind": "b"}
    assert task.metadata() == {
        "topic": ["x", "y", "x", "y"],
        "video": ["v0", "v0", "v1", "v1"],
        "kind": ["a", "a", "b", "b"],
    }


def test_several_pipelines_are_columns_of_one_row(tmp_path: Path) -> None:
    rows = [sample(n, filter=name, acc=float(name == "strict")) for name in ("none", "strict") for n in range(2)]
    rows[1] = {"doc_id": 1, "status": "failed", "error": "timeout"}
    task = read_runs([str(write_run(tmp_path, rows[:3], results()))])[0].tasks["quiz"]
    assert task.statuses == ["scored", "failed"]
    np.testing.assert_array_equal(task.columns["acc,none"].scores, [0, np.nan])
    np.testing.assert_array_equal(task.columns["acc,strict"].scores, [1, np.nan])
    assert task.raw("acc,strict", 0) == 1.0


def test_what_is_no_number_is_unscored_and_counted(tmp_path: Path) -> None:
    rows = [sample(0, acc=float("nan")), sample(1, acc=1.0), sample(2, status="unscored", reason="no judge")]
    (run,) = read_runs([str(write_run(tmp_path, rows, results()))])
    task = run.tasks["quiz"]
    assert task.statuses == ["unscored", "scored", "unscored"]
    assert np.isnan(task.columns["acc,none"].scores).tolist() == [True, False, True]
    assert run.notes == ("quiz: values of acc,none that are not finite numbers: unscored (1)",)


def test_the_first_line_of_a_document_counts(tmp_path: Path) -> None:
    (run,) = read_runs([str(write_run(tmp_path, [sample(0, acc=1.0), sample(0, acc=0.0)], results()))])
    assert run.tasks["quiz"].columns["acc,none"].scores.tolist() == [1.0]
    assert run.notes == ("quiz: further lines of documents that were there already: the first counts (1)",)


def test_without_samples_the_journal_is_read(tmp_path: Path) -> None:
    task = FakeTask(4, "quiz")
    records = [
        scored(task, 2, PipelineScore("none", "said", {"acc": 1.0})),
        failed(task, 1, "timeout"),
        scored(task, 0, PipelineScore("none", "said", {"acc": float("inf")})),
        scored(task, 3, PipelineScore("none", None, {}, "unscored", "no judge")),
    ]
    folder = write_journal(tmp_path / ".runs" / "key1", *records)
    with open(folder / "scores-0.jsonl", "ab") as file:
        file.write(b'{"task":"quiz","doc_id":9,"sco')  # a kill has torn it
    (tmp_path / f"{STAMP}_results.json").write_text(json.dumps(results()))
    (run,) = read_runs([str(tmp_path)])
    rows = run.tasks["quiz"]
    assert list(rows.ids) == ["0", "1", "2", "3"]
    assert rows.statuses == ["unscored", "failed", "scored", "unscored"]
    np.testing.assert_array_equal(rows.columns["acc,none"].scores, [np.nan, np.nan, 1, np.nan])
    assert rows.columns["acc,none"].score_range == ScoreRange(0, 1)
    answer = rows.answer(2)
    assert answer is not None
    assert (answer.text, answer.target, answer.prompt) == ("said", "right", "asked")
    assert rows.raw("acc,none", 2) == 1.0
    assert run.notes == (
        f"{folder}: 1 torn or damaged lines of the journal are skipped",
        "quiz: values of acc,none that are not finite numbers: unscored (1)",
    )


def test_an_unfinished_run_is_found_in_its_folder(tmp_path: Path) -> None:
    record = scored(FakeTask(4, "quiz"), 0, PipelineScore("none", "said", {"acc": 1.0}))
    folder = write_journal(tmp_path / "org__model" / ".runs" / "key1", record)
    found = [read_runs([str(place)])[0] for place in (tmp_path, folder.parent.parent, folder)]
    assert {run.name for run in found} == {"org/model"}
    assert all(list(run.tasks["quiz"].ids) == ["0"] for run in found)
    assert "not known" in found[0].notes[0]


def test_an_unfinished_run_is_read_by_what_its_record_tells_of_the_task(tmp_path: Path) -> None:
    values = {"acc": {"points": 1, "video": "v"}, "loss": 2.0, "f": 1.0}
    folder = write_journal(
        tmp_path / ".runs" / "key1", scored(FakeTask(1, "quiz"), 0, PipelineScore("none", "", values))
    )
    metrics = [{"metric": "acc", "aggregation": "mean", "range": [0, 5]}, {"metric": "f", "aggregation": "f1"}]
    told = {"metric_list": metrics, "score_key": "points", "cluster_key": "video"}
    write_state(folder, tasks={"quiz": {**told, "higher_is_better": {"acc": True, "loss": False}}}, key="key1")
    (run,) = read_runs([str(tmp_path)])
    task = run.tasks["quiz"]
    assert task.clusters == ["v"] and task.columns["acc,none"].scores.tolist() == [1.0]
    facts = {name: (one.score_range, one.higher_is_better, one.scale) for name, one in task.columns.items()}
    assert facts == {
        "acc,none": (ScoreRange(0, 5), True, 1.0),
        "loss,none": (None, False, 1.0),
        "f,none": (None, None, 0.0),
    }
    assert run.notes == ("read from the journal, as far as the run has come",)


def test_the_record_of_a_finished_run_is_read_by_its_results(tmp_path: Path) -> None:
    write_run(tmp_path, samples(), results())
    folder = write_journal(tmp_path / ".runs" / "key1", scored(FakeTask(1, "quiz"), 0, PipelineScore("none", "", {})))
    write_state(folder, state="complete", stamp=STAMP)
    (run,) = read_runs([str(folder)])
    assert run.source == str(folder)
    assert run.tasks["quiz"].columns["acc,none"].reported == 0.5


@for_each("has_results", [True, False])
def test_documents_beyond_the_early_end_do_not_count(tmp_path: Path, has_results: bool) -> None:
    task = FakeTask(9, "quiz")
    plan = TaskPlan(task, tuple(range(9)), original=9)
    order = RandomOrder(3)
    asked = order.of(plan)
    records = [scored(task, doc_id, PipelineScore("none", "said", {"acc": 1.0})) for doc_id in asked[:6]]
    records[1] = failed(task, asked[1], "timeout")
    folder = write_journal(tmp_path / ".runs" / "key1", *records[::-1])
    stop = {"quiz": {"rule": "halfwidth<=0.01", "order": order.name(plan), "asked": 4, "of": 9}}
    write_state(folder, early_stops=stop, tasks={"quiz": {"metric_list": []}}, key="key1")
    if has_results:
        (tmp_path / f"{STAMP}_results.json").write_text(json.dumps(results(early_stop=stop)))
    (run,) = read_runs([str(tmp_path)])
    assert sorted(run.tasks["quiz"].ids) == sorted(map(str, asked[:4]))
    assert run.tasks["quiz"].statuses.count("failed") == 1
    assert run.tasks["quiz"].early_stop == EarlyStop(4, 9, order.name(plan), "halfwidth<=0.01")


def test_of_one_run_the_newest_results_count_and_of_several_one_must_be_named(tmp_path: Path) -> None:
    write_run(tmp_path, samples()[:1], results())
    write_run(tmp_path, samples(), results(), "20240102_000000")
    (run,) = read_runs([str(tmp_path)])
    assert len(run.tasks["quiz"].ids) == 4
    write_run(tmp_path, samples(), results(run_key="key2"), "20240103_000000")
    with pytest.raises(DataError, match=r"holds 2 runs: name one of them: .*/20240102_.* \(.*quiz\); .*/20240103_"):
        read_runs([str(tmp_path)])


def test_groups_name_their_leaves(tmp_path: Path) -> None:
    groups = {"top": ["mid", "other"], "mid": ["quiz"], "plain": ["quiz"], "quiz": []}
    document = results(groups={"top": {}}, group_subtasks=groups)
    (run,) = read_runs([str(write_run(tmp_path, samples(), document))])
    assert run.groups == {"top": ["quiz"]}


def test_an_early_end_is_told(tmp_path: Path) -> None:
    stop = {"quiz": {"rule": "halfwidth<=0.01", "order": "random-0", "asked": 4, "of": 9, "interval": {}}}
    (run,) = read_runs([str(write_run(tmp_path, samples(), results(early_stop=stop)))])
    assert run.tasks["quiz"].early_stop == EarlyStop(4, 9, "random-0", "halfwidth<=0.01")


def test_runs_of_one_model_are_told_apart_by_folder_or_date_stamp(tmp_path: Path) -> None:
    paths = [str(write_run(tmp_path / name / "m", samples(), results(run_key=name))) for name in ("a", "b", "b/c")]
    assert [run.name for run in read_runs(paths[:2])] == ["org/model@a", "org/model@b"]
    assert [run.name for run in read_runs(paths)] == ["org/model@a", "org/model@b", "org/model@b/c"]
    other = write_run(tmp_path / "a" / "m", samples(), results(run_key="d"), "20240102_000000")
    assert [run.name for run in read_runs([paths[0], str(other)])] == [
        "org/model@20240101_000000",
        "org/model@20240102_000000",
    ]


def test_a_run_is_named_once(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a" / "m", samples(), results())
    for names in ([path, path], [path, tmp_path / "a" / "m" / ".." / "m" / path.name], [path.parent, tmp_path / "a"]):
        with pytest.raises(UsageError, match="that is one run; name different ones"):
            read_runs(list(map(str, names)))


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = write_run(tmp_path, samples(), results())
    file = tmp_path / f"{STAMP}_samples_quiz.jsonl"
    file.write_text(file.read_text() + '{"doc_id": 4\n')
    with pytest.raises(DataError, match=r"samples_quiz.jsonl, line 5: no JSON"):
        read_runs([str(path)])


def test_a_folder_without_a_run_and_a_missing_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run in this folder"):
        read_runs([str(tmp_path)])
    with pytest.raises(DataError, match="no such file"):
        read_runs([str(tmp_path / "none")])
