"""A judge that is asked through ``chat``, the method that InternVL's checkpoints bring along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.api.request import Request
from lmms_eval.errors import MediaError
from lmms_eval.judges.internvl.options import InternVLOptions
from lmms_eval.media import load_image
from lmms_eval.models.chat_form.checkpoints import checkpoint_identity
from lmms_eval.models.chat_form.form import Checkpoint
from lmms_eval.models.chat_form.internvl import PLACEHOLDER, InternVLForm, InternVLPrompt
from lmms_eval.models.chat_form.model import ChatModel
from lmms_eval.models.chat_form.tiling import cut
from lmms_eval.models.hf.settings import Settings

DEFAULT_MAX_NEW_TOKENS = 1024


class ChatJudge(ChatModel):
    """Asks one question at a time, written as the judge's authors do: pictures as they are stored, texts as they stand.

    A placeholder that a text holds is taken for a picture's.
    """

    form: InternVLForm

    def __init__(self, loaded: Checkpoint, options: InternVLOptions) -> None:
        super().__init__(InternVLForm(loaded, {}))
        self._options = options

    def prepare(self, request: Request) -> Request:
        """Cut the pictures into tiles. Raises ``MediaError`` for one that cannot be read, and for videos and sounds."""
        texts: list[str] = []
        counts: list[int] = []
        tiles: list[Any] = []
        for message in request.build_messages().messages:
            said = ""
            for part in message.content:
                if isinstance(part, ChatTextContent):
                    said += part.text
                elif isinstance(part, ChatImageContent):
                    said += PLACEHOLDER
                    own = cut(load_image(part.url, rotate=False).convert("RGB"), self._options.max_tiles)
                    counts.append(len(own))
                    tiles += own
                else:
                    raise MediaError(f"internvl takes texts and pictures, not {part.type}")
            texts.append(said)
        prompt = InternVLPrompt("\n".join(texts), self.form.tensor(tiles), tuple(counts))
        return request.with_payload(prompt, prompt.nbytes)

    def read_settings(self, request: Request) -> Settings:
        options = generation_of(request.generation)
        return Settings("", options, (), options["do_sample"], skip_special_tokens=True)

    def identity(self) -> Mapping[str, Any]:
        model, options = self.form.model, self._options
        return {
            **checkpoint_identity(options.pretrained, options.revision, model),
            "class": type(model).__name__,
            "dtype": str(getattr(model, "dtype", None)),
            "max_tiles": options.max_tiles,
        }


def generation_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``chat`` from those of a request: without sampling unless it is asked for."""
    options: dict[str, Any] = {"max_new_tokens": wanted.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)}
    options["do_sample"] = bool(wanted.get("do_sample"))
    if options["do_sample"]:
        options |= {key: wanted[key] for key in ("temperature", "top_p", "top_k") if wanted.get(key) is not None}
    return options
