from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.text_to_image.illustrated import DrawingError, ImagesApi
from tests.cases import for_each
from tests.servers.stub import StubServer


@contextmanager
def painter(server: StubServer, model: str = "paint", **arguments: Any) -> Iterator[ImagesApi]:
    made = ImagesApi(model, {"base_url": server.url, "api_key": "sk-secret", "retry_backoff_s": 0.01, **arguments})
    try:
        yield made
    finally:
        made.close()


def test_pictures_come_in_the_order_of_the_descriptions() -> None:
    with StubServer(delay=0.05) as server, painter(server, size="64x64", num_concurrent=4) as made:
        first = made.draw(["a kite", "a boat", "a kite"], 1)
        again = made.draw(["a boat"], 2)
        bodies, heads, stats = server.bodies(), server.heads(), server.stats()
    assert first[0] == first[2] != first[1] == again[0]
    assert first[0].media_type == "image/png" and first[0].data is not None
    assert bodies[0] == {
        "model": "paint", "n": 1, "response_format": "b64_json", "size": "64x64", "prompt": bodies[0]["prompt"],
    }  # fmt: skip
    assert {body["prompt"] for body in bodies} == {"a kite", "a boat"}
    assert heads[0].startswith("POST /v1/images/generations ") and "Bearer sk-secret" in heads[0]
    assert stats["max_in_flight"] > 1


def test_overload_is_asked_again() -> None:
    with StubServer(fault="500", times=1) as server, painter(server) as made:
        assert len(made.draw(["a kite"], 1)) == 1
        assert made.describe()["retries"] == {"server_error": 1}
        assert made.describe()["pictures"] == 1


@for_each(
    ("fault", "kind", "words"),
    [
        ("401", "auth", "stub fault 401"),
        ("policy", "refused", "The prompt was rejected"),
        ("no_choices", "malformed", "data is missing"),
        ("malformed", "malformed", "no JSON"),
    ],
)
def test_failures_say_what_was_not_drawn(fault: str, kind: str, words: str) -> None:
    with (
        StubServer(fault=fault) as server,
        painter(server, max_retries=1) as made,
        pytest.raises(DrawingError, match="the picture of 'a kite' was not drawn") as failure,
    ):
        made.draw(["a kite"], 1)
    assert failure.value.kind == kind
    assert words in str(failure.value) and "sk-secret" not in str(failure.value)


def test_arguments() -> None:
    with StubServer() as server:
        with pytest.raises(ModelError, match="colour"):
            ImagesApi("paint", {"base_url": server.url, "colour": "red"})
        with painter(server, "gpt-image-1", extra_body={"seed": 7}) as made:
            identity = dict(made.identity())
    assert identity == {"images_api": f"{server.url}/images/generations", "model": "gpt-image-1", "n": 1, "seed": 7}
