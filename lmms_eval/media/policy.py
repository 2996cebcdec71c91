"""Checks of the files and addresses that documents of an untrusted data set name."""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.errors import MediaError

_WEB = ("http://", "https://")
_MEDIA_KEYS = ("url", "path", "video", "image", "audio")
_KNOWN = 65_536
_EMBEDDED = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that embed IPv4 addresses (NAT64)."""


class CheckedUrl(str):
    """An address from a data set. When it is fetched, the machine that answers is checked too."""

    policy: MediaPolicy

    def __new__(cls, url: str, policy: MediaPolicy) -> CheckedUrl:
        made = super().__new__(cls, url)
        made.policy = policy
        return made


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Refuses files outside of some folders, and addresses on this machine or in private networks.

    The real path of each folder is looked up once. The real path of a file is only looked up if it is a link.
    """

    where: str
    """The owner of the documents, for messages."""
    roots: tuple[str, ...]
    """Real paths of folders and files."""
    addresses: tuple[str, ...] = ()
    """Addresses that are always allowed, with all addresses below them."""
    _folders: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    _hosts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    @classmethod
    def of(cls, where: str, roots: Iterable[str | Path], allowed: Sequence[str] = ()) -> MediaPolicy:
        """Return the policy of a data set with media in ``roots``; ``allowed`` are further paths and addresses."""
        paths = [*roots, *(Path(item).expanduser() for item in allowed if "://" not in item)]
        real = dict.fromkeys(os.path.realpath(path) for path in paths)
        return cls(where, tuple(real), tuple(item for item in allowed if "://" in item))

    def turns(self, turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Check the media in messages. Addresses in the result carry the policy.

        Raises ``MediaError`` if a file or an address is refused.
        """
        return [{**turn, "content": self.media(turn["content"])} for turn in turns]

    def media(self, values: Iterable[Any]) -> list[Any]:
        """Check a series of media."""
        return [self.medium(value) for value in values]

    def medium(self, value: Any) -> Any:
        """Check one medium: a path, an address, a mapping with one of these, or media in memory.

        Raises ``MediaError`` if the file or address is refused.
        """
        if isinstance(value, str):
            scheme = value[:8].lower()
            if scheme.startswith("data:"):
                return value
            if scheme.startswith(_WEB):
                self.check_url(value)
                return CheckedUrl(value, self)
            if scheme.startswith("file://"):
                self.check_file(urllib.request.url2pathname(urllib.parse.urlsplit(value).path))
            elif value:
                self.check_file(value)
            return value
        if isinstance(value, os.PathLike):
            self.check_file(os.fspath(value))
        elif isinstance(value, Mapping):
            if value.get("bytes") is not None or value.get("array") is not None:
                return value
            return {key: self.medium(item) if key in _MEDIA_KEYS else item for key, item in value.items()}
        elif isinstance(value, list | tuple):
            return self.media(value)
        return value

    def check_file(self, path: str) -> None:
        """Raise ``MediaError`` for a file outside of the folders, or a link that leads out of them."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or "\0" in path:
            raise self._refused(f"the path {path!r}")
        inside = self._folders.get(folder)
        if inside is None:
            inside = self._holds(os.path.realpath(folder))
            with self._lock:
                if len(self._folders) >= _KNOWN:
                    self._folders.clear()
                self._folders[folder] = inside
        if inside and not os.path.islink(path):
            return
        if not self._holds(os.path.realpath(path)):
            leads = "a link that leads" if inside else "which is"
            raise self._refused(f"the file {path!r}, {leads} outside of its own folders")

    def check_url(self, url: str) -> None:
        """Raise ``MediaError`` for an address on this machine or in a private network, or that is not http(s)."""
        if self.allows(url):
            return
        try:
            host = urllib.parse.urlsplit(url).hostname or ""
        except ValueError as error:
            raise self._refused(f"the address {url[:200]!r} ({error})") from error
        reason = self._hosts.get(host)
        if reason is None:
            reason = private_reason(host)
            if len(self._hosts) < _KNOWN:
                self._hosts[host] = reason
        if reason:
            raise self._refused(f"an address at {host!r}, {reason}")

    def allows(self, url: str) -> bool:
        """Return whether the address is explicitly allowed, or below one that is."""
        path = urllib.parse.unquote(url.split("?")[0].split("#")[0])
        if ".." in path.split("/"):
            return False
        return any(path == item.rstrip("/") or path.startswith(item.rstrip("/") + "/") for item in self.addresses)

    def opener(self) -> urllib.request.OpenerDirector:
        """Return an opener for http and https only. It checks each established connection, also of redirects."""
        opened = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(), _Web(self), urllib.request.HTTPRedirectHandler(),
            urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
            urllib.request.UnknownHandler(),
        ):  # fmt: skip
            opened.add_handler(handler)
        return opened

    def _holds(self, real: str) -> bool:
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots)

    def _refused(self, what: str) -> MediaError:
        return MediaError(
            f"{self.where}: a document names {what}: refused, as the data came from the hub. If you trust it, allow "
            "the folder or address with --allow_media"
        )


def private_reason(host: str) -> str:
    """Return why a host is refused: empty for a public host, and for one whose address is unknown here."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return "" if host else "which names no machine"
    addresses = {str(entry[4][0]) for entry in found}
    private = sorted(address for address in addresses if not is_public(address))
    return f"which is {private[0]}, on this machine or in a private network" if private else ""


def is_public(address: str) -> bool:
    """Return whether an IP address is public: not loopback, private, link-local, shared or reserved."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _EMBEDDED:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


class _Connection(http.client.HTTPConnection):
    """Refuses a machine that is not public, by the address of the established connection."""

    def connect(self) -> None:
        if reason := private_reason(self.host):
            raise PermissionError(f"{self.host} is refused, {reason}; allow it with --allow_media")
        super().connect()
        peer = str(self.sock.getpeername()[0])
        if not is_public(peer):
            self.close()
            raise PermissionError(f"{self.host} is refused: it leads to {peer}; allow it with --allow_media")


class _TlsConnection(http.client.HTTPSConnection, _Connection):
    """The same over TLS; the check comes before the handshake."""


class _Web(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    def __init__(self, policy: MediaPolicy) -> None:
        super().__init__()
        self._policy, self._tls = policy, ssl.create_default_context()

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection if _needs_check(self._policy, req) else http.client.HTTPConnection, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connection = _TlsConnection if _needs_check(self._policy, req) else http.client.HTTPSConnection
        return self.do_open(connection, req, context=self._tls)


def _needs_check(policy: MediaPolicy, request: urllib.request.Request) -> bool:
    """Return whether to check the connection: not if the address is allowed, or if it leads to the user's proxy.

    Raises ``MediaError`` if the address that the proxy would fetch is refused.
    """
    if policy.allows(request.full_url):
        return False
    if request.host == urllib.parse.urlsplit(request.full_url).netloc:
        return True
    policy.check_url(request.full_url)
    return False
