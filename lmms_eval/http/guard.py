"""Rules by which a server answers: those who know its token, under its own names, and no page of another site.

A page of another site may try to reach loopback too. It cannot know the token, its cookie is sent to no other site,
and a name of its own that it lets stand for this machine (DNS rebinding) is no name of this machine.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

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
