"""Access rules of a server: the client must know its token, use one of its names, and not be a page of another site.

A page of another site may try to reach loopback addresses. It cannot know the token, and the cookie is not sent with
its requests. A host name of its own that resolves to this machine (DNS rebinding) is not one of the server's names.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmms_eval.utils.addresses import LOOPBACK

MOST_CLIENTS = 4096
_NETWORK_BITS = 64
"""Prefix length of an IPv6 network that counts as one client."""
_OF_THIS_PAGE = frozenset({"same-origin", "none"})
_BEARER = "bearer "
_SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
_HEAD_BYTES = 32 << 10


class Rates(Struct):
    """Token bucket for each client: it holds ``most`` tokens and gains ``per_s`` tokens each second.

    If there are too many clients, the least recently seen one is forgotten, so its bucket is full again.
    """

    most: float
    per_s: float
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = msgspec.field(default_factory=OrderedDict)
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def wait_s(self, client: str) -> float:
        """Return the seconds until the client may continue, 0 if it may now, without taking a token."""
        with self._lock:
            return self._wait(self._level(_network(client)))

    def take(self, client: str) -> float:
        """Take a token and return 0, or return the seconds until the next token if the bucket is empty."""
        name = _network(client)
        with self._lock:
            level = self._level(name)
            wait = self._wait(level)
            self._buckets[name] = (level if wait else level - 1, self.clock())
            self._buckets.move_to_end(name)
            while len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
            return wait

    def _level(self, name: str) -> float:
        level, at = self._buckets.get(name, (self.most, 0.0))
        return min(self.most, level + (self.clock() - at) * self.per_s)

    def _wait(self, level: float) -> float:
        return 0.0 if level >= 1 else (1 - level) / self.per_s


def retry_after(seconds: float) -> str:
    """Format a wait for the header ``Retry-After``."""
    return str(max(1, math.ceil(seconds)))


def _network(client: str) -> str:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:64]
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))


class Refusal(Struct, frozen=True):
    """Refusal of a request by a status code and a reason. With ``is_guess``, the request had a wrong token."""

    status: int
    text: str
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """Rules for answering requests.

    Args:
        name: suffix of the cookie's name (the port), since browsers send cookies to every server on this machine.
        token: token that requests must have; empty if they need none.
        command: the command of ``lmms-eval`` that serves.
        methods: allowed methods. A request that changes something must be JSON from a page of this server, or have the
            token in a header, which pages of other sites cannot send.
        is_page: whether browsers are served: they send the token first as the whole query of an address, then in a
            cookie.
        names: names of this machine in addition to those of loopback.
        any_address: accept every numeric address as this machine's. DNS rebinding needs a name.
    """

    name: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    command: str = "view"
    methods: tuple[str, ...] = ("GET", "HEAD")
    is_page: bool = True
    names: frozenset[str] = frozenset()
    any_address: bool = False

    @property
    def cookie(self) -> str:
        return f"lmms_{self.command}_{self.name}"

    @property
    def set_cookie(self) -> str:
        """Header that stores the token in a cookie, so that addresses need not contain it."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def refuses(self, method: str, headers: Mapping[str, str], query: str) -> Refusal | None:
        """Return why a request is refused, ``None`` if it is allowed. Header names are lower case."""
        host = headers.get("host", "")
        if not self._is_name(_host(f"//{host}")):
            known = ", ".join(["127.0.0.1", "localhost", *sorted(self.names)])
            known += "" if self.is_page else "; further ones: --allow_host NAME"
            return Refusal(403, f"{self._kind} answers under the names of this machine only: {known}")
        origin = headers.get("origin")
        if origin is not None and not _is_origin(origin, host):
            return Refusal(403, f"{self._kind} answers no pages of other origins")
        if method not in self.methods:
            return Refusal(405, f"{self._kind} answers {', '.join(self.methods)} only")
        is_reading = method in ("GET", "HEAD")
        given = headers.get("authorization", "")
        if given[: len(_BEARER)].lower() == _BEARER and self.is_token(given[len(_BEARER) :].strip()):
            return None
        # The token is the whole query; the values of named parameters are masked in shown addresses.
        if self.is_page and is_reading and self.is_token(query):
            return None
        if headers.get("sec-fetch-site", "none") not in _OF_THIS_PAGE:
            return Refusal(403, f"{self._kind} answers no pages of other sites")
        refusal = self._refuses_reader(headers, is_guess=bool(given))
        return refusal if refusal is not None or is_reading else self._refuses_writing(method, headers)

    def is_token(self, text: str) -> bool:
        return bool(self.token) and hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    @property
    def _kind(self) -> str:
        return f"the {self.command}" if self.is_page else "the server"

    def _is_name(self, host: str | None) -> bool:
        if host is None or host in LOOPBACK or host.rstrip(".") in self.names:
            return host is not None
        with suppress(ValueError):
            return self.any_address and ipaddress.ip_address(host) is not None
        return False

    def _refuses_reader(self, headers: Mapping[str, str], is_guess: bool) -> Refusal | None:
        if not self.token:
            return None
        if self.is_page:
            if self.is_token(_cookie(headers.get("cookie", ""), self.cookie)):
                return None
            return Refusal(
                403, f"open the address that lmms-eval {self.command} has printed: it holds a token", is_guess
            )
        if is_guess:
            return Refusal(401, "this is not the token of the server", is_guess=True)
        return Refusal(401, "the server needs its token: Authorization: Bearer TOKEN")

    def _refuses_writing(self, method: str, headers: Mapping[str, str]) -> Refusal | None:
        """Refuse what an HTML form of another site could send: a cookie without origin, or a body other than JSON."""
        if self.is_page and headers.get("origin") is None:
            text = "a request that changes something needs the header Origin, or the token as Authorization"
            return Refusal(403, text)
        is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        if not is_json and (self.is_page or method == "POST"):
            return Refusal(415, "a request that changes something is JSON: Content-Type: application/json")
        return None


def _is_origin(origin: str, host: str) -> bool:
    """Return whether an origin is the requested host. A proxy in front of the server may use https."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc == host


def _host(address: str) -> str | None:
    try:
        found = urlsplit(address)
        _ = found.port  # raises for an invalid port
    except ValueError:
        return None
    return None if found.username is not None or found.path else found.hostname


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def plain_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a browser."""
    return PlainTextResponse(f"{refusal.text}\n", refusal.status)


def json_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a program."""
    return JSONResponse({"detail": refusal.text}, refusal.status)


class Guarded:
    """Application that answers only what a guard allows. Above the limit of ``failures``, a client must wait."""

    def __init__(
        self,
        app: ASGIApp,
        guard: Guard,
        answer: Callable[[Refusal], Response] = plain_answer,
        failures: Rates | None = None,
    ) -> None:
        self._app, self._guard, self._answer, self._failures = app, guard, answer, failures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets are not supported
            await send({"type": "websocket.close", "code": 1008})
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = {name.lower(): value for name, value in message.get("headers", ())}
                for name, value in _SAFE.items():
                    headers.setdefault(name.encode(), value.encode())
                message["headers"] = list(headers.items())
            await send(message)

        answer = self._refused(scope)
        if answer is None:
            await self._app(scope, receive, safely)
            return
        answer.headers["connection"] = "close"  # the rest of the request is not read
        await answer(scope, receive, safely)

    def _refused(self, scope: Scope) -> Response | None:
        client = (scope.get("client") or ("",))[0]
        if self._failures is not None and (wait := self._failures.wait_s(client)):
            answer = self._answer(Refusal(429, "too many wrong tokens came from this address: wait"))
            answer.headers["retry-after"] = retry_after(wait)
            return answer
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"]) > _HEAD_BYTES:
            return self._answer(Refusal(431, f"the head of the request is larger than {_HEAD_BYTES} bytes"))
        known = dict(Headers(scope=scope).items())
        refusal = self._guard.refuses(scope["method"], known, scope.get("query_string", b"").decode("latin-1"))
        if refusal is None:
            return None
        if refusal.is_guess and self._failures is not None:
            self._failures.take(client)
        answer = self._answer(refusal)
        if refusal.status == 405:
            answer.headers["allow"] = ", ".join(self._guard.methods)
        elif refusal.status == 401:
            answer.headers["www-authenticate"] = "Bearer"
        return answer
