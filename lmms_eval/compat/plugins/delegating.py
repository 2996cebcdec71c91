"""The base of plugin classes that hand their requests to one of this project's models.

It also reads the arguments of such classes, and messages in the form of OpenAI-compatible servers.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from lmms_eval.api.instance import FailedGeneration, GenerationResult, Instance, TokenCounts
from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.model import Model, lmms
from lmms_eval.api.request import Request, Response, ResponseError, SentMedia, SentMessage
from lmms_eval.api.task import Task
from lmms_eval.engine.drive import Driven, NoJournal, drive_all
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.errors import ModelError

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., None])


def read_given(
    kind: type[S], positional: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[S, dict[str, Any], dict[str, Any]]:
    """Bind a call's arguments to the fields of ``kind``; a surplus or repeated argument is a ``TypeError``.

    Returns the fields, those that the caller gave (by name), and the keywords that are not fields.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    own = {name: value for name, value in keywords.items() if name in names}
    given = dict(zip(names, positional, strict=False)) | own
    others = {name: value for name, value in keywords.items() if name not in names}
    return kind(*positional, **own), given, others


def takes(kind: type[Any], any_other: bool = False) -> Callable[[F], F]:
    """Give a constructor the signature of a dataclass, which the registry reads; ``any_other``: further keywords."""

    def declare(constructor: F) -> F:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        rest = [inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD)] if any_other else []
        parameters = [own, *inspect.signature(kind).parameters.values(), *rest]
        constructor.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return constructor

    return declare


KINDS = {
    "image_url": "image",
    "image_pil": "image",
    "image": "image",
    "video_url": "video",
    "video": "video",
    "audio_url": "audio",
    "audio": "audio",
}
"""Kind of medium, by the type of a part."""


def read_messages(messages: Sequence[Mapping[str, Any]]) -> ChatMessages:
    """Read the ``messages`` of a chat completion. Raises ``ModelError`` if a part is of no known type."""
    turns = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else [_part(part) for part in content]
        turns.append({"role": message["role"], "content": parts})
    return ChatMessages(messages=turns)  # type: ignore[arg-type]  # pydantic reads them


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type"))
    if kind == "text":
        return {"type": "text", "text": part["text"]}
    if kind == "input_audio":
        sound = part[kind]
        return {"type": "audio", "url": f"data:audio/{sound['format']};base64,{sound['data']}"}
    if kind not in KINDS or kind not in part:
        raise ModelError(
            f"make_one_request gave a part of type {kind!r}: known are text, input_audio, {', '.join(KINDS)}"
        )
    value = part[kind]
    return {"type": KINDS[kind], "url": value["url"] if isinstance(value, Mapping) and "url" in value else value}


Asked = tuple[Callable[[], ChatMessages], Mapping[str, Any]]
"""A function that builds the messages of a request, and the generation options as the model takes them."""
ENDED = "the model ended without answering this request"


class DelegatingModel(lmms):
    """A base class of plugins. Subclasses open the model (``_open_model``) and may change its requests.

    A request that is given up fails its sample: its place in the list holds a ``FailedGeneration``. If a subclass wraps
    ``generate_until`` and expects texts, the call raises instead. The answers of a call that raised are kept and
    returned when the adapter repeats its requests.
    """

    collective_forward = False
    """Each process has a model of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._model_in_use: Model | None = None
        self._known: dict[tuple[Any, ...], Response] = {}

    def _open_model(self) -> Model:
        """Create the model that answers. Called before the first request, after all constructors have run."""
        raise NotImplementedError

    def _asked(self, instance: Instance) -> Asked:
        """Read a request."""
        return partial(self._messages, instance), self._generation(options_of(instance, self.is_simple))

    def _generation(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Translate a task's generation options."""
        return options

    def _finished(self, text: str) -> str:
        """Turn the model's text into the answer."""
        return text

    def _note(self, response: Response) -> None:
        """Record an answer; calls do not overlap."""

    def _messages(self, instance: Instance) -> ChatMessages:
        """Build a request's conversation from its document."""
        *given, doc_id, task, split = instance.args
        document = self.task_dict[task][split][doc_id]
        if not self.is_simple:
            return ChatMessages(messages=given[-2](document))
        context, _, doc_to_visual = given
        return ChatMessages(messages=self._user_turn(doc_to_visual(document), context))  # type: ignore[arg-type]

    def _user_turn(self, visuals: Sequence[Any] | None, context: str) -> list[dict[str, Any]]:
        """Arrange the media and the text of a simple request."""
        return build_user_turn(visuals, context)

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """Send all requests at once; the model limits how many are open.

        Raises ``ModelError`` if a subclass wraps this method and a request was given up.
        """
        wrapped = type(self).generate_until is not DelegatingModel.generate_until
        keys = [(request.task_name, request.doc_id, request.idx, request.seed) for request in requests]
        answered = [self._known.pop(key, None) for key in keys]
        missing = [place for place, response in enumerate(answered) if response is None]
        for place, response in self._ask([(place, requests[place]) for place in missing], reports=not wrapped):
            answered[place] = response
        responses = [response for response in answered if response is not None]
        failed = [response.error for response in responses if response.error is not None]
        if wrapped and failed:
            if len(requests) > 1:  # the adapter repeats each of them alone
                self._known.update(zip(keys, responses, strict=True))
            raise ModelError(f"{failed[0].kind}: {failed[0].message}")
        return [self._output(response) for response in responses]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError(
            f"{type(self).__name__} answers texts only; `hf`, `openai` and `vllm` know likelihoods"
        )

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} answers one round only")

    def flatten(self, items: Sequence[Sequence[Any]]) -> list[Any]:
        """Join lists into one."""
        return [entry for item in items for entry in item]

    def clean(self) -> None:
        """Free the model."""
        if self._model_in_use is not None:
            self._model_in_use.close()
            self._model_in_use = None

    def _model(self) -> Model:
        """Return the model that answers; the first call creates it."""
        if self._model_in_use is None:
            self._model_in_use = self._open_model()
        return self._model_in_use

    def _ask(self, instances: Sequence[tuple[int, Instance]], reports: bool) -> Iterator[tuple[int, Response]]:
        """Yield the model's responses; with ``reports`` the cache hook gets each answer as it arrives."""
        if not instances:
            return
        responses: dict[int, Response] = {}
        lock = threading.Lock()

        def finish(place: int, instance: Instance, response: Response) -> None:
            response = response if response.text is None else replace(response, text=self._finished(response.text))
            with lock:
                responses[place] = response
                self._note(response)
                if reports and response.error is None:
                    self.cache_hook.add_partial("generate_until", instance.args, with_counts(response))

        def questions() -> Iterator[_Question]:
            for place, instance in instances:
                doc_id = int(instance.doc_id or 0)
                build_messages, generation = self._asked(instance)
                request = Request(
                    id=f"{instance.task_name}/{doc_id}/{instance.idx}/0/{place}",
                    kind="generate_until",
                    task=cast("Task", _NoTask()),
                    doc_id=doc_id,
                    build_messages=build_messages,
                    generation=generation,
                    seed=instance.seed,
                )
                yield _Question(request, partial(finish, place, instance))

        drive_all(Driven(self._model(), NoJournal()), questions(), StreamLimits(), ENDED)
        yield from responses.items()

    def _output(self, response: Response) -> Any:
        if response.error is not None:
            return FailedGeneration(response.error.message, response.error.kind, response.error.attempts)
        return with_counts(response) if response.parts else response.text


class _NoTask:
    """The task of a request; back ends that take messages do not use it."""

    name = "plugin"


@dataclass(slots=True)
class _Question:
    """A conversation of one request."""

    request: Request
    finish: Callable[[Response], None]
    thought_tags: tuple[tuple[str, str], ...] = ()
    """Plugins separate the thoughts from their answers themselves."""

    def open(self) -> Sequence[Request]:
        return (self.request,)

    def advance(self, responses: Sequence[Response]) -> None:
        self.finish(responses[0])

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:
        self.finish(Response(self.request.id, error=error))

    def accepts(self, response: Response) -> bool:
        return response.error is None

    def added(
        self,
        request: Request,
        messages: tuple[SentMessage, ...],
        media: Sequence[SentMedia],
    ) -> tuple[SentMessage, ...]:
        return ()

    def fingerprint(self, messages: ChatMessages) -> str:
        return ""


def options_of(instance: Instance, is_simple: bool) -> dict[str, Any]:
    """Return a request's generation options: the second argument, or the fourth from the end of a chat request.

    A stop string that the task only implies is left out: the models behind these classes get conversations.
    """
    options = dict(instance.args[1] if is_simple else instance.args[-4])
    if instance.implied_stop and options.get("until") == [instance.implied_stop]:
        del options["until"]
    return options


def with_counts(response: Response) -> GenerationResult:
    """Return an answer with its tokens and pictures, and how it ended."""
    usage = response.usage
    counts = None if usage is None else TokenCounts(usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    return GenerationResult(response.text or "", counts, response.parts, response.finish_reason, response.thoughts)
