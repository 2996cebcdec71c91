from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.request import Response, ResponseError, Thoughts, Usage
from lmms_eval.api.task import Answer, PipelineScore
from lmms_eval.engine.records import (
    answer_from_record,
    answer_record,
    blank_reason,
    response_from_record,
    response_record,
    well_typed,
    written,
)
from lmms_eval.engine.store import RunStore
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import KEY, failed, scored, values_of

TASK = FakeTask(10)


def reopened(folder: Path, key: str = KEY) -> RunStore:
    return RunStore(folder, key)


def filled(folder: Path, *responses: Response, records: list[dict[str, Any]] | None = None) -> None:
    store = RunStore(folder, KEY)
    for response in responses:
        store.keep(response, "prompt")
    for record in records or []:
        store.add_score(record)
    store.sync()
    store.close()


def test_responses_are_found_again_as_they_were(tmp_path: Path) -> None:
    said = Response(
        "t/0/0/0/0", text="é \ud83d", finish_reason="stop", usage=Usage(1, None, 3), latency=0.25, attempts=2,
        batch=("a", "b"),
    )  # fmt: skip
    rounds = Response("t/1/0/0/0", rounds=("one", "two"))
    likely = Response("t/2/0/0/0", loglikelihood=float("-inf"), is_greedy=False, is_loss=True)
    filled(tmp_path, said, rounds, likely)
    store = reopened(tmp_path)
    assert store.resumed_responses == 3
    found = store.response("t/0/0/0/0")
    assert found is not None and found.text is not None and found.text.startswith("é ")
    assert (found.usage, found.latency, found.attempts, found.batch) == (said.usage, 0.25, 2, ("a", "b"))
    assert store.response("t/1/0/0/0") == rounds
    assert store.response("t/2/0/0/0") == likely
    assert store.response("t/3/0/0/0") is None
    store.close()


def test_thoughts_and_stops_are_found_again_as_they_were(tmp_path: Path) -> None:
    said = [
        Response("t/0/0/0/0", text="b", thoughts=Thoughts("a", " <think>", "</think>"), stops=("x", "y"), ended_by="y"),
        Response("t/1/0/0/0", text="", thoughts=Thoughts("a", is_finished=False), stops=("x",), ended_by=""),
        Response("t/2/0/0/0", text="b", thoughts=Thoughts("")),
        Response("t/3/0/0/0", text="plain"),
    ]
    filled(tmp_path, *said)
    store = reopened(tmp_path)
    assert [store.response(response.request_id) for response in said] == said
    store.close()
    plain = (tmp_path / "responses-0.jsonl").read_text().splitlines()[-1]
    assert "thoughts" not in plain and "stops" not in plain and "ended_by" not in plain


@for_each(
    ("finish", "thoughts", "text", "reason"),
    [
        ("stop", None, "b", ""),
        ("stop", None, " ", "blank"),
        ("length", None, "", "blank"),
        ("length", Thoughts("a", is_finished=False), "", "truncated in thought"),
        ("stop", Thoughts("a", "<think>", is_finished=False), "", "unclosed thought"),
        ("stop", Thoughts("a", "<think>", "</think>"), " ", "only thoughts"),
        ("stop", Thoughts("a", "<think>", "</think>"), "b", ""),
    ],
)
def test_reasons_of_blank_answers(finish: str, thoughts: Thoughts | None, text: str, reason: str) -> None:
    response = Response("t/0/0/0/0", text=text, finish_reason=finish, thoughts=thoughts)
    assert blank_reason(response_record(response, "")) == reason
    answer = Answer(text, (None,), finish, thoughts=() if thoughts is None else (thoughts,))
    record = answer_record(answer)
    assert blank_reason(record) == reason and answer_from_record(record) == replace(answer, usage=())
    assert written(record) == (text if thoughts is None else thoughts.before(text))


def test_failed_responses_are_recorded_and_never_reused(tmp_path: Path) -> None:
    filled(tmp_path, Response.failure("t/0/0/0/0", "timeout", "no answer", 4))
    store = reopened(tmp_path)
    assert store.response("t/0/0/0/0") is None and store.resumed_responses == 0
    assert '"attempts":4' in (tmp_path / "responses-0.jsonl").read_text()
    store.close()


def test_of_two_answers_to_a_request_the_last_counts_once(tmp_path: Path) -> None:
    filled(tmp_path, Response("t/0/0/0/0", text="first"))
    alone = reopened(tmp_path)
    fingerprint = alone.prompt_fingerprint()
    alone.close()
    filled(tmp_path, Response("t/0/0/0/0", text="second"))
    store = reopened(tmp_path)
    found = store.response("t/0/0/0/0")
    assert found is not None and found.text == "second"
    assert store.resumed_responses == 1
    assert store.prompt_fingerprint() == fingerprint
    store.close()


def test_torn_lines_are_passed_over_wherever_they_stand(tmp_path: Path) -> None:
    filled(tmp_path, *(Response(f"t/{n}/0/0/0", text=f"{n}") for n in range(3)))
    path = tmp_path / "responses-0.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:9])  # killed in the middle of a write
    store = reopened(tmp_path)
    store.keep(Response("t/2/0/0/0", text="again"), "prompt")
    store.close()
    store = reopened(tmp_path)
    texts = [getattr(store.response(f"t/{n}/0/0/0"), "text", None) for n in range(3)]
    assert texts == ["0", None, "again"]
    store.close()


def test_scores_stand_under_their_scoring_key_alone(tmp_path: Path) -> None:
    filled(tmp_path, records=values_of(TASK, "acc", [1.0, 0.0]))
    store = reopened(tmp_path)
    assert store.done() == {"fake": {0, 1}}
    assert [record["doc_id"] for record in store.scores("fake", range(10))] == [0, 1]
    store.close()
    other = reopened(tmp_path, "other tags")
    assert other.done() == {} and other.score("fake", 0) is None
    other.close()


def test_failed_and_unscored_documents_are_tried_anew(tmp_path: Path) -> None:
    absent = scored(TASK, 1, PipelineScore("none", None, {}, "unscored", "no judge"))
    filled(tmp_path, records=[*values_of(TASK, "acc", [1.0]), absent, failed(TASK, 2, "timeout")])
    store = reopened(tmp_path)
    assert store.done() == {"fake": {0}}
    assert store.failures("fake") == {}
    store.close()


def test_of_two_scores_the_last_counts(tmp_path: Path) -> None:
    store = RunStore(tmp_path, KEY)
    store.add_score(failed(TASK, 0, "first try"))
    assert store.failures("fake") == {0: "first try"} and store.done() == {"fake": set()}
    store.close()
    filled(tmp_path, records=values_of(TASK, "acc", [0.0]))
    filled(tmp_path, records=values_of(TASK, "acc", [0.5]))
    store = reopened(tmp_path)
    record = store.score("fake", 0)
    assert record is not None and record["scores"][0]["metrics"] == {"acc": 0.5}
    store.close()


def test_a_value_that_no_journal_holds_is_kept_for_this_process(tmp_path: Path) -> None:
    value = object()
    store = RunStore(tmp_path, KEY)
    store.add_score(scored(TASK, 0, PipelineScore("none", "x", {"acc": value})))
    record = store.score("fake", 0)
    assert record is not None and record["scores"][0]["metrics"]["acc"] is value
    store.close()
    again = reopened(tmp_path)
    assert again.done() == {} and again.score("fake", 0) is None
    again.close()


def test_memory_holds_places_not_records(tmp_path: Path) -> None:
    filled(tmp_path, *(Response(f"t/{n}/0/0/0", text="x" * 100_000) for n in range(100)))
    tracemalloc.start()
    store = reopened(tmp_path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert store.resumed_responses == 100
    assert held < 1_000_000  # the journal has ten megabytes
    assert store.response("t/99/0/0/0").text == "x" * 100_000  # type: ignore[union-attr]
    store.close()


def test_the_fingerprint_of_prompts_ignores_order_and_sees_every_prompt(tmp_path: Path) -> None:
    def fingerprint(name: str, *prompts: tuple[str, str]) -> str:
        store = RunStore(tmp_path / name, KEY)
        for request, prompt in prompts:
            store.keep(Response(request, text="x"), prompt)
        store.close()
        return store.prompt_fingerprint()

    one = fingerprint("a", ("t/0", "p"), ("t/1", "q"))
    assert one == fingerprint("b", ("t/1", "q"), ("t/0", "p"))
    assert len({one, fingerprint("c", ("t/0", "p"), ("t/1", "r")), fingerprint("d", ("t/0", "q"), ("t/1", "p"))}) == 3
    again = reopened(tmp_path / "a")
    assert again.prompt_fingerprint() == one
    again.close()


def test_a_second_process_writes_beside_the_first(tmp_path: Path) -> None:
    filled(tmp_path, Response("t/0/0/0/0", text="zero"))
    other = RunStore(tmp_path, KEY, rank=1)
    other.keep(Response("t/1/0/0/0", text="one"), "")
    other.close()
    store = reopened(tmp_path)
    assert store.resumed_responses == 2
    store.close()


def test_what_other_processes_wrote_is_checked_when_it_is_adopted(tmp_path: Path) -> None:
    store = reopened(tmp_path)
    other = RunStore(tmp_path, KEY, rank=1)
    for record in values_of(TASK, "acc", [1.0, 0.5]):
        other.add_score(record)
    other.close()
    path = tmp_path / "scores-1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"acc":1.0', b'"acc":3.0'))
    store.adopt()
    assert [record["scores"][0]["metrics"] for record in store.scores("fake", range(9))] == [{"acc": 0.5}]
    store.close()


@for_each("line", ["[1]", "7", "{}", '{"key": "other"}'])
def test_lines_that_are_no_records_of_this_run_do_no_harm(tmp_path: Path, line: str) -> None:
    for name in ("responses-0.jsonl", "scores-0.jsonl"):
        (tmp_path / name).write_text(line + "\n")
    store = reopened(tmp_path)
    assert store.done() == {} and store.resumed_responses == 0
    store.close()


def reply(number: int, text: str = "", finish: str = "stop", task: str = "t") -> Response:
    return Response(f"{task}/{number}/0/0/0", text=text, finish_reason=finish)


def test_a_task_of_blank_answers_alone_is_asked_again(tmp_path: Path) -> None:
    blank = [
        reply(0),
        reply(1, " \n\u200b\u2800"),
        reply(2, "I cannot", "content_filter"),
        Response("t/3/0/0/0", rounds=("", " ")),
    ]
    records = values_of(FakeTask(4, "t"), "acc", [0.0] * 4)
    filled(tmp_path, *blank, reply(0, "said", task="other"), reply(1, task="other"), records=records)
    store = reopened(tmp_path)
    assert set(store.done()) == {"t"}
    store.forget_blank()
    assert store.done() == {} and store.resumed_responses == 2
    assert store.response("t/2/0/0/0") is None and store.response("other/1/0/0/0") is not None
    store.keep(reply(0, "better"), "prompt")
    store.close()
    again = reopened(tmp_path)
    again.forget_blank()  # one of them is an answer now: what the model says is taken as it is
    assert again.resumed_responses == 6 and again.response("t/0/0/0/0") == reply(0, "better")
    again.close()


def test_answers_asked_again_count_once_among_the_prompts(tmp_path: Path) -> None:
    filled(tmp_path / "a", reply(0, "x"))
    filled(tmp_path / "b", reply(0))
    store = reopened(tmp_path / "b")
    store.forget_blank()
    store.keep(reply(0, "x"), "prompt")
    other = reopened(tmp_path / "a")
    assert store.prompt_fingerprint() == other.prompt_fingerprint()
    store.close()
    other.close()


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", ["responses-0.jsonl", "scores-0.jsonl"])
def test_no_flipped_bit_changes_a_number_or_crashes(tmp_path: Path, name: str) -> None:
    """After 600 random bit flips in each journal every answer and score is unchanged or missing."""
    records = values_of(TASK, "acc", [1.0, 0.0, 0.5])
    filled(tmp_path, *(Response(f"fake/{n}/0/0/0", text=f"said {n}") for n in range(3)), records=records)
    path = tmp_path / name
    whole, draw = path.read_bytes(), random.Random(7)
    logger.disable("lmms_eval")  # said 600 times
    for bit in (draw.randrange(8 * len(whole)) for _ in range(600)):
        path.write_bytes(flipped(whole, bit))
        store = reopened(tmp_path)
        found = [store.response(f"fake/{n}/0/0/0") for n in range(3)]
        scores = {record["doc_id"]: record["scores"][0]["metrics"]["acc"] for record in store.scores("fake", range(9))}
        store.close()
        assert all(response is None or response.text == f"said {n}" for n, response in enumerate(found))
        assert scores.items() <= {0: 1.0, 1: 0.0, 2: 0.5}.items()
        assert sum(response is not None for response in found) + len(scores) >= 4  # at most two lines made one
        path.with_name(f"{name}.other-form-1").unlink(missing_ok=True)
    logger.enable("lmms_eval")


def test_lines_of_another_process_are_written_as_they_are(tmp_path: Path) -> None:
    records = [*values_of(TASK, "m", [0.5, (1, float("nan"))]), failed(TASK, 2, "broken")]
    filled(tmp_path / "one", records=records)
    sender, receiver = reopened(tmp_path / "one"), RunStore(tmp_path / "two", KEY)
    for line, record in sender.lines():
        receiver.add_score(record, line)
    sender.close()
    receiver.close()
    written, again = ((tmp_path / name / "scores-0.jsonl").read_bytes() for name in ("one", "two"))
    assert again == b"".join(written.splitlines(keepends=True)[:2])  # the failed one is scored again
    other = RunStore(tmp_path / "three", "another")
    other.add_score({**records[0], "key": KEY}, written.splitlines(keepends=True)[0])
    other.close()
    assert b'"key":"another"' in (tmp_path / "three" / "scores-0.jsonl").read_bytes()


@for_each(
    ("given", "taken"),
    [
        ({"finish_reason": 7}, {"finish_reason": "7"}),
        ({"model": 3, "latency": "fast"}, {"model": "3", "latency": None}),
        ({"latency": np.float32(0.5)}, {"latency": 0.5}),
        ({"attempts": "2", "batch": (1, 2)}, {"attempts": 1, "batch": ("1", "2")}),
        ({"text": 5}, {"error": ResponseError("malformed", "the model returned int where a text belongs")}),
        (
            {"thoughts": Thoughts(5)},
            {"error": ResponseError("malformed", "the model returned int where a text belongs")},
        ),
    ],
)
def test_values_of_other_types_than_the_record_states(given: dict[str, Any], taken: dict[str, Any]) -> None:
    """A plugin may set anything; the record is read again whatever it was."""
    found = well_typed(Response("quiz/0/0/0/0", **{"text": "A", **given}))
    assert {name: getattr(found, name) for name in taken} == taken
    assert response_from_record(json.loads(orjson.dumps(response_record(found, "")))) == found
