"""Answers from an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Thoughts
from lmms_eval.errors import ModelError
from lmms_eval.models.replay import Replay
from tests.cases import for_each
from tests.models.fakes import FakeTask, answers
from tests.parity.vectors import GOLDEN_DIR

RUNS = GOLDEN_DIR / "harness" / "runs"
SUBMISSION = GOLDEN_DIR / "megabench_pipeline/submissions/sub_a/megabench_core_all_query_responses.json"
DOCS = [{"question": f"q{number}", "answer": "", "choices": ["x", "y"]} for number in range(3)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def replayed(path: Path, task: FakeTask, requests: Any = None) -> list[Any]:
    model = Replay(str(path))
    model.attach_tasks([task])
    found = answers(model, requests or task.requests()).values()
    return [response.error.message if response.error else response.text for response in found]


def test_the_rawest_answer_counts(tmp_path: Path) -> None:
    rows = [
        {"doc_id": 1, "filtered_resps": "filtered", "resps": "less filtered"},
        {"doc_id": 0, "filtered_resps": "f", "resps": "r", "raw_resps": ["raw \u2028 line"]},
        {"doc_id": 2, "filtered_resps": "only"},
        {"doc_id": 2, "filter": "second", "filtered_resps": "of another filter"},
    ]
    path = write(tmp_path / "any.jsonl", rows)
    assert replayed(path, FakeTask(DOCS)) == ["raw \u2028 line", "less filtered", "only"]


def test_thoughts_that_were_apart_are_replayed_apart(tmp_path: Path) -> None:
    rows = [
        {"doc_id": 0, "resps": "said", "thoughts": "hm"},
        {"doc_id": 1, "filtered_resps": "", "thoughts": "hm", "finish_reason": "length"},
        {"doc_id": 2, "resps": "<think>hm</think>said", "thoughts": "hm"},
    ]
    task = FakeTask(DOCS)
    model = Replay(str(write(tmp_path / "any.jsonl", rows)))
    model.attach_tasks([task])
    found = [(response.text, response.thoughts) for response in answers(model, task.requests()).values()]
    assert found == [
        ("said", Thoughts("hm")), ("", Thoughts("hm", is_finished=False)), ("<think>hm</think>said", None),
    ]  # fmt: skip


def test_repeats(tmp_path: Path) -> None:
    rows = [{"doc_id": number, "raw_resps": [f"{number}a", f"{number}b"]} for number in range(2)]
    path = write(tmp_path / "samples_fake.jsonl", [*rows, {"doc_id": 2, "raw_resps": ["2a"]}])
    assert replayed(path, FakeTask(DOCS, repeats=2)) == [
        "0a", "0b", "1a", "1b", "2a",
        "no answer for document 2 of task fake (repeat 1, round 0, choice 0) in samples_fake.jsonl",
    ]  # fmt: skip


def test_missing_and_failed_documents_have_no_answer(tmp_path: Path) -> None:
    rows = [{"doc_id": 0, "filtered_resps": "x"}, {"doc_id": 1, "raw_resps": ["x"], "error": "timeout"}]
    model = Replay(str(write(tmp_path / "samples_fake.jsonl", rows)))
    found = answers(model, FakeTask(DOCS).requests())
    kinds = [response.error and response.error.kind for response in found.values()]
    assert kinds == [None, "bad_request", "bad_request"]


@for_each(
    "raw",
    [
        {"filtered_resps": [["1.5", "True"], ["2.5", "False"]]},
        {"raw_resps": [[1.5, True], [2.5, False]]},
        {"raw_resps": [[[1.5, True], [2.5, False]]]},
    ],
)
def test_likelihoods_are_losses(tmp_path: Path, raw: dict[str, Any]) -> None:
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, **raw}])
    task = FakeTask(DOCS, output_type="multiple_choice")
    found = list(answers(Replay(str(path)), task.choice_requests(0)).values())
    assert [(item.loglikelihood, item.is_greedy, item.is_loss) for item in found] == [
        (1.5, True, True),
        (2.5, False, True),
    ]


@for_each(("kind", "raw"), [("loglikelihood", [1.5, True]), ("loglikelihood_rolling", ["1.5", "True"])])
def test_a_single_likelihood_is_written_without_its_list(tmp_path: Path, kind: Any, raw: list[Any]) -> None:
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, "filtered_resps": raw}])
    task = FakeTask(DOCS, output_type=kind)
    (found,) = answers(Replay(str(path)), [task.request(0, kind=kind, continuation="y")]).values()
    assert (found.loglikelihood, found.is_greedy, found.is_loss) == (1.5, True, True)


def test_likelihoods_of_repeats_one_after_the_other(tmp_path: Path) -> None:
    pairs = [[1.0, True], [2.0, False], [3.0, True], [4.0, False]]
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, "raw_resps": pairs}])
    task = FakeTask(DOCS, output_type="multiple_choice", repeats=2)
    requests = [task.request(0, 1, kind="loglikelihood", continuation="y", index=index) for index in range(3)]
    found = list(answers(Replay(str(path)), requests).values())
    assert [item.loglikelihood for item in found] == [3.0, 4.0, None]


def test_rounds(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, "filtered_resps": ["one", "two"]}])
    task = FakeTask(DOCS, output_type="generate_until_multi_round")
    requests = [task.request(0, round=number) for number in range(3)]
    assert replayed(path, task, requests)[:2] == ["one", "two"]
    assert "round 2" in replayed(path, task, requests)[2]
    whole = answers(Replay(str(path)), [task.request(0, kind="generate_until_multi_round")])
    assert whole["fake/0/0/0/0"].rounds == ("one", "two")


def test_rounds_of_repeats(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, "raw_resps": [["a", "b"], ["c"]]}])
    task = FakeTask(DOCS, output_type="generate_until_multi_round", repeats=2)
    assert replayed(path, task, [task.request(0, 0, round=1), task.request(0, 1)]) == ["b", "c"]


def test_agentic_answers_are_taken_from_their_trace(tmp_path: Path) -> None:
    traces = [
        {"trace": ["step", "submit"]},
        {"trace": [], "agentic_rounds": [{"model_output": "step"}, {"model_output": "submit"}]},
    ]
    rows = [{"doc_id": number, "filtered_resps": json.dumps(trace)} for number, trace in enumerate(traces)]
    path = write(tmp_path / "samples_fake.jsonl", [*rows, {"doc_id": 2, "filtered_resps": "plain"}])
    task = FakeTask(DOCS, output_type="generate_until_agentic")
    requests = [task.request(doc_id, round=number) for doc_id in range(2) for number in range(2)]
    assert replayed(path, task, [*requests, task.request(2)]) == ["step", "submit", "step", "submit", "plain"]


def test_the_newest_samples_of_a_folder(tmp_path: Path) -> None:
    for stamp, text in (("20250102_000000", "new"), ("20250101_235959", "old")):
        rows = [{"doc_id": number, "filtered_resps": text} for number in range(3)]
        write(tmp_path / f"{stamp}_samples_fake.jsonl", rows)
        (tmp_path / f"{stamp}_results.json").write_text("{}")
    assert replayed(tmp_path, FakeTask(DOCS)) == ["new"] * 3
    with pytest.raises(ModelError, match=r"no samples of task 'other' \(it holds fake\)"):
        Replay(str(tmp_path)).attach_tasks([FakeTask(DOCS, name="other")])
    assert Replay(str(tmp_path)).identity()["files"][0][0] == "20250102_000000_samples_fake.jsonl"
    (tmp_path / "20250102_000000_samples_fake.jsonl").rename(tmp_path / "20250102_000000_samples_a%3Afake.jsonl")
    assert replayed(tmp_path, FakeTask(DOCS, name="a:fake")) == ["new"] * 3


@for_each(
    ("name", "text", "message"),
    [
        ("samples_fake.jsonl", "{\n", "line 1 is not a samples row"),
        ("samples_fake.jsonl", '{"doc_id": 0, "filtered_resps": "x"}\n{"target": 1}\n', "line 2 is not a samples row"),
        ("answers.json", '{"results": {}}', "neither a samples file"),
        ("answers.json", "not JSON", "neither a samples file"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=message):
        Replay(str(tmp_path / name)).attach_tasks([FakeTask(DOCS)])


def test_absent_and_empty_places(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        Replay(str(tmp_path / "absent"))
    with pytest.raises(ModelError, match="holds neither"):
        Replay(str(tmp_path))


def submission(response: str) -> list[dict[str, Any]]:
    queries = [{"global_idx": "7", "response": response}, {"global_idx": "8", "response": "second"}]
    return [{"task_name": "colours", "query_response": queries}]


@for_each("wrap", [lambda tasks: tasks, lambda tasks: {"data": tasks}])
def test_submission_files(tmp_path: Path, wrap: Any) -> None:
    path = tmp_path / "megabench_core_all_query_responses.json"
    path.write_text(json.dumps(wrap(submission("first"))))
    docs = [{"question": "q", "task_name": "colours", "id": number} for number in ("7", 8, "9")]
    for place in (path, tmp_path):
        said = replayed(place, FakeTask(docs, name="megabench_core"))
        assert said[:2] == ["first", "second"] and "no answer for document 2" in said[2]


def test_a_task_takes_its_own_submission_file(tmp_path: Path) -> None:
    for name, text in (("one", "first"), ("two", "other")):
        (tmp_path / f"{name}_all_query_responses.json").write_text(json.dumps(submission(text)))
    docs = [{"question": "q", "task_name": "colours", "id": "7"}]
    assert replayed(tmp_path, FakeTask(docs, name="two")) == ["other"]
    with pytest.raises(ModelError, match="two answers to colours / 7"):
        Replay(str(tmp_path)).attach_tasks([FakeTask(docs, name="three")])


@pytest.mark.skipif(not SUBMISSION.is_file(), reason=f"recorded vectors are not at {GOLDEN_DIR}")
def test_recorded_submission() -> None:
    docs = [
        {"question": "", "task_name": task["task_name"], "id": query["global_idx"], "answer": query["response"]}
        for task in json.loads(SUBMISSION.read_text(encoding="utf-8"))
        for query in task["query_response"]
        if "response" in query
    ]
    assert len(docs) > 5
    assert replayed(SUBMISSION, FakeTask(docs)) == [doc["answer"] for doc in docs]


@pytest.mark.skipif(not RUNS.is_dir(), reason=f"recorded vectors are not at {GOLDEN_DIR}")
def test_recorded_samples_of_the_family() -> None:
    path = RUNS / "think_chat" / "samples_gold_think.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    task = FakeTask([{"question": ""}] * len(rows), name="gold_think")
    assert replayed(path, task) == [row.get("resps", row["filtered_resps"]) for row in rows]


class Hashed(FakeTask):
    """Its documents have the hash of their question."""

    def document_hash(self, doc_id: int) -> str:
        return f"hash of {self.docs[doc_id]['question']}"


def test_an_answer_to_another_document_is_none(tmp_path: Path) -> None:
    rows = [{"doc_id": number, "resps": f"r{number}", "doc_hash": f"hash of q{number}"} for number in range(3)]
    path = write(tmp_path / "samples_fake.jsonl", rows)
    assert replayed(path, Hashed(DOCS)) == ["r0", "r1", "r2"]
    first, *others = replayed(path, Hashed([DOCS[1], DOCS[0], DOCS[2]]))
    assert "answers another document 0 of task fake (doc_hash hash of q0, here hash of q1)" in first
    assert others[1] == "r2"
    assert replayed(path, FakeTask(DOCS)) == ["r0", "r1", "r2"]  # a task that tells no hashes


@for_each("told", [None, "", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"])
def test_a_hash_that_tells_nothing_is_not_compared(tmp_path: Path, told: str | None) -> None:
    path = write(tmp_path / "samples_fake.jsonl", [{"doc_id": 0, "resps": "r", "doc_hash": told}])
    assert replayed(path, Hashed(DOCS[:1])) == ["r"]


@for_each(("told", "found"), [
    ("length", ["length", "length"]), (["stop", "content_filter"], ["stop", "content_filter"]),
    (["length"], ["length", "stop"]), ([None, "length"], ["stop", "length"]), (None, ["stop", "stop"]),
    (7, ["stop", "stop"]),
])  # fmt: skip
def test_how_an_answer_ended_comes_with_it(tmp_path: Path, told: Any, found: list[str]) -> None:
    row = {"doc_id": 0, "raw_resps": ["a", "b"], "finish_reason": told}
    model, task = Replay(str(write(tmp_path / "samples_fake.jsonl", [row]))), FakeTask(DOCS[:1], repeats=2)
    assert [response.finish_reason for response in answers(model, task.requests()).values()] == found
