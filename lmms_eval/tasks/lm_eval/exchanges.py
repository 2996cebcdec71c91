"""Requests of lm-eval's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.messages import build_user_turn
from lmms_eval.api.task import Request
from lmms_eval.tasks.lm_eval.prompts import is_number
from lmms_eval.tasks.yaml.exchanges import Ask, LikelihoodExchange, MediaQuestion, MessageBuilder, SingleExchange


class LmEvalLikelihoodExchange(LikelihoodExchange):
    """``loglikelihood`` and ``multiple_choice``. Requests without context come after all others."""

    def _choices(self, doc: Mapping[str, Any]) -> list[Request]:
        prompts, delimiter = self.requests.prompts, self._delimiter()
        choices = prompts.choices(doc) or []
        question = prompts.text(doc)
        if is_number(question):
            made = self._contexts(doc, choices)
        else:
            context, builder = self._question()
            made = [
                self._likelihood(context, builder, delimiter + choice, number) for number, choice in enumerate(choices)
            ]
        if any(metric.name == "acc_mutual_info" for metric in self.requests.task.metrics):
            nothing = MessageBuilder(self.requests, self.doc_id, lambda _doc: build_user_turn([], ""), bare=True)
            made += [
                self._likelihood("", nothing, delimiter + choice, len(made) + number)
                for number, choice in enumerate(choices)
            ]
        return made

    def _contexts(self, doc: Mapping[str, Any], choices: Sequence[str]) -> list[Request]:
        continuation = self._delimiter() + str(self.requests.prompts.target(doc))
        made = []
        for number, choice in enumerate(choices):
            context = self.requests.builder.context(self.doc_id, choice)
            self._input = self._input or context
            builder = MessageBuilder(self.requests, self.doc_id, MediaQuestion(self.requests.prompts, choice))
            made.append(self._likelihood(context, builder, continuation, number))
        return made

    def _likelihood(self, context: str, builder: MessageBuilder, continuation: str, index: int) -> Request:
        return self._request(Ask(context, builder, "loglikelihood", continuation, index=index))

    def _delimiter(self) -> str:
        """Return the text before a continuation: none under a chat template, unless the prompt begins the answer."""
        config: Any = self.requests.config
        prefix = config.gen_prefix
        begins = isinstance(prefix, str) and bool(prefix) and not prefix[-1].isspace()
        return "" if self.requests.options.apply_chat_template and not begins else str(config.answer_delimiter)


class RollingExchange(LikelihoodExchange):
    """``loglikelihood_rolling``: the likelihood of a whole text, without examples."""

    def open(self) -> Sequence[Request]:
        doc = self.requests.documents.text_view(self.doc_id)
        with self.requests.seeding.prompt(self.doc_id):
            text = self.requests.prompts.answer_text(doc)
        nothing = MessageBuilder(self.requests, self.doc_id, lambda _doc: build_user_turn([], ""), bare=True)
        return [self._request(Ask("", nothing, "loglikelihood_rolling", text))]


EXCHANGES = {
    "generate_until": SingleExchange,
    "loglikelihood": LmEvalLikelihoodExchange,
    "loglikelihood_rolling": RollingExchange,
    "multiple_choice": LmEvalLikelihoodExchange,
}
