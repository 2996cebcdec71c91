from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

import aiohttp
import pytest

from lmms_eval.models.remote.direct import DirectPost
from lmms_eval.models.remote.errors import AttemptError
from tests.cases import for_each

HEADERS = {"Authorization": "Bearer key", "Content-Type": "application/json"}
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"
PACKED = gzip.compress(b"unpacked " * 20_000)


def run(
    replies: list[bytes], use: Callable[[DirectPost], Awaitable[None]], timeout_s: float = 10, **over: str
) -> list[bytes]:
    """Answer each request over one connection with the next of ``replies`` (an empty one closes); the requests."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                requests.append(head + await reader.readexactly(length))
                reply = replies[min(len(requests), len(replies)) - 1]
                writer.write(reply)
                await writer.drain()
                if b"Content-Length" not in reply and b"chunked" not in reply:
                    return

    async def main() -> None:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=timeout_s)
        async with (
            await asyncio.start_server(serve, "127.0.0.1", 0) as server,
            aiohttp.ClientSession(headers={**HEADERS, **over}, timeout=timeout) as session,
        ):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x?version=1"
            await use(DirectPost(session, url, 1 << 20))
        await asyncio.sleep(0.01)  # the server's sides end too

    asyncio.run(main())
    return requests


@for_each(
    ("reply", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, b""),
        (b"HTTP/1.1 307 Away\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", 307, b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n",
            200,
            b"abcdefg",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
            200,
            gzip.decompress(PACKED),
        ),
    ],
)
def test_answers_of_every_form_over_one_connection(reply: bytes, status: int, body: bytes) -> None:
    async def use(direct: DirectPost) -> None:
        for number in range(3):
            found, _, content = await direct.post(b'{"n":%d}' % number)
            assert (found, content) == (status, body)
        assert len(direct._connector._conns) == 1

    requests = run([reply], use)
    assert [request.rpartition(b"\r\n\r\n")[2] for request in requests] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    head = requests[0].decode()
    assert head.startswith("POST /v1/x?version=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "\r\nAuthorization: Bearer key\r\n" in head and head.lower().count("content-length") == 1
    assert "\r\nAccept-Encoding: gzip" in head


def test_a_body_that_ends_with_the_connection_is_whole_and_the_next_request_has_its_own() -> None:
    async def use(direct: DirectPost) -> None:
        for _ in range(2):
            assert (await direct.post(b"{}"))[2] == b"to the end"

    assert len(run([b"HTTP/1.1 200 OK\r\n\r\nto the end"], use)) == 2


@for_each(
    ("reply", "error"),
    [
        (b"", aiohttp.ServerDisconnectedError),
        (b"no HTTP at all\r\n\r\n", aiohttp.ClientResponseError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", aiohttp.ClientError),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone", aiohttp.ClientPayloadError),
        (HALF, TimeoutError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2_000_000, AttemptError),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(bytes(1 << 22))), gzip.compress(bytes(1 << 22))),
            AttemptError,
        ),
    ],
)
def test_a_connection_that_failed_is_not_used_again(reply: bytes, error: type[Exception]) -> None:
    async def use(direct: DirectPost) -> None:
        with pytest.raises(error):
            await direct.post(b"{}")
        assert not direct._connector._acquired and not direct._connector._conns
        assert (await direct.post(b"{}"))[2] == b"ok"

    run([reply, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], use, timeout_s=1 if reply == HALF else 10)


def test_a_cancelled_request_gives_its_connection_up() -> None:
    async def use(direct: DirectPost) -> None:
        task = asyncio.create_task(direct.post(b"{}"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not direct._connector._acquired and not direct._connector._conns

    run([HALF], use)


def test_no_line_break_gets_into_the_head() -> None:
    async def use(direct: DirectPost) -> None:
        raise AssertionError("it was made")

    with pytest.raises(ValueError, match="line break"):
        run([b""], use, Authorization="Bearer key\r\nX-Other: y")
