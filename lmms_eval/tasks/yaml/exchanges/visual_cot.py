"""``generate_visual_cot``: the model draws a picture for a question, then answers it with the picture before it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.api.interleaved import InterleavedText, response_text
from lmms_eval.api.request import GeneratedImage, Request, RequestKind, Response
from lmms_eval.api.task import Answer
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.exchanges.generation import SingleExchange
from lmms_eval.tasks.yaml.prompts import Part, Prompts, Turn
from lmms_eval.tasks.yaml.requests import Ask, MessageBuilder

log = logging.getLogger(__name__)
DRAWING_PROMPT = "Draw a picture that helps to answer this question: {question}"
"""Prompt of the first round where the context states none."""
_QUESTION_MARK = "{question}"
_DRAWS, _INTERLEAVES = "visual_cot", "bagel_interleaved"
"""Generation options: two rounds; a row of pictures and texts as a model of the family makes it."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Texts of the two rounds."""

    drawing: str
    question: str

    @classmethod
    def of(cls, context: str, template: str = DRAWING_PROMPT) -> Stages:
        """Read them from a context, which may state both in tags; else all of it is the question."""
        drawing, question = _tagged("GEN_PROMPT", context), _tagged("QUESTION", context)
        if drawing is None or question is None:
            return cls(template.replace(_QUESTION_MARK, context), context)
        asked = question.strip()
        return cls(drawing.strip().replace(_QUESTION_MARK, asked), asked)


def _tagged(tag: str, context: str) -> str | None:
    """The text between the first opening tag and the first closing one behind it."""
    _, opening, rest = context.partition(f"[{tag}]")
    text, closing, _ = rest.partition(f"[/{tag}]")
    return text if opening and closing else None


class PluginVisualCotExchange(SingleExchange):
    """A class plugin gets one request, and goes through the rounds itself."""

    kind: RequestKind = "generate_visual_cot"


class VisualCotExchange(TaskExchange):
    """Two requests with ``visual_cot`` among the task's generation options, else one.

    The answer is the text of the last one, with the pictures of the first in front of it. Without a picture the
    first text is the answer.
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
        return [self._asked(replace(self._shown(self._stages.question, pictures[0]), round=1))]

    def answer(self) -> Answer:
        final = response_text(self._responses[-1])
        if len(self._responses) == 1:
            return self._answer(final)
        parts = final.parts if isinstance(final, InterleavedText) else (final,)
        return self._answer(InterleavedText((*self._pictures(), *parts)))

    def _pictures(self) -> tuple[GeneratedImage, ...]:
        """Those of the first round."""
        return tuple(part for part in self._responses[0].parts if isinstance(part, GeneratedImage))

    def _shown(self, text: str, picture: GeneratedImage | None = None) -> Ask:
        own = _Shown(self.requests.prompts, text, picture)
        return Ask(text, MessageBuilder(self.requests, self.doc_id, own, bare=True))

    def _asked(self, ask: Ask, draws: bool = False) -> Request:
        """The request, of whose options those that steer the exchange are left out."""
        made = self._request(ask)
        options = {key: value for key, value in made.generation.items() if key not in (_DRAWS, _INTERLEAVES)}
        return replace(made, generation={**options, _DRAWS: True} if draws else options)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A user message of the document's first picture, one that was drawn, and a text."""

    prompts: Prompts
    text: str
    picture: GeneratedImage | None

    def __call__(self, doc: Mapping[str, Any]) -> list[Turn]:
        (turn,) = self.prompts.user_turn(self._original(doc), self.text)
        *media, text = turn["content"]
        return [{**turn, "content": [*media, *self._drawn(), text]}]

    def _original(self, doc: Mapping[str, Any]) -> list[Any]:
        try:
            return self.prompts.visuals(doc)[:1]
        except Exception as error:  # noqa: BLE001 - the family asks without a picture where the task cannot give it
            _say_once(self.prompts.where, f"{type(error).__name__}: {error}")
            return []

    def _drawn(self) -> list[Part]:
        """The file's bytes: its place is none that documents may name, and may differ on another start."""
        if self.picture is None:
            return []
        data = self.picture.data
        return [{"type": "image", "url": Path(str(self.picture.path)).read_bytes() if data is None else data}]


_TOLD: set[str] = set()


def _say_once(where: str, error: str) -> None:
    if where not in _TOLD:
        _TOLD.add(where)
        log.warning("%s: documents whose picture cannot be given are asked without it; the first: %s", where, error)
