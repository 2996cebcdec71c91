"""A language model of the smallest size that writes given texts by itself, so that any engine can load and run it.

A short training teaches it to answer each prompt with its text. It ends when the right token leads everywhere by a
margin that no rounding of an engine bridges: greedy answers are then the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples import build_tiny_model as tiny
from tests.models.scripted import CHAT, save_tokenizer

TEMPLATE = CHAT + "{% if enable_thinking %}<think>\n{% endif %}"
"""Opens a thought on demand."""
MARGIN = 4.0
"""Of a logit over all others."""
STEPS, RATE, LONGEST = 3000, 3e-3, 160
"""``LONGEST``: tokens of a text that does not end."""
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Lesson:
    """What the model writes after a question."""

    question: str
    text: str
    is_opened: bool = False
    """The template opens a thought."""
    ends: bool = True
    """The end token follows; otherwise the model goes on to write the text again."""


def save_thinker(folder: Path, lessons: Sequence[Lesson], special: tuple[str, ...] = ()) -> Path:
    """Train a model on the lessons and save it with its tokenizer.

    Args:
        folder: is made.
        lessons: all that the model can say.
        special: further special tokens of the tokenizer. ``<think>`` and its end are tokens too, no special ones.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = save_tokenizer(folder, TEMPLATE, special)
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.save_pretrained(folder)
    size = {
        "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(**{**tiny._text_options(tokenizer), **size}))
    _train(model, *_batch(tokenizer, lessons))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


def _batch(tokenizer: Any, lessons: Sequence[Lesson]) -> tuple[Any, Any]:
    """Token ids, padded on the right, and the ids to be learnt at each place."""
    import torch

    rows = []
    for lesson in lessons:
        message = {"role": "user", "content": lesson.question}
        rendered = tokenizer.apply_chat_template(
            [message], tokenize=False, add_generation_prompt=True, enable_thinking=lesson.is_opened
        )
        prompt = tokenizer.encode(rendered, add_special_tokens=False)
        text = tokenizer.encode(lesson.text, add_special_tokens=False)
        written = [*text, tokenizer.eos_token_id] if lesson.ends else (text * LONGEST)[:LONGEST]
        rows.append((prompt, written))
    width = max(len(prompt) + len(written) for prompt, written in rows)
    ids = torch.full((len(rows), width), tokenizer.pad_token_id)
    wanted = torch.full((len(rows), width), IGNORED)
    for row, (prompt, written) in enumerate(rows):
        end = len(prompt) + len(written)
        ids[row, :end] = torch.tensor(prompt + written)
        wanted[row, len(prompt) - 1 : end - 1] = torch.tensor(written)  # each place tells the next token
    return ids, wanted


def _train(model: Any, ids: Any, wanted: Any) -> None:
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    model.train()
    for step in range(STEPS):
        logits = model(input_ids=ids, use_cache=False).logits
        if step % 25 == 0 and _margin(logits.detach(), wanted) >= MARGIN:
            model.eval()
            return
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    raise AssertionError(f"after {STEPS} steps the margin is {_margin(logits.detach(), wanted):.2f}, not {MARGIN}")


def _margin(logits: Any, wanted: Any) -> float:
    """The least lead of a wanted token over all others."""
    places = wanted != IGNORED
    scores, targets = logits[places], wanted[places].unsqueeze(1)
    own = scores.gather(1, targets)
    others = scores.scatter(1, targets, float("-inf"))
    return float((own.squeeze(1) - others.max(1).values).min())
