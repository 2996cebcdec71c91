"""OpenAI's batch interface: files of requests. Imported when a run uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from lmms_eval.models.openai.arguments import PATHS, Arguments, Endpoint
from lmms_eval.models.remote.batch.ledger import BatchPart, BatchState
from lmms_eval.models.remote.batch.service import LISTED, TRANSFER_S, BatchService, Outcome, counted
from lmms_eval.models.remote.reply import Reply

WINDOW = "24h"
"""The only window that services offer."""
RESULTS = ("output_file_id", "error_file_id")


class OpenAIBatches(BatchService):
    """The files and batches of one account, at OpenAI, Azure or a server with the same interface."""

    def __init__(self, endpoint: Endpoint, arguments: Arguments, parse: Callable[[bytes], Reply]) -> None:
        self._end, self._is_azure = PATHS[arguments.api], endpoint.header == "api-key"
        super().__init__(endpoint, arguments, parse)
        self.line_path = self._end if self._is_azure else f"/v1{self._end}"
        """The address in the lines of a batch file: that of a single request, without the host."""

    def root_path(self, path: str) -> str:
        """Return the path of the service; at Azure, files and batches belong to the resource, not to a deployment."""
        path = path.removesuffix(self._end)
        return path.partition("/deployments/")[0] if self._is_azure else path

    def line(self, request_id: str, payload: Any) -> bytes:
        """Return the line of a request. ``payload`` is JSON in one line."""
        head = orjson.dumps({"custom_id": request_id, "method": "POST", "url": self.line_path})
        return b"".join((head[:-1], b',"body":', payload, b"}\n"))

    async def upload(self, part: BatchPart) -> str:
        """Send a batch file, and return its id. A file alone has no effect, so it may be sent twice."""

        async def send() -> str:
            with open(part.path, "rb") as file:
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", file, filename=part.path.name, content_type="application/jsonl")
                return self._id(await self._ask("POST", "/files", data=form, total=max(self._timeout, TRANSFER_S)))

        return await self._tried(send)

    async def _create(self, part: BatchPart) -> str:
        body = {
            "input_file_id": part.file_id,
            "endpoint": self.line_path,
            "completion_window": WINDOW,
            "metadata": {"lmms_eval": part.name},
        }
        return self._id(await self._ask("POST", "/batches", json=body))

    async def _find(self, part: BatchPart) -> str | None:
        after = ""
        while True:
            page = await self._ask("GET", "/batches", {"limit": str(LISTED), **({"after": after} if after else {})})
            listed = [item for item in page.get("data") or [] if isinstance(item, dict) and item.get("id")]
            for item in listed:
                if item.get("input_file_id") == part.file_id:
                    return str(item["id"])
            if not page.get("has_more") or not listed or listed[-1]["id"] == after:
                return None
            after = listed[-1]["id"]

    async def look(self, batch_id: str) -> BatchState:
        """Return the current state of a batch, in one attempt."""
        batch = await self._ask("GET", f"/batches/{quote(batch_id, safe='')}")
        errors, counts, status = batch.get("errors"), batch.get("request_counts"), str(batch.get("status"))
        listed = errors.get("data") if isinstance(errors, Mapping) else None
        first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], Mapping) else {}
        found = counts if isinstance(counts, Mapping) else {}
        done = int(found.get("completed") or 0) + int(found.get("failed") or 0)
        return BatchState(
            status,
            counted(status, done, found.get("total")),
            tuple(str(batch[name]) for name in RESULTS if batch.get(name)),
            str(first.get("code") or ""),
            str(first.get("message") or ""),
        )

    async def download(self, part: BatchPart, name: str, path: Path) -> None:  # noqa: ARG002 - of other services
        """Download a result file to disk. Raises ``JournalError`` if it cannot be written."""
        await self._fetch(f"/files/{quote(name, safe='')}/content", path)

    def read(self, part: BatchPart, record: Mapping[str, Any]) -> Outcome | None:  # noqa: ARG002 - of other services
        """Read the record of a line of the results."""
        request_id, error, response = record.get("custom_id"), record.get("error"), record.get("response")
        if not isinstance(request_id, str):
            return None
        if not isinstance(response, Mapping):
            details = error if isinstance(error, Mapping) else {}
            reason = str(details.get("message") or error or "no response")
            return request_id, self.unanswered(str(details.get("code") or "completed"), reason)
        body, status = response.get("body"), response.get("status_code")
        if status != 200:
            return self.of_status(request_id, status if isinstance(status, int) else 500, body)
        return self.parsed(request_id, body)
