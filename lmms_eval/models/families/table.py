"""The families that consist of a profile only, one row each, by the names that their users know.

Besides the type of the checkpoint, a row contains the published checkpoint in the architecture's documentation in
transformers, and the names of image processors' options. The pixel limits are those that Qwen's users are used to.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.models.chat_template import NO_TEMPLATE
from lmms_eval.models.hf.options import COMMON, FRAMES, VISUAL_OPTIONS, Converter, Profile, flag, positive_int

if TYPE_CHECKING:
    from lmms_eval.models.hf.model import HuggingFace

_QWEN_PIXELS = {"min_pixels": 256 * 28 * 28, "max_pixels": 2048 * 28 * 28}
_TEXT_AND_NEWLINE = (
    "{% for message in messages %}{% for part in message['content'] %}{% if part['type'] == 'text' %}"
    "{{ part['text'] }}{% endif %}{% endfor %}{{ '\\n' }}{% endfor %}"
)
"""Fuyu's prompt. Its processor adds the picture before it, and the start of the answer after it."""
FAMILY_ALIASES: Mapping[str, tuple[str, ...]] = {"llava_hf": ("llava",)}
"""Aliases of rows."""


def _vision(
    name: str,
    *model_types: str,
    checkpoint: str,
    defaults: Mapping[str, Any] | None = None,
    packages: tuple[str, ...] = (),
    **extra: Converter,
) -> Profile:
    """Return the profile of a family that takes text, pictures and video."""
    return Profile(
        name=name,
        packages=packages,
        model_types=model_types,
        aliases={**COMMON, **FRAMES},
        defaults={"pretrained": checkpoint, **(defaults or {})},
        extra=extra,
    )


def _one_picture(
    name: str, model_type: str, checkpoint: str, chat_template: str, packages: tuple[str, ...] = ()
) -> Profile:
    """Return the profile of a family without chat: one picture, which its processor places, and a text."""
    return Profile(
        name=name,
        media=frozenset({"image"}),
        most_pictures=1,
        packages=packages,
        model_types=(model_type,),
        aliases=COMMON,
        defaults={"pretrained": checkpoint, "chat_template": chat_template},
        without=("max_num_frames", "fps", "interleave_visuals"),
    )


def _sound(name: str, model_type: str, loader: str, architecture: str, checkpoint: str) -> Profile:
    """Return the profile of a family that takes text and sound."""
    return Profile(
        name=name,
        loader=loader,
        architecture=architecture,
        parts=("tokenizer", "feature_extractor"),
        media=frozenset({"audio"}),
        model_types=(model_type,),
        aliases=COMMON,
        defaults={"pretrained": checkpoint},
        without=VISUAL_OPTIONS,
    )


def _thinker(name: str, model_type: str, loader: str, architecture: str, checkpoint: str) -> Profile:
    """Return the profile of a model that takes all media and also speaks. Only its writing part is loaded."""
    return Profile(
        name=name,
        loader=loader,
        architecture=architecture,
        parts=("tokenizer", "image_processor", "feature_extractor"),
        media=frozenset({"image", "video", "audio"}),
        model_types=(model_type, f"{model_type}_thinker"),
        aliases={**COMMON, **FRAMES},
        defaults={"pretrained": checkpoint},
    )


_PROFILES = (
    _vision("aria", "aria", checkpoint="rhymes-ai/Aria", split_image=flag),
    _sound(
        "audio_flamingo_3",
        "audioflamingo3",
        "AudioFlamingo3ForConditionalGeneration",
        "an Audio Flamingo 3 model",
        "nvidia/audio-flamingo-3-hf",
    ),
    _one_picture("fuyu", "fuyu", "adept/fuyu-8b", _TEXT_AND_NEWLINE, ("torchvision",)),
    _vision(
        "gemma3",
        "gemma3",
        checkpoint="google/gemma-3-4b-it",
        do_pan_and_scan=flag,
        pan_and_scan_max_num_crops=positive_int,
    ),
    _vision("glm4v", "glm4v", "glm4v_moe", "glm46v", checkpoint="zai-org/GLM-4.1V-9B-Thinking"),
    Profile(
        name="hf_text",
        loader="AutoModelForCausalLM",
        architecture="a causal language model",
        parts=("tokenizer",),
        media=frozenset(),
        aliases=COMMON,
        without=VISUAL_OPTIONS,
    ),
    _vision("idefics2", "idefics2", checkpoint="HuggingFaceM4/idefics2-8b"),
    _vision("idefics3", "idefics3", checkpoint="HuggingFaceM4/Idefics3-8B-Llama3", do_image_splitting=flag),
    _one_picture("instructblip", "instructblip", "Salesforce/instructblip-flan-t5-xl", NO_TEMPLATE),
    _vision(
        "internvl_hf",
        "internvl",
        checkpoint="OpenGVLab/InternVL3-1B-hf",
        crop_to_patches=flag,
        min_patches=positive_int,
        max_patches=positive_int,
    ),
    _vision(
        "lfm2_5_vl",
        "lfm2_vl",
        checkpoint="LiquidAI/LFM2-VL-1.6B",
        packages=("torchvision",),
        do_image_splitting=flag,
        min_tiles=positive_int,
        max_tiles=positive_int,
    ),
    _vision(
        "llama4_scout",
        "llama4",
        checkpoint="meta-llama/Llama-4-Scout-17B-16E-Instruct",
        packages=("torchvision",),
        max_patches=positive_int,
    ),
    _vision("llama_vision", "mllama", checkpoint="meta-llama/Llama-3.2-11B-Vision-Instruct"),
    _vision("llava_hf", "llava", "llava_next", "llava_onevision", "vipllava", checkpoint="llava-hf/llava-1.5-7b-hf"),
    _vision("llava_onevision", "llava_onevision", checkpoint="llava-hf/llava-onevision-qwen2-7b-ov-hf"),
    Profile(  # Without torchvision, text and sound are answered and requests with pictures refused.
        name="phi4_multimodal",
        loader="AutoModelForCausalLM",
        architecture="a Phi-4-multimodal model",
        parts=("tokenizer", "image_processor", "audio_processor"),
        without_torchvision=("image_processor",),
        media=frozenset({"image", "video", "audio"}),
        model_types=("phi4_multimodal",),
        sounds_alone=True,
        aliases={**COMMON, **FRAMES},
        defaults={"pretrained": "microsoft/Phi-4-multimodal-instruct"},
    ),
    _vision(
        "plm",
        "perception_lm",
        checkpoint="facebook/Perception-LM-1B",
        packages=("timm", "torchvision"),
        max_num_tiles=positive_int,
    ),
    _sound(
        "qwen2_audio",
        "qwen2_audio",
        "Qwen2AudioForConditionalGeneration",
        "a Qwen2-Audio model",
        "Qwen/Qwen2-Audio-7B-Instruct",
    ),
    _thinker(
        "qwen2_5_omni",
        "qwen2_5_omni",
        "Qwen2_5OmniThinkerForConditionalGeneration",
        "a Qwen2.5-Omni model",
        "Qwen/Qwen2.5-Omni-7B",
    ),
    _vision("qwen2_vl", "qwen2_vl", checkpoint="Qwen/Qwen2-VL-7B-Instruct"),
    _vision("qwen2_5_vl", "qwen2_5_vl", checkpoint="Qwen/Qwen2.5-VL-7B-Instruct", defaults=_QWEN_PIXELS),
    _vision("qwen3_5", "qwen3_5", "qwen3_5_moe", checkpoint="Qwen/Qwen3.5-27B", defaults=_QWEN_PIXELS),
    _thinker(
        "qwen3_omni",
        "qwen3_omni_moe",
        "Qwen3OmniMoeThinkerForConditionalGeneration",
        "a Qwen3-Omni model",
        "Qwen/Qwen3-Omni-30B-A3B-Instruct",
    ),
    _vision("qwen3_vl", "qwen3_vl", "qwen3_vl_moe", checkpoint="Qwen/Qwen3-VL-4B-Instruct", defaults=_QWEN_PIXELS),
    _vision(
        "smolvlm", "smolvlm", "idefics3", checkpoint="HuggingFaceTB/SmolVLM2-2.2B-Instruct", do_image_splitting=flag
    ),
    _vision(
        "video_llava",
        "video_llava",
        checkpoint="LanguageBind/Video-LLaVA-7B-hf",
        defaults={"max_num_frames": 8},
    ),
    _vision("videollama3", "video_llama_3", checkpoint="lkhl/VideoLLaMA3-2B-Image-HF"),
)
FAMILIES: Mapping[str, Profile] = {profile.name: profile for profile in _PROFILES}
"""Profiles by model name."""


@functools.cache
def wrapper(name: str) -> type[HuggingFace]:
    """Return the class of a family: ``hf`` with the family's profile.

    Raises:
        KeyError: no row of the table has this name.
    """
    from lmms_eval.models.hf.model import HuggingFace  # its imports are slow, and listings do not need it

    profile = FAMILIES[name]
    described = f"``hf`` for {', '.join(profile.model_types) or profile.architecture}."
    return type(name, (HuggingFace,), {"__module__": __name__, "__doc__": described, "profile": profile})


def __getattr__(name: str) -> type[HuggingFace]:
    """Return the class of a family, which the registry finds by its path (``table:gemma3``)."""
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return wrapper(name)
