"""Checkpoints that arguments change: adapters, differences of weights, GGUF files, quantised weights."""

import importlib.util
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from tests.cases import for_each
from tests.models.whole_texts import TEXTS, rolling

from .support import answers, ask, build


def values(model):
    """Log probabilities and an answer: what the weights decide."""
    requests = [
        rolling(0, TEXTS[3]),
        ask(1, "What is", kind="loglikelihood", continuation=" red"),
        ask(2, "What is", kind="loglikelihood", continuation=" the picture"),
    ]
    return [found.loglikelihood for _, found in sorted(answers(model, requests).items())]


def text_model(folder, **arguments):
    given = {"device": "cpu", "dtype": "float32", "dry_requests": False, "batch_size": 2}
    return ModelRegistry().build("hf_text", {"pretrained": str(folder), **given, **arguments})[0]


@pytest.fixture(scope="module")
def llama(tiny, tmp_path_factory):
    """A text model with the tokenizer and template of the tiny one."""
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=400, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.2, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    return folder


def write_adapter(model, folder):
    """A LoRA adapter with random weights; returns the model merged with it."""
    peft = pytest.importorskip("peft", reason="peft is not installed")
    torch.manual_seed(1)
    wrapped = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    wrapped.save_pretrained(folder)
    return wrapped.merge_and_unload()


def test_an_adapter_equals_the_model_merged_with_it(llama, tmp_path):
    merged, adapter = tmp_path / "merged", tmp_path / "adapter"
    shutil.copytree(llama, merged)
    write_adapter(AutoModelForCausalLM.from_pretrained(llama), adapter).save_pretrained(merged)
    with_adapter = text_model(llama, peft=str(adapter))
    found = values(with_adapter)
    assert found == pytest.approx(values(text_model(merged)), rel=1e-6, abs=1e-5)
    assert abs(found[0] - values(text_model(llama))[0]) > 1
    plain = text_model(llama).identity()
    assert "peft" not in plain and with_adapter.identity() != plain


def test_an_adapter_of_a_model_with_pictures(tiny, tmp_path):
    merged, adapter = tmp_path / "merged", tmp_path / "adapter"
    shutil.copytree(tiny, merged)
    write_adapter(AutoModelForImageTextToText.from_pretrained(tiny), adapter).save_pretrained(merged)
    found = values(build(tiny, peft=str(adapter), batch_size=2))
    assert found == pytest.approx(values(build(merged)), rel=1e-6, abs=1e-5)
    assert found != pytest.approx(values(build(tiny)), rel=1e-6, abs=1e-5)


def test_an_adapter_of_another_model(llama, tiny, tmp_path):
    adapter = tmp_path / "adapter"
    write_adapter(AutoModelForImageTextToText.from_pretrained(tiny), adapter)
    with pytest.raises(ModelError, match=r"peft=.* (does not fit|cannot be used with)"):
        text_model(llama, peft=str(adapter))


def test_an_adapter_is_no_model(llama, tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="give its base model as pretrained, and this folder as peft"):
        text_model(tmp_path)


@for_each(
    ("folder", "reason"), [("nothing/at/all", "does not exist"), ("empty", "holds no adapter: it lacks adapter_config")]
)
def test_a_folder_without_an_adapter(llama, tmp_path, folder, reason):
    pytest.importorskip("peft", reason="peft is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=reason):
        text_model(llama, peft=str(tmp_path / folder))


def test_differences_are_added_to_the_weights(llama, tmp_path):
    model = AutoModelForCausalLM.from_pretrained(llama)
    torch.manual_seed(2)
    difference, whole = tmp_path / "delta", tmp_path / "whole"
    shutil.copytree(llama, whole)
    added = AutoModelForCausalLM.from_pretrained(llama)
    with torch.no_grad():
        for own, other in zip(model.parameters(), added.parameters(), strict=True):
            other.copy_(torch.randn_like(other) * 0.02)
            own += other
    added.save_pretrained(difference)
    model.save_pretrained(whole)
    changed = text_model(llama, delta=str(difference))
    assert values(changed) == pytest.approx(values(text_model(whole)), rel=1e-6, abs=1e-5)
    assert changed.identity() != text_model(llama).identity()


def test_differences_of_another_model(llama, tmp_path):
    config = LlamaConfig(vocab_size=400, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                         num_attention_heads=2, num_key_value_heads=2)  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"delta=.* does not fit .*: weights differ in name or shape \(model"):
        text_model(llama, delta=str(tmp_path))
    with pytest.raises(ModelError, match=r"delta=.*nowhere does not exist"):
        text_model(llama, delta=str(tmp_path / "nowhere"))


def write_gguf(folder, file):
    """The model of a folder as a GGUF file, in single precision."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    config, writer = model.config, gguf.GGUFWriter(str(file), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    tokens = [tokenizer.convert_ids_to_tokens(number) for number in range(config.vocab_size)]
    tokens = [token if token is not None else f"<unused{number}>" for number, token in enumerate(tokens)]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges([])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weight in model.state_dict().items():
        count = next((count for part, count in heads.items() if part in name), None)
        if count is not None:  # GGUF stores the rotated halves of a head in turn
            weight = weight.reshape(count, 2, -1, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(found, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_equals_its_checkpoint(llama, tmp_path):
    write_gguf(llama, tmp_path / "model.gguf")
    model = text_model(tmp_path, gguf_file="model.gguf", chat_template="none")
    ids = torch.tensor([[1, 5, 9, 30, 200, 7]])
    with torch.inference_mode():
        found = model.loaded.model(input_ids=ids).logits
        wanted = AutoModelForCausalLM.from_pretrained(llama)(input_ids=ids).logits
    assert torch.allclose(found, wanted, atol=1e-5)
    assert all(value is not None for value in values(model))
    assert model.identity()["gguf_file"] == "model.gguf"
    with pytest.raises(ModelError, match=r"lacks gguf_file=other.gguf; it holds model.gguf"):
        text_model(tmp_path, gguf_file="other.gguf", chat_template="none")


def test_a_gguf_file_is_for_texts(tiny):
    with pytest.raises(ModelError, match="gguf_file holds a model of texts: use --model hf_text"):
        build(tiny, gguf_file="model.gguf")


@for_each("name", ["load_in_4bit", "load_in_8bit"])
def test_quantised_weights(llama, name):
    if importlib.util.find_spec("bitsandbytes") is None:
        with pytest.raises(ModelError, match=r"needs the package bitsandbytes: pip install 'lmms_eval\[bitsandbytes"):
            text_model(llama, **{name: "true"})
        return
    found, wanted = values(text_model(llama, **{name: "true"})), values(text_model(llama))
    assert found != wanted and found == pytest.approx(wanted, rel=0.2)


@for_each(("name", "package"), [("peft", "peft"), ("gguf_file", "gguf")])
def test_a_package_that_is_missing(llama, monkeypatch, name, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ModelError, match=rf"(needs the package|cannot import) {package}"):
        text_model(llama, **{name: str(llama) if name == "peft" else "x.gguf"})


@for_each(
    ("given", "message"),
    [
        ({"load_in_4bit": True, "load_in_8bit": True}, "load_in_4bit and load_in_8bit exclude each other"),
        ({"peft": "a/b", "delta": "c/d"}, "peft and delta exclude each other"),
        ({"delta": "c/d", "load_in_8bit": "true"}, "delta and load_in_8bit exclude each other"),
        ({"gguf_file": "x.gguf", "load_in_4bit": "1"}, "gguf_file and load_in_4bit exclude each other"),
        ({"load_in_4bit": "perhaps"}, "load_in_4bit='perhaps' is not valid: give true or false"),
        ({"parallelize": "true", "device_map": "balanced"}, "contradict each other"),
    ],
    ids=str,
)
def test_arguments_that_exclude_each_other(llama, given, message):
    with pytest.raises(ModelError, match=message):
        text_model(llama, **given)


def test_parallelize_is_the_automatic_device_map(llama):
    assert text_model(llama, parallelize="true").options.device_map == "auto"
    assert text_model(llama, parallelize="false").options.device_map is None
