from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Usage
from lmms_eval.api.task import PipelineScore
from lmms_eval.engine.aggregate import aggregate_task
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.errors import JournalError
from lmms_eval.results.samples_file import json_text, returned_samples, with_samples
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import answer, failed, scored, store_of


def written(folder: Path, task: FakeTask, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The samples file of a task with these documents."""
    store = store_of(folder / "journal", *records)
    path = folder / "out" / "samples.jsonl"
    result = aggregate_task(plan_task(task, None, 0), store, AggregateOptions(read=partial(with_samples, path, store)))
    assert result.tally.documents == len(records)
    store.close()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [entry.name for entry in path.parent.iterdir()] == ["samples.jsonl"]
    return [json.loads(line) for line in lines]


def test_a_plain_sample(tmp_path: Path) -> None:
    task = FakeTask(1)
    (row,) = written(tmp_path, task, [scored(task, 0, PipelineScore("none", ["said"], {"acc": 1.0}))])
    assert row == {
        "doc_id": 0, "target": "right", "filtered_resps": "said",
        "token_counts": [{"input_tokens": 3, "output_tokens": 2, "reasoning_tokens": None}],
        "doc_hash": "0" * 64, "acc": 1.0, "input": "asked", "filter": "none", "status": "scored",
        "finish_reason": "stop", "doc": {"question": "question 0"}, "request_id": "fake/0",
    }  # fmt: skip


def test_raw_answers_are_kept_where_a_filter_changed_them_or_there_are_several(tmp_path: Path) -> None:
    task = FakeTask(2)
    repeats = (answer("one", latency=0.5), answer("two", usage=(None,), latency=1.5))
    records = [
        scored(task, 0, PipelineScore("none", ["cut"], {"acc": 1.0}), answers=[answer("<think>x</think>cut")]),
        scored(task, 1, PipelineScore("none", ["one"], {"acc": 1.0}), answers=repeats),
    ]
    changed, several = written(tmp_path, task, records)
    assert (changed["resps"], changed["filtered_resps"]) == ("<think>x</think>cut", "cut")
    assert changed["raw_resps"] == ["<think>x</think>cut"]
    assert several["raw_resps"] == ["one", "two"] and several["elapsed"] == [0.5, 1.5]
    assert "resps" not in several


def test_a_block_per_pipeline_in_document_order_and_failures_once(tmp_path: Path) -> None:
    task = FakeTask(3)
    task.pipelines = ("a", "b")
    both = [PipelineScore("a", ["x"], {"acc": 1.0}), PipelineScore("b", ["y"], {"acc": 0.0})]
    absent = PipelineScore("b", None, {}, "unscored", "no judge")
    records = [scored(task, 2, *both), scored(task, 0, both[0], absent), failed(task, 1, "timeout: no answer")]
    rows = written(tmp_path, task, records)
    assert [(row["doc_id"], row.get("filter"), row["status"]) for row in rows] == [
        (0, "a", "scored"), (1, None, "failed"), (2, "a", "scored"), (0, "b", "unscored"), (2, "b", "scored"),
    ]  # fmt: skip
    assert rows[1]["error"] == "timeout: no answer" and "raw_resps" not in rows[1]
    assert rows[3]["reason"] == "no judge"


def test_likelihoods_are_lists_of_pairs(tmp_path: Path) -> None:
    task = FakeTask(1)
    task.output_type = "multiple_choice"
    pairs = [(0.5, True), (2.0, False)]
    usage = (Usage(1, 0, 0), Usage(1, 0, 0))
    record = scored(task, 0, PipelineScore("none", pairs, {"acc": 1.0}), answers=[answer(pairs, usage=usage)])
    (row,) = written(tmp_path, task, [record])
    assert row["filtered_resps"] == [[0.5, True], [2.0, False]]
    assert len(row["token_counts"]) == 2


@for_each(
    ("value", "shown"),
    [({(1, 2): "x"}, {"(1, 2)": "x"}), ({"b", "a"}, ["a", "b"]), (b"x", "sha256:2d711642"), ("cut \ud83d", "cut ")],
)
def test_values_that_json_lacks_do_not_lose_the_file(tmp_path: Path, value: Any, shown: Any) -> None:
    task = FakeTask(1)
    (row,) = written(tmp_path, task, [scored(task, 0, PipelineScore("none", ["x"], {"acc": value}))])
    assert row["acc"] == shown or row["acc"].startswith(shown)


def test_objects_stand_as_text() -> None:
    assert json_text({"a": Path("/x"), 1: None}) == '{"a":"/x","1":null}'


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    task = FakeTask(1)
    store = store_of(tmp_path / "journal", scored(task, 0, PipelineScore("none", ["x"], {"acc": 1.0})))
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"file/samples\.jsonl.*the journal keeps every answer"):
        list(with_samples(tmp_path / "file" / "samples.jsonl", store, task, [0]))
    (tmp_path / "taken.jsonl").mkdir()
    with pytest.raises(JournalError):
        list(with_samples(tmp_path / "taken.jsonl", store, task, [0]))
    assert not list(tmp_path.glob(".*.tmp"))
    store.close()


def test_returned_samples_are_those_of_the_file(tmp_path: Path) -> None:
    task = FakeTask(2)
    records = [scored(task, doc_id, PipelineScore("none", [(0.5, True)], {"acc": 1.0})) for doc_id in range(2)]
    store, file_of = store_of(tmp_path / "journal", *records), tmp_path / "{}.jsonl"
    read = partial(with_samples, tmp_path / f"{task.name}.jsonl", store)
    result = aggregate_task(plan_task(task, None, 0), store, AggregateOptions(read=read))
    from_file = returned_samples([result], store, lambda name: Path(str(file_of).format(name)))
    assert from_file == returned_samples([result], store) and len(from_file[task.name]) == 2
    assert returned_samples([result], store, lambda name: tmp_path / "removed as it had no row") == {task.name: []}
    with pytest.raises(JournalError, match="cannot read"):
        returned_samples([result], store, lambda name: tmp_path)
    store.close()


def test_pairs_are_lists_in_the_journal(tmp_path: Path) -> None:
    record = scored(FakeTask(1), 0, PipelineScore("none", [(0.5, True), "x"], {"acc": 1.0}))
    store_of(tmp_path, record).close()
    (line,) = (tmp_path / "scores-0.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["scores"][0]["filtered"] == [[0.5, True], "x"]
