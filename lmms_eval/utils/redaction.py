"""Masking of secrets in everything that is written (harness specification §5.2).

There are two rules, since no pattern matches every key. By structure: the user, password, query values and fragment of
an address are masked, and the values of secret names in a mapping. By value: a secret that was found in such a place on
the command line, in a file or in the environment is masked everywhere else, also in errors of servers and tracebacks.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

REDACTED = "[REDACTED]"
LEAST_KNOWN, LEAST_DOUBTFUL = 6, 8
"""Least length of a value that is masked everywhere: after a name that is surely a secret's, and after an ambiguous
name. Shorter values occur in harmless texts."""
LEAST_OF_PATH = 12
"""Least length of a part of an address's path that counts as a key."""
_KEYS = frozenset(
    {"api_key", "client_secret", "hf_token", "huggingface_hub_token", "huggingfacehub_api_token", "token"}
)
_ENDINGS = ("api_key", "_token", "_secret", "password")
_MORE_KEYS = frozenset(
    {
        "access_key", "apikey", "authorization", "aws_bearer_token_bedrock", "passphrase", "passwd", "private_key",
        "secret", "secret_key", "subscription_key",
    }
)  # fmt: skip
"""Further names that hold a secret in arguments and in the environment."""
_DOUBTFUL_KEYS = frozenset(
    {"auth", "bearer", "code", "cookie", "credential", "credentials", "key", "pwd", "sig", "signature"}
)
"""Names that usually hold a secret in arguments, but not elsewhere: a run has a ``key``, a shell has ``PWD``."""
_MORE_ENDINGS = (
    "_access_key", "_apikey", "_auth", "_bearer", "_cookie", "_credential", "_credentials", "_passphrase", "_passwd",
    "_private_key", "_pwd", "_secret_key", "_sig", "_signature",
)  # fmt: skip
_NO_SECRETS = frozenset({"dummy", "empty", "false", "ollama", "password", "secret"})
"""Placeholder keys for servers that need none."""
_ASSIGNMENT = re.compile(
    r"""(?i)(api_key|token|secret|password)(=)("[^"]*"|'[^']*'|[^,\s]+)""",
)
_NAMED = re.compile(
    r"""(?<![\w.-])([\w.-]{1,80})["']?\s{0,9}[=:]\s{0,9}("[^"]*"|'[^']*'|[^,\s"'{}\[\]]+)""",
)
_FREE_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}")
_ADDRESS = re.compile(r"""(?i)(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s"'<>\\^`{|}]{1,4096}""")
_USER = re.compile(r"(?<=://)[^/?#@]*@(?=[^/?#@]*(?:[/?#]|$))")
_QUERY_VALUE = re.compile(r"(?<=[?&#;])(?:([^=&#;,]*)=([^&#;,)]+)|[^=&#;,)]+(?![^&#;,)]))")
"""A value with its name, or a part of a query or fragment without a name."""
_UUID = re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]+")
"""Borders between the words of a name: ``apiKey``, ``api-key``, ``api.key``."""
_NAMED_AFTER = frozenset({"deployments", "endpoints", "engines", "models"})
"""Parts of a path that are followed by the name of a model, not by a key."""


class _Known:
    """Values to be masked in the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self.forms: tuple[str, ...] = ()
        """The values in plain and in URL-encoded form, longest first."""

    def add(self, values: Iterator[str]) -> None:
        found = {value for value in values if value.lower() not in _NO_SECRETS}
        with self._lock:
            if found <= self._values:
                return
            self._values |= found
            spelled = {form for value in self._values for form in (value, quote(value, safe=""), unquote(value))}
            long = (form for form in spelled if len(form) >= LEAST_KNOWN)
            self.forms = tuple(sorted(long, key=lambda form: (-len(form), form)))

    @property
    def values(self) -> list[str]:
        with self._lock:
            return sorted(self._values)


_known = _Known()


def learn_secrets(values: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> None:
    """Remember every secret in arguments and environment variables, to mask it wherever it appears from now on.

    Args:
        values: options or arguments, nested to any depth; texts of the form ``k=v,k=v`` are parsed.
        environment: variables. Only names that are surely those of secrets count.
    """
    _known.add(_secrets_in(values))
    # A variable that holds a path states where a secret is, not the secret itself.
    secret = [value for name, value in (environment or {}).items() if _least(name) == LEAST_KNOWN and value[:1] != "/"]
    _known.add(_secrets_in(secret, LEAST_KNOWN))


def known_secrets() -> list[str]:
    """Return the remembered secrets, for ``note_secrets`` in a child process. Never write them to a file."""
    return _known.values


def note_secrets(values: Iterable[str]) -> None:
    """Remember secrets that the parent process knows."""
    _known.add(iter(values))


def is_secret_key(key: str) -> bool:
    """Return whether a mapping key names a secret."""
    lowered = _normal(key)
    return lowered in _KEYS or lowered.endswith(_ENDINGS)


def mask_known(text: str) -> str:
    """Mask remembered secrets, and users and query values of addresses. JSON stays valid."""
    for form in _known.forms:
        if form in text:
            text = text.replace(form, REDACTED)
    return _ADDRESS.sub(_without_secrets, text) if "://" in text else text


def redact_text(text: str) -> str:
    """Mask as ``mask_known`` does, and also values of ``…token=…`` and similar names, and texts that look like keys."""
    # These come before the known values: masking a part of a longer key would leave the rest of it.
    text = _FREE_TOKEN.sub(REDACTED, _BEARER.sub(rf"\1{REDACTED}", text))
    return _ASSIGNMENT.sub(rf"\1\2{REDACTED}", mask_known(text))


_NO_TEXT = frozenset({int, float, bool, type(None)})


def redact(value: Any, by_name: bool = True) -> Any:
    """Return a copy of nested mappings, lists and tuples without secrets. Other values stay unchanged.

    Args:
        value: the value.
        by_name: mask every value of a secret name. Results use ``False``, since a metric may be called ``first_token``.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        made = {key: item if type(item) in _NO_TEXT else redact(item, by_name) for key, item in value.items()}
        if by_name:
            made |= {key: REDACTED for key in made if isinstance(key, str) and is_secret_key(key)}
        return made
    if isinstance(value, list) or type(value) is tuple:
        masked = [item if type(item) in _NO_TEXT else redact(item, by_name) for item in value]
        return masked if isinstance(value, list) else tuple(masked)
    return value


def public_query(address: str) -> str:
    """Return the query of an address without the parts that have secret names."""
    parts = [part for part in urlsplit(address).query.split("&") if part and not _least(part.partition("=")[0])]
    return "&".join(parts)


def _normal(name: str) -> str:
    return _WORD_BORDER.sub("_", name.strip()).lower()


def _least(name: str) -> int:
    """Return the least length of a secret value of this name; 0 if the name is not that of a secret."""
    lowered = _normal(name)
    if is_secret_key(name) or lowered in _MORE_KEYS or lowered.endswith(_MORE_ENDINGS):
        return LEAST_KNOWN
    return LEAST_DOUBTFUL if lowered in _DOUBTFUL_KEYS else 0


def _without_secrets(address: re.Match[str]) -> str:
    text = _USER.sub(f"{REDACTED}@", address.group())
    begin = min((place for mark in "?#" if (place := text.find(mark)) >= 0), default=len(text))
    query = _QUERY_VALUE.sub(lambda part: REDACTED if part[1] is None else f"{part[1]}={REDACTED}", text[begin:])
    return text[:begin] + query


def _secrets_in(value: Any, least: int = 0) -> Iterator[str]:
    """Yield the secrets in nested arguments. ``least`` is the least length of a secret ``value``; 0: not secret."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets_in(item, (_least(key) if isinstance(key, str) else 0) or least)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, least)
    elif isinstance(value, str):
        yield from _credentials(value, least)
        for assignment in _NAMED.finditer(value):
            yield from _credentials(assignment[2].strip("\"'"), _least(assignment[1]))
        for address in _ADDRESS.finditer(value):
            yield from _of_address(address.group())


def _credentials(value: str, least: int) -> Iterator[str]:
    """Yield a secret value, and the part after ``Bearer``, if they are long enough."""
    return (part for part in (value, value.rpartition(" ")[2]) if 0 < least <= len(part))


def _of_address(address: str) -> Iterator[str]:
    """Yield an address's password (or user), the secret values in its query, and parts that look like keys.

    A base address usually ends after the version, so shorter parts count as keys there.
    """
    address = address.partition(",")[0]  # the end of the argument, if the text is k=v,k=v
    try:
        parts = urlsplit(address)
        user = parts.password or parts.username or ""
    except ValueError:
        return
    yield from (form for form in {user, unquote(user)} if len(form) >= LEAST_KNOWN)
    for name, value in [*parse_qsl(parts.query), *parse_qsl(parts.fragment)]:
        yield from _credentials(value, _least(name) or (LEAST_DOUBTFUL if _is_like_a_key(value) else 0))
    alone = [part for part in re.split("[&;]", f"{parts.query}&{parts.fragment}") if "=" not in part]
    yield from (unquote(part) for part in alone if _is_like_a_key(part, LEAST_DOUBTFUL))
    before = ""
    for part in parts.path.split("/"):
        shortest = LEAST_DOUBTFUL if _VERSION.fullmatch(before) else LEAST_OF_PATH
        if _is_like_a_key(part, shortest) and before.lower() not in _NAMED_AFTER:
            yield part
        before = part


def _is_like_a_key(part: str, shortest: int = LEAST_OF_PATH) -> bool:
    """Return whether a part of an address looks generated: long, with letters and digits mixed."""
    run = max(re.split(r"[^A-Za-z0-9]", part), key=len)
    mixed = any(map(str.isdigit, run)) and any(map(str.isalpha, run))
    is_prefixed = part.startswith(("sk-", "hf_", "pk-"))
    return is_prefixed or (len(run) >= shortest and mixed) or _UUID.fullmatch(part) is not None
