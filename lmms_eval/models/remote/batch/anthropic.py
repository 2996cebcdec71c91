"""Anthropic's Message Batches. A batch is one body with all its requests; it has no name of the client's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import orjson

from lmms_eval.models.remote.batch.ledger import BatchPart, BatchState
from lmms_eval.models.remote.batch.service import LISTED, TRANSFER_S, BatchService, Outcome, counted
from lmms_eval.models.remote.errors import STATUS_OF_TYPE

BATCHES = "/v1/messages/batches"
HEAD, TAIL = b'{"requests":[', b"]}"
NO_BATCH = "none"
"""The mark of an account without batches."""
UNSTAMPED = "lmms_eval-" + "0" * 32
NUMBER = 6
"""Digits of a request's place in its batch, which holds at most 100,000."""
PIECE = 1 << 18
ENDINGS = {"canceled": "cancelled", "expired": "expired"}


class MessageBatches(BatchService):
    """The batches of one workspace.

    The service does not accept the ids of our requests, which are too long, so each line has the name of its file and
    its place there. A batch whose id is unknown is one that is newer than the newest batch before it was sent
    (``file_id``) and has as many requests: only its results show whether it is the right one.
    """

    overhead: ClassVar[int] = len(HEAD) + len(TAIL)

    def line(self, request_id: str, payload: Any) -> bytes:  # noqa: ARG002 - the service takes shorter ids
        """Return the line of a request, whose id ``stamp`` sets. ``payload`` is the body of a single request."""
        return b'{"custom_id":"%b","params":%b}\n' % (_custom_id(UNSTAMPED, 0), orjson.dumps(payload))

    def stamp(self, line: bytes, draft: str, number: int) -> bytes:
        """Return a line with the id of its place in a file."""
        head, start, rest = line.partition(b'","params":')
        return head[: -len(_custom_id(UNSTAMPED, 0))] + _custom_id(draft, number) + start + rest

    async def upload(self, part: BatchPart) -> str:  # noqa: ARG002 - the batch itself has the requests
        """Return the account's newest batch: that of this part will be newer."""

        async def newest() -> str:
            page = await self._ask("GET", BATCHES, {"limit": "1"})
            listed = _batches(page)
            return self._id(listed[0]) if listed else NO_BATCH

        return await self._tried(newest)

    async def _create(self, part: BatchPart) -> str:
        length = part.path.stat().st_size - 1 + self.overhead
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        total = max(self._timeout, TRANSFER_S)
        return self._id(await self._ask("POST", BATCHES, total=total, data=_body(part.path), headers=headers))

    async def _find(self, part: BatchPart) -> str | None:
        found, after = None, ""
        while True:
            query = {"limit": str(LISTED), **({"after_id": after} if after else {})}
            page = await self._ask("GET", BATCHES, query)
            listed = _batches(page)
            for batch in listed:  # the newest first
                if batch.get("id") == part.file_id:
                    return self._guessed(part, found)
                if batch.get("id") not in part.refuted and sum(_counts(batch).values()) == len(part.ids):
                    found = self._id(batch)
            if not page.get("has_more") or not listed or listed[-1].get("id") == after:
                return self._guessed(part, found)
            after = self._id(listed[-1])

    def _guessed(self, part: BatchPart, found: str | None) -> str | None:
        part.is_guess = found is not None
        return found

    async def look(self, batch_id: str) -> BatchState:
        """Return the current state of a batch, in one attempt. Its requests have their own endings in the results."""
        batch = await self._ask("GET", f"{BATCHES}/{quote(batch_id, safe='')}")
        counts, status = _counts(batch), str(batch.get("processing_status"))
        total = sum(counts.values())
        return BatchState(
            "completed" if status == "ended" else status,
            counted(status, total - counts.get("processing", 0), total),
            (batch_id,) if status == "ended" and batch.get("results_url") else (),
        )

    async def download(self, part: BatchPart, name: str, path: Path) -> None:  # noqa: ARG002 - of other services
        """Download the results to disk. Raises ``JournalError`` if they cannot be written."""
        await self._fetch(f"{BATCHES}/{quote(name, safe='')}/results", path)

    def read(self, part: BatchPart, record: Mapping[str, Any]) -> Outcome | None:
        """Read the record of a line of the results."""
        name, _, place = str(record.get("custom_id")).rpartition("-")
        result = record.get("result")
        if name != part.name or not place.isdecimal() or int(place) >= len(part.ids):
            return None
        request_id, found = part.ids[int(place)], result if isinstance(result, Mapping) else {}
        kind = str(found.get("type"))
        if kind == "succeeded":
            return self.parsed(request_id, found.get("message"))
        if kind == "errored":
            body = found.get("error")
            error = body.get("error") if isinstance(body, Mapping) else None
            cause = str(error.get("type")) if isinstance(error, Mapping) else ""
            return self.of_status(request_id, STATUS_OF_TYPE.get(cause, 500), body)
        return request_id, self.unanswered(ENDINGS.get(kind, "completed"), f"the request is {kind}")


async def _body(path: Path) -> AsyncIterator[bytes]:
    """Yield the body of a batch: the lines of its file, with commas instead of the line breaks in between."""
    yield HEAD
    with open(path, "rb") as file:
        left = path.stat().st_size - 1  # without the last line break
        while left > 0 and (piece := file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece.replace(b"\n", b",")  # JSON in one line has no other line breaks
    yield TAIL


def _custom_id(draft: str, number: int) -> bytes:
    return f"{draft}-{number:0{NUMBER}}".encode()


def _batches(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = page.get("data")
    return [batch for batch in listed if isinstance(batch, dict)] if isinstance(listed, list) else []


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    counts = batch.get("request_counts")
    found = counts.items() if isinstance(counts, Mapping) else ()
    return {name: number for name, number in found if isinstance(number, int)}
