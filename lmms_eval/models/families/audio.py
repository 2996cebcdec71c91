"""Families that take sound in a chat."""

from __future__ import annotations

from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.profile import COMMON, FRAMES, VISUAL_OPTIONS, Profile


class Qwen2Audio(HuggingFace):
    """Qwen2-Audio: text and any number of sounds, of 30 seconds at most each."""

    profile = Profile(
        name="qwen2_audio",
        loader="Qwen2AudioForConditionalGeneration",
        architecture="a Qwen2-Audio model",
        parts=("tokenizer", "feature_extractor"),
        media=frozenset({"audio"}),
        model_types=("qwen2_audio",),
        aliases=COMMON,
        without=VISUAL_OPTIONS,
    )


class Phi4Multimodal(HuggingFace):
    """Phi-4-multimodal in the form of transformers: text, pictures, video and sound.

    Its image part needs torchvision. Without it, text and sound are answered and requests with pictures refused.
    """

    profile = Profile(
        name="phi4_multimodal",
        loader="AutoModelForCausalLM",
        architecture="a Phi-4-multimodal model",
        parts=("tokenizer", "image_processor", "audio_processor"),
        without_torchvision=("image_processor",),
        media=frozenset({"image", "video", "audio"}),
        model_types=("phi4_multimodal",),
        sounds_alone=True,
        aliases={**COMMON, **FRAMES},
    )
