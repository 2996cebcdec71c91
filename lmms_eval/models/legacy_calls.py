"""One call of a plugin's method: its instances, its partial results, and how its outputs are read."""

from __future__ import annotations

import copy
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import FailedGeneration, GenerationResult, Instance, unwrap_generation_output
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import CacheHook
from lmms_eval.api.request import ErrorKind, GeneratedImage, Request, Response, Usage
from lmms_eval.errors import FunctionError, MediaError

log = logging.getLogger(__name__)
MULTI_ROUND = "generate_until_multi_round"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with the arguments that the plugin will unpack."""

    request: Request
    arguments: tuple[Any, ...]
    metadata: Mapping[str, Any]

    def instance(self, five: bool) -> Instance:
        """A fresh instance: plugins change generation options in place. ``five`` leaves the context out."""
        arguments = self.arguments[1:] if five and len(self.arguments) == 6 else self.arguments
        return Instance(
            request_type=self.request.kind,
            arguments=tuple(copy.deepcopy(dict(item)) if isinstance(item, Mapping) else item for item in arguments),
            idx=self.request.index,
            metadata=dict(self.metadata),
            seed=self.request.seed,
            implied_stop=self.request.implied_stop,
        )

    @property
    def context(self) -> Any:
        """The first argument, by which partial results name their request."""
        return self.arguments[0] if self.arguments else None


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call. ``unanswered`` are the requests that no response was given for."""

    error: BaseException | None
    unanswered: tuple[Prepared, ...]


class UnusableOutput(Exception):
    """A plugin returned something that is no answer to the request."""


class PluginCall:
    """A running call. ``responses`` yields each response as it comes; it ends when the plugin has returned."""

    def __init__(self, method: Callable[[list[Instance]], Any], items: Sequence[Prepared], five: bool) -> None:
        self._method, self._items = method, tuple(items)
        self._name = str(items[0].request.kind)
        self._instances = [item.instance(five) for item in items]
        counts = Counter(item.context for item in items if isinstance(item.context, str))
        self._unique = {
            item.context: position
            for position, item in enumerate(items)
            if isinstance(item.context, str) and counts[item.context] == 1
        }
        self._own = {id(instance.arguments): position for position, instance in enumerate(self._instances)}
        self._lock = threading.Lock()
        self._answered: set[int] = set()
        self._events: queue.SimpleQueue[Response | None] = queue.SimpleQueue()
        self._started = time.perf_counter()
        self._outputs: Any = None
        self._error: BaseException | None = None
        self._open = True

    def run(self) -> None:
        """Call the plugin. Runs in the worker thread; nothing is raised here, the taker of responses sees it."""
        try:
            outputs = self._method(self._instances)
            self._outputs = list(outputs) if isinstance(outputs, Iterator) else outputs
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; the generator judges it
            self._error = error
        with self._lock:
            self._open = False
        self._events.put(None)

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        """Take a partial result if it is a whole answer to exactly one pending request.

        The plugin names it by the request's own arguments, or by a context that no other request has.
        """
        if method != self._name or method == MULTI_ROUND:
            return  # a multi-round call is one unit: what comes before its end are single rounds
        context = arguments[0] if isinstance(arguments, tuple | list) and arguments else arguments
        position = self._own.get(id(arguments))
        if position is None and isinstance(context, str):
            position = self._unique.get(context)
        if position is None:
            return
        try:
            response = self._response(position, result)
        except UnusableOutput:
            return
        if response.error is not None:  # a picture that is none: what the plugin returns in the end counts
            return
        with self._lock:
            if self._open and position not in self._answered:
                self._answered.add(position)
                self._events.put(response)

    def responses(self) -> Iterator[Response]:
        """Partial results at once, then the rest of the returned list. See ``end`` afterwards."""
        while (response := self._events.get()) is not None:
            yield response
        if self._error is not None:
            return
        problem = ""
        if not isinstance(self._outputs, list | tuple):
            problem = f"the plugin's {self._name} returned a {type(self._outputs).__name__}, not a list"
        elif len(self._outputs) != len(self._items):
            counts = f"{len(self._outputs)} results for {len(self._items)} requests"
            problem = f"the plugin's {self._name} returned {counts}"
        for position in [position for position in range(len(self._items)) if position not in self._answered]:
            self._answered.add(position)
            if problem:
                yield Response.failure(self._items[position].request.id, "internal", problem)
                continue
            try:
                yield self._response(position, self._outputs[position])
            except UnusableOutput as error:
                yield Response.failure(self._items[position].request.id, "internal", str(error))

    def end(self) -> CallEnd:
        """Return how the call ended, once ``responses`` is used up."""
        unanswered = (item for position, item in enumerate(self._items) if position not in self._answered)
        return CallEnd(self._error, tuple(unanswered))

    def _response(self, position: int, output: Any) -> Response:
        request = self._items[position].request
        latency = time.perf_counter() - self._started
        if request.kind == "loglikelihood":
            return _likelihood_response(request, output, latency)
        return _generation_response(request, output, latency)


def _likelihood_response(request: Request, output: Any, latency: float) -> Response:
    if isinstance(output, tuple | list) and len(output) == 2:
        try:
            value = float(output[0])
        except (TypeError, ValueError):
            value = None
        if value is not None:
            return Response(request.id, loglikelihood=value, is_greedy=bool(output[1]), is_loss=True, latency=latency)
    raise UnusableOutput(
        f"the plugin's loglikelihood returned {_shown(output)} for a request; it must return (loss, is_greedy)"
    )


def _generation_response(request: Request, output: Any, latency: float) -> Response:
    if isinstance(output, FailedGeneration):
        return Response.failure(request.id, output.kind, output.reason, output.attempts)
    if output is None:
        raise UnusableOutput(f"the plugin's {request.kind} returned None for a request; it must return a text")
    unwrapped = unwrap_generation_output(output)
    counts = unwrapped.token_counts
    usage = None if counts is None else Usage(counts.input_tokens, counts.output_tokens, counts.reasoning_tokens)
    told = output if isinstance(output, GenerationResult) else GenerationResult()
    if request.kind == MULTI_ROUND:
        rounds = tuple(unwrapped.text) if isinstance(unwrapped.text, list) else (unwrapped.text,)
        return Response(request.id, rounds=rounds, usage=usage, latency=latency)
    if unwrapped.parts:
        try:
            parts = [part if isinstance(part, str) else _picture(part) for part in unwrapped.parts]
            details = {"finish_reason": told.finish_reason, "thoughts": told.thoughts}
            return Response.interleaved(request.id, parts, usage=usage, latency=latency, **details)
        except (MediaError, OSError) as error:
            message = f"the plugin's {request.kind} returned a picture of {error}"
            return Response.failure(request.id, "malformed", message)
    if not isinstance(unwrapped.text, str):
        raise UnusableOutput(f"the plugin's generate_until returned {_shown(output)} for a request; return a text")
    return Response(
        request.id,
        text=unwrapped.text,
        usage=usage,
        latency=latency,
        finish_reason=told.finish_reason,
        thoughts=told.thoughts,
    )


def _picture(part: Any) -> GeneratedImage:
    """A picture as plugins give it. Raises ``MediaError`` or ``OSError``."""
    if isinstance(part, GeneratedImage):
        return part
    if isinstance(part, bytes):
        return generated_image(part)
    if isinstance(part, Path):
        return generated_image(part.read_bytes())
    from lmms_eval.media.encode import encode_image

    if not hasattr(part, "save"):
        raise MediaError(f"type {type(part).__name__}: give bytes, a Path or a PIL image")
    return generated_image(encode_image(part))


def _shown(output: Any) -> str:
    text = repr(output)
    return text if len(text) <= 80 else f"{text[:77]}..."


class PartialHook(CacheHook):
    """The cache hook that plugins are given: hands partial results to the call that is running."""

    def __init__(self) -> None:
        self._call: PluginCall | None = None

    def attach(self, call: PluginCall | None) -> None:
        self._call = call

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        call = self._call
        if call is not None:
            call.add_partial(method, arguments, result)


def failure(item: Prepared, error: BaseException, attempts: int) -> Response:
    """A plugin's exception as the end of one request; its traceback is logged at DEBUG."""
    log.debug("%s: the plugin raised", item.request.id, exc_info=error)
    kind: ErrorKind = "out_of_memory" if "OutOfMemory" in type(error).__name__ else "internal"
    detail = str(error) or "no message"
    of_task = isinstance(error, FunctionError)  # a function of the task, which the plugin has called
    message = detail if of_task else f"the plugin's {item.request.kind} raised {type(error).__name__}: {detail}"
    return Response.failure(item.request.id, kind, message, attempts)
