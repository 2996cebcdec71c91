"""Write a tiny vision-language model with random weights, for trying out ``--model hf`` without a download.

    python examples/build_tiny_model.py FOLDER [--architecture idefics3] [--seed 0]
    python -m lmms_eval --model hf --model_args pretrained=FOLDER --tasks ...

Its answers are nonsense, so it only serves tests, demonstrations and dry runs of a pipeline. Weights, tokenizer and
processor depend on ``(architecture, seed)`` only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import UnknownNameError

PAD, BOS, EOS, UNK = "<pad>", "<s>", "<end>", "<unk>"
IMAGE, FAKE_IMAGE, GLOBAL_IMAGE = "<image>", "<fake_token_around_image>", "<global-img>"
VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
MAX_POSITIONS = 32768
VOCABULARY = 400
END_WEIGHT = 1.3
"""The weight of the end token relative to the others, so that some answers end by themselves but most do not."""

_WORDS = (
    "the of and a to in is it that was for on are as with his they at be this from have or by one had not but what "
    "all were when we there can an your which their said if do will each about how up out them then she many some so "
    "these would other into has more her two like him see time could no make than first been its who now people my "
    "made over did down only way find use may water long little very after words called just where most know get "
    "through back much before go good new write our used me man too any day same right look think also around "
    "another came come work three word must because does part even place well such here take why things help put "
    "years different away again off went old number great tell men say small every found still between name should "
    "answer picture image question option yes no red green blue left right top bottom A B C D 0 1 2 3 4 5 6 7 8 9"
)
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] | capitalize }}:"
    "{% if message['content'] is string %} {{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE_PLACEHOLDER"
    "{% elif part['type'] == 'text' %} {{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}END_OF_TURN\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


class _Architecture(Struct, frozen=True):
    """One architecture: its special tokens, its picture placeholder, and the parts of its folder."""

    special: tuple[str, ...]
    placeholder: str
    build: Callable[[Any], Any]
    """Builds the model for a tokenizer."""
    image_settings: dict[str, Any]
    processor: dict[str, Any]
    """The settings of the image processor and of the whole processor. A processor object would need torchvision."""


def build_tiny_vlm(folder: str | Path, *, architecture: str = "idefics3", seed: int = 0) -> Path:
    """Write a loadable model folder of less than a megabyte.

    Args:
        folder: created if it does not exist; files of an earlier build are overwritten.
        architecture: ``idefics3`` (pictures split into tiles; the default), ``qwen2_vl`` (dynamic resolution,
            multimodal rotary positions) or ``llava`` (fixed resolution).
        seed: the seed of the random weights.

    Raises:
        UnknownNameError: no such architecture.
    """
    if architecture not in _ARCHITECTURES:
        raise UnknownNameError("tiny architecture", architecture, _ARCHITECTURES)
    plan = _ARCHITECTURES[architecture]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _build_tokenizer(plan)
    model = _randomised(lambda: plan.build(tokenizer), tokenizer, seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    image_settings = {"processor_class": plan.processor["processor_class"], **plan.image_settings}
    for name, content in (("preprocessor_config.json", image_settings), ("processor_config.json", plan.processor)):
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return folder


def _build_tokenizer(plan: _Architecture) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = [PAD, BOS, EOS, UNK, *plan.special]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([_WORDS], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=UNK,
        additional_special_tokens=list(plan.special),
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _TEMPLATE.replace("IMAGE_PLACEHOLDER", plan.placeholder).replace("END_OF_TURN", EOS)
    return tokenizer


def _randomised(build: Callable[[], Any], tokenizer: Any, seed: int) -> Any:
    """Set random weights with a clear most likely token, and allow only readable tokens in answers."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build().to(torch.float32).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0.0, 1.5 / parameter[0].numel() ** 0.5)
            readable = torch.tensor([_is_readable(tokenizer, token) for token in range(len(tokenizer))])
            head = model.get_output_embeddings().weight
            head[: len(tokenizer)][~readable] = 0.0
            head[len(tokenizer) :] = 0.0
            head[tokenizer.eos_token_id] *= END_WEIGHT
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.bos_token_id = tokenizer.bos_token_id
    return model


def _is_readable(tokenizer: Any, token: int) -> bool:
    if token in tokenizer.all_special_ids:
        return bool(token == tokenizer.eos_token_id)
    text: str = tokenizer.decode([token])
    return text.isascii() and text.isprintable()


def _text_options(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": MAX_POSITIONS,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _vision_options(image_size: int) -> dict[str, Any]:
    return {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": image_size,
        "patch_size": 8,
    }


def _idefics3_model(tokenizer: Any) -> Any:
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    config = Idefics3Config(
        text_config={"model_type": "llama", **_text_options(tokenizer)},
        vision_config=_vision_options(32),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    return Idefics3ForConditionalGeneration(config)


def _qwen2_vl_model(tokenizer: Any) -> Any:
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    token = tokenizer.convert_tokens_to_ids
    config = Qwen2VLConfig(
        text_config={
            **_text_options(tokenizer),
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]},
            "tie_word_embeddings": False,
        },
        vision_config={"depth": 2, "embed_dim": 16, "num_heads": 2, "hidden_size": 32, "mlp_ratio": 2, "patch_size": 8},
        image_token_id=token(IMAGE_PAD),
        video_token_id=token(VIDEO_PAD),
        vision_start_token_id=token(VISION_START),
        vision_end_token_id=token(VISION_END),
        tie_word_embeddings=False,
    )
    return Qwen2VLForConditionalGeneration(config)


def _llava_model(tokenizer: Any) -> Any:
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    config = LlavaConfig(
        text_config={"model_type": "llama", **_text_options(tokenizer)},
        vision_config={"model_type": "clip_vision_model", "projection_dim": 16, **_vision_options(32)},
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=16,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
    )
    return LlavaForConditionalGeneration(config)


_ARCHITECTURES = {
    "idefics3": _Architecture(
        (FAKE_IMAGE, IMAGE, GLOBAL_IMAGE),
        IMAGE,
        _idefics3_model,
        {
            "image_processor_type": "Idefics3ImageProcessor",
            "size": {"longest_edge": 64},
            "max_image_size": {"longest_edge": 32},
            "do_image_splitting": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
        },
        {"processor_class": "Idefics3Processor", "image_seq_len": 4},
    ),
    "qwen2_vl": _Architecture(
        (VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD),
        VISION_START + IMAGE_PAD + VISION_END,
        _qwen2_vl_model,
        {
            "image_processor_type": "Qwen2VLImageProcessor",
            "min_pixels": 32 * 32,
            "max_pixels": 64 * 64,
            "patch_size": 8,
            "temporal_patch_size": 2,
            "merge_size": 2,
        },
        {"processor_class": "Qwen2VLProcessor"},
    ),
    "llava": _Architecture(
        (IMAGE,),
        IMAGE,
        _llava_model,
        {
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": 32},
            "crop_size": {"height": 32, "width": 32},
        },
        {
            "processor_class": "LlavaProcessor",
            "patch_size": 8,
            "num_additional_image_tokens": 1,
            "vision_feature_select_strategy": "default",
            "image_token": IMAGE,
        },
    ),
}
ARCHITECTURES = tuple(_ARCHITECTURES)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a tiny vision-language model with random weights.")
    parser.add_argument("folder", help="folder to write; created if absent")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default=ARCHITECTURES[0])
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    arguments = parser.parse_args()
    folder = build_tiny_vlm(arguments.folder, architecture=arguments.architecture, seed=arguments.seed)
    print(f"{folder}: a random {arguments.architecture} model; its answers are nonsense")


if __name__ == "__main__":
    main()
