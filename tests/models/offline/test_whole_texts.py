"""Likelihoods of whole texts by engines that compute them with a tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from examples.build_tiny_model import build_tiny_vlm
from tests.models.hf.support import answers
from tests.models.hf.support import build as build_local
from tests.models.offline.engines import Recorder
from tests.models.offline.support import FAKES, build
from tests.models.openai.support import ask, make_request
from tests.models.whole_texts import TEXTS, log_likelihood, rolling, token_scores

CONTEXT = 34
"""Two tokens more than a window."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_vlm(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def local(tiny: Path) -> Iterator[Any]:
    model = build_local(tiny)
    yield model.loaded
    model.close()


@pytest.mark.parametrize("name", FAKES)
def test_the_likelihood_of_a_text_is_that_of_its_tokens(name: str, tiny: Path, local: Any, seen: Recorder) -> None:
    seen.scorer = partial(token_scores, local.model)
    model = build(name, str(tiny), max_model_len=CONTEXT)
    found = answers(model, [rolling(number, text) for number, text in enumerate(TEXTS)])
    for number, text in enumerate(TEXTS):
        direct = log_likelihood(local.model, local.tokenizer, text, CONTEXT - 2)
        assert found[number].loglikelihood == pytest.approx(direct, rel=1e-7, abs=1e-5)
        assert found[number].latency is not None
    prompts = [call["prompt"]["prompt_token_ids"] if name == "vllm" else call["prompt"] for call in seen.calls]
    assert max(map(len, prompts)) == CONTEXT - 1, "an engine generates one token"
    model.close()


@pytest.mark.parametrize("name", FAKES)
@pytest.mark.parametrize(("context", "kept"), [("What is ", "What is"), ("", ""), (" ", "")])
def test_white_space_before_a_continuation_is_scored_if_the_task_wants_it(
    name: str, context: str, kept: str, tiny: Path, local: Any, seen: Recorder
) -> None:
    seen.scorer = partial(token_scores, local.model)
    asked = replace(make_request("one", context), kind="loglikelihood", continuation="red", moves_blanks=True)
    found = ask(build(name, str(tiny), chat_template="none"), [asked])["one"]
    encode = local.tokenizer.encode
    before, whole = encode(kept), encode(f"{context}red")
    count = len(whole) - len(before)
    if not kept:
        whole = [local.tokenizer.bos_token_id, *whole]
    scores = token_scores(local.model, whole)[-count:]
    assert found.loglikelihood == pytest.approx(sum(own for own, _ in scores), abs=1e-6)


def test_the_engine_states_the_length(tiny: Path, local: Any, seen: Recorder) -> None:
    seen.scorer, seen.context = partial(token_scores, local.model), 20
    found = answers(build("vllm", str(tiny)), [rolling(0, TEXTS[2])])[0]
    assert found.loglikelihood == pytest.approx(log_likelihood(local.model, local.tokenizer, TEXTS[2], 18), abs=1e-5)


def test_a_context_without_room(tiny: Path, seen: Recorder) -> None:
    seen.context = 2
    error = answers(build("vllm", str(tiny)), [rolling(0, TEXTS[2])])[0].error
    assert error is not None and error.kind == "bad_request" and "has no room for a window" in error.message


def test_a_window_that_the_engine_refuses_fails_its_text(tiny: Path, seen: Recorder) -> None:
    seen.error = ValueError("too long")
    found = answers(build("vllm", str(tiny), max_model_len=CONTEXT), [rolling(0, TEXTS[3]), rolling(1, "")])
    error = found[0].error
    assert error is not None and error.kind == "bad_request" and "vllm: too long" in error.message
    assert found[1].loglikelihood == 0.0
