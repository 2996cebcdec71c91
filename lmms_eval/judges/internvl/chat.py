"""A judge that is asked through ``chat``, the method that InternVL's checkpoints bring along."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.errors import MediaError
from lmms_eval.judges.internvl.options import InternVLOptions
from lmms_eval.judges.internvl.tiling import cut, tensor_of
from lmms_eval.media import load_image

PLACEHOLDER = "<image>"
"""Stands for a picture in a question; one that a text holds is taken for one too."""
DEFAULT_MAX_NEW_TOKENS = 1024


class Chats(Protocol):
    """Part of the checkpoint's model that is used."""

    def chat(
        self,
        tokenizer: Any,
        pixel_values: Any,
        question: str,
        generation_config: dict[str, Any],
        *,
        num_patches_list: list[int],
    ) -> Any:
        """The answer's text; ``pixel_values`` holds the tiles of all pictures, or is ``None``."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """The checkpoint's model with its tokenizer."""

    model: Chats
    tokenizer: Any


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One question as ``chat`` takes it."""

    question: str
    tiles: Any
    """Tensor of shape (tiles, 3, 448, 448) in the model's type, or ``None`` without pictures."""
    counts: tuple[int, ...]
    """Tiles of each picture, thumbnails included."""


class ChatJudge(Model):
    """Asks one question at a time."""

    concurrency = 1

    def __init__(self, loaded: ChatModel, options: InternVLOptions) -> None:
        self._loaded, self._options = loaded, options
        self._dtype = getattr(loaded.model, "dtype", None)

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
        tensor = tensor_of(tiles).to(self._dtype) if tiles else None
        turn = Turn("\n".join(texts), tensor, tuple(counts))
        nbytes = 0 if turn.tiles is None else turn.tiles.element_size() * turn.tiles.nelement()
        return request.with_payload(turn, nbytes)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            for request in requests:
                yield self._answer(request)

    def identity(self) -> Mapping[str, Any]:
        from lmms_eval.models.hf.folder import local_folder, stamps

        folder = local_folder(self._options.pretrained, ())
        commit = getattr(getattr(self._loaded.model, "config", None), "_commit_hash", None)
        source: dict[str, Any] = {"repository": self._options.pretrained, "commit": commit}
        if folder is not None:
            source = {"files": [asdict(stamp) for stamp in stamps(folder)]}
        model = type(self._loaded.model).__name__
        return {**source, "class": model, "dtype": str(self._dtype), "max_tiles": self._options.max_tiles}

    def _answer(self, request: Request) -> Response:
        import torch

        started = time.perf_counter()
        turn: Turn = request.payload
        tiles = None if turn.tiles is None else turn.tiles.to(getattr(self._loaded.model, "device", "cpu"))
        try:
            with torch.inference_mode():
                text = self._loaded.model.chat(
                    self._loaded.tokenizer,
                    tiles,
                    turn.question,
                    generation_of(request.generation),
                    num_patches_list=list(turn.counts),
                )
        except torch.OutOfMemoryError as error:
            return Response.failure(request.id, "out_of_memory", str(error))
        except Exception as error:  # noqa: BLE001 - the checkpoint's own code may raise anything
            return Response.failure(request.id, "internal", f"chat raised {type(error).__name__}: {error}")
        if not isinstance(text, str):
            return Response.failure(request.id, "malformed", f"chat gave a {type(text).__name__}, not a text")
        return Response(request.id, text=text, latency=time.perf_counter() - started)


def generation_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``chat`` from those of a request: without sampling unless it is asked for."""
    options: dict[str, Any] = {"max_new_tokens": wanted.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)}
    options["do_sample"] = bool(wanted.get("do_sample"))
    if options["do_sample"]:
        options |= {key: wanted[key] for key in ("temperature", "top_p", "top_k") if wanted.get(key) is not None}
    return options
