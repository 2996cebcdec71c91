from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, ResponseError
from lmms_eval.engine.judging import JudgementStore
from lmms_eval.engine.response_cache import CacheKeys
from lmms_eval.errors import JournalError, MediaError
from lmms_eval.judges import Judge, JudgeOptions, ask, open_judge, register_script
from lmms_eval.judges.prompts import user_turn
from tests.cases import for_each
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


def test_a_journal_finds_replies_again_by_the_places_of_their_questions(tmp_path: Path) -> None:
    def start(texts: str, retries: int = 0) -> list[str | None]:
        judge, asked = scripted(lambda text, attempt: "hm" if text == "x" and not attempt else "1")
        journal = JudgementStore(tmp_path, CacheKeys(judge.identity(), reads_documents=False))
        try:
            given = [question(text) for text in texts]
            verdicts = ask(judge, given, retries, journal=journal, places=[f"place {text}" for text in texts])
        finally:
            journal.close()
        counts.append((len(asked), len(journal.recalled)))
        return [verdict.text for verdict in verdicts]

    counts: list[tuple[int, int]] = []
    assert start("axb") == ["1", "hm", "1"]
    assert start("baxc") == ["1", "1", "hm", "1"]  # wherever they stand now
    assert start("x", retries=1) == ["1"]  # the unreadable reply is not asked for again, another attempt is made
    assert counts == [(3, 0), (1, 3), (1, 1)]


def test_verdicts_are_handed_on_one_at_a_time_and_a_full_disk_ends_the_asking() -> None:
    judge, _ = scripted(lambda *_: "1")

    def full(*_: object) -> None:
        raise JournalError("no space left")

    with pytest.raises(JournalError, match="no space left"):
        ask(judge, [question(str(n)) for n in range(20)], on_verdict=full)


def test_a_judge_that_ends_early_leaves_the_rest_with_a_reason() -> None:
    class Lazy(Model):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            for request in stream.take(1):
                yield Response(request.id, text="1")

    verdicts = ask(Judge(Lazy(), "lazy", "scripted"), [question(str(n)) for n in range(100)])
    assert [verdict.text for verdict in verdicts] == ["1", *[None] * 99]
    assert {verdict.error for verdict in verdicts[1:]} == {"internal: the judge ended without answering this question"}


def test_a_prompt_that_cannot_be_rendered_is_one_error() -> None:
    def broken() -> ChatMessages:
        raise MediaError("picture.png is corrupt")

    judge, asked = scripted(lambda *_: "1")
    bad = JudgeQuestion("bad", broken, str.isdigit)
    verdicts = ask(judge, [question("a"), bad, question("b")])
    assert [verdict.text for verdict in verdicts] == ["1", None, "1"]
    assert verdicts[1].error == "media: picture.png is corrupt"
    assert asked == ["a", "b"]


@for_each("in_loop", [False, True])
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
