"""The base class of chat plugins that use OpenAI-compatible servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmms_eval.compat.plugins import openai
from lmms_eval.compat.plugins.delegating import takes


@dataclass(frozen=True, slots=True)
class ChatSettings(openai.OpenAISettings):
    """Arguments of ``OpenAICompatible``, including those of the chat form."""

    pass_video_url: bool = False
    enable_thinking_kwarg: bool | None = None


class OpenAICompatible(openai.OpenAICompatible):
    """The chat form.

    Args:
        positional, keywords: the fields of ``ChatSettings``; other keywords cause a warning.
    """

    is_simple = False
    _settings_kind = ChatSettings

    @takes(ChatSettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)

    def _arguments(self) -> dict[str, Any]:
        arguments, settings = super()._arguments(), self._given.settings
        if not isinstance(settings, ChatSettings):
            raise TypeError("the chat form has settings of its own")
        if settings.pass_video_url:
            arguments["pass_video_url"] = True
            video = {"video": {"num_frames": self.max_frames_num}}
            arguments["extra_body"] = {**arguments["extra_body"], "media_io_kwargs": video}
        if settings.enable_thinking_kwarg is not None:
            arguments["enable_thinking_kwarg"] = settings.enable_thinking_kwarg
        return arguments
