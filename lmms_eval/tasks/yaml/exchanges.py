"""Exchanges with a model about one (document, repeat), by the task's output type, and their requests.

Messages are rendered when they are needed.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, structs
from pydantic import ValidationError

from lmms_eval.api.interleaved import InterleavedText, response_text
from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.request import GeneratedImage, Request, RequestKind, Response, sent_media
from lmms_eval.api.task import Answer, Exchange, Task
from lmms_eval.filters.reasoning import THOUGHT_TAGS, split_thoughts
from lmms_eval.tasks.yaml.functions import Seeding
from lmms_eval.tasks.yaml.prompts import PromptBuilder, Prompts, RenderError, Turn, as_turns, keep_originals
from lmms_eval.tasks.yaml.settings import implied_stop
from lmms_eval.utils.signatures import accepts, keywords_for

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
        text_alone = builder.asks_question_alone
        is_repeatable = seeding.prompt is nullcontext and not self.documents.media_columns
        self.asks_context = text_alone and is_repeatable and self.config.doc_to_messages is None
        """Whether the context of a first request is exactly the text of its messages, which is not rendered again."""
        self.asks_text_alone = self.asks_context and self.config.doc_to_visual is None
        """Whether that text is also all that the messages contain."""
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
    kept: list[list[Turn]] = []
    """The messages once they have been rendered, if they are texts alone: the choices of a document share them."""

    def __call__(self) -> ChatMessages:
        try:
            is_plain = self.requests.builder.is_plain(self.bare)
            turns = self.kept[0] if self.kept else self.turns()
            made = ChatMessages.model_validate({"messages": turns, "is_plain": is_plain})
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            where = f"{self.requests.where}: doc_to_messages"
            raise RenderError(f"{where} gave what is no message: {place}: {first['msg']}") from error
        if not self.kept and all(part.type == "text" for message in made.messages for part in message.content):
            self.kept.append(turns)
        return made

    def turns(self, doc: Mapping[str, Any] | None = None) -> list[Turn]:
        """Return the messages as plain mappings. A plugin may pass its own copy of the document as ``doc``."""
        if self.question is not None and doc is None and self.requests.asks_text_alone:
            return build_user_turn((), self.question)
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
    generation: Mapping[str, Any] | None = None
    """Options in place of the task's."""


@dataclass(slots=True)
class TaskExchange(Exchange):
    requests: RequestSettings
    doc_id: int
    repeat: int
    _responses: list[Response] = field(default_factory=list)
    _input: str = ""

    def _request(self, ask: Ask) -> Request:
        """Make one request; its seed follows from the run's seed and its name."""
        shared, doc_id = self.requests, self.doc_id
        name = f"{shared.task.name}/{doc_id}/{self.repeat}/{ask.round}/{ask.index}"
        digest = hashlib.sha256(f"{shared.options.seed}|{name}".encode()).digest()
        generates = not ask.kind.startswith("loglikelihood")
        sent = dict(shared.sent if ask.generation is None else ask.generation) if generates else {}
        for key in shared.changeable if generates and ask.generation is None else ():
            value = sent[key]
            is_flat = type(value) is list and all(type(item) in _UNCHANGEABLE for item in value)
            sent[key] = value[:] if is_flat else copy.deepcopy(value)
        return Request(
            id=name,
            kind=ask.kind,
            task=shared.task,
            doc_id=doc_id,
            build_messages=ask.messages,
            context=ask.context,
            generation=sent,
            continuation=ask.continuation,
            implied_delimiter=ask.implied_delimiter,
            implied_stop=shared.implied_stop if generates else "",
            moves_blanks=shared.task.moves_blanks and not generates,
            repeat=self.repeat,
            round=ask.round,
            index=ask.index,
            seed=int.from_bytes(digest[:4], "big") >> 1,
            cost=shared.cost(doc_id),
            media=shared.options.media,
        )

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        """Keep the responses; most exchanges have one round."""
        self._responses += responses
        return ()

    def _first(self) -> str:
        with self.requests.seeding.prompt(self.doc_id):
            self._input = self.requests.builder.context(self.doc_id)
        return self._input

    def _question(self) -> tuple[str, MessageBuilder]:
        """Return the context of the first requests, and their messages, which reuse it if it is their text."""
        context = self._first()
        question = context if self.requests.asks_context else None
        return context, MessageBuilder(self.requests, self.doc_id, question=question)

    def _answer(self, value: Any, is_loss: bool = True) -> Answer:
        responses = self._responses
        latencies = [response.latency for response in responses if response.latency is not None]
        thoughts = [response.thoughts for response in responses]
        ended_by = [response.ended_by for response in responses]
        return Answer(
            value=value,
            usage=tuple([response.usage for response in responses]),
            thoughts=tuple(thoughts) if thoughts.count(None) < len(thoughts) else (),
            stops=tuple(dict.fromkeys([stop for response in responses for stop in response.stops])),
            ended_by=tuple(ended_by) if ended_by.count(None) < len(ended_by) else (),
            finish_reason=responses[-1].finish_reason if responses else None,
            model=responses[-1].model if responses else None,
            latency=sum(latencies) if latencies else None,
            input=self._input,
            is_loss=is_loss,
            media=sent_media(responses),
        )


MAX_ROUNDS = 1000


class SingleExchange(TaskExchange):
    """``generate_until``: one request."""

    kind: RequestKind = "generate_until"

    def open(self) -> Sequence[Request]:
        return [self._request(Ask(*self._question(), self.kind))]

    def answer(self) -> Answer:
        return self._answer(response_text(self._responses[0]))


class PluginRoundsExchange(SingleExchange):
    """``generate_until_multi_round`` of a plugin of the class interface: one call returns all rounds."""

    kind: RequestKind = "generate_until_multi_round"

    def answer(self) -> Answer:
        response = self._responses[0]
        if response.rounds is None:
            return self._answer([response_text(response)])
        tags = self.requests.task.thought_tags
        rounds = [split_thoughts(text, THOUGHT_TAGS if tags is None else tags) for text in response.rounds]
        made = self._answer([answer for _, answer in rounds])
        thoughts = tuple(thoughts for thoughts, _ in rounds)
        return structs.replace(made, thoughts=thoughts) if any(thoughts) else made


class RoundsExchange(TaskExchange):
    """``generate_until_multi_round``: each round is a request; the task's function gives the next one or stops."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        return [self._request(Ask(self._first(), MessageBuilder(self.requests, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        self._outputs.append(response_text(responses[0]))
        number = len(self._responses)
        if number >= MAX_ROUNDS:
            raise RenderError(
                f"{self.requests.where}: the rounds of document {self.doc_id} did not stop after {MAX_ROUNDS}"
            )
        with self.requests.seeding.prompt(self.doc_id):
            follows = self._next(number)
        return [] if follows is None else [self._request(follows)]

    def answer(self) -> Answer:
        return self._answer(list(self._outputs))

    def _next(self, number: int) -> Ask | None:
        """Call ``doc_to_messages`` if it takes rounds, else ``doc_to_text``; ``None`` if the function stops."""
        requests, prompts = self.requests, self.requests.prompts
        given = {"round_idx": number, "previous_output": list(self._outputs), "previous_round_info": self._info}
        function, doc = requests.config.doc_to_messages, requests.documents[self.doc_id]
        messages_of = prompts.messages if function is not None and accepts(function, "round_idx") else None
        if function is not None and messages_of is not None:
            keep_originals()
            where, count, made = "doc_to_messages", 4, messages_of(doc, **keywords_for(function, given))
        else:
            where, count, made = "doc_to_text", 5, prompts.text(doc, **given)
        where = f"{requests.where}: {where}"
        if not isinstance(made, tuple | list) or len(made) != count:
            raise RenderError(f"{where} must return {count} values for a later round, not {made!r:.120}")
        *content, stop, outputs, self._info = made
        if outputs is not None:
            self._outputs = list(outputs)
        if stop:
            return None
        question: Callable[[Mapping[str, Any]], Sequence[Turn]]
        if messages_of is not None:
            turns = as_turns(content[0], where)
            context = "\n".join(p["text"] for t in turns for p in t["content"] if p.get("type") == "text")
            question = lambda _doc: turns  # noqa: E731
        else:
            visuals, context = content[0], str(content[1])
            question = MediaQuestion(prompts, context, visuals or [])
        return Ask(context, MessageBuilder(requests, self.doc_id, question, bare=True), round=number)


class LikelihoodExchange(TaskExchange):
    """``loglikelihood`` (one continuation) and ``multiple_choice`` (one request per choice)."""

    def open(self) -> Sequence[Request]:
        doc = self.requests.documents.text_view(self.doc_id)
        with self.requests.seeding.prompt(self.doc_id):
            if self.requests.task.output_type == "loglikelihood":
                target = self.requests.prompts.answer_text(doc)
                return [self._request(Ask(*self._question(), "loglikelihood", target))]
            return self._choices(doc)

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
        context, builder = self._question()
        requests = []
        for number, choice in enumerate(choices):
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


MAX_AGENTIC_STEPS = 12


class AgenticExchange(TaskExchange):
    """``generate_until_agentic``: the task's function answers each output with the next input, or ends it."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        self._visuals: Sequence[Any] | None = None
        self._context = self._first()
        self._rounds: list[dict[str, Any]] = []
        return [self._request(Ask(self._context, MessageBuilder(self.requests, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        output = response_text(responses[0])
        self._outputs.append(output)
        step, asked = len(self._responses), self._context
        with self.requests.seeding.prompt(self.doc_id):
            goes_on, terminal = self._react(step)
        self._note(step, asked, output, terminal)
        if not goes_on or step >= int(self.requests.generation.get("max_agentic_steps", MAX_AGENTIC_STEPS)):
            return ()
        builder = MessageBuilder(
            self.requests, self.doc_id, MediaQuestion(self.requests.prompts, self._context, self._visuals), bare=True
        )
        return [self._request(Ask(self._context, builder, round=step))]

    def answer(self) -> Answer:
        last = self._outputs[-1] if self._outputs else ""
        final = last if isinstance(last, str) else str(last)
        if not final.lstrip().startswith("{") and self._info is not None:
            final = json.dumps(self._unfinished(), ensure_ascii=False, default=str)
        if self.requests.options.agentic_trace_mode == "full":
            final = self._traced(final)
        return self._answer(final)

    def observation(self) -> str:
        """Return the tool's result of the last step if the next input does not hold it."""
        last = self._rounds[-1] if self._rounds else {}
        found = last.get("tool_result")
        if found is None or found == "":
            return ""
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
        return "" if text in last.get("next_input", "") else text

    def _react(self, step: int) -> tuple[bool, bool]:
        """Call the function with the last output. It either gives the next input or ends the exchange."""
        made = self.requests.prompts.text(
            self.requests.documents[self.doc_id],
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


log = logging.getLogger(__name__)
DRAWING_PROMPT = "Draw a picture that helps to answer this question: {question}"
"""Prompt of the first round if the context states none."""
_QUESTION_MARK = "{question}"
_DRAWS, _INTERLEAVES = "visual_cot", "bagel_interleaved"
"""Generation options for two rounds, and for a sequence of pictures and texts from a model of the family."""


def stages(context: str, template: str = DRAWING_PROMPT) -> tuple[str, str]:
    """Return the prompts of the two rounds. A context may state both in tags; otherwise all of it is the question."""
    drawing, question = _tagged("GEN_PROMPT", context), _tagged("QUESTION", context)
    if drawing is None or question is None:
        return template.replace(_QUESTION_MARK, context), context
    asked = question.strip()
    return drawing.strip().replace(_QUESTION_MARK, asked), asked


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
        self._second: str | None = None
        context = self._first()
        if _INTERLEAVES in self.requests.generation:
            return [self._asked(Ask(context, MessageBuilder(self.requests, self.doc_id)))]
        if not self.requests.generation.get(_DRAWS):
            return [self._asked(self._shown(context))]
        drawing, self._second = stages(context, DRAWING_PROMPT)
        return [self._asked(self._shown(drawing), draws=True)]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        is_first = not self._responses
        self._responses += responses
        pictures = self._pictures()
        if self._second is None or not is_first or not pictures:
            return ()
        return [self._asked(structs.replace(self._shown(self._second, pictures[0]), round=1))]

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
        return structs.replace(made, generation={**options, _DRAWS: True} if draws else options)


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


EXCHANGES: dict[str, type[TaskExchange]] = {
    "generate_until": SingleExchange,
    "loglikelihood": LikelihoodExchange,
    "multiple_choice": LikelihoodExchange,
    "generate_until_multi_round": RoundsExchange,
    "generate_until_agentic": AgenticExchange,
    "generate_visual_cot": VisualCotExchange,
}
PLUGIN_EXCHANGES: dict[str, type[TaskExchange]] = {
    "generate_until_multi_round": PluginRoundsExchange,
    "generate_visual_cot": PluginVisualCotExchange,
}
"""Output types whose rounds class plugins run themselves."""
