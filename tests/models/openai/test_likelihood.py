"""Likelihoods through servers: plain completions that echo, and vLLM's chat completions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.registry import ModelRegistry
from tests.cases import for_each
from tests.models.openai.scoring_server import scoring_server
from tests.models.openai.support import ask, make_request

CONTINUATIONS = {"mixed": " aB", "small": " ab", "capital": "A"}


def build(url: str, api: str, **arguments: Any) -> OpenAI:
    return OpenAI(model="m", base_url=url, api=api, max_retries=0, **arguments)


def scored(name: str, continuation: str, text: str = "Q?", **more: Any) -> Request:
    return replace(make_request(name, text, **more), kind="loglikelihood", continuation=continuation)


@for_each("api", ["chat", "completions"])
def test_a_likelihood_is_of_the_continuations_tokens(api: str) -> None:
    with scoring_server() as (url, bodies):
        model = build(url, api)
        assert "loglikelihood" in model.kinds
        found = ask(model, [scored(name, text) for name, text in CONTINUATIONS.items()])
    assert {name: (found[name].loglikelihood, found[name].is_greedy) for name in found} == {
        "mixed": (-1.5, False),
        "small": (-0.75, True),
        "capital": (-1.0, False),
    }
    usage = found["mixed"].usage
    assert usage is not None and usage.input_tokens == {"chat": 7, "completions": 6}[api] and usage.output_tokens == 0
    assert len(bodies) == 4, "the prompt's length is asked once for all its choices"


def test_the_answer_is_left_open_for_the_continuation() -> None:
    begun = [
        {"role": "user", "content": [{"type": "text", "text": "Q?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A:"}]},
    ]
    messages = ChatMessages.model_validate({"messages": begun})
    with scoring_server() as (url, bodies):
        found = ask(build(url, "chat"), [scored("one", " b", messages=messages)])["one"]
    assert found.loglikelihood == -0.5
    assert [body["continue_final_message"] for body in bodies] == [True, True]
    whole = next(body for body in bodies if "prompt_logprobs" in body)
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]


@for_each("api", ["chat", "completions"])
def test_a_server_that_tells_no_log_probabilities(api: str) -> None:
    with scoring_server(tells=False) as (url, _):
        error = ask(build(url, api), [scored("one", " b")])["one"].error
    assert error is not None and error.kind == "bad_request" and "returns no log probabilities" in error.message


@for_each(("api", "wanted"), [("chat", -0.25), ("completions", -0.5)])
def test_an_implied_delimiter_is_dropped_after_a_template(api: str, wanted: float) -> None:
    with scoring_server() as (url, _):
        asked = replace(scored("one", " b"), implied_delimiter=" ")
        assert ask(build(url, api), [asked])["one"].loglikelihood == wanted


def test_white_space_before_a_continuation_is_scored_if_the_task_wants_it() -> None:
    with scoring_server() as (url, bodies):
        asked = replace(scored("one", "aB", text="Q? "), moves_blanks=True)
        found = ask(build(url, "completions"), [asked])["one"]
    assert found.loglikelihood == -1.5, "of three tokens"
    assert [body["prompt"] for body in bodies] == ["Q? aB", "Q?"]


def test_a_continuation_without_a_token() -> None:
    with scoring_server() as (url, _):
        error = ask(build(url, "completions"), [scored("one", "")])["one"].error
    assert error is not None and error.kind == "bad_request" and "adds no token" in error.message


def test_the_plain_form_generates_without_roles() -> None:
    with scoring_server() as (url, bodies):
        model = build(url, "completions", system_prompt="abc")
        found = ask(model, [make_request("one", "Q?", generation={"max_new_tokens": 5, "until": ["#"]})])["one"]
        picture = make_request("two", visuals=[Image.new("RGB", (2, 2))])
        with pytest.raises(Exception, match="texts alone"):
            model.prepare(picture)
    assert found.text == "?Q\n\ncba" and found.finish_reason == "stop"
    assert bodies == [{"model": "m", "prompt": "abc\n\nQ?", "max_tokens": 5, "temperature": 0, "stop": ["#"]}]


def test_the_public_chat_api_and_the_responses_form_answer_no_likelihoods() -> None:
    assert OpenAI(model="m", api_key="k" * 9).kinds == {"generate_until", "generate_visual_cot"}
    assert build("http://127.0.0.1:9/v1", "responses").kinds == {"generate_until", "generate_visual_cot"}


def test_completions_hold_no_pictures() -> None:
    assert build("http://127.0.0.1:9/v1", "completions").kinds == {"generate_until", "loglikelihood"}


@for_each(("template", "api"), [({}, "chat"), ({"chat_template": "none"}, "completions")])
def test_an_engines_server_is_asked_for_likelihoods_too(template: dict[str, str], api: str) -> None:
    with scoring_server() as (url, bodies):
        model = ModelRegistry().build("vllm", {"model": "m", "base_url": url, **template})[0]
        found = ask(model, [scored("one", " b")])["one"]
    assert model.kinds == {"generate_until", "loglikelihood"}
    assert found.loglikelihood == -0.5 and all(("prompt" in body) == (api == "completions") for body in bodies)
