"""The bases of remote models: concurrent requests, one layer of retries, and failures as responses."""

from __future__ import annotations

import abc
import importlib
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmms_eval.api.generation import PIXEL_LIMITS, VIDEO_LIMITS, MediaForm
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED, limits_as_arguments
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, MEDIA_ARGUMENTS, RemoteArguments, read_arguments

if TYPE_CHECKING:
    from lmms_eval.models.remote.arguments import ServiceArguments
    from lmms_eval.models.remote.asking import RequestExchange
    from lmms_eval.models.remote.batch.service import BatchService

Complete = Callable[[Any], Awaitable[Any]]
"""Makes one attempt: takes a prepared payload, and returns a ``Reply`` or raises ``AttemptError``."""


class RemoteModel(Model):
    """Sends requests to a server, with up to ``num_concurrent`` open at a time.

    Subclasses prepare payloads and make single attempts (``connect``). This class handles retries, concurrency and
    records.
    """

    ignored_arguments = IGNORED
    answer_arguments: tuple[str, ...] = ANSWER_ARGUMENTS
    """The arguments that can change an answer."""
    arguments_kind: type[RemoteArguments] = RemoteArguments
    imported_ahead: str = ""
    """A library that building the model needs. A run imports it while it opens the tasks' data."""

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:
        parsed = read_arguments(cls.arguments_kind, model_args, os.environ)
        frames, whole = parsed.frames, bool(getattr(parsed, "pass_video_url", False))
        return MediaForm(frames.count, frames.fps, parsed.wire_options(False), whole, parsed.max_new_tokens)

    def __init__(self, arguments: RemoteArguments, address: str, system_prompt: str | None) -> None:
        from lmms_eval.models.remote.asking import Gate, Tally
        from lmms_eval.models.remote.stops import StopSending

        arguments = arguments.of_this_process(os.environ)
        self.concurrency = arguments.ceiling
        self.tally = Tally()
        self._settings, self._address = arguments, address
        self.system_prompt = system_prompt
        self._gate = Gate(arguments)
        self._lock = threading.Lock()
        self._ignored: set[str] = set()
        self.stops = StopSending(self.stops_here, self.has_template)

    @property
    def has_template(self) -> bool:
        """Whether requests are conversations. Otherwise they are plain texts that the model continues."""
        return True

    @abc.abstractmethod
    def connect(self) -> AbstractAsyncContextManager[Complete]:
        """Open a client for the duration of one stream."""

    @abc.abstractmethod
    def stops_here(self, request: Request) -> list[str]:
        """Return the stop strings that cannot be sent to the server."""

    @abc.abstractmethod
    def sent_options(self, request: Request) -> Mapping[str, Any]:
        """Return the options of a request as they are sent, without the derived seed."""

    def attach_folder(self, folder: Path) -> None:
        """Set the folder that records if stop strings are no longer sent."""
        self.stops.attach_folder(folder)

    def exchanges(self) -> Callable[[], RequestExchange]:
        """Return the factory of the exchanges of one stream. By default, the first reply is the answer."""
        from lmms_eval.models.remote.asking import RequestExchange

        return RequestExchange

    async def respond(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Answer requests as they arrive. Every failure is a response."""
        from lmms_eval.models.remote.asking import Asker, Dispatcher, Gate

        settings = self._settings
        gate = self._gate = Gate(settings)
        async with self.connect() as complete:
            asker = Asker(complete, gate, settings, self.stops, self.tally, self.exchanges())
            async with aclosing(Dispatcher(gate, asker.ask).run(stream)) as responses:
                async for response in responses:
                    yield response

    @property
    def media_limits(self) -> frozenset[str]:
        """Those of pictures and frames; without those of frames if videos are sent as they are."""
        is_whole = getattr(self._settings, "pass_video_url", False) or getattr(self._settings, "pass_video", False)
        return PIXEL_LIMITS if is_whole else PIXEL_LIMITS | VIDEO_LIMITS

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return the options, the system prompt and the media options."""
        settings = self._settings
        form = {name: getattr(settings, name, None) for name in MEDIA_ARGUMENTS}
        if request.media is not None:
            form |= limits_as_arguments(request.media, most_frames="max_frames_num", rate="video_fps")
        return {
            "options": dict(self.sent_options(request)),
            "system_prompt": self.system_prompt,
            "media": {name: value for name, value in form.items() if value not in (None, False)},
        }

    def identity(self) -> Mapping[str, Any]:
        """Return the server, the model, the prompt and all arguments that change a request."""
        return {
            "base_url": self._address,
            "model": self._settings.model,
            **self._settings.model_dump(include=set(self.answer_arguments)),
            "system_prompt": self.system_prompt,
        }

    def describe(self) -> Mapping[str, Any]:
        """Return the address, the concurrency, the retries by kind, the bytes sent, and ignored options of tasks."""
        return {
            "base_url": self._address,
            "concurrency": self._gate.describe(),
            **self.tally.to_dict(),
            "stops_are_sent": not self.stops.is_off,
            "ignored_generation_options": self.ignored_options(),
        }

    def note_ignored(self, names: Iterable[str]) -> None:
        """Record generation options of a task that are ignored."""
        with self._lock:
            self._ignored.update(names)

    def ignored_options(self) -> list[str]:
        """Return the generation options of tasks that were ignored so far."""
        with self._lock:
            return sorted(self._ignored)


class BatchModel(RemoteModel):
    """A ``RemoteModel`` whose service has a batch interface, which the argument ``batch`` selects."""

    _folder: Path | None = None
    """The folder of batches, below that of the run."""
    _batch_ids: Sequence[str] = ()

    def __init__(self, arguments: RemoteArguments, address: str, system_prompt: str | None) -> None:
        super().__init__(arguments, address, system_prompt)
        self.in_batches = bool(getattr(arguments, "batch", False))
        if not self.in_batches:
            return
        if int(os.environ.get("WORLD_SIZE") or 1) > 1:
            raise ModelError("batch=true works with one process only: start a single process")
        self.kinds = frozenset({"generate_until"})
        self.collects = cast("ServiceArguments", arguments).batch_max_requests

    def batches(self) -> BatchService:
        """Return a client of the service's batch interface."""
        raise NotImplementedError

    def attach_folder(self, folder: Path) -> None:
        """Set the folder for the records of batches and of stop strings."""
        super().attach_folder(folder)
        self._folder = folder

    def describe(self) -> Mapping[str, Any]:
        """Return the description of a remote model, with the ids of its batches."""
        batches = {"batches": list(self._batch_ids)} if self.in_batches else {}
        return {**super().describe(), **batches}

    def respond(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Answer requests as they arrive, or with ``batch`` as batches end. Every failure is a response.

        Raises:
            ModelError: with ``batch``, there is no folder for the batches' ids, or an earlier batch cannot be found.
        """
        return self._answers(stream) if self.in_batches else super().respond(stream)

    async def _answers(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        from lmms_eval.models.remote.batch.asker import BatchAsker
        from lmms_eval.models.remote.batch.ledger import Ledger

        if self._folder is None:
            raise ModelError(
                "batch=true applies to the model and the judge of a run, not to other commands: leave it out"
            )
        arguments = cast("ServiceArguments", self._settings)
        async with self.batches() as service:
            max_bytes = int(arguments.batch_max_mb * 1_000_000) - service.overhead
            with Ledger(self._folder, arguments.batch_max_requests, max_bytes) as ledger:
                self._batch_ids = ledger.batch_ids
                asker = BatchAsker(service, ledger, arguments, self.stops, self.tally)
                async with aclosing(asker.run(stream)) as responses:
                    async for response in responses:
                        yield response


def import_sdk(module: str, backend: str, extra: str) -> Any:
    """Import an optional package. Raises ``ModelError``, which shows how to install it, if it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module != missing and not module.startswith(f"{missing}."):
            raise ModelError(f"the back end {backend} cannot import {module}: {error}") from error
        raise ModelError(
            f"the back end {backend} needs the package {module}: pip install 'lmms_eval[{extra}]'"
        ) from error
    except ImportError as error:
        raise ModelError(f"the back end {backend} cannot import {module}: {error}") from error
