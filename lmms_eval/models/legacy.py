"""The adapter from plugins of the class interface (``lmms_eval.api.model.lmms``) to the streaming interface.

The plugin gets requests in chunks. Results that it reports through ``cache_hook.add_partial`` are forwarded at once, so
that they are durable before the chunk ends. If a chunk raises, its requests are retried one at a time, so that one bad
request costs one sample.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import logging
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

from lmms_eval.api.instance import FailedGeneration, GenerationResult, Instance, unwrap_generation_output
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import CacheHook, Model, RequestStream, lmms
from lmms_eval.api.request import ErrorKind, GeneratedImage, Request, RequestKind, Response, Usage
from lmms_eval.api.task import Task
from lmms_eval.errors import FunctionError, LmmsEvalError, MediaError, ModelError, UsageError
from lmms_eval.models.task_access import legacy_task, wants_chat_template
from lmms_eval.utils.reported import forget_reported, reported

log = logging.getLogger(__name__)
MULTI_ROUND = "generate_until_multi_round"
ROLLING: Final = "loglikelihood_rolling"
CHUNK_FACTOR = 8
FIVE_WANTED = "too many values to unpack (expected 5"
SIX_WANTED = "not enough values to unpack"


@dataclass(frozen=True, slots=True)
class UnpackedRequest:
    """A request with the arguments that the plugin unpacks."""

    request: Request
    arguments: tuple[Any, ...]
    metadata: Mapping[str, Any]

    def instance(self, five: bool) -> Instance:
        """Return a new instance, as plugins change generation options in place. ``five`` leaves out the context."""
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
        """The first argument. Partial results identify their request by it."""
        return self.arguments[0] if self.arguments else None


class UnusableOutput(Exception):
    """A plugin returned something that is not an answer to the request."""


class PluginCall:
    """A running call. ``responses`` yields each response as it arrives, and ends when the plugin has returned.

    Then ``error`` is what the plugin raised, and ``unanswered`` are the requests without a response.
    """

    def __init__(self, method: Callable[[list[Instance]], Any], items: Sequence[UnpackedRequest], five: bool) -> None:
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
        self.error: BaseException | None = None
        self._open = True

    def run(self) -> None:
        """Call the plugin. This runs in the worker thread; errors are reported to the consumer of ``responses``."""
        try:
            outputs = self._method(self._instances)
            self._outputs = list(outputs) if isinstance(outputs, Iterator) else outputs
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; ``_call`` decides about it
            self.error = error
        with self._lock:
            self._open = False
        self._events.put(None)

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        """Accept a partial result if it is a whole answer to exactly one pending request.

        The plugin identifies the request by its own arguments, or by a context that no other request has.
        """
        if method != self._name or method == MULTI_ROUND:
            return  # a multi-round call is one unit, and its partial results are single rounds
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
        if response.error is not None:  # an invalid picture: the final return value of the plugin counts
            return
        with self._lock:
            if self._open and position not in self._answered:
                self._answered.add(position)
                self._events.put(response)

    def responses(self) -> Iterator[Response]:
        """Yield partial results at once, then the rest of the returned list."""
        while (response := self._events.get()) is not None:
            yield response
        if self.error is not None:
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

    @property
    def unanswered(self) -> list[UnpackedRequest]:
        """The requests without a response."""
        return [item for position, item in enumerate(self._items) if position not in self._answered]

    def failed_with(self, message: str) -> bool:
        """Return whether the plugin raised a ``ValueError`` that begins with ``message``."""
        return isinstance(self.error, ValueError) and str(self.error).startswith(message)

    def _response(self, position: int, output: Any) -> Response:
        request = self._items[position].request
        latency = time.perf_counter() - self._started
        if request.kind == ROLLING:
            return _rolling_response(request, output, latency)
        if request.is_likelihood:
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


def _rolling_response(request: Request, output: Any, latency: float) -> Response:
    """Read a log-likelihood, alone or first in a list or tuple. Greater is likelier, as in lm-eval."""
    value = output[0] if isinstance(output, tuple | list) and output else output
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Response(request.id, loglikelihood=float(value), is_greedy=False, latency=latency)
    raise UnusableOutput(
        f"the plugin's {ROLLING} returned {_shown(output)} for a request; it must return the log-likelihood of the text"
    )


def _generation_response(request: Request, output: Any, latency: float) -> Response:
    if isinstance(output, FailedGeneration):
        return Response.failure(request.id, output.kind, output.reason, output.attempts)
    if output is None:
        raise UnusableOutput(f"the plugin's {request.kind} returned None for a request; it must return a text")
    unwrapped = unwrap_generation_output(output)
    counts = unwrapped.token_counts
    usage = None if counts is None else Usage(counts.input_tokens, counts.output_tokens, counts.reasoning_tokens)
    details = output if isinstance(output, GenerationResult) else GenerationResult()
    if request.kind == MULTI_ROUND:
        rounds = tuple(unwrapped.text) if isinstance(unwrapped.text, list) else (unwrapped.text,)
        return Response(request.id, rounds=rounds, usage=usage, latency=latency)
    if unwrapped.parts:
        try:
            parts = [part if isinstance(part, str) else _picture(part) for part in unwrapped.parts]
            facts = {"finish_reason": details.finish_reason, "thoughts": details.thoughts}
            return Response.interleaved(request.id, parts, usage=usage, latency=latency, **facts)
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
        finish_reason=details.finish_reason,
        thoughts=details.thoughts,
    )


def _picture(part: Any) -> GeneratedImage:
    """Convert a picture of a plugin. Raises ``MediaError`` or ``OSError``."""
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
    """The cache hook for plugins, which passes partial results to the running call."""

    def __init__(self) -> None:
        self._call: PluginCall | None = None

    def attach(self, call: PluginCall | None) -> None:
        self._call = call

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        call = self._call
        if call is not None:
            call.add_partial(method, arguments, result)


def failure(item: UnpackedRequest, error: BaseException, attempts: int) -> Response:
    """Return the failure of a request by a plugin's exception, and log its traceback at DEBUG."""
    log.debug("%s: the plugin raised", item.request.id, exc_info=error)
    kind: ErrorKind = "out_of_memory" if "OutOfMemory" in type(error).__name__ else "internal"
    detail = str(error) or "no message"
    of_task = isinstance(error, FunctionError)  # raised by a function of the task that the plugin called
    message = detail if of_task else f"the plugin's {item.request.kind} raised {type(error).__name__}: {detail}"
    return Response.failure(item.request.id, kind, message, attempts)


def captured_torch_state() -> Callable[[], None] | None:
    """Return a function that sets the settings of torch in another thread as in this one; ``None`` without torch.

    Torch keeps them per thread, and a plugin's constructor may have changed them in its thread.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    grad_enabled = torch.is_grad_enabled()

    def apply() -> None:
        torch.set_grad_enabled(grad_enabled)
        if device is not None:
            torch.cuda.set_device(device)

    return apply


class Worker:
    """A thread that runs jobs in order. It is a daemon, so that an interrupted run does not wait for a plugin."""

    def __init__(self, apply_state: Callable[[], None] | None) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._apply_state = apply_state
        self._thread = threading.Thread(target=self._run, name="legacy-plugin", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job, which must not raise."""
        self._jobs.put(job)

    def stop(self) -> None:
        """End the thread after the running job, without waiting for it."""
        self._jobs.put(None)

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            if self._apply_state is not None:
                self._apply_state()
            while (job := self._jobs.get()) is not None:
                # Plugins call asyncio.get_event_loop(), which finds a loop outside the main thread only if one was
                # set. It is set for each job, as asyncio.run in a plugin removes it.
                asyncio.set_event_loop(loop)
                job()
        finally:
            loop.close()


class TaskDict(MutableMapping[str, Any]):
    """``task_dict[task][split][doc_id]``: the data sets of a run's tasks, each opened on first access."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._loaded: dict[str, Any] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._tasks[name].dataset_dict()
            return self._loaded[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._loaded[name] = value

    def __delitem__(self, name: str) -> None:
        self._loaded.pop(name, None)
        self._tasks.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks or name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter([*self._tasks, *(name for name in self._loaded if name not in self._tasks)])

    def __len__(self) -> int:
        return len({*self._tasks, *self._loaded})


class LegacyAdapter(Model):
    """A plugin of the class interface as a model of the streaming interface.

    Args:
        plugin: the model object.
        chunk_size: requests in one call. The default is 8 times the batch size, or 8 times the plugin's
            ``num_concurrent`` if that is larger.
        batch_size: the batch size of the command line; by default the plugin's ``batch_size_per_gpu``.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood", "generate_until_multi_round"})
    ordered = True
    reads_documents = True
    calls_tasks = True

    def __init__(self, plugin: lmms, chunk_size: int | None = None, batch_size: int | str | None = None) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ModelError(f"chunk_size must be at least 1, not {chunk_size}")
        self.plugin = plugin
        self.chat = not plugin.is_simple
        given = (batch_size, getattr(plugin, "batch_size_per_gpu", None))
        sizes = (int(size) for size in given if isinstance(size, int | str) and str(size).isdigit())
        own = CHUNK_FACTOR * next((size for size in sizes if size > 0), 1)
        concurrent = getattr(plugin, "num_concurrent", 0)
        self._chunk_size = chunk_size or max(own, CHUNK_FACTOR * concurrent if isinstance(concurrent, int) else 0)
        self.concurrency = self._chunk_size
        if plugin.is_simple and type(plugin).generate_visual_cot is not lmms.generate_visual_cot:
            self.kinds = self.kinds | {"generate_visual_cot"}
        if type(plugin).loglikelihood_rolling is not lmms.loglikelihood_rolling:
            self.kinds = self.kinds | {ROLLING}
        self._five = False
        self._hook = PartialHook()
        self._torch_state = captured_torch_state()
        plugin.set_cache_hook(self._hook)

    @property
    def collective_forward(self) -> bool:  # type: ignore[override]  # follows the plugin and its place
        """Whether forward passes use collectives, so that all processes must make the same number of calls."""
        declared = getattr(self.plugin, "collective_forward", None)
        if declared is not None:
            return bool(declared)
        return getattr(self.plugin, "_world_size", 1) > 1 and not getattr(self.plugin, "data_parallel", False)

    def set_world(self, rank: int, world_size: int) -> None:
        """Set the plugin's rank and the number of processes."""
        self.plugin._rank, self.plugin._world_size = rank, world_size

    def prepare(self, request: Request) -> Request:
        """Build the arguments for collective calls only: their failures must be known before the call."""
        return request.with_payload(self._prepared(request), 0) if self.collective_forward else request

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        forget_reported()
        self.plugin.task_dict = TaskDict(tasks)  # type: ignore[assignment]  # opened lazily, used like a dictionary
        repeats = max((task.repeats for task in tasks), default=1)
        self.concurrency = -(-self._chunk_size // repeats) * repeats  # keeps the repeats of a document in one chunk

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        worker = Worker(self._torch_state)
        try:
            while chunk := stream.take(self.concurrency):
                for group in _groups(chunk):
                    yield from self._answer(group, worker)
        finally:
            self._hook.attach(None)
            worker.stop()

    def identity(self) -> Mapping[str, Any]:
        cls = type(self.plugin)
        # A class that was defined interactively has no file.
        has_file = cls.__module__ != "__main__" and cls.__module__ in sys.modules
        source = inspect.getsourcefile(cls) if has_file else None
        digest = hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else ""
        return {"class": f"{cls.__module__}.{cls.__qualname__}", "source": digest}

    def describe(self) -> Mapping[str, Any]:
        cls = type(self.plugin)
        facts = {
            "batch_sizes": getattr(self.plugin, "batch_sizes", None),
            "chat_template": getattr(self.plugin, "chat_template", None),
            "tokenizer_name": getattr(self.plugin, "tokenizer_name", None),
            "model_source": getattr(getattr(self.plugin, "config", None), "_name_or_path", None),
        }
        return {
            "model_backend": f"{cls.__module__}.{cls.__qualname__} ({'chat' if self.chat else 'simple'})",
            "chunk_size": self._chunk_size,
            **{key: value for key, value in facts.items() if isinstance(value, str | list | dict) and value},
            **({"reported": found} if (found := reported()) else {}),
        }

    def close(self) -> None:
        self.plugin.clean()

    def _answer(self, requests: Sequence[Request], worker: Worker) -> Iterator[Response]:
        items = []
        for request in requests:
            try:
                items.append(self._prepared(request))
            except UsageError:
                raise
            except Exception as error:  # a task's own functions may raise anything: the sample fails
                log.debug("%s: not built", request.id, exc_info=error)
                doing = f"building the plugin's arguments raised {type(error).__name__}: "
                message = f"{'' if isinstance(error, LmmsEvalError) else doing}{error}"
                yield Response.failure(request.id, "internal", message)
        if not items:
            return
        call = yield from self._ask(items, worker)
        if call.error is None:
            return
        # A single process must not make further collective calls: the others would wait for it forever.
        if len(items) == 1 or self.collective_forward:
            yield from (failure(item, call.error, 1) for item in call.unanswered)
            return
        log.warning(
            "a chunk of %d requests raised %s; retrying one request at a time", len(items), type(call.error).__name__
        )
        for item in call.unanswered:
            single = yield from self._ask([item], worker)
            if single.error is not None:
                yield from (failure(item, single.error, 2) for item in single.unanswered)

    def _prepared(self, request: Request) -> UnpackedRequest:
        if isinstance(request.payload, UnpackedRequest):
            return replace(request.payload, request=request)  # a repeated request has another id
        task = legacy_task(request.task)
        metadata = {
            "task": request.task.name,
            "doc_id": request.doc_id,
            "repeats": request.task.repeats,
            **task.legacy_metadata(request),
        }
        arguments = tuple(task.legacy_arguments(request, self.chat))
        if not self.chat and wants_chat_template(request.task) and request.kind != ROLLING:
            render = getattr(self.plugin, "apply_chat_template", None)
            if not callable(render):
                name = type(self.plugin).__name__
                raise ModelError(f"model {name} has no apply_chat_template: leave out --apply_chat_template")
            arguments = (render(list(task.legacy_context_turns(request))), *arguments[1:])
        return UnpackedRequest(request, arguments, metadata)

    def _ask(self, items: Sequence[UnpackedRequest], worker: Worker) -> Generator[Response, None, PluginCall]:
        """Call the plugin; if it turns out to unpack five elements, call it again without the context."""
        first = yield from self._call(items, worker, self._five)
        if self._five or not self.chat or not first.failed_with(FIVE_WANTED) or len(first.unanswered) < len(items):
            return first
        second = yield from self._call(items, worker, five=True)
        if second.failed_with(SIX_WANTED):
            return first
        self._five = True
        return second

    def _call(
        self, items: Sequence[UnpackedRequest], worker: Worker, five: bool
    ) -> Generator[Response, None, PluginCall]:
        kind = items[0].request.kind
        call = PluginCall(getattr(self.plugin, kind), items, five)
        self._hook.attach(call)
        worker.submit(call.run)
        yield from call.responses()
        self._hook.attach(None)
        # Errors that would occur again in every call end the run.
        name = type(self.plugin).__name__
        error = call.error
        if isinstance(error, NotImplementedError) and (kind != "generate_until" or _raised_by(kind, error)):
            raise ModelError(f"model {name} does not implement {kind}: {error or 'no message'}; choose other tasks")
        if isinstance(error, SystemExit):
            raise LmmsEvalError(f"model {name} ended the process (sys.exit) in {kind}") from error
        if error is not None and not isinstance(error, Exception):
            raise error
        return call


def _groups(chunk: Sequence[Request]) -> list[list[Request]]:
    """Group requests by kind and task, with the repeats of a document together and in order.

    A call has requests of one task only, as plugins use the prompt builder of the first request for the whole batch.
    """
    groups: dict[tuple[str, str], dict[int, list[Request]]] = {}
    for request in chunk:
        docs = groups.setdefault((request.kind, request.task.name), {})
        docs.setdefault(request.doc_id, []).append(request)
    return [
        [request for doc in docs.values() for request in sorted(doc, key=lambda r: (r.repeat, r.round, r.index))]
        for docs in groups.values()
    ]


def _raised_by(method: str, error: BaseException) -> bool:
    """Return whether the method itself raised, not a function that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == method
