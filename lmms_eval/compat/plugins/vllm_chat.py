"""The base class of chat plugins whose model runs in vLLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.compat.plugins import vllm
from lmms_eval.compat.plugins.delegating import Asked, options_of, read_messages, takes
from lmms_eval.compat.plugins.vllm import DEFAULT_MODEL
from lmms_eval.protocol import ChatMessages


@dataclass(frozen=True, slots=True)
class VllmChatSettings:
    """Arguments of ``VLLM`` in the family's order; any other goes to the engine. See ``VllmSettings``."""

    model: str = DEFAULT_MODEL
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float = 0.8
    batch_size: int = 1
    max_frame_num: int = 768
    trust_remote_code: bool = True
    chat_template: str | None = None
    max_pixels: int = 1605632
    """Of a video's frame."""
    min_image_pixels: int = 28
    fps: float | None = None
    nframes: int = 32
    max_new_tokens: int = 4096
    disable_log_stats: bool = field(default=False, kw_only=True)
    image_first: bool = field(default=False, kw_only=True)


class VLLM(vllm.VLLM):
    """The chat form; a subclass may override ``make_one_request``. Arguments: the fields of ``VllmChatSettings``."""

    is_simple = False
    _settings_kind = VllmChatSettings

    @takes(VllmChatSettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)
        self.max_pixels, self.fps, self.nframes = self._settings.max_pixels, self._settings.fps, self._settings.nframes

    def make_one_request(self, request: Instance) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Make the messages of a chat completion, frames as pictures, and the arguments of ``SamplingParams``.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        video: dict[str, Any] = {"max_pixels": self.max_pixels}
        video |= {"nframes": self.nframes} if self.fps is None else {"fps": self.fps, "max_frames": self.max_frame_num}
        messages = ChatMessages(messages=self._messages(request).messages)
        sampling = self._build_sampling_params_dict(options_of(request, self.is_simple))
        return messages.to_openai_messages(video_kwargs=video), sampling

    def _asked(self, instance: Instance) -> Asked:
        messages, sampling = self.make_one_request(instance)
        conversation = read_messages(messages)
        return Asked(lambda: conversation, vllm.with_stops(sampling, options_of(instance, self.is_simple)))
