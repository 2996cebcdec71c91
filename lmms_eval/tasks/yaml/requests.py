"""Parts of the requests of a task. Messages are rendered when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import RequestKind
from lmms_eval.api.task import Task
from lmms_eval.tasks.yaml.functions import Seeding
from lmms_eval.tasks.yaml.prompts import PromptBuilder, Prompts, Turn
from lmms_eval.tasks.yaml.render import RenderError
from lmms_eval.tasks.yaml.settings import implied_stop

NOT_SENT = frozenset({"max_agentic_steps"})
"""Generation options that control the exchange and are not sent to a model."""

_UNCHANGEABLE = frozenset({str, int, float, bool, type(None)})


class RequestSettings:
    """The parts that all requests of a task with open data share.

    Args:
        task: the task.
        builder: its prompts.
        seeding: seeds of its functions.
        generation: its generation options; ``until``, if given, is a text or a list of texts.
        cost: estimates the tokens of one request of a document.
    """

    def __init__(
        self, task: Task, builder: PromptBuilder, seeding: Seeding, generation: Mapping[str, Any],
        cost: Callable[[int], float],
    ) -> None:  # fmt: skip
        self.task, self.builder, self.seeding, self.generation, self.cost = task, builder, seeding, generation, cost
        self.prompts, self.documents = builder.prompts, builder.documents
        self.config, self.options, self.where = self.prompts.config, self.prompts.options, self.prompts.where
        text_alone = not (self.config.description or self.options.system_instruction or builder.has_examples)
        is_repeatable = seeding.prompt is nullcontext and not self.documents.media_columns
        self.asks_context = text_alone and is_repeatable and self.config.doc_to_messages is None
        """Whether the context of a first request is exactly the text of its messages, which is not rendered again."""
        self.implied_stop = implied_stop(self.config, generation)
        self.sent = {key: value for key, value in generation.items() if key not in NOT_SENT}
        """The generation options of each request."""
        if isinstance(until := self.sent.get("until"), str):
            self.sent["until"] = [until]
        self.changeable = [key for key, value in self.sent.items() if type(value) not in _UNCHANGEABLE]
        """Options that each request gets a copy of, since back ends change the options of a request."""


class MessageBuilder(Struct, frozen=True):
    """Renders the messages of a request when they are needed. ``own`` replaces the task's messages for a document."""

    requests: RequestSettings
    doc_id: int
    own: Callable[[Mapping[str, Any]], Sequence[Turn]] | None = None
    """Makes the messages of this request from the full document; by default the task's messages."""
    bare: bool = False
    """Without description and examples, as in later rounds."""
    question: str | None = None
    """The text of the task's own messages, if it has been rendered."""

    def __call__(self) -> ChatMessages:
        try:
            return ChatMessages.model_validate({"messages": self.turns()})
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            where = f"{self.requests.where}: doc_to_messages"
            raise RenderError(f"{where} gave what is no message: {place}: {first['msg']}") from error

    def turns(self, doc: Mapping[str, Any] | None = None) -> list[Turn]:
        """Return the messages as plain mappings. A plugin may pass its own copy of the document as ``doc``."""
        with self.requests.seeding.prompt(self.doc_id):
            full = self.requests.documents[self.doc_id] if doc is None else doc
            prompts, builder = self.requests.prompts, self.requests.builder
            own = None if self.own is None else self.own(full)
            if self.question is not None and doc is None:
                own = prompts.user_turn(prompts.visuals(full), self.question)
            turns = builder.with_system(own or []) if self.bare else builder.turns(self.doc_id, full, own)
            return turns if prompts.media is None else prompts.media.turns(turns)


class MediaQuestion(Struct, frozen=True):
    """A user message with the document's media and another text."""

    prompts: Prompts
    text: str
    visuals: Sequence[Any] | None = None

    def __call__(self, doc: Mapping[str, Any]) -> list[Turn]:
        visuals = self.prompts.visuals(doc) if self.visuals is None else self.visuals
        return self.prompts.user_turn(visuals, self.text)


class Ask(Struct, frozen=True):
    """The arguments that differ between the requests of one exchange."""

    context: str
    messages: MessageBuilder
    kind: RequestKind = "generate_until"
    continuation: str | None = None
    implied_delimiter: str = ""
    round: int = 0
    index: int = 0
