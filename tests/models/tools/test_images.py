"""The tools for pictures, called by a chat server: what they return, their limits, and calls that make no sense."""

from __future__ import annotations

import asyncio
import base64
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.request import Response, Usage
from lmms_eval.errors import ModelError
from lmms_eval.media.encode import WireOptions
from lmms_eval.models.gemini import Gemini
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.tools.connection import ToolResult
from lmms_eval.models.tools.images import LEAST_SIDE, MOST_BYTES, MOST_PIXELS
from lmms_eval.models.tools.toolbox import ImageTools, ToolLimits
from tests.cases import for_each
from tests.installed import needs
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer
from tests.servers.tool_calls import question

needs("mcp")
RED, BLUE = (255, 0, 0), (0, 0, 255)


def halves(width: int = 400, height: int = 300) -> Image.Image:
    """A picture with a red left half and a blue right half."""
    picture = Image.new("RGB", (width, height), RED)
    picture.paste(BLUE, (width // 2, 0, width, height))
    return picture


def encoded(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture(scope="module")
def tools() -> Iterator[ImageTools]:
    found = ImageTools(ToolLimits(), WireOptions())
    yield found
    found.close()


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


def called(tools: ImageTools, name: str, arguments: str, *pictures: str | None) -> ToolResult:
    given = pictures or (encoded(halves()),)
    return asyncio.run(tools.call(name, arguments, asyncio.Lock(), given))


def shown(result: ToolResult) -> Image.Image:
    ((_, sent),) = result.media
    assert sent.picture is not None and sent.picture.data is not None
    return Image.open(io.BytesIO(sent.picture.data))


@for_each(
    ("name", "arguments", "size", "colour", "said"),
    [
        ("crop", '{"picture": 1, "box": [10, 20, 110, 70]}', (100, 50), RED, "from (10, 20) to (110, 70)"),
        ("crop", '{"picture": 1, "box": [500, 0, 1000, 1000], "unit": "thousandths"}', (200, 300), BLUE, "(200, 0)"),
        ("crop", '{"picture": 1, "box": [-9, -9, 1e300, 1e300]}', (400, 300), RED, "cut at the edges"),
        ("crop", '{"picture": 1, "box": [300, 100, 302, 101]}', (LEAST_SIDE, LEAST_SIDE), BLUE, "widened to 28"),
        ("crop", '{"picture": 1, "box": [399.5, 299.5, 400, 300]}', (LEAST_SIDE, LEAST_SIDE), BLUE, "widened"),
        ("zoom", '{"picture": 1, "box": [0, 0, 100, 50], "factor": 3}', (300, 150), RED, "enlarged by 3"),
        ("zoom", '{"picture": 1, "box": [0, 0, 100, 50]}', (200, 100), RED, "enlarged by 2"),
        ("rotate", '{"picture": 1, "degrees": 90}', (300, 400), BLUE, "turned by 90 degrees"),
        ("rotate", '{"picture": 1, "degrees": -360}', (400, 300), RED, "turned by -0 degrees"),
    ],
)
def test_a_tool_returns_a_picture(
    tools: ImageTools, name: str, arguments: str, size: tuple[int, int], colour: tuple[int, int, int], said: str
) -> None:
    result = called(tools, name, arguments)
    assert not result.is_error
    assert said in result.text
    assert shown(result).size == size
    assert shown(result).getpixel((2, 2)) == colour


def test_measures(tools: ImageTools) -> None:
    assert called(tools, "measure", '{"picture": 1}').text == "the picture has 400 x 300 pixels"
    result = called(tools, "measure", '{"picture": 1, "points": [[0, 300], [300, 0]]}')
    assert "424.3 pixels, 300 to the right and -300 down, at 45.0 degrees" in result.text
    result = called(tools, "measure", '{"picture": 1, "points": [[0, 0], [1000, 0]], "unit": "thousandths"}')
    assert "400.0 pixels" in result.text


@for_each(
    ("name", "arguments", "said"),
    [
        ("crop", '{"picture": 2, "box": [0, 0, 9, 9]}', "there is no picture 2: they have the numbers 1 to 1"),
        ("crop", '{"picture": 0, "box": [0, 0, 9, 9]}', "there is no picture 0"),
        ("crop", '{"picture": -1, "box": [0, 0, 9, 9]}', "there is no picture -1"),
        ("crop", '{"picture": true, "box": [0, 0, 9, 9]}', "there is no picture True"),
        ("crop", '{"picture": "/etc/passwd", "box": [0, 0, 9, 9]}', "there is no picture /etc/passwd"),
        ("crop", '{"box": [0, 0, 9, 9]}', "there is no picture None"),
        ("crop", '{"picture": 1, "image": "aGk=", "box": [0, 0, 9, 9]}', "there is no argument 'image'"),
        ("crop", '{"picture": 1, "box": [9, 9, 0, 0]}', "the box is empty"),
        ("crop", '{"picture": 1, "box": [-9, -9, -1, -1]}', "the box is outside the picture"),
        ("crop", '{"picture": 1, "box": [1e300, 0, 1e301, 9]}', "the box is outside the picture"),
        ("crop", '{"picture": 1, "box": [NaN, 0, 9, 9]}', "valid number"),
        ("crop", '{"picture": 1, "box": [0, 0, Infinity, 9]}', "valid number"),
        ("crop", '{"picture": 1, "box": [0, 0]}', "give 4 finite numbers"),
        ("crop", '{"picture": 1, "box": "all"}', "valid list"),
        ("crop", '{"picture": 1, "box": [0, 0, 9, 9], "unit": "miles"}', "'pixels' or 'thousandths'"),
        ("crop", '{"picture": 1}', "required"),
        ("zoom", '{"picture": 1, "box": [0, 0, 9, 9], "factor": 1e9}', "factor must be a number from 1 to 16"),
        ("zoom", '{"picture": 1, "box": [0, 0, 9, 9], "factor": -2}', "factor must be a number from 1 to 16"),
        ("measure", '{"picture": 1, "points": [[0, 0]]}', "points must be two points"),
        ("measure", '{"picture": 1, "points": [[0, 0], [1]]}', "give 2 finite numbers"),
    ],
)
def test_calls_that_make_no_sense_are_explained(tools: ImageTools, name: str, arguments: str, said: str) -> None:
    result = called(tools, name, arguments)
    assert (result.is_error, result.media) == (True, ())
    assert said in result.text
    assert len(result.text) < 1_000


def test_results_are_bounded(tools: ImageTools) -> None:
    noise = encoded(Image.effect_noise((1_600, 1_000), 90).convert("RGB"))
    for name, more in (("crop", ""), ("zoom", ', "factor": 16'), ("rotate", "")):
        box = '"degrees": 33' if name == "rotate" else '"box": [0, 0, 1600, 1000]'
        result = called(tools, name, f'{{"picture": 1, {box}{more}}}', noise)
        picture = shown(result)
        assert picture.width * picture.height <= MOST_PIXELS
        ((_, sent),) = result.media
        assert sent.picture is not None and sent.picture.data is not None
        assert len(sent.picture.data) <= MOST_BYTES
    tiny = called(tools, "rotate", '{"picture": 1, "degrees": 0}', encoded(halves(2, 2)))
    assert shown(tiny).size == (LEAST_SIDE, LEAST_SIDE)


def test_what_is_no_picture_is_refused(tools: ImageTools) -> None:
    assert "cannot be read" in called(tools, "measure", '{"picture": 1}', base64.b64encode(b"%PDF-1.4").decode()).text
    assert "cannot be read" in called(tools, "measure", '{"picture": 1}', "no base64!").text
    assert "is at an address" in called(tools, "measure", '{"picture": 2}', encoded(halves()), None).text


def test_text_is_read_where_tesseract_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: ImageTools) -> None:
    program = tmp_path / "tesseract"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo tesseract 9.9; exit; fi\n'
        'if [ "$4" = xxx ]; then echo no such language >&2; exit 1; fi\nsleep 1; wc -c | tr -d " "; echo "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = ImageTools(ToolLimits(), WireOptions())
    try:
        assert "ocr" in found.describe()["tools"]
        assert found.identity() != tools.identity()
        begin = time.monotonic()

        async def several() -> list[ToolResult]:
            pictures = (encoded(halves()),)
            return await asyncio.gather(
                *(found.call("ocr", '{"picture": 1}', asyncio.Lock(), pictures) for _ in range(4))
            )

        read = asyncio.run(several())
        assert time.monotonic() - begin < 3.5  # they do not wait for each other
        assert all(one.text.endswith("stdin stdout -l eng") and int(one.text.split()[0]) > 100 for one in read)
        part = called(found, "ocr", '{"picture": 1, "box": [0, 0, 40, 40], "language": "deu+chi_sim"}')
        assert part.text.endswith("-l deu+chi_sim")
        assert "tesseract failed: no such language" in called(found, "ocr", '{"picture": 1, "language": "xxx"}').text
        for language in ("../../x", "-c", "eng --psm", ""):
            wrong = called(found, "ocr", f'{{"picture": 1, "language": "{language}"}}')
            assert "language must be a code of tesseract" in wrong.text
    finally:
        found.close()


def build(stub: StubServer, **arguments: Any) -> OpenAI:
    return OpenAI(model="stub", base_url=stub.url, tools="images", retry_backoff_s=0.01, **arguments)


def answer(model: OpenAI, calls: list[list[tuple[str, Any]]]) -> Response:
    try:
        return ask(model, [make_request("q", question(calls), [halves(), halves(60, 60)])])["q"]
    finally:
        model.close()


def results(response: Response) -> list[str]:
    return [str(message.content[0].text) for message in response.tool_messages if message.role == "tool"]


def test_a_model_looks_closer_and_closer(stub: StubServer) -> None:
    calls = [
        [("crop", {"picture": 1, "box": [0, 0, 100, 100]}), ("measure", {"picture": 2})],
        [("zoom", {"picture": 3, "box": [0, 0, 50, 50], "factor": 4})],
        [("measure", {"picture": 4})],
    ]
    response = answer(build(stub), calls)
    assert response.text == "done"
    cut, size, enlarged, last = results(response)
    assert "cut out; from (0, 0) to (100, 100); 100 x 100 pixels" in cut
    assert size == "the picture has 60 x 60 pixels"
    assert "enlarged by 4" in enlarged
    assert last == "the picture has 200 x 200 pixels"
    first, *_, body = stub.bodies()
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]}
    assert set(offered) >= {"crop", "zoom", "rotate", "measure"}
    assert all("picture" in one["required"] and "image" not in one["properties"] for one in offered.values())
    texts = [
        part["text"]
        for message in body["messages"]
        if message["role"] == "user" and message is not body["messages"][0]
        for part in message["content"]
        if part["type"] == "text"
    ]
    assert texts == ["From the tool crop, picture 3:", "From the tool zoom, picture 4:"]
    recorded = [part.picture for message in response.tool_messages for part in message.content if part.picture]
    assert len(recorded) == 2


def test_calls_of_a_request_are_bounded(stub: StubServer) -> None:
    response = answer(build(stub, mcp_max_calls=5), [[("measure", {"picture": 1})] * 3] * 9)
    assert [text.startswith("error: at most 5 calls") for text in results(response)] == [False] * 5 + [True]
    assert response.text == "done"
    assert [body.get("tool_choice") for body in stub.bodies()] == [None, None, "none"]
    response = answer(build(stub), [[("measure", {"picture": 1})] * 1_000] * 9)
    ran = [text for text in results(response) if not text.startswith("error")]
    assert (len(ran), response.text) == (32, "done")


def test_tokens_and_cost_of_a_request_are_bounded(stub: StubServer) -> None:
    for limits in ({"mcp_max_tokens": 20}, {"mcp_max_cost": 0.00002, "mcp_price": "1:1"}):
        before = len(stub.bodies())
        response = answer(build(stub, **limits), [[("measure", {"picture": 1})]] * 9)
        assert response.text == "done"
        choices = [body.get("tool_choice") for body in stub.bodies()[before:]]
        assert len(choices) < 9
        assert choices[-1] == "none"


def test_a_limit_of_tokens_needs_their_counts() -> None:
    used = [Usage(10, 5, None), Usage(20, 5, None)]
    assert ToolLimits(tokens=40).are_spent(used)
    assert not ToolLimits(tokens=41).are_spent(used)
    assert ToolLimits(cost=0.0008, price="20:20").are_spent(used)
    assert not ToolLimits(cost=0.0009, price="20:20").are_spent(used)
    assert not ToolLimits().are_spent([None])
    with pytest.raises(AttemptError, match="reports no tokens, which mcp_max_tokens needs"):
        ToolLimits(tokens=40).are_spent([None])


def test_the_tools_and_their_limits_are_part_of_the_identity(stub: StubServer) -> None:
    models = [build(stub), build(stub), build(stub, mcp_max_calls=3), build(stub, mcp_max_tokens=9_000)]
    one, same, *others = [model.identity() for model in models]
    for model in models:
        model.close()
    assert one == same
    assert all(other != one for other in others)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tools": "pictures"}, "tools"),
        ({"tools": "images", "mcp_server_path": "x.py"}, "name different tools"),
        ({"tools": "images", "api": "responses"}, "tools needs a conversation"),
        ({"tools": "images", "batch": True}, "tools needs a conversation"),
        ({"mcp_max_calls": 3}, "mcp_max_calls is about tools"),
        ({"tools": "images", "mcp_max_cost": 1}, "mcp_max_cost and mcp_price need each other"),
        ({"tools": "images", "mcp_price": "1:2"}, "mcp_max_cost and mcp_price need each other"),
        ({"tools": "images", "mcp_max_cost": 1, "mcp_price": "cheap"}, "mcp_price"),
        ({"tools": "images", "mcp_max_calls": 0}, "mcp_max_calls"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        OpenAI(model="stub", base_url="http://127.0.0.1:9/v1", **arguments)


def test_other_back_ends_refuse_them() -> None:
    with pytest.raises(ModelError, match="does not support tools: use tools with chat completions"):
        Gemini(model="stub", api_key="none", tools="images")
