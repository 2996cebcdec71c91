"""The common arguments of back ends of remote models, and their checks."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lmms_eval.errors import ModelError
from lmms_eval.models import argument_names
from lmms_eval.models.argument_names import other_names
from lmms_eval.models.remote.media import Frames
from lmms_eval.utils.launch import own_part

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions
    from lmms_eval.media.image import Bounds

T = TypeVar("T", bound="RemoteArguments")
ENVIRONMENT = {"LMMS_IMAGE_ENCODE_FORMAT": "image_format", "LMMS_IMAGE_JPEG_QUALITY": "image_quality"}
"""Environment variables of defaults."""
SAME = {
    **other_names("model", argument_names.MODEL),
    **other_names("max_frames_num", argument_names.FRAMES),
    "max_tokens": "max_new_tokens",
    "num_cpus": "num_concurrent",
    "fps": "video_fps",
}
"""Synonyms of arguments, from the interfaces that these back ends unify."""
TOOLS_ARGUMENTS = ("mcp_server_path", "tools")
_FORM = (
    "max_frames_num", "video_fps", "max_pixels", "min_pixels", "total_pixels", "max_image_size", "max_image_bytes",
    "max_size_in_mb", "image_format", "image_quality",
)  # fmt: skip
ANSWER_ARGUMENTS = ("max_new_tokens", *_FORM, "reasoning_effort")
"""The common arguments that can change an answer."""
MEDIA_ARGUMENTS = (
    *_FORM, "min_frames", "frame_rule", "pass_video", "pass_video_url", "timestamps", "use_audio_in_video",
)  # fmt: skip
"""Arguments and derived properties that determine how media are sent. Not all back ends have all of them."""


class CommonArguments(BaseModel):
    """The common arguments of back ends for servers and for engines in this process."""

    model_config = ConfigDict(defer_build=True)  # only the class of one back end is built
    max_new_tokens: int = Field(default=1024, ge=1)
    max_frames_num: int = Field(default=32, ge=1)
    min_frames: int | None = Field(default=None, ge=1)
    frame_rule: Literal["qwen-vl-utils", "inner", "by-rate", "middle"] | None = None
    system_prompt: str | None = None
    video_fps: float | None = Field(default=None, gt=0)
    max_pixels: int | None = Field(default=None, ge=1)
    min_pixels: int | None = Field(default=None, ge=1)
    total_pixels: int | None = Field(default=None, ge=1)
    max_image_size: int | None = Field(default=None, ge=1)
    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None

    @property
    def bounds(self) -> Bounds:
        """The bounds on the sizes of pictures and frames."""
        from lmms_eval.media.image import Bounds

        return Bounds(self.max_pixels, self.max_image_size, self.min_pixels)

    @property
    def frames(self) -> Frames:
        """The frames to read of a video."""
        frames = Frames(self.max_frames_num, self.video_fps, total_pixels=self.total_pixels, least=self.min_frames or 1)
        return frames.with_rule(self.frame_rule, self.bounds)


class RemoteArguments(CommonArguments):
    """The common arguments with their defaults. ``docs/models/openai.md`` describes them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True, defer_build=True
    )
    backend: ClassVar[str] = ""
    """The name of the back end in messages."""
    same: ClassVar[Mapping[str, str]] = SAME
    """Synonyms of arguments."""

    model: str = ""
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    timeout: float = Field(default=600.0, gt=0)
    num_concurrent: int = Field(default=32, ge=1)
    max_retries: int = Field(default=5, ge=0)
    retry_backoff_s: float = Field(default=1.0, ge=0)
    max_reply_mb: int = Field(default=64, ge=1)
    max_frames_num: int = Field(default=10, ge=1)
    max_image_bytes: int = Field(default=20_000_000, ge=1024)
    max_size_in_mb: float | None = Field(default=None, gt=0)
    image_format: Literal["PNG", "JPEG", "WEBP"] | None = None
    image_quality: int = Field(default=85, ge=1, le=100)
    reasoning_effort: str | None = None
    adaptive_concurrency: bool = False
    adaptive_min_concurrency: int = 1
    adaptive_max_concurrency: int = 128
    adaptive_target_latency_s: float | None = None
    adaptive_increase_step: float = 0.1
    adaptive_decrease_factor: float = 0.7
    adaptive_failure_threshold: float = 0.05

    @field_validator("image_format", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return {"JPG": "JPEG"}.get(value.upper(), value.upper()) if isinstance(value, str) else value

    def wire_options(self, takes_webp: bool) -> WireOptions:
        """Return the encoding of pictures and their maximum size.

        Lossless WebP takes half the time of PNG, but is the default only for servers that certainly support it
        (``takes_webp``).
        """
        from lmms_eval.media.encode import WireOptions

        most = math.inf if self.max_size_in_mb is None else self.max_size_in_mb * 2**20
        return WireOptions(
            max_bytes=int(min(self.max_image_bytes, most)),
            bounds=self.bounds,
            image_format=self.image_format or ("WEBP" if takes_webp else "PNG"),
            quality=self.image_quality,
        )

    def of_this_process(self, environment: Mapping[str, str]) -> Self:
        """Return the arguments of one process of ``--processes``, with its part of the total concurrency."""
        names = ("num_concurrent", "adaptive_max_concurrency", "adaptive_min_concurrency")
        return self.model_copy(update={name: own_part(environment, getattr(self, name)) for name in names})

    @property
    def ceiling(self) -> int:
        """The maximum number of open requests."""
        if not self.adaptive_concurrency:
            return self.num_concurrent
        return max(1, self.adaptive_min_concurrency, self.adaptive_max_concurrency)


class ServiceArguments(RemoteArguments):
    """The arguments of back ends that also send batches or read streams. The limits of batches are OpenAI's."""

    stream: bool = False
    idle_timeout: float = Field(default=300.0, gt=0)
    batch: bool = False
    batch_max_requests: int = Field(default=50_000, ge=1, le=50_000)
    batch_max_mb: float = Field(default=200.0, gt=0, le=200)
    batch_poll_s: float = Field(default=60.0, gt=0)
    batch_timeout: float = Field(default=26 * 3600.0, gt=0)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.stream and self.batch:
            raise ValueError("a batch has no streams: leave out one of stream and batch")
        return self


def read_arguments(kind: type[T], given: Mapping[str, Any], environment: Mapping[str, str]) -> T:
    """Check the arguments. Messages do not show values, as one of them may be a key.

    ``environment`` contains defaults for some arguments (``ENVIRONMENT``). Raises ``ModelError`` if a name is unknown,
    a value is wrong, two names of one argument disagree, or the model is missing.
    """
    merged = _merge(kind, given)
    for variable, name in ENVIRONMENT.items():
        if environment.get(variable):
            merged.setdefault(name, environment[variable])
    try:
        arguments = kind(**merged)
    except ValidationError as error:
        raise wrong_values(kind.backend, error) from None
    if not arguments.model:
        raise ModelError(f"the {kind.backend} back end needs the model's name on the server: --model_args model=NAME")
    return arguments


def wrong_values(backend: str, error: ValidationError) -> ModelError:
    """Return an error that names the wrong arguments, without their values, as one of them may be a key."""
    problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
    return ModelError(f"model arguments of the {backend} back end: {problems}")


def _merge(kind: type[RemoteArguments], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are set, each under its first name."""
    for name in given:
        if name in TOOLS_ARGUMENTS and name not in kind.model_fields:
            raise ModelError(
                f"the {kind.backend} back end does not support tools: use {name} with chat completions (openai or "
                "litellm); most services have an address for them as well (base_url)"
            )
        if kind.same.get(name, name) not in kind.model_fields:
            known = sorted({*kind.model_fields, *kind.same})
            close = difflib.get_close_matches(name, [*known, *argument_names.IGNORED], n=3, cutoff=0.5)
            answer = f"did you mean {', '.join(close)}?" if close else f"it takes: {', '.join(known)}"
            raise ModelError(f"the {kind.backend} back end has no model argument {name!r}; {answer}")
    return first_names(given, kind.same)


def first_names(given: Mapping[str, Any], same: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments that are set, each under its first name. ``same`` maps other names to it.

    Raises:
        ModelError: two names of one argument have different values.
    """
    merged: dict[str, Any] = {}
    for name, value in given.items():
        target = same.get(name, name)
        if value is None:
            continue
        if merged.get(target, value) != value:
            raise ModelError(f"model argument {target!r} is given twice with different values, once as {name!r}")
        merged[target] = value
    return merged
