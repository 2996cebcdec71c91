"""Arguments that back ends share: synonyms, arguments of the family's wrappers without effect here, texts in files.

The tables apply to all back ends. Arguments without effect are accepted with a warning (``Model.ignored_arguments``).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmms_eval.api.generation import RequestLimits
from lmms_eval.errors import ModelError

FRAMES = ("max_num_frames", "max_frames_num", "max_frame_num", "max_frames", "num_frames", "nframes")
"""Names of the maximum number of frames of a video."""
MODEL = ("model", "pretrained", "model_version")
"""Names of the model, for all back ends except ``hf``."""
RATE = ("fps", "video_fps")
"""Names of the frames per second of a video."""


def limits_as_arguments(limits: RequestLimits, most_frames: str, rate: str) -> dict[str, int | float | str]:
    """Return the limits of a request by the names that a back end's arguments have."""
    names = {"max_frames": most_frames, "fps": rate}
    return {names.get(name, name): value for name, value in limits.stated.items()}


IGNORED: Mapping[str, str] = {
    "allow_remote": "documents may refer to the public network, and to what --allow_media adds",
    "continual_mode": "every answer is journaled in the run's folder, and the same command resumes from there",
    "conv_template": "prompts go through the model's own chat template; chat_template=FILE gives another one",
    "customized_config": "the checkpoint's own configuration applies",
    "fail_on_missing": "a file that is missing always fails its sample, which is counted",
    "image_token": "the model's processor knows its own placeholders",
    "interleave": "texts and media are sent in the order that the task gives them",
    "low_cpu_mem_usage": "weights are always loaded without a second copy",
    "mm_spatial_pool_*": "the checkpoint's own configuration defines how features are pooled",
    "modality": "every request states which media it has",
    "model_name": "the checkpoint defines its type; name the model with pretrained=... or model=...",
    "num_gpus": "--processes N starts a process for each GPU; device_map=auto divides one model among them",
    "response_persistent_folder": "answers are kept below --output_path",
    "simple_prompt": "prompts are those of the task, rendered by the model's chat template",
    "temperature": "generation options come from the task and --gen_kwargs: set temperature=N there",
    "token_strategy": "the model's processor places the tokens of pictures",
    "truncate_context": "nothing is cut off: a prompt that is too long fails and is counted",
    "truncation": "nothing is cut off: a prompt that is too long fails and is counted",
    "use_custom_video_loader": "videos are always read by this package, the same way for every model",
    "video_decode_backend": "videos are always decoded by this package, the same way for every model",
}
"""Patterns of arguments of the family's wrappers that have no effect here, each with the reason."""
IGNORED_LOCALLY: Mapping[str, str] = {
    **IGNORED,
    "max_tokens": "generation options come from the task and --gen_kwargs: set max_new_tokens=N there",
}
"""The same for back ends without a default length of answers."""


def other_names(first: str, names: Iterable[str]) -> dict[str, str]:
    """Map the other ``names`` of an argument to its ``first`` name."""
    return {name: first for name in names if name != first}


def text_or_file(value: str | None, failure: str = "hf: cannot read {}") -> str | None:
    """Return the content of the file that ``value`` names, or else ``value`` itself.

    Raises:
        ModelError: the file cannot be read as UTF-8. The message begins with ``failure``, which gets the file's name.
    """
    if not value or "\n" in value:
        return value
    try:
        return Path(value).read_text(encoding="utf-8") if Path(value).is_file() else value
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # no file has such a name
            return value
        raise ModelError(f"{failure.format(value)}: {error}") from error


def read_system_prompt(value: str | None) -> str | None:
    """Return the system prompt, or the content of the file that ``value`` names. Raises ``ModelError``."""
    return text_or_file(value, "system_prompt names the file {}, which cannot be read as UTF-8")
