"""Arguments of the engines: those of this package, and all others, which are passed to the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, ValidationError, field_validator

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_template import NO_TEMPLATE
from lmms_eval.models.remote import arguments as remote
from lmms_eval.models.remote.arguments import CommonArguments, wrong_values


class EngineSettings(CommonArguments):
    """Arguments that this package reads (see ``docs/models/vllm.md``). All others are for the engine."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)
    same: ClassVar[Mapping[str, str]] = {**remote.SAME, "model_path": "model", "max_length": "max_model_len"}
    """Other names of arguments."""

    model: str = Field(min_length=1)
    tensor_parallel_size: int = Field(default=1, ge=1)
    pipeline_parallel_size: int = Field(default=1, ge=1)
    data_parallel_size: int = Field(default=1, ge=1)
    gpu_memory_utilization: float = Field(default=0.8, gt=0, le=1)
    max_model_len: int | None = Field(default=None, ge=1)
    num_concurrent: int = Field(default=256, ge=1)
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    enable_thinking: bool | None = None
    add_generation_prompt: bool = True
    mm_processor_kwargs: dict[str, Any] = Field(default_factory=dict)
    use_audio_in_video: bool = False
    trust_remote_code: bool = False
    start_timeout: int = Field(default=1800, ge=1)
    image_format: Any = None
    image_quality: Any = None

    @field_validator("chat_template_kwargs", "mm_processor_kwargs", mode="before")
    @classmethod
    def _read_json(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """The arguments of the engine. Texts that contain JSON objects or lists are decoded."""
        return {name: decoded(value) for name, value in (self.model_extra or {}).items()}

    @property
    def template_options(self) -> dict[str, Any]:
        """The variables of the chat template."""
        thinking = {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}
        return {**self.chat_template_kwargs, **thinking}

    @property
    def devices(self) -> int:
        """The number of accelerators that the engine uses."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


def decoded(value: Any) -> Any:
    """Decode a text that begins like a JSON object or list; other values are returned unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise ModelError(f"an engine argument begins like JSON, but is not valid JSON: {error}") from error
    return value


def read_settings(given: Mapping[str, Any], backend: str) -> EngineSettings:
    """Check the arguments. Raises ``ModelError`` if a value is wrong, or the model is missing."""
    try:
        return EngineSettings(**given)
    except ValidationError as error:
        raise wrong_values(backend, error) from None


def read_template(value: str | None) -> str | None:
    """Return a chat template, or the content of the file that ``value`` names; ``NO_TEMPLATE`` and ``None`` unchanged.

    Raises:
        ModelError: the file cannot be read.
    """
    if not value or value == NO_TEMPLATE or "{" in value:
        return value
    try:
        return Path(value).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"chat_template names the file {value}, which cannot be read: {error}") from error
