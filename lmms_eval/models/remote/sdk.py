"""Parts that the back ends over vendors' packages share: arguments, key, address, attempts, prompt, options in vain."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import is_loopback
from lmms_eval.models.openai.body import read_system_prompt
from lmms_eval.models.remote.arguments import RemoteArguments, read_arguments
from lmms_eval.models.remote.errors import AttemptError, Failures, own_failure
from lmms_eval.models.remote.generation import Wanted, read_generation
from lmms_eval.models.remote.media import Conversation, payload_size, read_conversation
from lmms_eval.models.remote.model import Complete, RemoteModel, import_sdk
from lmms_eval.models.remote.reply import Reply

Call = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""One call of a package with keyword arguments."""


@dataclass(frozen=True, slots=True)
class Service:
    """A vendor's service and the package for it."""

    name: str
    """Name of the back end, and of the extra that installs the package."""
    module: str
    base_url: str
    base_url_variable: str
    key_variables: tuple[str, ...]
    """Environment variables that may hold the key; messages name the first."""


A = TypeVar("A", bound=RemoteArguments)


class SdkModel(RemoteModel, Generic[A]):
    """A ``RemoteModel`` over one package: its payload is the keyword arguments of one call.

    A back end names its ``service`` and ``arguments_kind``, makes the call's arguments (``build``), opens the package's
    client (``open``), reads an answer (``read``), and says which errors the package raises.

    Raises:
        ModelError: the package is absent, an unknown or wrong argument, no key.
    """

    service: ClassVar[Service]
    arguments_kind: type[A]

    def __init__(self, **arguments: Any) -> None:
        service = self.service
        parsed = self._arguments = read_arguments(self.arguments_kind, arguments, os.environ)
        self.sdk = import_sdk(service.module, service.name, service.name)
        self.url, shown = read_address(parsed.base_url or os.environ.get(service.base_url_variable), service.base_url)
        held = (os.environ.get(name) for name in service.key_variables)
        self.key = parsed.api_key or next((value for value in held if value), "")
        if not self.key:
            raise ModelError(f"no key for {shown}: set {service.key_variables[0]} or give the model argument api_key")
        super().__init__(parsed, shown, read_system_prompt(parsed.system_prompt))
        self.failures = Failures(shown, service.key_variables[0], parsed.timeout, (self.key,))
        self.images = parsed.wire_options(takes_webp=urlsplit(self.url).hostname == urlsplit(service.base_url).hostname)
        self._lock = threading.Lock()
        self._ignored: set[str] = set()

    def build(self, request: Request) -> dict[str, Any]:
        """The keyword arguments of the call for a request."""
        raise NotImplementedError

    def open(self) -> AbstractAsyncContextManager[Call]:
        """A client of the package, without retries of its own."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """Read what the package returned. Raises ``AttemptError``."""
        raise NotImplementedError

    def errors(self) -> tuple[type[Exception], ...]:
        """Errors that a call of the package raises."""
        raise NotImplementedError

    def failure(self, error: Exception) -> AttemptError:
        """One of ``errors`` as the kind of failure that it is."""
        return self.failures.of_transport(error)

    def prepare(self, request: Request) -> Request:
        """Make the call's arguments.

        Raises:
            MediaError: a picture, video or sound cannot be read, or the service takes none.
        """
        payload = self.build(request)
        return request.with_payload(payload, payload_size(payload))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Single attempts through the package's client."""
        async with self.open() as call:
            yield attempts(call, self.errors(), self.failure, self.read)

    @property
    def is_local(self) -> bool:
        """The server is on this machine's loopback: no proxy may stand before it."""
        return is_loopback(self.url)

    def wanted(self, request: Request) -> Wanted:
        """The request's generation options, with the arguments' defaults."""
        arguments = self._arguments
        return read_generation(request.generation, request.seed, arguments.max_new_tokens, arguments.reasoning_effort)

    def conversation(self, request: Request, whole_videos: bool = False) -> Conversation:
        """The request's turns with the prompt of the arguments."""
        frames = replace(self._settings.frames, whole=whole_videos)
        return read_conversation(request.build_messages(), frames, self.system_prompt)

    def note_ignored(self, names: Iterable[str]) -> None:
        """Remember generation options without a place."""
        with self._lock:
            self._ignored.update(names)

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        with self._lock:
            return sorted(self._ignored)


def attempts(
    call: Call,
    errors: tuple[type[Exception], ...],
    failure: Callable[[Exception], AttemptError],
    read: Callable[[Any], Reply],
) -> Complete:
    """A package's call as single attempts: its ``errors`` become failures, its answer a reply."""

    async def complete(payload: Mapping[str, Any]) -> Reply:
        try:
            answer = await call(payload)
        except errors as error:
            raise own_failure(error) or failure(error) from error
        return read(answer)

    return complete


def read_address(value: str | None, default: str) -> tuple[str, str]:
    """A base URL, and the same without user, password and query for people and records."""
    from urllib.parse import urlsplit, urlunsplit

    address = (value or default).strip().rstrip("/")
    try:
        parts = urlsplit(address)
        place = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    except ValueError as error:
        raise ModelError(f"base_url is no URL ({error})") from error
    if parts.scheme not in ("http", "https") or not place:
        raise ModelError("base_url must begin with http:// or https:// and name a host")
    return address, urlunsplit((parts.scheme, place, parts.path, "", ""))
