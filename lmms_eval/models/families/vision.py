"""Families that take text, pictures and video."""

from __future__ import annotations

from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import flag, positive_int
from lmms_eval.models.hf.profile import COMMON, FRAMES, Converter, Profile

_NAMES = {**COMMON, **FRAMES}


def _profile(name: str, *model_types: str, **extra: Converter) -> Profile:
    return Profile(name=name, model_types=model_types, aliases=_NAMES, extra=extra)


class Qwen2VL(HuggingFace):
    """Qwen2-VL: pictures in their own resolution between ``min_pixels`` and ``max_pixels``."""

    profile = _profile("qwen2_vl", "qwen2_vl")


class Qwen25VL(HuggingFace):
    """Qwen2.5-VL."""

    profile = _profile("qwen2_5_vl", "qwen2_5_vl")


class Qwen3VL(HuggingFace):
    """Qwen3-VL, dense or with experts."""

    profile = _profile("qwen3_vl", "qwen3_vl", "qwen3_vl_moe")


class LlavaOneVision(HuggingFace):
    """LLaVA-OneVision in the form of transformers: one picture is tiled, several are taken whole."""

    profile = _profile("llava_onevision", "llava_onevision")


class LlavaHF(HuggingFace):
    """LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision in the form of transformers."""

    profile = _profile("llava_hf", "llava", "llava_next", "llava_onevision", "vipllava")


class InternVLHF(HuggingFace):
    """InternVL 2.5 and later in the form of transformers; ``max_patches`` tiles of a picture at most."""

    profile = _profile(
        "internvl_hf", "internvl", crop_to_patches=flag, min_patches=positive_int, max_patches=positive_int
    )


class Idefics3(HuggingFace):
    """Idefics3; ``do_image_splitting=false`` takes pictures whole."""

    profile = _profile("idefics3", "idefics3", do_image_splitting=flag)


class SmolVLM(HuggingFace):
    """SmolVLM (published with the architecture of Idefics3) and SmolVLM2."""

    profile = _profile("smolvlm", "smolvlm", "idefics3", do_image_splitting=flag)


class Gemma3(HuggingFace):
    """Gemma 3; ``do_pan_and_scan=true`` adds crops of pictures that are far from square."""

    profile = _profile("gemma3", "gemma3", do_pan_and_scan=flag, pan_and_scan_max_num_crops=positive_int)
