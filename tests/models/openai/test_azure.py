"""``azure_openai=true`` against a server at Azure's addresses."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.model import OpenAI
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

KEY = "azure-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEY", "BASE", "VERSION"):
        monkeypatch.delenv(f"AZURE_OPENAI_API_{name}", raising=False)


def build(server: StubServer, **arguments: Any) -> OpenAI:
    base = server.url.removesuffix("/v1")
    given = {"model": "my deployment", "base_url": base, "api_key": KEY, "api_version": "2024-10-21"}
    return OpenAI(**{**given, "azure_openai": True, "retry_backoff_s": 0.01, **arguments})


def header(head: str, name: str) -> str | None:
    lines = (line.partition(":") for line in head.split("\r\n")[1:])
    return next((value.strip() for found, _, value in lines if found.lower() == name), None)


def test_address_version_and_key() -> None:
    with StubServer(key=KEY) as server:
        model = build(server)
        assert ask(model, [make_request("one")])["one"].text == "one"
        head, body = server.heads()[0], server.bodies()[0]
    target = "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"
    assert head.startswith(f"POST {target} HTTP/1.1")
    assert header(head, "api-key") == KEY and header(head, "authorization") is None
    assert body["max_tokens"] == 16 and body["temperature"] == 0
    assert KEY not in repr(model.identity()) + repr(model.describe()) + repr(model._endpoint)


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer(key=KEY) as server:
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        monkeypatch.setenv("AZURE_OPENAI_API_BASE", server.url.removesuffix("/v1") + "/openai/")
        monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2025-01-01")
        model = OpenAI(model="d", azure_openai=True)
        assert ask(model, [make_request("one")])["one"].text == "one"
        assert "/openai/deployments/d/chat/completions?api-version=2025-01-01 " in server.heads()[0]


def test_the_responses_form_names_the_deployment_in_the_body() -> None:
    with StubServer(key=KEY) as server:
        assert ask(build(server, api="responses"), [make_request("one")])["one"].text == "one"
        assert server.heads()[0].startswith("POST /openai/responses?api-version=2024-10-21 ")
        assert server.bodies()[0]["model"] == "my deployment"


def test_a_deployment_with_any_name_can_be_a_reasoning_model() -> None:
    with StubServer() as server:
        ask(build(server, reasoning_model=True, reasoning_effort="low"), [make_request("one")])
        body = server.bodies()[0]
    assert body["max_completion_tokens"] == 16 and body["reasoning_effort"] == "low"
    assert "temperature" not in body and "max_tokens" not in body


def test_a_refused_key_names_the_right_variable() -> None:
    with StubServer(key="other") as server:
        response = ask(build(server), [make_request("one")])["one"]
    assert response.error is not None and response.error.kind == "auth"
    assert "AZURE_OPENAI_API_KEY" in response.error.message and KEY not in response.error.message


def test_what_is_missing_is_named() -> None:
    arguments = parse_arguments({"model": "d", "azure_openai": True, "base_url": "http://127.0.0.1:1"}, {})
    with pytest.raises(ModelError, match=r"api_key .*, api_version") as caught:
        find_endpoint(arguments, {"OPENAI_API_KEY": "not for this"})
    assert "base_url" not in str(caught.value)
