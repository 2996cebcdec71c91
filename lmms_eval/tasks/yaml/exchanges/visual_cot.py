"""``generate_visual_cot``: the model draws a picture for a question, then answers the question with that picture."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from lmms_eval.api.interleaved import InterleavedText, response_text
from lmms_eval.api.request import GeneratedImage, Request, RequestKind, Response
from lmms_eval.api.task import Answer
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.exchanges.generation import SingleExchange
from lmms_eval.tasks.yaml.prompts import Prompts, Turn
from lmms_eval.tasks.yaml.requests import Ask, MessageBuilder

log = logging.getLogger(__name__)
DRAWING_PROMPT = "Draw a picture that helps to answer this question: {question}"
"""Prompt of the first round if the context states none."""
_QUESTION_MARK = "{question}"
_DRAWS, _INTERLEAVES = "visual_cot", "bagel_interleaved"
"""Generation options for two rounds, and for a sequence of pictures and texts from a model of the family."""


class Stages(Struct, frozen=True):
    """The prompts of the two rounds."""

    drawing: str
    question: str

    @classmethod
    def of(cls, context: str, template: str = DRAWING_PROMPT) -> Stages:
        """Read the prompts from a context. It may state both in tags; otherwise all of it is the question."""
        drawing, question = _tagged("GEN_PROMPT", context), _tagged("QUESTION", context)
        if drawing is None or question is None:
            return cls(template.replace(_QUESTION_MARK, context), context)
        asked = question.strip()
        return cls(drawing.strip().replace(_QUESTION_MARK, asked), asked)


def _tagged(tag: str, context: str) -> str | None:
    """Return the text between the first opening tag and the next closing tag."""
    _, opening, rest = context.partition(f"[{tag}]")
    text, closing, _ = rest.partition(f"[/{tag}]")
    return text if opening and closing else None


class PluginVisualCotExchange(SingleExchange):
    """One request to a class plugin, which runs the rounds itself."""

    kind: RequestKind = "generate_visual_cot"


class VisualCotExchange(TaskExchange):
    """Two requests with ``visual_cot`` among the task's generation options, else one.

    The answer is the text of the last response, preceded by the pictures of the first. Without a picture, the first
    text is the answer.
    """

    def open(self) -> Sequence[Request]:
        self._stages: Stages | None = None
        context = self._first()
        if _INTERLEAVES in self.requests.generation:
            return [self._asked(Ask(context, MessageBuilder(self.requests, self.doc_id)))]
        if not self.requests.generation.get(_DRAWS):
            return [self._asked(self._shown(context))]
        self._stages = Stages.of(context, DRAWING_PROMPT)
        return [self._asked(self._shown(self._stages.drawing), draws=True)]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        is_first = not self._responses
        self._responses += responses
        pictures = self._pictures()
        if self._stages is None or not is_first or not pictures:
            return ()
        return [self._asked(structs.replace(self._shown(self._stages.question, pictures[0]), round=1))]

    def answer(self) -> Answer:
        final = response_text(self._responses[-1])
        if len(self._responses) == 1:
            return self._answer(final)
        parts = final.parts if isinstance(final, InterleavedText) else (final,)
        return self._answer(InterleavedText((*self._pictures(), *parts)))

    def _pictures(self) -> tuple[GeneratedImage, ...]:
        """The pictures of the first round."""
        return tuple(part for part in self._responses[0].parts if isinstance(part, GeneratedImage))

    def _shown(self, text: str, picture: GeneratedImage | None = None) -> Ask:
        own = partial(_shown, self.requests.prompts, text, picture)
        return Ask(text, MessageBuilder(self.requests, self.doc_id, own, bare=True))

    def _asked(self, ask: Ask, draws: bool = False) -> Request:
        """Make the request without the options that control the exchange."""
        made = self._request(ask)
        options = {key: value for key, value in made.generation.items() if key not in (_DRAWS, _INTERLEAVES)}
        return replace(made, generation={**options, _DRAWS: True} if draws else options)


def _shown(prompts: Prompts, text: str, picture: GeneratedImage | None, doc: Mapping[str, Any]) -> list[Turn]:
    """Return a user message with the document's first picture, the drawn picture, and a text."""
    try:
        original = prompts.visuals(doc)[:1]
    except Exception as error:  # noqa: BLE001 - the family asks without a picture where the task cannot give it
        original = []
        if prompts.where not in _TOLD:
            _TOLD.add(prompts.where)
            log.warning(
                "%s: documents whose picture cannot be given are asked without it; the first: %s",
                prompts.where, f"{type(error).__name__}: {error}",
            )  # fmt: skip
    (turn,) = prompts.user_turn(original, text)
    *media, last = turn["content"]
    if picture is None:
        return [turn]
    # The path of a drawn file is not one that documents may name, and a resumed run may have another.
    data = Path(str(picture.path)).read_bytes() if picture.data is None else picture.data
    return [{**turn, "content": [*media, {"type": "image", "url": data}, last]}]


_TOLD: set[str] = set()
"""Tasks that the warning has named."""
