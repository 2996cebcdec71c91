"""The families that consist of a profile only, one row each, by the names that their users know.

Besides the type of the checkpoint, a row contains the published checkpoint in the architecture's documentation in
transformers, and the names of image processors' options. The pixel limits are those that Qwen's users are used to.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.models.chat_template import NO_TEMPLATE
from lmms_eval.models.hf.options import COMMON, VISUAL_OPTIONS, Profile, flag, positive_int

if TYPE_CHECKING:
    from lmms_eval.models.hf.model import HuggingFace

_QWEN_PIXELS = {"min_pixels": 256 * 28 * 28, "max_pixels": 2048 * 28 * 28}
_TEXT_AND_NEWLINE = (
    "{% for message in messages %}{% for part in message['content'] %}{% if part['type'] == 'text' %}"
    "{{ part['text'] }}{% endif %}{% endfor %}{{ '\\n' }}{% endfor %}"
)
"""Fuyu's prompt. Its processor adds the picture before it, and the start of the answer after it."""


_ONE_PICTURE: Mapping[str, Any] = {
    "media": frozenset({"image"}),
    "most_pictures": 1,
    "aliases": COMMON,
    "without": ("max_num_frames", "fps", "interleave_visuals"),
}
"""Families without chat: one picture, which their processor places, and a text."""
_SOUND: Mapping[str, Any] = {
    "parts": ("tokenizer", "feature_extractor"),
    "media": frozenset({"audio"}),
    "aliases": COMMON,
    "without": VISUAL_OPTIONS,
}
"""Families that take text and sound."""
_THINKER: Mapping[str, Any] = {
    "parts": ("tokenizer", "image_processor", "feature_extractor"),
    "media": frozenset({"image", "video", "audio"}),
    "extra": {"use_audio_in_video": flag},
}
"""Models that take all media and also speak. Only their writing part is loaded."""


def _family(
    name: str, *model_types: str, checkpoint: str, defaults: Mapping[str, Any] | None = None, **fields: Any
) -> Profile:
    """Return the profile of a family, by default one that takes text, pictures and video."""
    return Profile(
        name=name, model_types=model_types, defaults={"pretrained": checkpoint, **(defaults or {})}, **fields
    )


_PROFILES = (
    _family("aria", "aria", checkpoint="rhymes-ai/Aria", extra={"split_image": flag}),
    _family(
        "audio_flamingo_3",
        "audioflamingo3",
        checkpoint="nvidia/audio-flamingo-3-hf",
        loader="AudioFlamingo3ForConditionalGeneration",
        architecture="an Audio Flamingo 3 model",
        **_SOUND,
    ),
    _family(
        "fuyu",
        "fuyu",
        checkpoint="adept/fuyu-8b",
        defaults={"chat_template": _TEXT_AND_NEWLINE},
        packages=("torchvision",),
        **_ONE_PICTURE,
    ),
    _family(
        "gemma3",
        "gemma3",
        checkpoint="google/gemma-3-4b-it",
        extra={"do_pan_and_scan": flag, "pan_and_scan_max_num_crops": positive_int},
    ),
    _family("glm4v", "glm4v", "glm4v_moe", "glm46v", checkpoint="zai-org/GLM-4.1V-9B-Thinking"),
    Profile(
        name="hf_text",
        loader="AutoModelForCausalLM",
        architecture="a causal language model",
        parts=("tokenizer",),
        media=frozenset(),
        aliases=COMMON,
        without=VISUAL_OPTIONS,
    ),
    _family("idefics2", "idefics2", checkpoint="HuggingFaceM4/idefics2-8b"),
    _family("idefics3", "idefics3", checkpoint="HuggingFaceM4/Idefics3-8B-Llama3", extra={"do_image_splitting": flag}),
    _family(
        "instructblip",
        "instructblip",
        checkpoint="Salesforce/instructblip-flan-t5-xl",
        defaults={"chat_template": NO_TEMPLATE},
        **_ONE_PICTURE,
    ),
    _family(
        "internvl_hf",
        "internvl",
        checkpoint="OpenGVLab/InternVL3-1B-hf",
        extra={"crop_to_patches": flag, "min_patches": positive_int, "max_patches": positive_int},
    ),
    _family(
        "lfm2_5_vl",
        "lfm2_vl",
        checkpoint="LiquidAI/LFM2-VL-1.6B",
        packages=("torchvision",),
        extra={"do_image_splitting": flag, "min_tiles": positive_int, "max_tiles": positive_int},
    ),
    _family(
        "llama4_scout",
        "llama4",
        checkpoint="meta-llama/Llama-4-Scout-17B-16E-Instruct",
        packages=("torchvision",),
        extra={"max_patches": positive_int},
    ),
    _family("llama_vision", "mllama", checkpoint="meta-llama/Llama-3.2-11B-Vision-Instruct"),
    _family("llava_hf", "llava", "llava_next", "llava_onevision", "vipllava", checkpoint="llava-hf/llava-1.5-7b-hf"),
    _family("llava_onevision", "llava_onevision", checkpoint="llava-hf/llava-onevision-qwen2-7b-ov-hf"),
    _family(  # Without torchvision, text and sound are answered and requests with pictures refused.
        "phi4_multimodal",
        "phi4_multimodal",
        checkpoint="microsoft/Phi-4-multimodal-instruct",
        loader="AutoModelForCausalLM",
        architecture="a Phi-4-multimodal model",
        parts=("tokenizer", "image_processor", "audio_processor"),
        without_torchvision=("image_processor",),
        media=frozenset({"image", "video", "audio"}),
        sounds_alone=True,
    ),
    _family(
        "plm",
        "perception_lm",
        checkpoint="facebook/Perception-LM-1B",
        packages=("timm", "torchvision"),
        extra={"max_num_tiles": positive_int},
    ),
    _family(
        "qwen2_audio",
        "qwen2_audio",
        checkpoint="Qwen/Qwen2-Audio-7B-Instruct",
        loader="Qwen2AudioForConditionalGeneration",
        architecture="a Qwen2-Audio model",
        **_SOUND,
    ),
    _family(
        "qwen2_5_omni",
        "qwen2_5_omni",
        "qwen2_5_omni_thinker",
        checkpoint="Qwen/Qwen2.5-Omni-7B",
        loader="Qwen2_5OmniThinkerForConditionalGeneration",
        architecture="a Qwen2.5-Omni model",
        **_THINKER,
    ),
    _family("qwen2_vl", "qwen2_vl", checkpoint="Qwen/Qwen2-VL-7B-Instruct"),
    _family("qwen2_5_vl", "qwen2_5_vl", checkpoint="Qwen/Qwen2.5-VL-7B-Instruct", defaults=_QWEN_PIXELS),
    _family("qwen3_5", "qwen3_5", "qwen3_5_moe", checkpoint="Qwen/Qwen3.5-27B", defaults=_QWEN_PIXELS),
    _family(
        "qwen3_omni",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        checkpoint="Qwen/Qwen3-Omni-30B-A3B-Instruct",
        loader="Qwen3OmniMoeThinkerForConditionalGeneration",
        architecture="a Qwen3-Omni model",
        **_THINKER,
    ),
    _family("qwen3_vl", "qwen3_vl", "qwen3_vl_moe", checkpoint="Qwen/Qwen3-VL-4B-Instruct", defaults=_QWEN_PIXELS),
    _family(
        "smolvlm",
        "smolvlm",
        "idefics3",
        checkpoint="HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        extra={"do_image_splitting": flag},
    ),
    _family("video_llava", "video_llava", checkpoint="LanguageBind/Video-LLaVA-7B-hf", defaults={"max_num_frames": 8}),
    _family("videollama3", "video_llama_3", checkpoint="lkhl/VideoLLaMA3-2B-Image-HF"),
)
FAMILIES: Mapping[str, Profile] = {profile.name: profile for profile in _PROFILES}
"""Profiles by model name."""


@functools.cache
def wrapper(name: str) -> type[HuggingFace]:
    """Return the class of a family: ``hf`` with its profile. Raises ``KeyError`` if no row has this name."""
    from lmms_eval.models.hf.model import HuggingFace  # its imports are slow, and listings do not need it

    profile = FAMILIES[name]
    described = f"``hf`` for {', '.join(profile.model_types) or profile.architecture}."
    return type(name, (HuggingFace,), {"__module__": __name__, "__doc__": described, "profile": profile})


def __getattr__(name: str) -> type[HuggingFace]:
    """Return the class of a family, which the registry finds by its path (``table:gemma3``)."""
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return wrapper(name)
