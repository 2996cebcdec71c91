"""Rules by which a server answers: those who know its token, under its own names, and no page of another site.

A page of another site may try to reach loopback too. It cannot know the token, its cookie is sent to no other site,
and a name of its own that it lets stand for this machine (DNS rebinding) is no name of this machine.
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
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_CLIENTS = 4096
_NETWORK_BITS = 64
"""Of an address of version 6: who has one has all of this network."""


@dataclass(slots=True)
class Rates:
    """A bucket for each client, which holds ``most`` and fills with ``per_s`` each second.

    The client that has not been seen for longest is forgotten when there are too many: its bucket is full again.
    """

    most: float
    per_s: float
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, client: str) -> float:
        """Return the seconds until the client may go on, 0 if it may now; nothing is taken."""
        with self._lock:
            return self._wait(self._level(_network(client)))

    def take(self, client: str) -> float:
        """Take one, if there is one, and return 0; else return the seconds until there is one."""
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
    """Spell a wait as the header ``Retry-After`` does."""
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


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OF_THIS_PAGE = frozenset({"same-origin", "none"})
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is not answered.

    Args:
        is_guess: a token was given, and a wrong one.
    """

    status: int
    text: str
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules by which requests are answered.

    Args:
        name: tells the cookie from those of other servers on this machine, which all get it: the port.
        token: whoever asks must give it; where it is empty, nobody must.
        command: the command of ``lmms-eval`` that serves.
        methods: what may be asked for. Requests that change something must come from a page of this server, as JSON,
            or bear the token in a header, which no page of another site can send.
        is_page: browsers bring the token too: first as the whole query of an address, then in a cookie.
        names: of this machine, beside those of loopback.
        any_address: every address in numbers counts as this machine's: rebinding takes a name.
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
        """The header that keeps the token, so that it need not stand in addresses."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def refuses(self, method: str, headers: Mapping[str, str], query: str) -> Refusal | None:
        """Check a request; header names are in small letters."""
        host = headers.get("host", "")
        if not self._is_name(_host(f"//{host}")):
            return Refusal(403, f"{self._kind} answers under the names of this machine only: {self._known_names}")
        origin = headers.get("origin")
        if origin is not None and not _is_origin(origin, host):
            return Refusal(403, f"{self._kind} answers no pages of other origins")
        if method not in self.methods:
            return Refusal(405, f"{self._kind} answers {', '.join(self.methods)} only")
        is_reading = method in ("GET", "HEAD")
        given = headers.get("authorization", "")
        if given[: len(_BEARER)].lower() == _BEARER and self.is_token(given[len(_BEARER) :].strip()):
            return None
        # The whole of the query: values of named parameters are masked where addresses are shown.
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

    @property
    def _known_names(self) -> str:
        return ", ".join(["127.0.0.1", "localhost", *sorted(self.names)]) + (
            "" if self.is_page else "; further ones: --allow_host NAME"
        )

    def _is_name(self, host: str | None) -> bool:
        if host is None:
            return False
        return host in LOOPBACK or host.rstrip(".") in self.names or (self.any_address and _is_address(host))

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
        """Refuse what a form of another page could send: no origin with the cookie, or another form than JSON."""
        if self.is_page and headers.get("origin") is None:
            text = "a request that changes something needs the header Origin, or the token as Authorization"
            return Refusal(403, text)
        is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        if not is_json and (self.is_page or method == "POST"):
            return Refusal(415, "a request that changes something is JSON: Content-Type: application/json")
        return None


def is_loopback(host: str) -> bool:
    """Tell whether a name or address is reached from this machine alone."""
    try:
        return host in LOOPBACK or ipaddress.ip_address(host.removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_origin(origin: str, host: str) -> bool:
    """Tell whether an origin is the host that was asked; a proxy in front of it may speak https."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc == host


def _host(address: str) -> str | None:
    try:
        found = urlsplit(address)
        _ = found.port  # raises for what is no port
    except ValueError:
        return None
    return None if found.username is not None or found.path else found.hostname


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


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


def plain_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a browser."""
    return PlainTextResponse(f"{refusal.text}\n", refusal.status)


def json_answer(refusal: Refusal) -> Response:
    """Answer a refused request of a program."""
    return JSONResponse({"detail": refusal.text}, refusal.status)


class Guarded:
    """An application behind a guard.

    Args:
        app: the application.
        guard: who may ask.
        answer: makes the answer to a refused request.
        failures: how many wrong tokens a client may send; beyond that nothing it sends is looked at for a while.
    """

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
        if scope["type"] != "http":  # a web socket: there are none
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
        answer.headers["connection"] = "close"  # whatever else it sends is not read
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
