"""Rules by which a server on loopback answers: browsers of this machine that have its token, and nobody else.

A page of another site may try to read from loopback too. It cannot know the token, its cookie is sent to no other
site, and a name of its own that it lets stand for this machine (DNS rebinding) is no name of this machine.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_OF_THIS_PAGE = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is not answered."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules by which requests are answered.

    Args:
        name: tells the cookie from those of other servers on this machine, which all get it: the port.
        token: secret of the address.
        command: the command of ``lmms-eval`` that serves.
        methods: what may be asked for. Requests that change something must come from a page of this server, as JSON,
            or bear the token in a header, which no page of another site can send.
    """

    name: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    command: str = "view"
    methods: tuple[str, ...] = ("GET", "HEAD")

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
        if _host(f"//{host}") not in LOOPBACK:
            return Refusal(
                403, f"the {self.command} answers under the names of this machine only: 127.0.0.1, localhost"
            )
        origin = headers.get("origin")
        if origin is not None and (urlsplit(origin).scheme != "http" or urlsplit(origin).netloc != host):
            return Refusal(403, f"the {self.command} answers no pages of other origins")
        if method not in self.methods:
            return Refusal(405, f"the {self.command} answers {', '.join(self.methods)} only")
        is_reading = method in ("GET", "HEAD")
        if self.is_token(headers.get("authorization", "").removeprefix("Bearer ")):
            return None
        if is_reading and self.is_token(query):  # the whole of it: values of named parameters are masked where shown
            return None
        if headers.get("sec-fetch-site", "none") not in _OF_THIS_PAGE:
            return Refusal(403, f"the {self.command} answers no pages of other sites")
        if not self.is_token(_cookie(headers.get("cookie", ""), self.cookie)):
            return Refusal(403, f"open the address that lmms-eval {self.command} has printed: it holds a token")
        return None if is_reading else _refuses_writing(headers)

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())


def _refuses_writing(headers: Mapping[str, str]) -> Refusal | None:
    """Refuse what a form of another page could send with the cookie: no origin, or another form than JSON."""
    if headers.get("origin") is None:
        return Refusal(403, "a request that changes something needs the header Origin, or the token as Authorization")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refusal(415, "a request that changes something is JSON: Content-Type: application/json")
    return None


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
