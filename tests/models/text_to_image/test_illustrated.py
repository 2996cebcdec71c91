from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import GeneratedImage, Response
from lmms_eval.models.text_to_image.illustrated import DrawingError, IllustratedModel
from tests.faults.command import in_process, results
from tests.models.fakes import FakeTask, ListStream, answers
from tests.painting import png
from tests.servers.stub import StubServer
from tests.tasks.mmie.kit import judged_data, words

TEXTS = ("plain", "see <image>one</image> and <image>two</image>.", "", "look <image>forbidden</image>")


class Painter:
    """Draws the length of the description."""

    concurrency = 2

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.is_closed = False

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:
        self.seeds.append(seed)
        if "forbidden" in descriptions:
            raise DrawingError("refused", "nobody draws that")
        return [generated_image(png(20 * len(text) + seed % 2)) for text in descriptions]

    def identity(self) -> dict[str, Any]:
        return {"painter": 1}

    def describe(self) -> dict[str, Any]:
        return {"pictures": len(self.seeds)}

    def close(self) -> None:
        self.is_closed = True


class Teller(Model):
    """Answers document N by text N."""

    concurrency = 3

    def __init__(self, name: str = "teller") -> None:
        self.name, self.is_closed = name, False

    def respond(self, stream: RequestStream) -> Iterator[Response] | AsyncIterator[Response]:
        while requests := stream.take(2):
            for request in requests:
                yield Response(request.id, text=TEXTS[request.doc_id], finish_reason="stop", attempts=2)

    def identity(self) -> dict[str, Any]:
        return {"name": self.name} if self.name else {}

    def close(self) -> None:
        self.is_closed = True


class AsyncTeller(Teller):
    """The same from an event loop; ``fails`` breaks off after the first answer."""

    fails = False

    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:  # type: ignore[override]
        while requests := await stream.take_async(1):
            yield Response(requests[0].id, text=TEXTS[requests[0].doc_id], finish_reason="stop", attempts=2)
            if self.fails:
                raise RuntimeError("the server is gone")


TASK = FakeTask([{"question": text, "answer": ""} for text in TEXTS])


def check(found: dict[str, Response]) -> None:
    plain, drawn, empty, refused = (found[f"fake/{number}/0/0/0"] for number in range(4))
    assert plain == Response(plain.request_id, text="plain", finish_reason="stop", attempts=2)
    assert empty.text == "" and not empty.parts
    assert drawn.text == "see  and ." and drawn.finish_reason == "stop" and drawn.attempts == 2
    kinds = [part if isinstance(part, str) else part.media_type for part in drawn.parts]
    assert kinds == ["see ", "image/png", " and ", "image/png", "."]
    assert refused.error is not None and refused.error.kind == "refused"
    assert refused.error.message == "nobody draws that"


def test_a_synchronous_model() -> None:
    painter, teller = Painter(), Teller()
    model = IllustratedModel(teller, painter)
    check(answers(model, TASK.requests()))
    assert model.concurrency == 3
    assert model.identity() == {"name": "teller", "t2i": {"painter": 1}}
    assert model.describe() == {"t2i": {"pictures": 2}}
    first = list(painter.seeds)
    answers(model, TASK.requests())
    assert painter.seeds == [*first, *first]  # the same request gets the same seed
    model.close()
    assert painter.is_closed and teller.is_closed


def drain(model: Model) -> dict[str, Response]:
    async def run() -> dict[str, Response]:
        responses = model.respond(ListStream([model.prepare(request) for request in TASK.requests()]))  # type: ignore[arg-type]
        assert isinstance(responses, AsyncIterator)
        return {response.request_id: response async for response in responses}

    return asyncio.run(run())


def test_an_asynchronous_model() -> None:
    check(drain(IllustratedModel(AsyncTeller(), Painter())))


def test_what_the_inner_model_raises_goes_on() -> None:
    teller = AsyncTeller()
    teller.fails = True
    with pytest.raises(RuntimeError, match="the server is gone"):
        drain(IllustratedModel(teller, Painter()))


def test_answers_with_pictures_stay() -> None:
    own = Response.interleaved("x", ["<image>no</image>", generated_image(png(1))])
    painter = Painter()
    assert IllustratedModel(Teller(), painter).illustrated(own) is own
    assert painter.seeds == []


def test_an_object_that_nothing_tells_from_others_stays_so() -> None:
    teller = Teller(name="")
    model = IllustratedModel(teller, Painter(), owns_inner=False)
    assert model.identity() == {}
    model.close()
    assert not teller.is_closed


def test_a_run_with_drawn_pictures(tmp_path: Any) -> None:
    """The question is the answer of the stub: it asks for a picture, which another stub draws."""
    records = judged_data(tmp_path / "data", 2)
    text = '"text": "No. 0 ANSWER=fine <image>a kite</image>'
    file = tmp_path / "data" / "data.json"
    file.write_text(file.read_text().replace('"text": "No. 0 ANSWER=fine', text))
    with StubServer() as model, StubServer() as painter, StubServer() as judge:
        command = words(tmp_path / "data", tmp_path / "out", model, judge)
        drawing = ["--t2i", "paint", "--t2i_args", f"base_url={painter.url},api_key=sk-drawing"]
        ended = in_process(*command, *drawing, OPENAI_API_KEY="test-key")
        assert ended.code == 0, ended.shown
        assert painter.stats()["by_text"] == {"a kite": 1}
        assert in_process(*command, *drawing, "--resume", OPENAI_API_KEY="test-key").code == 0
        assert painter.stats()["total"] == 1
    found = results(tmp_path / "out")
    assert found["mmie"]["mmie"]["t2i"] == "paint"
    assert found["mmie"]["mmie"]["notes"]["answers_with_pictures"] == 1
    assert found["mmie"]["mmie"]["notes"]["undrawn_pictures"] == 0
    assert found["model"]["t2i"]["base_url"].endswith("/images/generations")
    assert "sk-drawing" not in next((tmp_path / "out").rglob("*_results.json")).read_text()
    assert len(records) == 6
