"""Gemini's batch mode: an uploaded file of requests, and a batch with our own name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import orjson

from lmms_eval.models.openai.arguments import Endpoint
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.batch.ledger import BatchPart, BatchState
from lmms_eval.models.remote.batch.service import LISTED, TRANSFER_S, BatchService, Outcome, counted
from lmms_eval.models.remote.reply import Reply

VERSION = "/v1beta"
MIME = "application/jsonl"
STATES = {
    "SUCCEEDED": "completed", "PARTIALLY_SUCCEEDED": "completed", "FAILED": "failed", "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}  # fmt: skip
STATUS: Mapping[int, int] = {
    1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503,
    15: 500, 16: 401,
}  # fmt: skip
"""The HTTP status for a code of ``google.rpc.Code``, which results have."""
FAILED_BY = {429: "rate_limit_exceeded", 500: "server_error", 503: "server_error", 504: "expired"}


class GeminiBatches(BatchService):
    """The files and batches of one key. ``model`` is the model's name in addresses (``models/NAME``)."""

    def __init__(
        self, endpoint: Endpoint, arguments: RemoteArguments, parse: Callable[[bytes], Reply], model: str
    ) -> None:
        super().__init__(endpoint, arguments, parse)
        self._model = model

    def line(self, request_id: str, payload: Any) -> bytes:
        """Return the line of a request. ``payload`` is the body of a single request."""
        return orjson.dumps({"key": request_id, "request": payload}) + b"\n"

    async def upload(self, part: BatchPart) -> str:
        """Send a batch file, and return its name. A file alone has no effect, so it may be sent twice."""

        async def send() -> str:
            size = part.path.stat().st_size
            address = await self._upload_address(part.path.name, size)
            headers = {
                "X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize", "Content-Length": str(size),
            }  # fmt: skip
            with open(part.path, "rb") as file:
                total = max(self._timeout, TRANSFER_S)
                answer = await self._ask("POST", address, total=total, data=file, headers=headers)
            found = answer.get("file")
            return self._id(found if isinstance(found, Mapping) else {}, "name")

        return await self._tried(send)

    async def _upload_address(self, name: str, size: int) -> str:
        """Begin an upload, and return the path and query of its address. The host stays that of ``base_url``."""
        headers = {
            "X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size), "X-Goog-Upload-Header-Content-Type": MIME,
        }  # fmt: skip
        limit = aiohttp.ClientTimeout(total=self._timeout)
        sent = {"json": {"file": {"displayName": name, "mimeType": MIME}}, "headers": headers, "timeout": limit}
        async with self._request("POST", f"/upload{VERSION}/files", **sent) as answer:
            parts = urlsplit(answer.headers.get("X-Goog-Upload-URL", ""))
        if not parts.path:
            raise self._failures.malformed("no address for the upload (X-Goog-Upload-URL)")
        path = parts.path.removeprefix(urlsplit(self._root).path)
        return f"{path}?{parts.query}" if parts.query else path

    async def _create(self, part: BatchPart) -> str:
        batch = {"displayName": part.name, "inputConfig": {"fileName": part.file_id}}
        path = f"{VERSION}/{quote(self._model)}:batchGenerateContent"
        return self._id(await self._ask("POST", path, json={"batch": batch}), "name")

    async def _find(self, part: BatchPart) -> str | None:
        token = ""
        while True:
            query = {"pageSize": str(LISTED), **({"pageToken": token} if token else {})}
            page = await self._ask("GET", f"{VERSION}/batches", query)
            listed = page.get("operations")
            for item in listed if isinstance(listed, list) else ():
                if isinstance(item, Mapping) and _inside(item, "metadata").get("displayName") == part.name:
                    return self._id(item, "name")
            before, token = token, str(page.get("nextPageToken") or "")
            if not token or token == before:
                return None

    async def look(self, batch_id: str) -> BatchState:
        """Return the current state of a batch, in one attempt."""
        batch = await self._ask("GET", f"{VERSION}/{quote(batch_id)}")
        facts, error = _inside(batch, "metadata"), _inside(batch, "error")
        state = str(facts.get("state")).rpartition("STATE_")[2]
        counts = _inside(facts, "batchStats")
        done = _number(counts, "successfulRequestCount") + _number(counts, "failedRequestCount")
        output = _inside(facts, "output").get("responsesFile") or _inside(batch, "response").get("responsesFile")
        code = _status(error.get("code"))
        return BatchState(
            STATES.get(state, state),
            counted(state, done, _number(counts, "requestCount")),
            (str(output),) if output else (),
            FAILED_BY.get(code, "refused") if error else "",
            str(error.get("message") or ""),
        )

    async def download(self, part: BatchPart, name: str, path: Path) -> None:  # noqa: ARG002 - of other services
        """Download the results to disk. Raises ``JournalError`` if they cannot be written."""
        await self._fetch(f"{VERSION}/{quote(name)}:download", path, {"alt": "media"})

    def read(self, part: BatchPart, record: Mapping[str, Any]) -> Outcome | None:  # noqa: ARG002 - of other services
        """Read the record of a line of the results."""
        request_id = record.get("key")
        if not isinstance(request_id, str):
            return None
        if isinstance(record.get("response"), Mapping):
            return self.parsed(request_id, record["response"])
        error = record.get("error") or record.get("status")
        if not isinstance(error, Mapping):
            return request_id, self.unanswered("completed", "a line without response")
        return self.of_status(request_id, _status(error.get("code")), {"error": dict(error)})


def _status(code: Any) -> int:
    """Return the HTTP status of an error's code."""
    number = code if isinstance(code, int) else 13
    return number if number >= 400 else STATUS.get(number, 500)


def _inside(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(counts: Mapping[str, Any], name: str) -> int:
    """Return a count, which JSON has as text, as the service's counts have 64 bits."""
    value = str(counts.get(name) or 0)
    return int(value) if value.isdecimal() else 0
