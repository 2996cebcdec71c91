"""The questions to one (document, repeat): one request, one per choice, or round after round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lmms_eval.api.interleaved import said
from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.request import Request, RequestKind, Response, sent_media
from lmms_eval.api.task import Answer, Exchange
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.prompts import Turn, as_turns
from lmms_eval.tasks.yaml.render import RenderError, accepts, call_messages, call_text

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.task import YamlTask

MAX_ROUNDS = 1000
MAX_AGENTIC_STEPS = 12
NOT_SENT = frozenset({"max_agentic_steps"})
"""Generation options that steer the exchange and are no option of a model."""


@dataclass(frozen=True, slots=True)
class MessageBuilder:
    """Renders the messages of a request when they are needed. ``own`` replaces the task's messages for a document."""

    task: YamlTask
    doc_id: int
    own: Callable[[Mapping[str, Any]], Sequence[Turn]] | None = None
    """The messages of this request from the full document; default: those of the task."""
    bare: bool = False
    """No description and no examples in front (later rounds)."""

    def __call__(self) -> ChatMessages:
        try:
            return ChatMessages.model_validate({"messages": self.turns()})
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            where = f"{self.task.where}: doc_to_messages"
            raise RenderError(f"{where} gave what is no message: {place}: {first['msg']}") from error

    def turns(self, doc: Mapping[str, Any] | None = None) -> list[Turn]:
        """The messages as plain mappings, of ``doc`` where a plugin hands over its own copy of the document."""
        with self.task.seeding.prompt(self.doc_id):
            full = self.task.documents[self.doc_id] if doc is None else doc
            own = None if self.own is None else self.own(full)
            if self.bare:
                turns = self.task.conversation.with_system(own or [])
            else:
                turns = self.task.conversation.turns(self.doc_id, full, own)
            return self.task.prompts.allowed(turns)


@dataclass(frozen=True, slots=True)
class Ask:
    """The parts in which the requests of one exchange differ."""

    context: str
    builder: MessageBuilder
    kind: RequestKind = "generate_until"
    continuation: str | None = None
    round: int = 0
    index: int = 0


def make_request(task: YamlTask, doc_id: int, repeat: int, ask: Ask) -> Request:
    name = f"{task.name}/{doc_id}/{repeat}/{ask.round}/{ask.index}"
    generation = {} if ask.kind == "loglikelihood" else task.sent_generation()
    digest = hashlib.sha256(f"{task.options.seed}|{name}".encode()).digest()
    return Request(
        id=name,
        kind=ask.kind,
        task=task,
        doc_id=doc_id,
        build_messages=ask.builder,
        context=ask.context,
        generation=generation,
        continuation=ask.continuation,
        repeat=repeat,
        round=ask.round,
        index=ask.index,
        seed=int.from_bytes(digest[:4], "big") >> 1,
        cost=task.request_cost(doc_id),
    )


@dataclass(slots=True)
class _Base(Exchange):
    task: YamlTask
    doc_id: int
    repeat: int
    _responses: list[Response] = field(default_factory=list)
    _input: str = ""

    def _request(self, ask: Ask) -> Request:
        return make_request(self.task, self.doc_id, self.repeat, ask)

    def _first(self) -> str:
        with self.task.seeding.prompt(self.doc_id):
            self._input = self.task.conversation.context(self.doc_id)
        return self._input

    def _answer(self, value: Any, is_loss: bool = True) -> Answer:
        latencies = [response.latency for response in self._responses if response.latency is not None]
        return Answer(
            value=value,
            usage=tuple(response.usage for response in self._responses),
            finish_reason=self._responses[-1].finish_reason if self._responses else None,
            model=self._responses[-1].model if self._responses else None,
            latency=sum(latencies) if latencies else None,
            input=self._input,
            is_loss=is_loss,
            media=sent_media(self._responses),
        )


class SingleExchange(_Base):
    """``generate_until``: one request. Also a multi-round plugin, which makes the rounds itself."""

    kind: RequestKind = "generate_until"

    def open(self) -> Sequence[Request]:
        return [self._request(Ask(self._first(), MessageBuilder(self.task, self.doc_id), self.kind))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        return ()

    def answer(self) -> Answer:
        return self._answer(said(self._responses[0]))


class PluginRoundsExchange(SingleExchange):
    """``generate_until_multi_round`` by a plugin of the class interface: one call gives all rounds."""

    kind: RequestKind = "generate_until_multi_round"

    def answer(self) -> Answer:
        response = self._responses[0]
        return self._answer(list(response.rounds) if response.rounds is not None else [said(response)])


class LikelihoodExchange(_Base):
    """``loglikelihood`` (one continuation) and ``multiple_choice`` (one request per choice)."""

    def open(self) -> Sequence[Request]:
        doc = self.task.documents.text_view(self.doc_id)
        with self.task.seeding.prompt(self.doc_id):
            if self.task.output_type == "loglikelihood":
                target = self.task.prompts.answer_text(doc)
                return [self._likelihood(self._first(), MessageBuilder(self.task, self.doc_id), target, 0)]
            return self._choices(doc)

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        return ()

    def answer(self) -> Answer:
        is_loss = any(response.is_loss for response in self._responses)
        pairs = [[_loss(response), bool(response.is_greedy)] for response in self._responses]
        return self._answer(pairs, is_loss)

    def _choices(self, doc: Mapping[str, Any]) -> list[Request]:
        prompts, delimiter = self.task.prompts, self.task.config.target_delimiter
        choices = prompts.choices(doc) or []
        question = prompts.text(doc) if self.task.config.doc_to_text is not None else ""
        if isinstance(question, int) and not isinstance(question, bool):
            return self._contexts(doc, choices)
        context = self._first()
        requests = []
        for number, choice in enumerate(choices):
            builder = MessageBuilder(self.task, self.doc_id)
            requests.append(self._likelihood(context, builder, delimiter + choice, number))
            if self.task.wants_mutual_info:
                nothing = MessageBuilder(self.task, self.doc_id, lambda _doc: build_user_turn([], ""), bare=True)
                requests.append(self._likelihood("", nothing, delimiter + choice, len(choices) + number))
        return requests

    def _contexts(self, doc: Mapping[str, Any], choices: Sequence[str]) -> list[Request]:
        """The choices are contexts and the target is the continuation (the question is the number of a choice)."""
        continuation = self.task.config.target_delimiter + str(self.task.prompts.target(doc))
        requests = []
        for number, choice in enumerate(choices):
            context = self.task.conversation.context(self.doc_id, choice)
            self._input = self._input or context
            builder = MessageBuilder(self.task, self.doc_id, _Question(self.task, choice))
            requests.append(self._likelihood(context, builder, continuation, number))
        return requests

    def _likelihood(self, context: str, builder: MessageBuilder, continuation: str, index: int) -> Request:
        return self._request(Ask(context, builder, "loglikelihood", continuation, index=index))


@dataclass(frozen=True, slots=True)
class _Question:
    """A user message of the document's media and another text."""

    task: YamlTask
    text: str
    visuals: Sequence[Any] | None = None

    def __call__(self, doc: Mapping[str, Any]) -> list[Turn]:
        visuals = self.task.prompts.visuals(doc) if self.visuals is None else self.visuals
        return self.task.prompts.user_turn(visuals, self.text)


def _loss(response: Response) -> float:
    value = response.loglikelihood
    if value is None:
        raise RenderError("the model gave a text where the likelihood of a continuation was asked")
    return value if response.is_loss else -value


class RoundsExchange(_Base):
    """``generate_until_multi_round``: each round is a request; the task's function gives the next one or stops."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        return [self._request(Ask(self._first(), MessageBuilder(self.task, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        self._outputs.append(said(responses[0]))
        number = len(self._responses)
        if number >= MAX_ROUNDS:
            raise RenderError(
                f"{self.task.where}: the rounds of document {self.doc_id} did not stop after {MAX_ROUNDS}"
            )
        with self.task.seeding.prompt(self.doc_id):
            follows = self._next(number)
        return [] if follows is None else [self._request(follows)]

    def answer(self) -> Answer:
        return self._answer(list(self._outputs))

    def _next(self, number: int) -> Ask | None:
        given = {"round_idx": number, "previous_output": list(self._outputs), "previous_round_info": self._info}
        by_messages = self.task.config.doc_to_messages
        if by_messages is not None and accepts(by_messages, "round_idx"):
            return self._next_messages(by_messages, given, number)
        function = self.task.config.doc_to_text
        doc = self.task.documents[self.doc_id]
        visuals, text, stop, outputs, self._info = _elements(
            call_text(function, doc, self.task.prompts.kwargs, **given), 5, f"{self.task.where}: doc_to_text"
        )
        self._keep(outputs)
        if stop:
            return None
        builder = MessageBuilder(self.task, self.doc_id, _Question(self.task, str(text), visuals or []), bare=True)
        return Ask(str(text), builder, round=number)

    def _next_messages(self, function: Any, given: Mapping[str, Any], number: int) -> Ask | None:
        where = f"{self.task.where}: doc_to_messages"
        doc = self.task.documents[self.doc_id]
        made = call_messages(function, doc, self.task.prompts.kwargs, **given)
        messages, stop, outputs, self._info = _elements(made, 4, where)
        self._keep(outputs)
        if stop:
            return None
        turns = as_turns(messages, where)
        context = "\n".join(p["text"] for t in turns for p in t["content"] if p.get("type") == "text")
        return Ask(context, MessageBuilder(self.task, self.doc_id, lambda _doc: turns, bare=True), round=number)

    def _keep(self, outputs: Any) -> None:
        if outputs is not None:
            self._outputs = list(outputs)


def _elements(made: Any, count: int, where: str) -> Sequence[Any]:
    if not isinstance(made, tuple | list) or len(made) != count:
        raise RenderError(f"{where} must return {count} values for a later round, not {made!r:.120}")
    return made


class AgenticExchange(_Base):
    """``generate_until_agentic``: the task's function answers each output with the next input, or ends it."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        self._visuals: Sequence[Any] | None = None
        self._context = self._first()
        self._rounds: list[dict[str, Any]] = []
        return [self._request(Ask(self._context, MessageBuilder(self.task, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        output = said(responses[0])
        self._outputs.append(output)
        step, asked = len(self._responses), self._context
        with self.task.seeding.prompt(self.doc_id):
            goes_on, terminal = self._react(step)
        self._note(step, asked, output, terminal)
        if not goes_on or step >= int(self.task.generation.get("max_agentic_steps", MAX_AGENTIC_STEPS)):
            return ()
        builder = MessageBuilder(self.task, self.doc_id, _Question(self.task, self._context, self._visuals), bare=True)
        return [self._request(Ask(self._context, builder, round=step))]

    def answer(self) -> Answer:
        last = self._outputs[-1] if self._outputs else ""
        final = last if isinstance(last, str) else str(last)
        if not final.lstrip().startswith("{") and self._info is not None:
            final = json.dumps(self._unfinished(), ensure_ascii=False, default=str)
        if self.task.options.agentic_trace_mode == "full":
            final = self._traced(final)
        return self._answer(final)

    def _react(self, step: int) -> tuple[bool, bool]:
        """Take the function's word on the last output: whether another step follows, and whether it ended it."""
        made = call_text(
            self.task.config.doc_to_text,
            self.task.documents[self.doc_id],
            self.task.prompts.kwargs,
            previous_output=list(self._outputs),
            round_idx=step,
            previous_round_info=self._info,
        )
        if isinstance(made, str):
            self._context = made
            return True, False
        if not isinstance(made, tuple | list) or len(made) != 5:
            return False, True
        visuals, context, stop, outputs, info = made
        self._info = info
        if outputs is not None:
            self._outputs = list(outputs)
        if visuals is not None:
            self._visuals = visuals
        if context is not None:
            self._context = str(context)
        return not stop, bool(stop)

    def _note(self, step: int, asked: str, output: str, terminal: bool) -> None:
        info = self._info if isinstance(self._info, Mapping) else {}
        entry = {
            "round_idx": step,
            "round_input": asked,
            "model_output": output,
            "terminal": terminal,
            "state": info.get("state"),
            "tool_result": info.get("last_tool_result"),
            "tool_calls": info.get("tool_calls"),
            "valid_tool_calls": info.get("valid_tool_calls"),
            "invalid_steps": info.get("invalid_steps"),
        }
        self._rounds.append(entry if terminal else {**entry, "next_input": self._context})

    def _unfinished(self) -> dict[str, Any]:
        info = self._info if isinstance(self._info, Mapping) else {}
        counts = {key: float(info.get(key) or 0) for key in ("tool_calls", "valid_tool_calls", "invalid_steps")}
        return {
            "success": False,
            "error": "max_agentic_steps_reached",
            **counts,
            "state": info.get("state", {}),
            "last_model_output": self._rounds[-1]["model_output"],
            "trace": list(self._outputs),
        }

    def _traced(self, final: str) -> str:
        try:
            payload = json.loads(final)
        except ValueError:
            return final
        if not isinstance(payload, dict):
            return final
        payload |= {"agentic_trace_mode": "full", "agentic_rounds": self._rounds}
        return json.dumps(payload, ensure_ascii=False, default=str)


def exchange_for(task: YamlTask, doc_id: int, repeat: int) -> Exchange:
    """The exchange of a task's output type."""
    kinds: dict[str, type[_Base]] = {
        "generate_until": SingleExchange,
        "loglikelihood": LikelihoodExchange,
        "multiple_choice": LikelihoodExchange,
        "generate_until_multi_round": PluginRoundsExchange if task.options.legacy else RoundsExchange,
        "generate_until_agentic": AgenticExchange,
    }
    if task.output_type not in kinds:
        raise TaskError(f"{task.where}: output_type {task.output_type!r} is not in this version")
    return kinds[task.output_type](task, doc_id, repeat)
