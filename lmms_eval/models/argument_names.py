"""Names of model arguments: of the same thing under several names, and those that say nothing to any back end here.

One table for all back ends. An argument of the family's wrappers that means something here is an argument of the back
ends that can honour it, or another name of one; the others are accepted with a warning (``Model.ignored_arguments``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

FRAMES = ("max_num_frames", "max_frames_num", "max_frame_num", "max_frames", "num_frames", "nframes")
"""The most frames of a video."""
MODEL = ("model", "pretrained", "model_version")
"""The model itself, of back ends that are no ``hf``."""

IGNORED: Mapping[str, str] = {
    "allow_remote": "documents may name the public network, and what --allow_media adds",
    "continual_mode": "every answer is journaled in the run's folder, and the same command goes on from there",
    "conv_template": "prompts go through the model's own chat template; chat_template=FILE gives another one",
    "customized_config": "the checkpoint's own configuration holds",
    "fail_on_missing": "a file that is missing always fails its sample, which is counted",
    "image_token": "the model's processor knows its own placeholders",
    "interleave": "texts and media are sent in the order that the task gives them",
    "low_cpu_mem_usage": "weights are always loaded without a second copy",
    "mm_spatial_pool_*": "the checkpoint's own configuration says how features are pooled",
    "modality": "every request says itself which media it has",
    "model_name": "the checkpoint says what it is; the model to load or to ask is pretrained=... or model=...",
    "num_gpus": "--processes N starts a process for each GPU; device_map=auto divides one model among them",
    "response_persistent_folder": "answers are kept below --output_path",
    "simple_prompt": "prompts are those of the task, rendered by the model's chat template",
    "temperature": "options of generation are the task's, and those of --gen_kwargs: temperature=N stands there",
    "token_strategy": "the model's processor places the tokens of pictures",
    "truncate_context": "nothing is cut off: a prompt that is too long fails and is counted",
    "truncation": "nothing is cut off: a prompt that is too long fails and is counted",
    "use_custom_video_loader": "videos are always read by this package, the same way for every model",
    "video_decode_backend": "videos are always decoded by this package, the same way for every model",
}
"""Patterns of arguments of the family's wrappers that say nothing here, each with the reason."""
IGNORED_LOCALLY: Mapping[str, str] = {
    **IGNORED,
    "max_tokens": "options of generation are the task's, and those of --gen_kwargs: max_new_tokens=N stands there",
}
"""The same of back ends without a default length of answers."""


def other_names(first: str, names: Iterable[str]) -> dict[str, str]:
    """Map the other ``names`` of an argument to its ``first`` name."""
    return {name: first for name in names if name != first}
