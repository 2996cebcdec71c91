from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from lmms_eval.http.bounds import BoundedBody
from tests.cases import for_each


def answered(pieces: list[bytes | None], head: dict[str, str] | None = None) -> tuple[int | None, bytes]:
    """Send a body in pieces, ``None`` for a long wait; the answer's status and what the application has read."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    sent: list[Message] = []
    read: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        assert not message["more_body"]
        read.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        if not messages:
            return {"type": "http.request", "body": b"", "more_body": False}
        if messages[0]["body"] is None:
            await asyncio.sleep(60)
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in (head or {}).items()]
    scope: Scope = {"type": "http", "method": "POST", "headers": headers}
    asyncio.run(BoundedBody(app, most_bytes=10, most_s=0.05)(scope, receive, send))
    return next((one["status"] for one in sent if one["type"] == "http.response.start"), None), b"".join(read)


@for_each(
    ("pieces", "head", "status", "read"),
    [
        ([b"12345", b"67890"], {}, 200, b"1234567890"),
        ([], {"content-length": "0"}, 200, b""),
        ([b"1234567890", b"1"], {}, 413, b""),
        ([b"1" * (17 << 20)], {}, 413, b""),
        ([None], {"content-length": "99999999999"}, 413, b""),
        ([None], {"content-length": "9" * 5000}, 413, b""),
        ([b"1", None], {}, 408, b""),
    ],
)
def test_bodies(pieces: list[bytes | None], head: dict[str, str], status: int, read: bytes) -> None:
    assert answered(pieces, head) == (status, read)
