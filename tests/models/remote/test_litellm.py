"""The back end ``litellm``: the real package against a chat-completions server."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

pytestmark = pytest.mark.filterwarnings("ignore")  # of the package's own code
with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
    warnings.simplefilter("ignore")
    patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    pytest.importorskip("litellm", reason="the extra 'litellm' is not installed")
KEY = "litellm-secret-0123456789"


def build(server: StubServer | None = None, **arguments: Any) -> Any:
    base = server.url if server else "http://127.0.0.1:1/v1"
    given = {"model": "openai/m", "base_url": base, "api_key": KEY, "retry_backoff_s": 0.01, "max_retries": 2}
    return ModelRegistry().build("litellm_chat", {**given, **arguments})[0]


def ask_one(server: StubServer, request: Any = None, **arguments: Any) -> Response:
    return ask(build(server, **arguments), [request or make_request("one")], leaves_tasks=True)["one"]


def test_many_requests() -> None:
    with StubServer(key=KEY, delay=0.02) as server:
        model = build(server, num_concurrent=8)
        found = ask(model, [make_request(number) for number in range(30)], leaves_tasks=True)
        stats, body = server.stats(), server.bodies()[0]
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(30)}
    assert stats["total"] == 30 and 2 <= stats["max_in_flight"] <= 8
    assert body["model"] == "m" and body["max_tokens"] == 16 and body["temperature"] == 0
    usage = found["0"].usage
    assert usage is not None and usage.input_tokens and usage.output_tokens
    assert KEY not in repr(model.describe()) + repr(model.identity())


@pytest.mark.parametrize(
    ("settings", "kind", "attempts", "words"),
    [
        ({"fault": "500"}, "server_error", 3, "HTTP 500"),
        ({"fault": "429", "retry_after": "0.02"}, "rate_limit", 3, "HTTP 429"),
        ({"fault": "401"}, "auth", 1, "key"),
        ({"fault": "400"}, "bad_request", 1, "HTTP 400"),
        ({"fault": "context_length"}, "bad_request", 1, "context length"),
        ({"fault": "slow", "slow": 5}, "timeout", 3, "within 0.2 s"),
        ({"fault": "echo_key"}, "bad_request", 1, "REDACTED"),
    ],
)
def test_failures(settings: dict[str, Any], kind: str, attempts: int, words: str) -> None:
    with StubServer(**settings) as server:
        started = time.perf_counter()
        response = ask_one(server, timeout=0.2 if settings["fault"] == "slow" else 20)
        assert time.perf_counter() - started < 10
        assert server.stats()["total"] == attempts
    assert response.error is not None and response.error.kind == kind
    assert words in response.error.message and KEY not in response.error.message


@pytest.mark.parametrize(("fault", "text", "finish"), [("truncated", "cut o", "length"), ("empty", "", "stop")])
def test_endings(fault: str, text: str, finish: str) -> None:
    with StubServer(fault=fault) as server:
        response = ask_one(server)
    assert (response.text, response.finish_reason) == (text, finish)


def test_pictures_and_system_prompt() -> None:
    with StubServer() as server:
        request = make_request("one", visuals=[Image.new("RGB", (4, 4))])
        assert ask_one(server, request, system_prompt="Be brief.").text == "one"
        messages = server.bodies()[0]["messages"]
    assert messages[0]["role"] == "system" and messages[1]["content"][0]["type"] == "image_url"


def test_a_name_without_service() -> None:
    with pytest.raises(ModelError, match="provider/model"):
        build(model="no-such-model-anywhere", base_url=None)
