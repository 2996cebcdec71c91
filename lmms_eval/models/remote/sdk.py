"""The base of back ends over vendors' packages: arguments, key, address, attempts and prompts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit, urlunsplit

import orjson
from msgspec.structs import replace

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import read_system_prompt
from lmms_eval.models.openai.arguments import is_loopback_url, split_address
from lmms_eval.models.remote.arguments import RemoteArguments, read_arguments
from lmms_eval.models.remote.errors import AttemptError, Failures, own_failure
from lmms_eval.models.remote.generation import Wanted, read_generation
from lmms_eval.models.remote.media import SentForm, Turn, payload_size, read_conversation
from lmms_eval.models.remote.model import Complete, RemoteModel, import_sdk
from lmms_eval.models.remote.reply import Reply, read_completion

Call = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""A call of a package with keyword arguments."""
A = TypeVar("A", bound=RemoteArguments)


class SdkModel(RemoteModel, Generic[A]):
    """A ``RemoteModel`` over a package. Its payload is the keyword arguments of a call.

    A back end sets the attributes, builds the call's arguments (``build``), opens the package's client (``open``),
    reads an answer (``read``), and lists the package's exceptions (``errors``).

    Raises:
        ModelError: the package is not installed, an argument is unknown or wrong, or there is no key.
    """

    arguments_kind: type[A]
    module: ClassVar[str]
    """The package. The extra that installs it has the name of the back end."""
    base_url: ClassVar[str]
    base_url_variable: ClassVar[str]
    key_variables: ClassVar[tuple[str, ...]]
    """Environment variables of the key. Messages name the first."""

    def __init__(self, **arguments: Any) -> None:
        kind, variable = self.arguments_kind, self.key_variables[0]
        parsed = self._arguments = read_arguments(kind, arguments, os.environ)
        self.sdk = import_sdk(self.module, kind.backend, kind.backend)
        self.url, shown = read_address(parsed.base_url or os.environ.get(self.base_url_variable), self.base_url)
        held = (os.environ.get(name) for name in self.key_variables)
        self.key = parsed.api_key or next((value for value in held if value), "")
        if not self.key:
            raise ModelError(f"no key for {shown}: set {variable} or give the model argument api_key")
        super().__init__(parsed, shown, read_system_prompt(parsed.system_prompt))
        self.failures = Failures(shown, variable, parsed.timeout, (self.key,))
        takes_webp = urlsplit(self.url).hostname == urlsplit(self.base_url).hostname
        self._form = SentForm(parsed.frames, parsed.wire_options(takes_webp))

    def build(self, request: Request) -> dict[str, Any]:
        """Return the keyword arguments of the call for a request."""
        raise NotImplementedError

    def open(self) -> AbstractAsyncContextManager[Call]:
        """Open a client of the package, without its retries."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """Convert the package's answer to a reply. Raises ``AttemptError``."""
        raise NotImplementedError

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the exceptions that a call of the package raises."""
        raise NotImplementedError

    def failure(self, error: Exception) -> AttemptError:
        """Classify one of ``errors``."""
        return self.failures.of_transport(error)

    def prepare(self, request: Request) -> Request:
        """Build the call's arguments. Raises ``MediaError`` if a medium cannot be read, or is not supported."""
        payload = self.build(request)
        return request.with_payload(payload, payload_size(payload))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Open the package's client for single attempts."""
        async with self.open() as call:
            yield attempts(call, self.errors(), self.failure, self.read)

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine's loopback, so that no proxy may be used."""
        return is_loopback_url(self.url)

    def wanted(self, request: Request) -> Wanted:
        """Return the request's generation options, with the arguments' defaults."""
        arguments = self._arguments
        return read_generation(request.generation, request.seed, arguments.max_new_tokens, arguments.reasoning_effort)

    def form_of(self, request: Request) -> SentForm:
        """Return the form of the request's pictures and videos."""
        return self._form if request.media is None else self._form.limited(request.media)

    def conversation(self, request: Request, whole_videos: bool = False) -> tuple[str, tuple[Turn, ...]]:
        """Return the system prompt, that of the arguments or of the request, and the turns of the request."""
        frames = replace(self.form_of(request).frames, whole=whole_videos)
        return read_conversation(request.build_messages(), frames, self.system_prompt)


def attempts(
    call: Call,
    errors: tuple[type[Exception], ...],
    failure: Callable[[Exception], AttemptError],
    read: Callable[[Any], Reply],
) -> Complete:
    """Convert a package's call to single attempts: its ``errors`` become failures, and its answer a reply."""

    async def complete(payload: Mapping[str, Any]) -> Reply:
        try:
            answer = await call(payload)
        except errors as error:
            raise own_failure(error) or failure(error) from error
        return read(answer)

    return complete


def read_object(answer: Any, failures: Failures) -> Reply:
    """Read the decoded completion of a package that returns objects. Raises ``AttemptError``, without secrets."""
    try:
        return read_completion(answer, orjson.dumps(answer, default=str), failures.shown)
    except AttemptError as error:
        raise failures.redacted(error) from None


def read_address(value: str | None, default: str) -> tuple[str, str]:
    """Return a base URL, and the same without user, password and query for messages and records."""
    address = (value or default).strip().rstrip("/")
    parts, place = split_address(address, "base_url")
    return address, urlunsplit((parts.scheme, place, parts.path, "", ""))
