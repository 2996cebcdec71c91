"""Plugins of the class interface (``lmms_eval.api.model.lmms``) as models of the streaming contract.

The plugin is fed chunk by chunk. What it reports through ``cache_hook.add_partial`` is handed on at once, so that it
is durable before the chunk ends; a chunk that raises is asked again one request at a time, so that one bad request
costs one sample.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import sys
from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Task
from lmms_eval.errors import LmmsEvalError, ModelError, UsageError
from lmms_eval.models.legacy_calls import CallEnd, PartialHook, PluginCall, Prepared, failure
from lmms_eval.models.legacy_worker import TorchState, Worker
from lmms_eval.models.task_access import legacy_task, wants_chat_template
from lmms_eval.utils.reported import forget_reported, reported

log = logging.getLogger(__name__)
CHUNK_FACTOR = 8
FIVE_WANTED = "too many values to unpack (expected 5"
SIX_WANTED = "not enough values to unpack"


class TaskDict(MutableMapping[str, Any]):
    """``task_dict[task][split][doc_id]``: the data sets of a run's tasks, each opened at the first look."""

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
    """A plugin of the class interface behind the streaming contract.

    Args:
        plugin: the model object.
        chunk_size: requests in one call; default 8 x batch size, or 8 x the requests that the plugin keeps open
            (its ``num_concurrent``) where these are more.
        batch_size: as given on the command line; else the plugin's ``batch_size_per_gpu``.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood", "generate_until_multi_round"})
    ordered = True
    reads_documents = True

    def __init__(self, plugin: lmms, chunk_size: int | None = None, batch_size: int | str | None = None) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ModelError(f"chunk_size must be at least 1, not {chunk_size}")
        self.plugin = plugin
        self.chat = not plugin.is_simple
        given = (batch_size, getattr(plugin, "batch_size_per_gpu", None))
        sizes = (int(size) for size in given if isinstance(size, int | str) and str(size).isdigit())
        own = CHUNK_FACTOR * next((size for size in sizes if size > 0), 1)
        self._chunk_size = chunk_size or max(own, CHUNK_FACTOR * _open_requests(plugin))
        self.concurrency = self._chunk_size
        if plugin.is_simple and type(plugin).generate_visual_cot is not lmms.generate_visual_cot:
            self.kinds = self.kinds | {"generate_visual_cot"}
        self._five = False
        self._hook = PartialHook()
        self._torch_state = TorchState.capture()
        plugin.set_cache_hook(self._hook)

    @property
    def collective_forward(self) -> bool:  # type: ignore[override]  # follows the plugin and its place
        """Forward passes meet in collectives, so all processes must make the same number of calls."""
        declared = getattr(self.plugin, "collective_forward", None)
        if declared is not None:
            return bool(declared)
        return getattr(self.plugin, "_world_size", 1) > 1 and not getattr(self.plugin, "data_parallel", False)

    def set_world(self, rank: int, world_size: int) -> None:
        """Tell the plugin its place among all processes."""
        self.plugin._rank, self.plugin._world_size = rank, world_size

    def prepare(self, request: Request) -> Request:
        """Plugins render their own prompts. In lockstep what cannot be built must be known before a call."""
        return request.with_payload(self._prepared(request), 0) if self.collective_forward else request

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        forget_reported()
        self.plugin.task_dict = TaskDict(tasks)  # type: ignore[assignment]  # opened lazily, used like the dictionary
        repeats = max((task.repeats for task in tasks), default=1)
        self.concurrency = -(-self._chunk_size // repeats) * repeats  # the repeats of a document stay in one chunk

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
        has_file = cls.__module__ != "__main__" and cls.__module__ in sys.modules  # else it was made interactively
        source = inspect.getsourcefile(cls) if has_file else None
        digest = hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else ""
        return {"class": f"{cls.__module__}.{cls.__qualname__}", "source": digest}

    def describe(self) -> Mapping[str, Any]:
        cls = type(self.plugin)
        told = {
            "batch_sizes": getattr(self.plugin, "batch_sizes", None),
            "chat_template": getattr(self.plugin, "chat_template", None),
            "tokenizer_name": getattr(self.plugin, "tokenizer_name", None),
            "model_source": getattr(getattr(self.plugin, "config", None), "_name_or_path", None),
        }
        return {
            "model_backend": f"{cls.__module__}.{cls.__qualname__} ({'chat' if self.chat else 'simple'})",
            "chunk_size": self._chunk_size,
            **{key: value for key, value in told.items() if isinstance(value, str | list | dict) and value},
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
            except Exception as error:  # a task's own functions may raise anything: one failed sample
                log.debug("%s: not built", request.id, exc_info=error)
                doing = f"building the plugin's arguments raised {type(error).__name__}: "
                message = f"{'' if isinstance(error, LmmsEvalError) else doing}{error}"
                yield Response.failure(request.id, "internal", message)
        if not items:
            return
        end = yield from self._ask(items, worker)
        if end.error is None:
            return
        # One process alone must not make further collective calls: the others would wait for them for ever.
        if len(items) == 1 or self.collective_forward:
            yield from (failure(item, end.error, 1) for item in end.unanswered)
            return
        log.warning("a chunk of %d requests raised %s; asking one at a time", len(items), type(end.error).__name__)
        for item in end.unanswered:
            single = yield from self._ask([item], worker)
            if single.error is not None:
                yield from (failure(item, single.error, 2) for item in single.unanswered)

    def _prepared(self, request: Request) -> Prepared:
        if isinstance(request.payload, Prepared):
            return replace(request.payload, request=request)  # a repeated request has an id of its own
        task = legacy_task(request.task)
        metadata = {
            "task": request.task.name,
            "doc_id": request.doc_id,
            "repeats": request.task.repeats,
            **task.legacy_metadata(request),
        }
        arguments = tuple(task.legacy_arguments(request, self.chat))
        if not self.chat and wants_chat_template(request.task):
            render = getattr(self.plugin, "apply_chat_template", None)
            if not callable(render):
                name = type(self.plugin).__name__
                raise ModelError(f"model {name} has no apply_chat_template: leave out --apply_chat_template")
            arguments = (render(list(task.legacy_context_turns(request))), *arguments[1:])
        return Prepared(request, arguments, metadata)

    def _ask(self, items: Sequence[Prepared], worker: Worker) -> Generator[Response, None, CallEnd]:
        """One call; where the plugin turns out to unpack five elements, a second one without the context."""
        end = yield from self._call(items, worker, self._five)
        if self._five or not self.chat or not _unpacked(end, FIVE_WANTED) or len(end.unanswered) < len(items):
            return end
        second = yield from self._call(items, worker, five=True)
        if _unpacked(second, SIX_WANTED):
            return end
        self._five = True
        return second

    def _call(self, items: Sequence[Prepared], worker: Worker, five: bool) -> Generator[Response, None, CallEnd]:
        kind = items[0].request.kind
        call = PluginCall(getattr(self.plugin, kind), items, five)
        self._hook.attach(call)
        worker.submit(call.run)
        yield from call.responses()
        self._hook.attach(None)
        end = call.end()
        # Errors that neither asking again nor other requests can mend end the run.
        name = type(self.plugin).__name__
        if isinstance(end.error, NotImplementedError) and (kind != "generate_until" or _raised_by(kind, end.error)):
            raise ModelError(f"model {name} does not implement {kind}: {end.error or 'no message'}; choose other tasks")
        if isinstance(end.error, SystemExit):
            raise LmmsEvalError(f"model {name} ended the process (sys.exit) in {kind}") from end.error
        if end.error is not None and not isinstance(end.error, Exception):
            raise end.error
        return end


def _open_requests(plugin: lmms) -> int:
    told = getattr(plugin, "num_concurrent", 0)
    return told if isinstance(told, int) else 0


def _groups(chunk: Sequence[Request]) -> list[list[Request]]:
    """Requests of one kind and one task each; the repeats of a document together and in order.

    Not more than one task in a call: plugins take the prompt builder of the first request for the whole batch.
    """
    groups: dict[tuple[str, str], dict[int, list[Request]]] = {}
    for request in chunk:
        docs = groups.setdefault((request.kind, request.task.name), {})
        docs.setdefault(request.doc_id, []).append(request)
    return [
        [request for doc in docs.values() for request in sorted(doc, key=lambda r: (r.repeat, r.round, r.index))]
        for docs in groups.values()
    ]


def _unpacked(end: CallEnd, message: str) -> bool:
    return isinstance(end.error, ValueError) and str(end.error).startswith(message)


def _raised_by(method: str, error: BaseException) -> bool:
    """The method itself raised, not something below it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == method
