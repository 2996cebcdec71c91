"""Answers that need no model: the reference answers, a random choice, or one constant text.

They check a task and its scoring from end to end, and say what a score of chance is.
"""

from __future__ import annotations

import ast
import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.media_check import open_media
from lmms_eval.models.task_access import gold_answer_of, offered_options, target_of

TAKE = 64
OTHER_CHOICE = -10.0


class Baseline(Model):
    """``--model baseline --model_args strategy=gold``.

    Args:
        strategy: ``gold`` answers with the task's reference answers; ``random_choice`` draws one of the options, by
            the request's seed; ``constant`` says ``text`` to everything.
        text: the constant answer.
        options: answers that ``random_choice`` draws from, separated by ``|``; without it they are the task's
            choices, or the letters of the option lines (``A. ...``, ``(A) ...``, ``A: ...``) in the prompt.
        no_media: ``gold`` alone builds every prompt and opens its pictures, videos and sounds, so that full marks show
            the whole task right; this leaves it out (``--no_media``).
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood", "generate_visual_cot"})
    concurrency = TAKE
    reads_documents = True

    def __init__(
        self, strategy: str = "gold", text: str = "A", options: str | Sequence[str] = (), no_media: bool = False
    ) -> None:
        strategies = {"gold": self._gold, "random_choice": self._random_choice, "constant": self._constant}
        if strategy not in strategies:
            known = ", ".join(strategies)
            raise ModelError(f"baseline has no strategy {strategy!r} (--model_args strategy=...); it has {known}")
        self.strategy = strategy
        self._answer = strategies[strategy]
        self._opens_media = self.opens_media({"strategy": strategy, "no_media": no_media})
        self.text = str(text)
        self.options = tuple(options.split("|") if isinstance(options, str) and options else options)

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:
        """``gold`` does."""
        return model_args.get("strategy", "gold") == "gold" and not model_args.get("no_media")

    def prepare(self, request: Request) -> Request:
        """Nothing is sent anywhere; ``gold`` sees to it that it could be."""
        if self._opens_media:
            open_media(request.build_messages())
        return request

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                yield self._answer(request)

    def sent_with(self, request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        """Nothing: nobody is asked."""
        return {}

    def identity(self) -> Mapping[str, Any]:
        return {"strategy": self.strategy, "text": self.text, "options": list(self.options)}

    def _gold(self, request: Request) -> Response:
        if request.kind != "loglikelihood":
            return _said(request, gold_answer_of(request.task, request.doc_id))
        is_gold = request.task.output_type == "loglikelihood" or is_gold_choice(request)
        return Response(request.id, loglikelihood=0.0 if is_gold else OTHER_CHOICE, is_greedy=is_gold)

    def _random_choice(self, request: Request) -> Response:
        generator = random.Random(request.seed)
        if request.kind == "loglikelihood":
            return Response(request.id, loglikelihood=-generator.random(), is_greedy=False)
        options = self.options or offered_options(request.task, request.doc_id, request.context)
        if not options:
            message = "random_choice found no options in the prompt; give --model_args options=A|B|C|D"
            return Response.failure(request.id, "bad_request", message)
        return _said(request, generator.choice(options))

    def _constant(self, request: Request) -> Response:
        if request.kind == "loglikelihood":
            is_it = (request.continuation or "").strip() == self.text
            return Response(request.id, loglikelihood=0.0 if is_it else OTHER_CHOICE, is_greedy=is_it)
        return _said(request, self.text)


def is_gold_choice(request: Request) -> bool:
    """The choice whose likelihood is asked is (one of) the reference answer(s), given as number or as text.

    A text of digits is the number of a choice, as everywhere in tasks with choices.
    """
    target = target_of(request.task, request.doc_id)
    if isinstance(target, str) and target.startswith("[") and target.endswith("]"):
        with contextlib.suppress(ValueError, SyntaxError):
            target = ast.literal_eval(target)
    answers = [str(answer).strip() for answer in (target if isinstance(target, list | tuple) else [target])]
    asked = (request.continuation or "").strip()
    return any(int(text) == request.index if text.isdecimal() else text == asked for text in answers)


def _said(request: Request, text: str) -> Response:
    return Response(request.id, text=text, finish_reason="stop")
