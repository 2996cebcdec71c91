"""The run of a remote model: many requests open, one layer of retries, every failure a response."""

from __future__ import annotations

import abc
import importlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.api.generation import MediaForm
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, MEDIA_ARGUMENTS, RemoteArguments, read_arguments

if TYPE_CHECKING:
    from lmms_eval.models.remote.asking import Talk

Complete = Callable[[Any], Awaitable[Any]]
"""One attempt: a prepared payload in, a ``Reply`` back or an ``AttemptError``."""


class RemoteModel(Model):
    """Asks a server, with up to ``num_concurrent`` requests open at a time.

    Subclasses prepare payloads and make single attempts (``connect``); retries, concurrency and records are here.
    """

    ignored_arguments = IGNORED
    answer_arguments: tuple[str, ...] = ANSWER_ARGUMENTS
    """Arguments that can change an answer."""
    arguments_kind: type[RemoteArguments] = RemoteArguments

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
        self.stops = StopSending(self.stops_here, self.has_template)

    @property
    def has_template(self) -> bool:
        """Requests are conversations; ``False``: they are plain text, which the model continues."""
        return True

    @abc.abstractmethod
    def connect(self) -> AbstractAsyncContextManager[Complete]:
        """Open a client for the life of one stream."""

    @abc.abstractmethod
    def stops_here(self, request: Request) -> list[str]:
        """The stop strings that cannot be sent to the server."""

    @abc.abstractmethod
    def sent_options(self, request: Request) -> Mapping[str, Any]:
        """Options of a request under the names by which they are sent, without a seed that is the request's own."""

    @abc.abstractmethod
    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""

    def attach_folder(self, folder: Path) -> None:
        """Keep there that stop strings are no longer sent."""
        self.stops.attach_folder(folder)

    def talks(self) -> Callable[[], Talk]:
        """Return what begins the talk of each request of one stream; by default a reply is the answer."""
        from lmms_eval.models.remote.asking import PLAIN

        return lambda: PLAIN

    async def respond(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Answer requests as they come; every failure is a response."""
        from lmms_eval.models.remote.asking import Asker, Dispatcher, Gate, RetryPolicy

        settings = self._settings
        gate = self._gate = Gate(settings)
        policy = RetryPolicy(settings.max_retries, settings.retry_backoff_s)
        async with self.connect() as complete:
            asker = Asker(complete, gate, policy, self.stops, self.tally, self.talks())
            async with aclosing(Dispatcher(gate, asker.ask).run(stream)) as responses:
                async for response in responses:
                    yield response

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Options, system prompt and the form of media."""
        settings = self._settings
        form = {name: getattr(settings, name, None) for name in MEDIA_ARGUMENTS}
        return {
            "options": dict(self.sent_options(request)),
            "system_prompt": self.system_prompt,
            "media": {name: value for name, value in form.items() if value not in (None, False)},
        }

    def identity(self) -> Mapping[str, Any]:
        """Server, model, prompt and all arguments that change a request."""
        return {
            "base_url": self._address,
            "model": self._settings.model,
            **self._settings.model_dump(include=set(self.answer_arguments)),
            "system_prompt": self.system_prompt,
        }

    def describe(self) -> Mapping[str, Any]:
        """Address, concurrency as used, retries by kind, bytes sent, and what tasks asked for in vain."""
        return {
            "base_url": self._address,
            "concurrency": self._gate.describe(),
            **self.tally.to_dict(),
            "stops_are_sent": not self.stops.is_off,
            "ignored_generation_options": self.ignored_options(),
        }


def import_sdk(module: str, backend: str, extra: str) -> Any:
    """An optional package.

    Raises:
        ModelError: it is not installed; says how to install it.
    """
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
