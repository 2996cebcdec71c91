"""Texts that begin alike are computed once, with the likelihoods of one pass for each."""

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from lmms_eval.models.hf import answering
from lmms_eval.models.hf.prefixes import SharedPrefixes

from .support import answers, ask
from .test_windows import built, write_text_model

SIZES = {
    "vocab_size": 400, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, initializer_range=0.3)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**GPT2, initializer_range=0.3)),
    "sliding": lambda: MistralForCausalLM(
        MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=4, initializer_range=0.3)
    ),
    "alibi": lambda: BloomForCausalLM(BloomConfig(vocab_size=400, hidden_size=16, n_layer=2, n_head=2)),
    "state": lambda: MambaForCausalLM(MambaConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, state_size=4)),
}
SHARING = ("llama", "gpt2")
PROMPTS = ["the red square is left of the blue circle", "a picture of", "two circles and three squares are here"]
ENDINGS = [" and the green one", " it", " right", " of the blue square is a circle that is red"]


def requests(prompts=PROMPTS, endings=ENDINGS):
    pairs = [(prompt, ending) for prompt in prompts for ending in endings]
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
def llama(tiny, tmp_path):
    torch.manual_seed(0)
    return write_text_model(tmp_path, tiny, MODELS["llama"]())


def passes(model):
    """The shapes of the inputs of all forward passes from now on."""
    found = []
    model.loaded.model.register_forward_pre_hook(
        lambda _, arguments, named: found.append(tuple(named["input_ids"].shape)), with_kwargs=True
    )
    return found


def check(got, wanted):
    for number, response in wanted.items():
        assert got[number].error is None
        assert got[number].loglikelihood == pytest.approx(response.loglikelihood, rel=1e-5, abs=1e-4)
        assert got[number].is_greedy == response.is_greedy
        assert got[number].usage == response.usage


def test_values_are_those_of_one_request_at_a_time(folder, kind):
    alone = answers(built(folder), requests())
    model = built(folder, batch_size=12)
    check(answers(model, requests()), alone)  # both ways are compared
    shapes = passes(model)
    check(answers(model, requests()), alone)
    assert [rows for rows, _ in shapes] == ([4] if kind in SHARING else [12])


def test_attention_that_adds_its_mask(llama):
    alone, model = answers(built(llama), requests()), built(llama, batch_size=12, attn_implementation="eager")
    for _ in range(2):
        shapes = passes(model)
        check(answers(model, requests()), alone)
    assert [rows for rows, _ in shapes] == [4]


def test_lower_precision(llama):
    alone = answers(built(llama), requests())
    model = built(llama, batch_size=12, dtype="bfloat16")
    answers(model, requests())
    shapes = passes(model)
    got = answers(model, requests())
    assert len(shapes) == 1 and shapes[0][0] == 4
    for number, response in alone.items():
        assert got[number].loglikelihood == pytest.approx(response.loglikelihood, rel=0.03, abs=0.3)


def test_documents_share_their_examples(llama):
    examples = "Where is the square? It is left of the circle.\n\n" * 3
    prompts = [examples + prompt for prompt in PROMPTS]
    alone, model = answers(built(llama), requests(prompts)), built(llama, batch_size=12)
    answers(model, requests(prompts))
    shapes = passes(model)
    check(answers(model, requests(prompts)), alone)
    assert len(shapes) == 1 and shapes[0][0] == 1
    longest = max(response.usage.input_tokens for response in alone.values())
    assert shapes[0][1] < 2.5 * longest  # 12 texts


def test_continuations_of_one_token_add_nothing_to_their_prompts(llama):
    model = built(llama, batch_size=9)
    one = [" a", " b", " c"]
    alone = answers(built(llama), requests(endings=one))
    answers(model, requests(endings=one))
    shapes = passes(model)
    check(answers(model, requests(endings=one)), alone)
    assert shapes == [(3, max(response.usage.input_tokens for response in alone.values()) - 1)]


def test_longer_texts_are_compared_again(llama):
    model = built(llama, batch_size=4)
    answers(model, requests(PROMPTS[:1]))
    shapes = passes(model)
    answers(model, requests(PROMPTS[:1]))
    assert len(shapes) == 1
    for count in (2, 1):  # both ways, then one
        shapes.clear()
        answers(model, requests([PROMPTS[0] * 4]))
        assert len(shapes) == count


@pytest.mark.parametrize("error", [None, ValueError("a mask of this form"), RuntimeError("out of memory")])
def test_a_model_with_other_values_is_asked_in_one_pass(llama, monkeypatch, error):
    inputs, model = answering.shared_inputs, built(llama, batch_size=12)
    alone = answers(built(llama), requests())

    def wrong(prefixes, loaded):
        if error is not None and (not error.args[0].startswith("out of") or prefixes.ids.shape[0] > 1):
            raise error
        made = inputs(prefixes, loaded)
        return made if error else {**made, "position_ids": made["position_ids"].flip(1)}

    monkeypatch.setattr(answering, "shared_inputs", wrong)
    check(answers(model, requests()), alone)
    monkeypatch.undo()
    shapes = passes(model)
    check(answers(model, requests()), alone)
    is_halved = isinstance(error, RuntimeError)
    assert (model.describe()["out_of_memory_batches"] > 0) is is_halved
    assert (shapes[0][0] == 12) is not is_halved


def test_texts_with_their_own_beginnings_share_nothing(llama):
    assert SharedPrefixes.of([([1, 2], [3]), ([4, 2], [3])], 0) is None
    assert SharedPrefixes.of([([1, 2], [3] * 20), ([1, 2], [4] * 20)], 0) is None
    model = built(llama, batch_size=3)
    shapes = passes(model)
    answers(model, requests(endings=ENDINGS[:1]))
    assert [rows for rows, _ in shapes] == [3]


def test_the_tree_of_a_batch():
    found = SharedPrefixes.of([([1, 2, 5], [3, 7, 8]), ([9, 9, 9, 9], [3]), ([1, 2, 5], [4, 6]), ([1, 2, 5], [3])], 0)
    assert found.ids.tolist() == [[1, 2, 5, 3, 7, 4], [9, 9, 9, 9, 0, 0]]
    assert found.positions.tolist() == [[0, 1, 2, 3, 4, 3], [0, 1, 2, 3, 0, 0]]
    assert found.ends.tolist() == [[6, 6, 6, 5, 5, 6], [4, 4, 4, 4, 5, 6]]
    assert found.columns.tolist() == [2, 3, 4, 5]
    assert found.places.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [0, 0], [0, 3], [0, 0]]


def test_a_row_has_a_widest_size():
    texts = [([1, 2, 3, 4], [number, *range(10, 14)]) for number in range(20, 60)]
    found = SharedPrefixes.of(texts, 0)
    rows, width = found.ids.shape
    assert rows > 1 and 8 < width <= 32
