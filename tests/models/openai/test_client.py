from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

import pytest

from lmms_eval.api.request import ErrorKind
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.client import WHOLE_BYTES, Client
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply
from tests.cases import for_each

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PACKED = gzip.compress(b"unpacked " * 20_000)


def make_client(port: int, key: str = "key", timeout_s: float = 10) -> Client:
    """A client that returns bodies as they are."""
    url = f"http://127.0.0.1:{port}/v1?version=1"
    given = {"model": "m", "base_url": url, "api_key": key, "timeout": timeout_s, "max_reply_mb": 1}
    arguments = parse_arguments(given, {})
    return Client(find_endpoint(arguments, {}), arguments, lambda raw, _: Reply(raw.decode(), None, None))


def run(
    replies: list[bytes], use: Callable[[Client], Awaitable[None]], timeout_s: float = 10
) -> tuple[list[bytes], list[int]]:
    """Answer each request with the next of ``replies`` (an empty one closes): the requests, and their connections."""
    requests: list[bytes] = []
    connections: list[int] = []
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        number = opened
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                requests.append(head + await reader.readexactly(length))
                connections.append(number)
                reply = replies[min(len(requests), len(replies)) - 1]
                writer.write(reply)
                await writer.drain()
                if b"Content-Length" not in reply and b"chunked" not in reply:
                    return

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            async with make_client(server.sockets[0].getsockname()[1], timeout_s=timeout_s) as client:
                await use(client)
            await asyncio.sleep(0.01)  # the server's sides end too

    asyncio.run(main())
    return requests, connections


@for_each(
    ("reply", "body"),
    [
        (GOOD, "ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n", "abcdefg"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
            gzip.decompress(PACKED).decode(),
        ),
    ],
)
def test_answers_of_every_form_over_one_connection(reply: bytes, body: str) -> None:
    async def use(client: Client) -> None:
        for number in range(3):
            assert (await client.complete(b'{"n":%d}' % number)).text == body

    requests, connections = run([reply], use)
    assert connections == [1, 1, 1]
    assert [request.rpartition(b"\r\n\r\n")[2] for request in requests] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    head = requests[0].decode()
    assert head.startswith("POST /v1/chat/completions?version=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "\r\nAuthorization: Bearer key\r\n" in head and head.lower().count("content-length") == 1
    assert "\r\nContent-Type: application/json\r\n" in head
    assert "\r\nAccept-Encoding: gzip" in head


@for_each("status", [b"307 Away\r\nLocation: /other", b"204 No Content"])
def test_no_redirect_is_followed_and_only_200_is_an_answer(status: bytes) -> None:
    async def use(client: Client) -> None:
        for _ in range(2):
            with pytest.raises(AttemptError):
                await client.complete(b"{}")

    requests, connections = run([b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status], use)
    assert len(requests) == 2 and connections == [1, 1]
    assert all(request.startswith(b"POST /v1/chat/completions") for request in requests)


def test_a_body_that_ends_with_the_connection_is_whole_and_the_next_request_has_its_own() -> None:
    async def use(client: Client) -> None:
        for _ in range(2):
            assert (await client.complete(b"{}")).text == "to the end"

    assert run([b"HTTP/1.1 200 OK\r\n\r\nto the end"], use)[1] == [1, 2]


@for_each(
    ("reply", "kind"),
    [
        (b"", "connection"),
        (b"no HTTP at all\r\n\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone", "connection"),
        (HALF, "timeout"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2_000_000, "malformed"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(bytes(1 << 22))), gzip.compress(bytes(1 << 22))),
            "malformed",
        ),
    ],
)
def test_a_connection_that_failed_is_not_used_again(reply: bytes, kind: ErrorKind) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(AttemptError) as raised:
            await client.complete(b"{}")
        assert raised.value.kind == kind
        assert (await client.complete(b"{}")).text == "ok"

    assert run([reply, GOOD], use, timeout_s=1 if reply == HALF else 10)[1] == [1, 2]


def test_a_cancelled_request_gives_its_connection_up() -> None:
    async def use(client: Client) -> None:
        task = asyncio.create_task(client.complete(b"{}"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.complete(b"{}")).text == "ok"

    assert run([HALF, GOOD], use)[1] == [1, 2]


def test_large_bodies_have_the_same_time_limit() -> None:
    async def use(client: Client) -> None:
        with pytest.raises(AttemptError) as raised:
            await client.complete(b" " * (WHOLE_BYTES + 1))
        assert raised.value.kind == "timeout"

    run([HALF], use, timeout_s=1)


@for_each("end", ["\r\nX-Other: y", "\n"])
def test_no_line_break_gets_into_the_head(end: str) -> None:
    with pytest.raises(ModelError, match="line break"):
        make_client(1, f"key{end}x")
