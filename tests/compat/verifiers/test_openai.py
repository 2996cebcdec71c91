"""The judging verifier, against a server on loopback and inside a scored document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated, evaluated_wholly
from lmms_eval.compat.llm_judge import ProviderFactory, Request, Response, ServerInterface
from lmms_eval.verifiers import VerifyResult, build_verification_pipeline
from lmms_eval.verifiers.openai import OpenAIVerifier
from tests.servers.stub import StubServer

CALL = ("Which colour?", "I say blue", "Blue")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.delenv("API_TYPE", raising=False)
    with StubServer() as server:
        monkeypatch.setenv("OPENAI_API_URL", f"{server.url}/chat/completions")
        yield server


class FailingServer(ServerInterface):
    """A judge that gives an error's text for a reply."""

    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        return [Response("the answer is CORRECT", "m", success=False) for _ in requests]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(ProviderFactory._providers, "failing", FailingServer)
    return "failing"


def test_a_prompt_of_the_task_reaches_the_judge(stub: StubServer) -> None:
    verifier = OpenAIVerifier("jury", custom_prompt="{question} {prediction} {hint} ANSWER=7", response_format="score")
    result = verifier(*CALL, hint="sky")
    assert (result.score, result.is_correct, result.raw_output) == (0.7, True, "7")
    (body,) = stub.bodies()
    assert body["model"] == "jury"
    assert "Which colour? I say blue sky" in str(body["messages"])


def test_a_function_makes_the_prompt_and_another_reads_the_reply(stub: StubServer) -> None:
    def prompt(asked: str, said: str, gold: str, **kwargs: Any) -> str:  # any names: they come by position
        return f"ANSWER={gold}"

    def read(text: str) -> VerifyResult:
        return VerifyResult(0.25, False, text)

    verifier = OpenAIVerifier(custom_prompt=prompt, response_parser=read, response_format="mine")
    assert verifier(*CALL) == VerifyResult(0.25, False, "Blue")


def test_a_configuration_names_it(stub: StubServer) -> None:
    config = {"verifier": {"type": "openai", "model": "jury", "custom_prompt": "ANSWER=yes"}}
    assert build_verification_pipeline(config)(*CALL).is_correct
    composite = {"type": "composite", "verifiers": [{"type": "exact_match"}, config["verifier"]]}
    assert build_verification_pipeline({"verifier": composite})(*CALL).is_correct
    assert build_verification_pipeline({"verifier": composite})("q", "Blue", "blue").metadata["confident"]
    assert len(stub.bodies()) == 2  # the exact match asks nobody


@pytest.mark.parametrize("init", [{}, {"judge_type": "comparative"}, {"custom_prompt": "x"}])
def test_a_failed_judge_leaves_the_document_not_evaluated(failing: str, init: dict[str, Any]) -> None:
    result = OpenAIVerifier(api_type=failing, **init)(*CALL)
    assert result == VerifyResult(0.0, False, "the answer is CORRECT", {"model": "m", "judge_failed": True})
    with pytest.raises(NotEvaluated, match="the answer is CORRECT"), evaluated_wholly():
        assert OpenAIVerifier(api_type=failing, **init)(*CALL).score == 0.0


@pytest.mark.parametrize(
    ("init", "what"),
    [
        ({"judge_type": "rubric"}, "judge_type 'rubric'"),
        ({"custom_prompt": "x", "response_format": "json"}, "response_format 'json'"),
        ({"custom_prompt": "", "response_format": ""}, "response_format ''"),
    ],
)
def test_a_mode_that_does_not_exist_is_a_failed_judge(stub: StubServer, init: dict[str, Any], what: str) -> None:
    verifier = OpenAIVerifier(**init)
    result = verifier(*CALL)
    assert result.raw_output.startswith(f"error: unknown {what}")
    assert result == VerifyResult(0.0, False, result.raw_output, {"judge_failed": True})
    with pytest.raises(NotEvaluated, match=what), evaluated_wholly():
        verifier(*CALL)
    assert not stub.bodies()  # nothing is asked


def test_modes_that_are_not_looked_at_may_be_anything(stub: StubServer) -> None:
    right = VerifyResult(1.0, True)
    unread: dict[str, Any] = {"judge_type": "rubric", "response_format": "json", "response_parser": lambda text: right}
    assert OpenAIVerifier(custom_prompt="ANSWER=x", **unread)(*CALL) == right
