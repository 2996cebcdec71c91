"""The peculiarities of one family of transformers: loader, parts, media, and its users' argument names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.models import argument_names
from lmms_eval.models.argument_names import other_names

Converter = Callable[[Any], Any]
FRAMES = other_names("max_num_frames", argument_names.FRAMES)
"""Names by which families call the most frames of a video."""
COMMON = {"torch_dtype": "dtype", "attn_impl": "attn_implementation", "use_flash_attention_2": "attn_implementation"}
"""Names that every family's users may type; ``use_flash_attention_2`` is a flag."""
VISUAL_OPTIONS = (
    "max_num_frames",
    "fps",
    "min_pixels",
    "max_pixels",
    "total_pixels",
    "max_image_size",
    "interleave_visuals",
)
PROMPT_OPTIONS = (
    "system_prompt",
    "add_system_prompt",
    "chat_template",
    "enable_thinking",
    "add_generation_prompt",
    "reasoning_prompt",
    "max_length",
)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One family. The defaults are those of ``hf``: any image-text-to-text model."""

    name: str = "hf"
    loader: str = "AutoModelForImageTextToText"
    """Class of transformers whose ``from_pretrained`` gives the model."""
    architecture: str = "an image-text-to-text architecture"
    """Kind of checkpoint that it takes, for messages."""
    parts: tuple[str, ...] = ("tokenizer", "image_processor")
    """Attributes that the processor must have; ``tokenizer`` alone means that there is no processor at all."""
    without_torchvision: tuple[str, ...] = ()
    """Parts that may be left out where only torchvision is lacking; requests that need them are then refused."""
    packages: tuple[str, ...] = ()
    """Packages that it needs and of which transformers says so only when a picture comes, or not by their names."""
    media: frozenset[str] = frozenset({"image", "video"})
    """Message parts beside text: ``image``, ``video``, ``audio``."""
    most_pictures: int | None = None
    """Pictures of a request at most; ``None``: any number."""
    model_types: tuple[str, ...] = ()
    """``model_type`` of the checkpoints that this family takes; empty: any."""
    chat: bool = True
    """Prompts go through a chat template."""
    sounds_alone: bool = False
    """Padding a sound changes what the model hears: prompts with sound share no batch."""
    aliases: Mapping[str, str] = field(default_factory=lambda: {**COMMON, **FRAMES})
    """Argument names that the family's users know, to fields of ``HFOptions``."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields of ``HFOptions`` where the family's users leave them out, if others than ``hf``'s."""
    extra: Mapping[str, Converter] = field(default_factory=dict)
    """Further arguments with their converters; they go to the image processor, or where the family's encoder says."""

    without: tuple[str, ...] = ()
    """Fields of ``HFOptions`` that mean nothing to this family; giving one is an error."""

    def signature(self, options: type[Any]) -> inspect.Signature:
        """Of the model class: the fields of ``options``, then the family's own names."""
        known = list(inspect.signature(options).parameters.values())
        kept = [
            parameter.replace(default=self.defaults.get(parameter.name, parameter.default))
            for parameter in known
            if parameter.name not in ("extra", *self.without)
        ]
        own = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in (*self.aliases, *self.extra)
        ]
        return inspect.Signature([*kept, *own])
