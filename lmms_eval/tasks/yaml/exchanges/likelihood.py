"""Log likelihoods of one continuation, or of every choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.messages import build_user_turn
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.render import RenderError
from lmms_eval.tasks.yaml.requests import Ask, MediaQuestion, MessageBuilder


class LikelihoodExchange(TaskExchange):
    """``loglikelihood`` (one continuation) and ``multiple_choice`` (one request per choice)."""

    def open(self) -> Sequence[Request]:
        doc = self.requests.documents.text_view(self.doc_id)
        with self.requests.seeding.prompt(self.doc_id):
            if self.requests.task.output_type == "loglikelihood":
                target = self.requests.prompts.answer_text(doc)
                builder = MessageBuilder(self.requests, self.doc_id)
                return [self._request(Ask(self._first(), builder, "loglikelihood", target))]
            return self._choices(doc)

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        return ()

    def answer(self) -> Answer:
        is_loss = any(response.is_loss for response in self._responses)
        pairs = [[_loss(response), bool(response.is_greedy)] for response in self._responses]
        return self._answer(pairs, is_loss)

    def _choices(self, doc: Mapping[str, Any]) -> list[Request]:
        prompts, delimiter = self.requests.prompts, self.requests.config.answer_delimiter
        choices = prompts.choices(doc) or []
        question = prompts.text(doc) if self.requests.config.doc_to_text is not None else ""
        if isinstance(question, int) and not isinstance(question, bool):
            return self._contexts(doc, choices)
        context = self._first()
        requests = []
        for number, choice in enumerate(choices):
            builder = MessageBuilder(self.requests, self.doc_id)
            requests.append(self._likelihood(context, builder, delimiter + choice, number))
            if any(metric.name == "acc_mutual_info" for metric in self.requests.task.metrics):
                nothing = MessageBuilder(self.requests, self.doc_id, lambda _doc: build_user_turn([], ""), bare=True)
                requests.append(self._likelihood("", nothing, delimiter + choice, len(choices) + number))
        return requests

    def _contexts(self, doc: Mapping[str, Any], choices: Sequence[str]) -> list[Request]:
        """Request the target after each choice, if the question is the number of a choice."""
        continuation = self.requests.config.answer_delimiter + str(self.requests.prompts.target(doc))
        requests = []
        for number, choice in enumerate(choices):
            context = self.requests.builder.context(self.doc_id, choice)
            self._input = self._input or context
            builder = MessageBuilder(self.requests, self.doc_id, MediaQuestion(self.requests.prompts, choice))
            requests.append(self._likelihood(context, builder, continuation, number))
        return requests

    def _likelihood(self, context: str, builder: MessageBuilder, continuation: str, index: int) -> Request:
        implied = self.requests.config.answer_delimiter if self.requests.config.target_delimiter is None else ""
        return self._request(Ask(context, builder, "loglikelihood", continuation, implied, index=index))


def _loss(response: Response) -> float:
    value = response.loglikelihood
    if value is None:
        raise RenderError("the model gave a text where the likelihood of a continuation was asked")
    return value if response.is_loss else -value
