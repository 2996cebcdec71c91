"""Likelihoods of whole texts through a server that computes them with a tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from examples.build_tiny_model import build_tiny_vlm
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.registry import ModelRegistry
from tests.cases import for_each
from tests.models.hf.support import answers
from tests.models.hf.support import build as build_local
from tests.models.openai.scoring_server import scoring_server
from tests.models.openai.support import ask, make_request
from tests.models.whole_texts import TEXTS, log_likelihood, rolling, token_scores

CONTEXT = 34
"""Two tokens more than a window."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_vlm(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[Any]:
    model = build_local(folder)
    yield model.loaded
    model.close()


def build(url: str, folder: Path | str, **arguments: Any) -> OpenAI:
    given = {"api": "completions", "tokenizer": str(folder), "max_length": CONTEXT, "retry_backoff_s": 0.01}
    return OpenAI(model="m", base_url=url, **{**given, **arguments})


def test_the_likelihood_of_a_text_is_that_of_its_tokens(folder: Path, local: Any) -> None:
    with scoring_server(scores=partial(token_scores, local.model)) as (url, bodies):
        found = answers(build(url, folder), [rolling(number, text) for number, text in enumerate(TEXTS)])
    for number, text in enumerate(TEXTS):
        direct = log_likelihood(local.model, local.tokenizer, text, CONTEXT - 2)
        assert found[number].loglikelihood == pytest.approx(direct, rel=1e-7, abs=1e-5)
    assert found[0].is_greedy and not found[3].is_greedy and found[3].model == "m"
    assert all(len(body["prompt"]) <= CONTEXT - 1 for body in bodies), "one token is generated"
    assert {(body["echo"], body["logprobs"], body["max_tokens"]) for body in bodies} == {(True, 1, 1)}


def test_another_attempt_asks_only_what_is_missing(folder: Path, local: Any) -> None:
    failing = {2: 500, 4: 503}
    with scoring_server(scores=partial(token_scores, local.model), status=lambda number: failing.get(number, 200)) as (
        url,
        bodies,
    ):
        found = answers(build(url, folder), [rolling(0, TEXTS[5])])[0]
        count = len(bodies)
        again = answers(build(url, folder), [rolling(0, TEXTS[5])])[0]
    windows = len(bodies) - count
    assert count == windows + len([number for number in failing if number < count]) and found.error is None
    assert found.loglikelihood == again.loglikelihood and found.attempts > 1


def test_a_server_that_takes_no_token_ids(folder: Path) -> None:
    with scoring_server(scores=lambda _: [(-1.0, -1.0)]) as (url, _):
        error = answers(build(url, folder), [rolling(0, TEXTS[2])])[0].error
    assert error is not None and error.kind == "bad_request" and "does not take prompts of token ids" in error.message


def test_only_with_a_tokenizer(folder: Path) -> None:
    address = "http://127.0.0.1:9/v1"
    assert "loglikelihood_rolling" in build(address, folder).kinds
    assert "loglikelihood_rolling" not in OpenAI(model="m", base_url=address, api="completions").kinds
    with pytest.raises(ModelError, match="apply to api=completions only"):
        build(address, folder, api="chat")


@for_each("name", ["nobody/has-this", "no/such/folder/here"])
def test_a_tokenizer_that_is_not_there(name: str) -> None:
    with pytest.raises(ModelError, match=f"tokenizer={name} cannot be loaded"):
        build("http://127.0.0.1:9/v1", name)


def test_tokenizer_and_length_belong_to_the_identity(folder: Path) -> None:
    address = "http://127.0.0.1:9/v1"
    plain = OpenAI(model="m", base_url=address, api="completions").identity()
    assert not {"tokenizer", "max_length"} & set(plain), "runs without them keep their key"
    assert build(address, folder).identity() != build(address, folder, max_length=64).identity()


@for_each("context", ["What is", "What is ", "", "  "])
@for_each("moves_blanks", [True, False])
def test_with_a_tokenizer_a_likelihood_is_one_request(
    folder: Path, local: Any, context: str, moves_blanks: bool
) -> None:
    asked = replace(
        make_request("one", context), kind="loglikelihood", continuation=" red or", moves_blanks=moves_blanks
    )
    with scoring_server(scores=partial(token_scores, local.model)) as (url, bodies):
        found = ask(build(url, folder), [asked])["one"]
    encode = local.tokenizer.encode
    kept = context.rstrip() if moves_blanks else context
    before, whole = encode(kept), encode(f"{context} red or")
    count = len(whole) - len(before)
    if not kept:
        whole = [local.tokenizer.bos_token_id, *whole]
    assert [body["prompt"] for body in bodies] == [whole]
    scores = token_scores(local.model, whole)[-count:]
    assert found.loglikelihood == pytest.approx(sum(own for own, _ in scores), abs=1e-6)
    assert found.is_greedy == all(own >= best for own, best in scores)


def test_a_continuation_that_adds_no_token(folder: Path, local: Any) -> None:
    asked = replace(make_request("one", "What"), kind="loglikelihood", continuation="")
    with scoring_server(scores=partial(token_scores, local.model)) as (url, _):
        error = ask(build(url, folder), [asked])["one"].error
    assert error is not None and error.kind == "bad_request" and "adds no token" in error.message


def test_the_server_of_an_engine(folder: Path, local: Any) -> None:
    given = {"model": "m", "chat_template": "none", "tokenizer": str(folder)}
    with scoring_server(scores=partial(token_scores, local.model)) as (url, _):
        model = ModelRegistry().build("vllm", {**given, "base_url": url})[0]
        found = answers(model, [rolling(0, TEXTS[2])])[0]
    direct = log_likelihood(local.model, local.tokenizer, TEXTS[2], 2046)
    assert found.loglikelihood == pytest.approx(direct, abs=1e-5)
