"""Local models whose words are given: tiny ones that generate as real ones do, token by token, what a script says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples import build_tiny_model as tiny
from lmms_eval.models.hf.model import HuggingFace

CHAT = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}:{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "\n{% endfor %}assistant:"
)
THINKS = CHAT + "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}"
"""A template that opens a thought, as those of today's thinking models do."""

Script = Callable[[str], str]
"""From a prompt to all that the model writes; the end token follows."""


def save_tokenizer(folder: Path, template: str = CHAT, special: tuple[str, ...] = ()) -> Any:
    """Save a byte-level tokenizer to a folder: it writes any text. Returns it."""
    tokenizer = tiny._build_tokenizer(tiny._Architecture(special, "", None, {}, {}))
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_model(folder: Path, template: str = CHAT, special: tuple[str, ...] = ()) -> Path:
    """Save a text model of the smallest size with that tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = save_tokenizer(folder, template, special)
    model = LlamaForCausalLM(LlamaConfig(**tiny._text_options(tokenizer)))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


def forced(tokenizer: Any, script: Script, width: int) -> Any:
    """A logits processor that lets each row write its script, found by its prompt of ``width`` columns."""
    import torch
    from transformers import LogitsProcessor

    class Forced(LogitsProcessor):
        def __init__(self) -> None:
            self.ids: dict[str, list[int]] = {}

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            wanted = torch.full_like(scores, -1e6)
            for row, ids in enumerate(input_ids.tolist()):
                prompt = tokenizer.decode(ids[:width], skip_special_tokens=False)
                if prompt not in self.ids:
                    self.ids[prompt] = tokenizer.encode(script(prompt), add_special_tokens=False)
                written = self.ids[prompt]
                place = len(ids) - width
                wanted[row, written[place] if place < len(written) else tokenizer.eos_token_id] = 0.0
            return wanted

    return Forced()


def scripted(script: Script) -> type[HuggingFace]:
    """The back end ``hf`` with those words."""

    class Scripted(HuggingFace):
        from lmms_eval.models.families.table import FAMILIES

        profile = FAMILIES["hf_text"]

        def generate(self, **arguments: Any) -> Any:
            from transformers import LogitsProcessorList

            force = forced(self.loaded.tokenizer, script, arguments["input_ids"].shape[1])
            return super().generate(**arguments, logits_processor=LogitsProcessorList([force]))

    return Scripted
