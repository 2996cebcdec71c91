"""Tokenizer, processor files and configuration of the embedded model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from labels import HUES, KINDS, SIGN_WORDS, STEPS
from megabench_demo_tasks import TASKS

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
SPECIAL = (PAD, END, USER, ASSISTANT, VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD)
PATCH, MERGE = 8, 2
MIN_PIXELS, MAX_PIXELS = 32 * 32, 120 * 120
MAX_POSITIONS = 8192
WIDTH = 128
_SPACE = "\u0120"
"""The character for a space in byte-level pieces."""
TEMPLATE = (
    "{% for message in messages %}<|ROLE|>{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
).replace("ROLE", "{{ 'assistant' if message['role'] == 'assistant' else 'user' }}")
PHRASES = (
    "A solved case of this task:\nExample 1:\n", "<image>", "<video>", "\nExample Question: ", "\nExample Response:\n",
    "\n<image>\nQuestion: ", "<image>\nQuestion: ", "<video>\nQuestion: ", "\n<video>\nQuestion: ", "\nQuestion: ",
    "Answer: ",
    '\nNow solve the new question below and end your reply with a line "Answer: " followed by your answer.\n',
    "\nNow solve the new question below and end your reply with one JSON object with the same keys.\n",
    "How many circles are there?", "How many shapes are", "What colour is the", "What lies in the middle?",
    "What is written here?", "Which shape is cut out?", "What is the result?", "Which colours are there?",
    "In which order do they stand?", "Give the numbers of the pictures,", " youngest plant first.",
    " oldest plant first.", "What is there?", "Where are the squares?", "Where is the circle?", "Where is the",
    ", as seen from the", "Follow the growing dots.", "Which way does it go, left or right?", "Is it red or blue?",
    "Does the clip start as in the picture? Answer yes or no.", "How many times as high as the", " bar is the",
    "How high is the", "What kind of shape is the", "Which word is it?", "Build a tower of", ". Build a tower of",
    "Press either of the", "Press the", " (A) a", " (B) a", " (C) a", "Which shape is first?",
    "Which shape is second?", "Which shape is third?", "Which shape is fourth?", "Which shape is fifth?",
    "Which shape is last?", " [video start]", "[video end] Question: ", ", ", "', '", "['", "']", "{'", "': ", ", '",
    "), (", ")]", "(stack", "(unstack", ")\n(stack", "<point>", "</point>", '{"count": "', '", "boxes": "[(', ')]"}',
    '{"axis": "', '", "side": "', '"}',
)  # fmt: skip
"""Fixed pieces of prompts and replies that are one token each, in addition to the tasks' descriptions."""
WORDS = (
    *HUES, *KINDS, *SIGN_WORDS, "one", "buttons", "button", "bar", "lies", "on", "horizontal", "vertical", "left",
    "right", "above", "below", "up", "down", "yes", "no",
)  # fmt: skip
"""Words that are one token each, with and without a space before, and with a capital."""


def build_tokenizer() -> Any:
    """Build a tokenizer that uses the fewest pieces of words, twentieths and bytes; fixed phrases are single tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    forms = [form for word in WORDS for form in (" " + word, word, word.capitalize())]
    numbers = [f"{step / STEPS:g}" for step in range(1, STEPS)]
    pieces = [piece.replace(" ", _SPACE) for piece in dict.fromkeys([*forms, *numbers])]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    scored = [(name, 0.0) for name in SPECIAL] + [(piece, -1.0) for piece in pieces] + [(one, -2.0) for one in alphabet]
    core = Tokenizer(models.Unigram(scored, unk_id=0))
    words = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+|0\.\d+|\d| ?[^\sA-Za-z0-9]+|\s"), "isolated")
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(name, normalized=False) for name in SPECIAL])
    phrases = [*dict.fromkeys([*(task.description + "\n" for task in TASKS), *PHRASES])]
    core.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=END, additional_special_tokens=list(SPECIAL[2:]),
        model_max_length=MAX_POSITIONS, clean_up_tokenization_spaces=False,
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def build_model(tokenizer: Any) -> Any:
    """Build a Qwen3-VL of under a million parameters, randomly initialised."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    token = tokenizer.convert_tokens_to_ids
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": WIDTH, "intermediate_size": 192, "num_hidden_layers": 4,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
            "max_position_embeddings": MAX_POSITIONS,
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True,
            },
            "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": token(END), "pad_token_id": token(PAD),
        },
        vision_config={
            "depth": 4, "hidden_size": 80, "intermediate_size": 192, "num_heads": 4, "out_hidden_size": WIDTH,
            "patch_size": PATCH, "temporal_patch_size": 1, "spatial_merge_size": MERGE,
            "num_position_embeddings": 16 * 16, "deepstack_visual_indexes": [],
        },
        image_token_id=token(IMAGE_PAD), video_token_id=token(VIDEO_PAD), vision_start_token_id=token(VISION_START),
        vision_end_token_id=token(VISION_END), tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3VLForConditionalGeneration(config)
    settings = model.generation_config
    settings.eos_token_id, settings.pad_token_id, settings.bos_token_id = token(END), token(PAD), None
    return model


def save_processor(tokenizer: Any, folder: Path) -> None:
    """Write tokenizer and processor files in the form of published models; torchvision is not needed."""
    tokenizer.save_pretrained(folder)
    image = {
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}, "patch_size": PATCH,
        "temporal_patch_size": 1, "merge_size": MERGE, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
    }  # fmt: skip
    for name, content in (
        ("preprocessor_config.json", image),
        ("processor_config.json", {"processor_class": "Qwen3VLProcessor"}),
    ):
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
