"""Prompts that several continuations share are computed once, with the likelihoods of one pass for each."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from lmms_eval.models.hf import answering
from lmms_eval.models.hf.prefixes import Prefixes

from .support import answers, ask
from .test_windows import built, write_text_model

SIZES = {
    "vocab_size": 400,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, initializer_range=0.3)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=400, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    ),
    "sliding": lambda: MistralForCausalLM(MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=4, initializer_range=0.3)),
}  # fmt: skip
PROMPTS = ["the red square is left of the blue circle", "a picture of", "two circles and three squares are here"]
ENDINGS = [" and the green one", " it", " right", " of the blue square is a circle that is red"]


def requests(endings=ENDINGS):
    pairs = [(prompt, ending) for prompt in PROMPTS for ending in endings]
    return [
        ask(number, prompt, kind="loglikelihood", continuation=ending) for number, (prompt, ending) in enumerate(pairs)
    ]


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tiny, tmp_path):
    torch.manual_seed(0)
    return write_text_model(tmp_path, tiny, MODELS[kind]().eval())


@pytest.fixture
def shared(monkeypatch):
    """The calls that shared prompts, with the outcome of each."""
    found, share = [], answering.share_prefixes

    def noted(model, prefixes, keeps_logits):
        outcome = share(model, prefixes, keeps_logits)
        found.append((len(prefixes.prompts), len(prefixes.prompt_of), outcome is not None))
        return outcome

    monkeypatch.setattr(answering, "share_prefixes", noted)
    return found


def test_values_are_those_of_one_request_at_a_time(folder, kind, shared):
    alone = answers(built(folder), requests())
    assert not shared
    model = built(folder, batch_size=8)
    for _ in range(2):  # the first batch is checked in both ways
        together = answers(model, requests())
        for number, response in alone.items():
            assert together[number].loglikelihood == pytest.approx(response.loglikelihood, rel=1e-5, abs=1e-4)
            assert together[number].is_greedy == response.is_greedy
            assert together[number].usage == response.usage
    assert model._answerer._shares is (kind != "sliding")
    assert {outcome for *_, outcome in shared} == {kind != "sliding"}
    assert len(shared) == (1 if kind == "sliding" else 4)


def test_continuations_of_one_token_need_one_pass(tiny, tmp_path, shared):
    folder = write_text_model(tmp_path, tiny, MODELS["llama"]())
    model = built(folder, batch_size=9)
    passes = []
    model.loaded.model.register_forward_pre_hook(
        lambda _, arguments, named: passes.append(named["input_ids"].shape), with_kwargs=True
    )
    one = [" a", " b", " c"]
    answers(model, requests(one))
    answers(model, requests(one))
    rows = [shape[0] for shape in passes]
    assert rows == [3, 9, 3]  # prompts, the check of the first batch, prompts
    assert [call[:2] for call in shared] == [(3, 9), (3, 9)]


def test_a_model_with_other_values_is_asked_in_one_pass(tiny, tmp_path, monkeypatch):
    share = answering.share_prefixes

    def wrong(model, prefixes, keeps_logits):
        after_prompt, continued = share(model, prefixes, keeps_logits)
        return after_prompt, continued.roll(1, dims=-1)

    folder = write_text_model(tmp_path, tiny, MODELS["llama"]())
    expected = answers(built(folder, use_cache=False, batch_size=8), requests())
    monkeypatch.setattr(answering, "share_prefixes", wrong)
    model = built(folder, batch_size=8)
    got = answers(model, requests())
    assert model._answerer._shares is False
    for number, response in expected.items():
        assert got[number].loglikelihood == pytest.approx(response.loglikelihood, rel=1e-5, abs=1e-4)


def test_rows_with_their_own_prompts_share_nothing():
    assert Prefixes.of([([1, 2], [3]), ([1, 4], [3])], 0) is None
    assert Prefixes.of([([1, 2], [3] * 20), ([1, 2], [4] * 20)], 0) is None
    found = Prefixes.of([([1, 2, 5], [3, 7]), ([1], [3]), ([1, 2, 5], [4])], 0)
    assert found.prompts.tolist() == [[1, 2, 5], [1, 0, 0]] and found.lengths.tolist() == [3, 1]
    assert found.prompt_of.tolist() == [0, 1, 0] and found.rest.tolist() == [[3], [0], [0]]
