from __future__ import annotations

from typing import Any

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, SentMedia
from lmms_eval.api.task import Answer
from lmms_eval.engine.conversations import Transcript
from lmms_eval.engine.prompts import messages_with, outline
from tests.engine.fakes import FakeTask

PICTURE = SentMedia("image", path="/a.png")
Turn = tuple[str, str]


class Talk:
    """An exchange, driven as by the engine."""

    def __init__(self) -> None:
        self.transcript, self.round = Transcript(), 0

    def ask(self, turns: list[Turn], answer: str | None, context: str = "") -> Response:
        """Send whole messages (``@`` is a picture), and take the answer; returns what is kept of them."""
        content = [
            [{"type": "image", "url": "/a.png"} if word == "@" else {"type": "text", "text": word} for word in [text]]
            for _, text in turns
        ]
        messages = [{"role": role, "content": parts} for (role, _), parts in zip(turns, content, strict=True)]
        built = ChatMessages.model_validate({"messages": messages})
        media = (PICTURE,) if any(text == "@" for _, text in turns) else ()
        request = Request(f"t/0/0/{self.round}/0", "generate_until", FakeTask(), 0, lambda: built, context)
        found = outline(built, context)
        kept = self.transcript.added(request, () if found is None else messages_with(found, media), media)
        self.round += 1
        if answer is None:
            response = Response.failure(request.id, "timeout", "no answer")
        else:
            response = Response(request.id, text=answer)
        sent = Response(response.request_id, response.text, error=response.error, media=media, messages=kept)
        self.transcript.take([request], [sent])
        return sent

    def told(self, text: str = "") -> list[dict[str, Any]]:
        return [message.to_dict() for message in self.transcript.of(Answer("x", input=text)).messages]


def text(role: str, said: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"text": said}], **more}


def test_one_round_of_one_text_leaves_the_answer_as_it_is() -> None:
    talk = Talk()
    talk.ask([("user", "q")], "a", context="q")
    answer = Answer("x", input="q")
    assert talk.transcript.of(answer) is answer
    assert talk.told("another text") == [text("user", "q")]  # samples show another one as the prompt


def test_what_was_said_is_recognised_when_it_is_sent_again() -> None:
    talk = Talk()
    talk.ask([("system", "s"), ("user", "@")], " a \n")
    kept = talk.ask([("system", "s"), ("user", "@"), ("assistant", "a"), ("user", "more")], "b")
    assert [message.to_dict() for message in kept.messages] == [text("user", "more", continues=True)]
    assert talk.told()[2:] == [
        text("assistant", " a \n"), text("user", "more", round=1, continues=True), text("assistant", "b", round=1),
    ]  # fmt: skip


def test_a_round_that_leaves_something_out_begins_after_what_it_shares() -> None:
    talk = Talk()
    talk.ask([("system", "s"), ("user", "one")], "a")
    talk.ask([("system", "s"), ("user", "two")], "b")
    talk.ask([("system", "s"), ("user", "two"), ("assistant", "b"), ("user", "three")], "c")
    told = talk.told()
    assert told[3] == text("user", "two", round=1, after=1)
    assert told[5] == text("user", "three", round=2, continues=True)  # after the second round, not after the first


def test_the_same_prompt_again_is_told_by_its_last_message() -> None:
    talk = Talk()
    talk.ask([("system", "s"), ("user", "one")], "a")
    talk.ask([("system", "s"), ("user", "one")], "b")
    assert talk.told()[3] == text("user", "one", round=1, after=1)


def test_an_answer_that_the_task_changed_is_told_as_it_was_sent() -> None:
    talk = Talk()
    talk.ask([("user", "one")], "a lot of words")
    talk.ask([("user", "one"), ("assistant", "words"), ("user", "two")], "b")
    assert talk.told()[2] == text("assistant", "words", round=1, after=1)


def test_a_round_without_answer_ends_with_what_was_asked() -> None:
    talk = Talk()
    talk.ask([("user", "one")], "a", context="one")
    talk.ask([("user", "two")], None, context="two")
    assert talk.told("one") == [
        {"role": "user", "content": [{"input": [0, 3]}]}, text("assistant", "a"),
        text("user", "two", round=1, after=0),
    ]  # fmt: skip


def test_a_response_without_text_adds_no_answer() -> None:
    """Such as a log probability."""
    talk = Talk()
    talk.ask([("user", "one")], "a", context="one")
    request = Request("t/0/0/1/0", "loglikelihood", FakeTask(), 0, lambda: ChatMessages(messages=()), "two")
    talk.transcript.take([request], [Response(request.id, loglikelihood=-1.0)])
    assert [message["role"] for message in talk.told("one")] == ["user", "assistant", "user"]


def test_observations_stand_after_the_answer() -> None:
    talk = Talk()
    talk.ask([("user", "one")], "a", context="one")
    talk.transcript.observe("")
    talk.transcript.observe("rain")
    assert [message["role"] for message in talk.told("one")] == ["user", "assistant", "tool"]
