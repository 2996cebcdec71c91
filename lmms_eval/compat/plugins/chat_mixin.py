"""The mixin for chat plugins of the family that answer one conversation at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.api.instance import FailedGeneration, Instance
from lmms_eval.protocol import ChatMessages
from lmms_eval.utils.installed import error_text

VIDEO_KWARGS: dict[str, Any] = {"fps": 2, "max_frames": 16, "max_pixels": 147456}
IMAGE_KWARGS: dict[str, Any] = {"max_pixels": 262144}


class ChatMixin:
    """Turns a simple class, whose model answers conversations through ``_infer_one``, into a chat plugin."""

    is_simple = False
    video_kwargs = VIDEO_KWARGS
    image_kwargs = IMAGE_KWARGS
    batch_size: Any
    rank: Any
    task_dict: Any
    cache_hook: Any

    def _infer_one(self, chat_messages: ChatMessages, gen_kwargs: dict[str, Any]) -> str:
        """Answer one conversation."""
        raise NotImplementedError(f"{type(self).__name__} must define _infer_one(chat_messages, gen_kwargs)")

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """Answer all requests, one after the other; a request that raises is a failed one."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Instance) -> Any:
        context, doc_to_messages, generation, doc_id, task, split = request.args
        messages = ChatMessages(messages=doc_to_messages(self.task_dict[task][split][doc_id]))
        options: Mapping[str, Any] = generation
        try:
            answer = self._infer_one(messages, dict(options))
        except Exception as error:  # noqa: BLE001 - a plugin's model may raise anything
            return FailedGeneration(f"_infer_one raised {error_text(error)}")
        self.cache_hook.add_partial("generate_until", (context, generation), answer)
        return answer
