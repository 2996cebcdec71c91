"""The form of ``chat`` in MiniCPM-V's and MiniCPM-o's checkpoints: messages of pictures, sounds and texts.

Source: the usage sections of the model cards (MiniCPM-V 2 to 4.5, MiniCPM-o 2.6).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.form import (
    ChatForm,
    Checkpoint,
    Conversation,
    Turn,
    call,
    media_of,
    text_of,
)
from lmms_eval.models.hf.batching import RefusedError

_FRAME_SLICES = 2
"""``max_slice_nums`` for videos on the model cards."""


class MiniCPMForm(ChatForm):
    """Answers one conversation at a time.

    If ``chat`` has a parameter ``context`` (MiniCPM-V 1 and 2), it takes one picture, separately from the messages,
    and returns a tuple.
    """

    name = "minicpm_v"
    parameters = ("image", "msgs", "tokenizer")
    marks = ("(<image>./</image>)", "(<audio>./</audio>)")

    def __init__(self, checkpoint: Checkpoint, extra: Mapping[str, Any]) -> None:
        super().__init__(checkpoint, extra)
        self._is_early = "context" in self.chat_parameters
        kinds = [parameter.kind for parameter in self.chat_parameters.values()]
        self._takes_any = inspect.Parameter.VAR_KEYWORD in kinds
        for argument in ("enable_thinking", "max_slice_nums"):
            if argument in extra and argument not in self.chat_parameters:
                raise ModelError(f"{self.name}: chat of {type(self.model).__name__} has no argument {argument}")

    @property
    def media(self) -> frozenset[str]:
        hears = "audio_config" in self.config or bool(self.config.get("init_audio"))
        taken = ("image",) if self._is_early else ("image", "video", "audio") if hears else ("image", "video")
        return frozenset(taken)

    def takes_option(self, name: str) -> bool:
        """Return whether ``chat`` has the option. ``do_sample`` has another name there."""
        return name == "do_sample" or self._takes(name)

    def render(self, conversation: Conversation) -> Conversation:
        if conversation.system and "system_prompt" not in self.chat_parameters:
            raise RefusedError(f"{self.name}: chat of {type(self.model).__name__} takes no system prompt")
        pictures = len(media_of(conversation, "image"))
        if self._is_early and pictures > 1:
            raise RefusedError(f"{self.name}: {type(self.model).__name__} takes one picture, not {pictures}")
        return conversation

    def ask(self, prompts: Sequence[Conversation], arguments: Mapping[str, Any]) -> list[Any]:
        return [self._chat(prompt, arguments) for prompt in prompts]

    def _chat(self, conversation: Conversation, arguments: Mapping[str, Any]) -> Any:
        pictures = media_of(conversation, "image")
        more: dict[str, Any] = {name: self.extra[name] for name in ("enable_thinking", "max_slice_nums")
                                if name in self.extra}  # fmt: skip
        if media_of(conversation, "video"):
            of_films = {"use_image_id": False, "max_slice_nums": _FRAME_SLICES}
            more = {**{name: value for name, value in of_films.items() if name in self.chat_parameters}, **more}
        if conversation.system:
            more["system_prompt"] = conversation.system
        if self._is_early:
            more["context"] = None
        answer = call(
            self.model.chat,
            image=pictures[0].items[0] if self._is_early and pictures else None,
            msgs=[{"role": turn.role, "content": self._content(turn)} for turn in conversation.turns],
            tokenizer=self.tokenizer,
            **more,
            **self._generation(arguments),
        )
        return answer[0] if self._is_early and isinstance(answer, tuple) else answer

    def _content(self, turn: Turn) -> Any:
        if self._is_early or turn.role != "user":
            return text_of(turn)
        content: list[Any] = []
        for piece in turn.pieces:
            if not isinstance(piece, str):
                content += piece.items
            elif content and isinstance(content[-1], str):
                content[-1] += piece  # ``chat`` inserts a line break between two items
            else:
                content.append(piece)
        return content

    def _generation(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options by the names of ``chat``. Greedy decoding needs one beam, unlike its default."""
        options = {name: value for name, value in arguments.items() if value is not None}
        given = {"sampling": options.pop("do_sample"), **options}
        refused = [name for name in given if not self._takes(name)]
        if refused:
            raise RefusedError(f"{self.name}: chat takes no generation option {', '.join(refused)}")
        return given if not self._takes("num_beams") else {"num_beams": 1, **given}

    def _takes(self, name: str) -> bool:
        return self._takes_any or name in self.chat_parameters
