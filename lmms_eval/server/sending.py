"""Calls and replies of the clients as requests and responses of httpx2."""

from __future__ import annotations

import os

import httpx2

from lmms_eval.models.openai.errors import retry_after
from lmms_eval.server.calls import Call, Reply
from lmms_eval.server.settings import TOKEN_VARIABLE

PATIENCE_S = 60.0
CONNECT_S = 10.0


def limits(timeout: float | None) -> httpx2.Timeout:
    """Return the limits of one call; ``timeout``: seconds to wait for the server, ``None`` for no limit."""
    return httpx2.Timeout(timeout, connect=CONNECT_S if timeout is None else min(CONNECT_S, timeout))


def headers(token: str | None) -> dict[str, str]:
    """Return the headers of all calls; the token is by default that of the environment."""
    token = os.environ.get(TOKEN_VARIABLE) if token is None else token
    return {"authorization": f"Bearer {token}"} if token else {}


def request(http: httpx2.Client | httpx2.AsyncClient, call: Call, silence: float | None = None) -> httpx2.Request:
    """Make a request; ``silence``: seconds without a byte after which its connection is lost."""
    headers = dict(call.headers) if call.body is None else {**call.headers, "content-type": "application/json"}
    allowed = http.timeout if silence is None else limits(silence)
    return http.build_request(
        call.method, call.path, content=call.content, params=call.query, headers=headers, timeout=allowed
    )


def reply(found: httpx2.Response) -> Reply:
    """Take a reply that has been read."""
    return Reply(found.status_code, found.content, retry_after(found.headers))


def no_reply(error: httpx2.TransportError) -> Reply:
    """Take the loss of a connection."""
    return Reply(0, (str(error) or type(error).__name__).encode())
