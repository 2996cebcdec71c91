from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, ResponseError
from lmms_eval.errors import MediaError
from lmms_eval.judges import Judge, JudgeOptions, ask, open_judge, register_script
from lmms_eval.judges.prompts import user_turn
from tests.servers.stub import StubServer


def question(text: str, accepts: Callable[[str], bool] = str.isdigit) -> JudgeQuestion:
    return JudgeQuestion(text, lambda: user_turn(text), accepts, {"temperature": 0}, {"about": text})


def scripted(answer: Callable[[str, int], Any]) -> tuple[Judge, list[str]]:
    asked: list[str] = []

    def script(messages: ChatMessages, request: Request) -> Any:
        asked.append(messages.text())
        return answer(messages.text(), request.repeat)

    register_script("driver", script)
    return open_judge(JudgeOptions("scripted:driver")), asked


def test_verdicts_come_in_the_order_of_the_questions() -> None:
    judge, asked = scripted(lambda text, _: str(len(text)))
    seen: dict[int, str] = {}
    verdicts = ask(judge, [question("x" * n) for n in range(1, 30)], on_verdict=lambda n, v: seen.update({n: v.name}))
    assert [verdict.text for verdict in verdicts] == [str(n) for n in range(1, 30)]
    assert all(verdict.accepted and verdict.model == "driver" for verdict in verdicts)
    assert len(asked) == len(seen) == 29
    assert verdicts[2].details == {"about": "xxx"}
    assert ask(judge, []) == []


def test_unreadable_replies_are_asked_again_a_bounded_number_of_times() -> None:
    judge, asked = scripted(lambda text, attempt: "1" if text == "second" and attempt == 2 else f"hm {attempt}")
    first, second = ask(judge, [question("first"), question("second")], retries=2)
    assert (first.text, first.accepted, first.replies) == ("hm 2", False, ("hm 0", "hm 1", "hm 2"))
    assert (second.text, second.accepted) == ("1", True)
    assert len(asked) == 6
    assert len(ask(judge, [question("first")])[0].replies) == 1


def test_a_refused_key_ends_the_asking() -> None:
    judge, asked = scripted(lambda *_: ResponseError("auth", "HTTP 401"))
    verdicts = ask(judge, [question(str(n)) for n in range(100)])
    assert len(asked) <= judge.model.concurrency
    assert all(verdict.text is None and verdict.error and "HTTP 401" in verdict.error for verdict in verdicts)


def test_a_dead_judge_is_given_up() -> None:
    judge, asked = scripted(lambda *_: ResponseError("connection", "refused"))
    verdicts = ask(judge, [question(str(n)) for n in range(100)])
    assert len(asked) < 40
    assert "the first 16 requests all failed" in str(verdicts[-1].error)


def test_a_prompt_that_cannot_be_rendered_is_one_error() -> None:
    def broken() -> ChatMessages:
        raise MediaError("picture.png is corrupt")

    judge, asked = scripted(lambda *_: "1")
    bad = JudgeQuestion("bad", broken, str.isdigit)
    verdicts = ask(judge, [question("a"), bad, question("b")])
    assert [verdict.text for verdict in verdicts] == ["1", None, "1"]
    assert verdicts[1].error == "media: picture.png is corrupt"
    assert asked == ["a", "b"]


@pytest.mark.parametrize("in_loop", [False, True])
def test_servers_are_asked_concurrently(in_loop: bool) -> None:
    with StubServer(delay=0.1) as server:
        judge = open_judge(JudgeOptions("jury", server.url, {"num_concurrent": 8}), {})
        questions = [question(f"{n} ANSWER={n}") for n in range(24)]

        async def inside() -> list[Any]:
            return ask(judge, questions)

        verdicts = asyncio.run(inside()) if in_loop else ask(judge, questions)
        stats = server.stats()
    assert [verdict.text for verdict in verdicts] == [str(n) for n in range(24)]
    assert stats["total"] == 24
    assert 2 <= stats["max_in_flight"] <= 8
    assert verdicts[0].usage is not None
