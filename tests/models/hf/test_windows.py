"""Likelihoods of whole texts, against a forward pass for each token."""

import pytest
import torch
from msgspec.structs import replace
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from lmms_eval.models.hf.answering import _log_probabilities
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import COMMON, Profile
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.windows import tokens_of_each
from tests.cases import for_each
from tests.models.whole_texts import TEXTS, log_likelihood, rolling

from .support import answers, ask, build

LENGTH = 32


def write_text_model(folder, tiny, model):
    """A folder of a text model with the tokenizer of the tiny one."""
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tiny, tmp_path_factory):
    """A model with learned positions, of which it has no more than a window."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=400, n_positions=LENGTH, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    return write_text_model(tmp_path_factory.mktemp("gpt2"), tiny, GPT2LMHeadModel(config))


def built(folder, **arguments):
    return ModelRegistry().build(
        "hf_text", {"pretrained": str(folder), "device": "cpu", "dry_requests": False, "chat_template": "none",
                    **arguments}
    )[0]  # fmt: skip


def check(model, length, texts=TEXTS):
    got = answers(model, [rolling(number, text) for number, text in enumerate(texts)])
    for number, text in enumerate(texts):
        direct = log_likelihood(model.loaded.model, model.loaded.tokenizer, text, length)
        assert got[number].error is None
        assert got[number].loglikelihood == pytest.approx(direct, rel=1e-6, abs=1e-5)
        assert not got[number].is_loss
    return got


@for_each("family", ["idefics3", "qwen2_vl", "llava"])
@for_each("size", [1, 5])
def test_the_likelihood_of_a_text_is_that_of_its_tokens(tiny_folders, family, size):
    got = check(build(tiny_folders[family], batch_size=size, max_length=LENGTH), LENGTH)
    assert got[0].loglikelihood == 0.0 and got[0].is_greedy
    tokens = got[3].usage
    assert tokens.input_tokens > 3 * LENGTH and tokens.output_tokens == 0
    assert got[3].latency > 0 and got[3].batch == ()


def test_rows_of_a_batch_begin_at_the_first_position(gpt2):
    check(built(gpt2, batch_size=6), LENGTH)


def test_the_window_is_the_models_context(gpt2):
    short, whole = built(gpt2, max_length=8), built(gpt2)
    check(short, 8, TEXTS[2:3])
    text = [rolling(0, TEXTS[2])]
    assert answers(short, text)[0].loglikelihood != answers(whole, text)[0].loglikelihood


def test_windows_share_batches_within_the_limits(tiny, monkeypatch):
    model = build(tiny, batch_size=8, max_length=LENGTH, max_batch_tokens=3 * LENGTH)
    shapes, last_logits = [], model._answerer._last_logits

    def noted(inputs, count):
        shapes.append(inputs["input_ids"].shape)
        return last_logits(inputs, count)

    monkeypatch.setattr(model._answerer, "_last_logits", noted)
    got = answers(model, [rolling(0, TEXTS[3] * 3), ask(1, "What?"), rolling(2, TEXTS[2])])
    assert got[1].text
    assert max(rows for rows, _ in shapes) == 3 and all(rows * width <= 3 * LENGTH for rows, width in shapes)


def test_a_batch_that_does_not_fit_is_halved(tiny, monkeypatch):
    model, whole = build(tiny, batch_size=8, max_length=LENGTH), build(tiny, max_length=LENGTH)
    last_logits = model._answerer._last_logits

    def small(inputs, count):
        if inputs["input_ids"].shape[0] > 2:
            raise RuntimeError("out of memory")
        return last_logits(inputs, count)

    monkeypatch.setattr(model._answerer, "_last_logits", small)
    texts = [rolling(number, TEXTS[3]) for number in range(3)]
    got, wanted = answers(model, texts), answers(whole, texts)
    assert [got[number].loglikelihood for number in range(3)] == pytest.approx(
        [wanted[number].loglikelihood for number in range(3)]
    )
    assert model.describe()["out_of_memory_batches"] > 0


def test_a_window_that_fails_alone_fails_its_text(tiny, monkeypatch):
    model = build(tiny, batch_size=4, max_length=LENGTH)
    monkeypatch.setattr(model._answerer, "_last_logits", lambda inputs, count: 1 / 0)
    got = answers(model, [rolling(0, TEXTS[3]), rolling(1, "")])
    assert got[0].error.kind == "internal" and "ZeroDivisionError" in got[0].error.message
    assert got[1].loglikelihood == 0.0


def test_the_greedy_text_is_greedy(gpt2):
    model = built(gpt2, batch_size=2)
    ids = [model.loaded.tokenizer.bos_token_id]
    with torch.inference_mode():
        for _ in range(5):
            ids.append(int(model.loaded.model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    text = model.loaded.tokenizer.decode(ids[1:])
    got = answers(model, [rolling(0, text), rolling(1, "A B")])
    is_same = model.loaded.tokenizer(text, add_special_tokens=False)["input_ids"] == ids[1:]
    assert got[0].is_greedy is is_same and got[1].is_greedy is False


def test_of_equal_scores_only_the_first_token_is_greedy():
    scores = torch.tensor([1.0, 3.0, 3.0, 0.0])
    values, greedy = _log_probabilities(
        scores.expand(1, 4, 4), torch.tensor([[0, at] for at in range(4)]), [[0, 1, 2, 3]]
    )
    assert greedy == [False, True, False, False]
    assert values == pytest.approx(torch.log_softmax(scores, dim=-1).tolist())


def test_lower_precision_notes_the_requests_of_a_batch(tiny):
    model = build(tiny, batch_size=8, max_length=LENGTH, dtype="bfloat16")
    got = answers(model, [rolling(0, TEXTS[2]), rolling(1, TEXTS[5])])
    assert set(got[0].batch) == set(got[1].batch) == {"task/0", "task/1"}
    assert answers(model, [rolling(0, TEXTS[5])])[0].batch == (), "its own windows alone"


def test_a_tokenizer_without_start_and_end(gpt2, monkeypatch):
    model = built(gpt2)
    monkeypatch.setattr("lmms_eval.models.hf.encode.prefix_token", lambda tokenizer: None)
    got = answers(model, [rolling(0, "a")])
    assert got[0].error.kind == "bad_request" and "needs a start or end token" in got[0].error.message


def test_a_model_with_an_encoder_answers_no_whole_texts(tiny, tmp_path):
    config = T5Config(vocab_size=400, d_model=16, d_ff=16, d_kv=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    folder = write_text_model(tmp_path / "t5", tiny, T5ForConditionalGeneration(config))

    class Seq2Seq(HuggingFace):
        profile = Profile(
            name="seq2seq", loader="AutoModelForSeq2SeqLM", parts=("tokenizer",), media=frozenset(), aliases=COMMON
        )

    model = build(folder, Seq2Seq, chat_template="none")
    assert "loglikelihood_rolling" not in model.kinds


def test_the_embedded_model():
    model = build("embedded", dtype="float32", batch_size=3, max_length=LENGTH)
    check(model, LENGTH, TEXTS[2:4])


def scored(number, text, continuation, moves_blanks=False):
    return replace(ask(number, text, kind="loglikelihood", continuation=continuation), moves_blanks=moves_blanks)


def of_pair(model, before, after):
    """The log probability of tokens after others."""
    with torch.inference_mode():
        scores = model.loaded.model(input_ids=torch.tensor([before + after])).logits[0].log_softmax(-1)
    return sum(float(scores[len(before) + place - 1, token]) for place, token in enumerate(after))


def test_a_continuation_without_a_prompt_follows_the_start_token(gpt2):
    model = built(gpt2, batch_size=3)
    encode = model.loaded.tokenizer.encode
    got = answers(model, [scored(0, "", " red"), scored(1, "What is", " red or"), scored(2, "", "A")])
    start = model.loaded.tokenizer.bos_token_id
    assert got[0].loglikelihood == pytest.approx(of_pair(model, [start], encode(" red")), abs=1e-5)
    assert got[1].loglikelihood == pytest.approx(of_pair(model, encode("What is"), encode(" red or")), abs=1e-5)
    assert got[2].loglikelihood == pytest.approx(of_pair(model, [start], encode("A")), abs=1e-5)


def test_white_space_before_a_continuation_is_scored_if_the_task_wants_it(gpt2):
    model = built(gpt2, batch_size=2)
    encode = model.loaded.tokenizer.encode
    got = answers(model, [scored(0, "What is ", "red", True), scored(1, "What is ", "red"), scored(2, "  ", "A", True)])
    assert got[0].loglikelihood == pytest.approx(of_pair(model, encode("What is"), encode(" red")), abs=1e-5)
    whole = encode("What is red")
    added = len(whole) - len(encode("What is "))
    assert got[1].loglikelihood == pytest.approx(of_pair(model, whole[:-added], whole[-added:]), abs=1e-5)
    start = model.loaded.tokenizer.bos_token_id
    assert got[2].loglikelihood == pytest.approx(of_pair(model, [start], encode("  A")), abs=1e-5)


def test_likelihoods_do_not_depend_on_padding(gpt2):
    requests = [scored(number, "What is it " * (1 + number), " yes") for number in range(4)]
    alone, together = answers(built(gpt2), requests), answers(built(gpt2, batch_size=4), requests)
    values = [[found[number].loglikelihood for number in range(4)] for found in (alone, together)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_one_batch_of_different_prompts_of_a_text_model(gpt2):
    model = built(gpt2, batch_size=4)
    encode, start = model.loaded.tokenizer.encode, model.loaded.tokenizer.bos_token
    prompts = ["What is", f"{start}What is", "What is", "What is it " * LENGTH]
    after = [" red", " red or blue", "", " red"]
    got = answers(model, [scored(number, *pair) for number, pair in enumerate(zip(prompts, after, strict=True))])
    for number in (0, 1):
        pair = encode(prompts[number]), encode(after[number])
        assert got[number].loglikelihood == pytest.approx(of_pair(model, *pair), abs=1e-5)
        assert got[number].usage.input_tokens == sum(map(len, pair))
    assert "the continuation '' adds no token to the prompt" in got[2].error.message
    assert f"the model takes {LENGTH} at most" in got[3].error.message


@for_each("special", [True, False])
def test_texts_have_the_tokens_of_a_call(tiny, special):
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    texts = ["", "the red square", " it", "<s>User: a\n\nb", "caf\u00e9 \u4f60\u597d " * 9]
    tokenizer(texts, padding=True, truncation=True, max_length=4)  # the back end keeps what was asked for
    found = tokens_of_each(tokenizer, texts, special)
    assert found == tokenizer(texts, add_special_tokens=special)["input_ids"]

    class Own(type(tokenizer)):
        def __call__(self, *given, **named):
            return {"input_ids": [[7]]}

    tokenizer.__class__ = Own
    assert tokens_of_each(tokenizer, texts[1:2], special) == [[7]]
