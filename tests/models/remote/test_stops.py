from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote import stops as module
from lmms_eval.models.remote.asking import to_response
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.remote.stops import NOTE, Stops, StopSending, ended_in_thoughts, without_stops
from tests.cases import for_each
from tests.models.openai.support import make_request

ASKED = make_request("one", generation={"until": ["\n\n", "Q:"], "max_new_tokens": 9})
TOLD = Stops(("\n\n", "Q:"), ())


@for_each(
    ("payload", "wanted"),
    [
        ({"stop": ["a"], "model": "m"}, {"model": "m"}),
        ({"stop_sequences": ["a"], "max_tokens": 1}, {"max_tokens": 1}),
        ({"config": {"stop_sequences": ["a"], "seed": 1}}, {"config": {"seed": 1}}),
        (b'{"model":"m","stop":["a"]}', b'{"model":"m"}'),
        (b'{"custom_id":"x","body":{"stop":["a"],"n":1}}\n', b'{"custom_id":"x","body":{"n":1}}\n'),
        (b'{"messages":[{"content":"say \\"stop\\""}]}', b'{"messages":[{"content":"say \\"stop\\""}]}'),
        (7, 7),
    ],
)
def test_payloads_without_stop_strings(payload: Any, wanted: Any) -> None:
    assert without_stops(payload) == wanted


def test_stop_strings_of_a_request() -> None:
    sending = StopSending(lambda request: ["Q:"])
    assert sending.of(ASKED) == Stops(("\n\n", "Q:"), ("Q:",)) and sending.of(ASKED).any_sent
    assert not sending.of(make_request("two", generation={"until": []})).active
    assert not sending.of(replace(ASKED, kind="loglikelihood")).active
    implied = replace(make_request("three", generation={"max_new_tokens": 9}), implied_stop="##")
    assert not sending.of(implied).active, "a chat request has no stop that nobody stated"
    assert StopSending(has_template=False).of(implied).active == ("##",)


def test_what_one_process_finds_out_the_others_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.0)
    one, other, judge = StopSending(), StopSending(), StopSending()
    one.attach_folder(tmp_path / "model")
    other.attach_folder(tmp_path / "model")
    assert [each.is_off for each in (one, other)] == [False, False]
    one.switch_off(ASKED, TOLD)
    assert [each.is_off for each in (one, other, judge)] == [True, True, False]
    assert not other.of(ASKED).any_sent and other.of(ASKED).active == TOLD.active
    assert "one: the server ended an answer within its thoughts" in (tmp_path / "model" / NOTE).read_text()
    judge.switch_off(ASKED, TOLD)
    assert judge.is_off, "without a folder too"


@for_each(
    ("reply", "wanted"),
    [
        (Reply("<think>a", "stop", None), True),
        (Reply("<think>a", "stop", None, ended_by="Q:"), True),
        (Reply("<think>a", "stop", None, ended_by=""), False),
        (Reply("<think>a", "length", None), False),
        (Reply("<think>a</think>", "stop", None), True),
        (Reply("<think>a</think>\n", "stop", None), True),
        (Reply("<think>a</think>b", "stop", None), False),
        (Reply("", "stop", None), False),
        (Reply("b", "stop", None), False),
        (Reply("", "stop", None, reasoning="a"), True),
        (Reply("b", "stop", None, reasoning="a"), False),
    ],
)
def test_answers_that_a_stop_ended_in_their_thoughts(reply: Reply, wanted: bool) -> None:
    assert ended_in_thoughts(ASKED, reply, TOLD) == wanted
    assert not ended_in_thoughts(ASKED, reply, TOLD.unsent())


@for_each(
    ("reply", "text", "ended_by", "finish"),
    [
        (Reply("a\n\nb Q: c", "length", None), "a", "\n\n", "stop"),
        (Reply("<think>x\n\ny</think>\n\na Q: c", "stop", None), "<think>x\n\ny</think>\n\na ", "Q:", "stop"),
        (Reply("\n\na Q: c", "stop", None, reasoning="x\n\ny"), "\n\na ", "Q:", "stop"),
        (Reply("a", "stop", None), "a", "", "stop"),
        (Reply("a", "length", None), "a", "", "length"),
    ],
)
def test_answers_are_cut_behind_their_thoughts(reply: Reply, text: str, ended_by: str, finish: str) -> None:
    found = to_response(ASKED, reply, TOLD.unsent(), 1, None)
    assert (found.text, found.ended_by, found.finish_reason, found.stops) == (text, ended_by, finish, TOLD.active)


@for_each(
    ("told", "finish", "wanted"),
    [(None, "stop", None), ("", "stop", ""), ("Q:", "stop", "Q:"), ("<eos>", "stop", ""), (None, "length", "")],
)
def test_what_the_server_tells_of_a_stop_is_kept(told: str | None, finish: str, wanted: str | None) -> None:
    assert to_response(ASKED, Reply("a", finish, None, ended_by=told), TOLD, 1, None).ended_by == wanted
    assert to_response(ASKED, Reply("a", finish, None, ended_by=told), Stops((), ()), 1, None).ended_by is None


def test_a_body_keeps_its_order_of_keys() -> None:
    body = {"model": "m", "messages": [], "stop": ["x"], "max_tokens": 3}
    assert list(orjson.loads(without_stops(orjson.dumps(body)))) == ["model", "messages", "max_tokens"]


def test_requests_that_are_prepared_later_are_prepared_without_stops() -> None:
    model = OpenAI(model="m", base_url="http://127.0.0.1:1/v1")
    told = orjson.loads(model.prepare(ASKED).payload)
    model.stops.switch_off(ASKED, TOLD)
    untold = orjson.loads(model.prepare(ASKED).payload)
    assert told == {**untold, "stop": ["\n\n", "Q:"]} and "stop" not in untold
