"""The batch interfaces of Anthropic and Gemini, for the server of ``batches``: wire forms, routes and results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.servers import dialects

if TYPE_CHECKING:
    from tests.servers.batches import Batch, Handlers

ERROR_TYPES = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error"}
ENDINGS = {"expired": "expired", "cancelled": "canceled"}
STATES = {"in_progress": "RUNNING", "completed": "SUCCEEDED"}
CODES = {400: 3, 429: 8, 500: 13}


def chat_body(form: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a line as chat completion."""
    if form == "openai":
        return body
    return dialects.read("/messages" if form == "anthropic" else "/models/stub:generateContent", body)


def stops_of(body: dict[str, Any]) -> Any:
    """The stop strings of a line's body."""
    return body.get("stop") or body.get("stop_sequences") or body.get("generationConfig", {}).get("stopSequences")


def result(form: str, name: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    """A line of results with an answer to one request."""
    if form == "openai":
        return {"custom_id": name, "response": {"status_code": status, "request_id": "r", "body": body}, "error": None}
    if form == "anthropic":
        if status == 200:
            message = dialects.write("/messages", body)
            if body["choices"][0]["message"]["content"] == "<think>hm":
                message |= {"stop_reason": "stop_sequence", "stop_sequence": "\n\n"}
            return {"custom_id": name, "result": {"type": "succeeded", "message": message}}
        told = {"type": ERROR_TYPES[status], "message": body["error"]["message"]}
        return {"custom_id": name, "result": {"type": "errored", "error": {"type": "error", "error": told}}}
    if status == 200:
        return {"key": name, "response": dialects.write("/models/stub:generateContent", body)}
    return {"key": name, "error": {"code": CODES[status], "message": body["error"]["message"]}}


def spoil(line: dict[str, Any]) -> None:
    """Make the answer in a line of results garbage."""
    if "result" in line:
        line["result"]["message"] = {"content": 7, "usage": 7, "stop_reason": []}
    elif "key" in line:
        line["response"] = {"candidates": [{"content": {"parts": 7}}], "usageMetadata": 4}
    else:
        line["response"]["body"] = {"choices": 7}


def unanswered(form: str, name: str, ends: str) -> dict[str, Any] | None:
    """A line of results of a request that its batch did not answer; ``None``: there is no such line."""
    if form == "anthropic":
        return {"custom_id": name, "result": {"type": ENDINGS[ends]}}
    told = {"code": f"batch_{ends}", "message": "the batch ended before this request"}
    return {"custom_id": name, "response": None, "error": told} if form == "openai" else None


class Anthropic:
    """``/v1/messages/batches``."""

    def __init__(self, handlers: Handlers) -> None:
        self.handlers = handlers

    def routes(self) -> list[web.RouteDef]:
        root = "/v1/messages/batches"
        return [
            web.post(root, self.create), web.get(root, self.listed), web.get(f"{root}/{{id}}", self.look),
            web.get(f"{root}/{{id}}/results", self.results),
        ]  # fmt: skip

    def shown(self, batch: Batch) -> dict[str, Any]:
        is_over = batch.status != "in_progress"
        counts = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if is_over else "processing"] = len(batch.lines)
        return {
            "id": batch.id, "type": "message_batch", "processing_status": "ended" if is_over else "in_progress",
            "request_counts": {"processing": 0, **counts}, "created_at": "2026-11-28T00:00:00Z",
            "results_url": f"http://elsewhere.invalid/{batch.id}" if is_over else None,
        }  # fmt: skip

    async def create(self, request: web.Request) -> web.Response:
        service, refused = self.handlers.service, self.handlers.service.refuses(request)
        assert request.headers["anthropic-version"] and request.headers["x-api-key"]
        raw = await request.read()
        await service.at("creating")
        is_gone = request.transport is None or request.transport.is_closing()
        if is_gone or (refused and not service.settings.is_done):
            return service.refusal()
        assert len(raw) <= service.settings.max_bytes
        lines = [{"custom_id": one["custom_id"], "body": one["params"]} for one in json.loads(raw)["requests"]]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", line["custom_id"]) for line in lines)
        batch = self.handlers.add_batch("anthropic", lines)
        await service.at("created")
        return service.refusal() if refused else web.json_response(self.shown(batch))

    async def listed(self, request: web.Request) -> web.Response:
        service = self.handlers.service
        if service.refuses(request):
            return service.refusal()
        await service.at("listing")
        newest = list(service.batches.values())[::-1]
        after = request.query.get("after_id")
        start = [batch.id for batch in newest].index(after) + 1 if after else 0
        most = min(int(request.query["limit"]), service.settings.page)
        page = [self.shown(batch) for batch in newest[start : start + most]]
        return web.json_response({"data": page, "has_more": start + most < len(newest)})

    async def look(self, request: web.Request) -> web.Response:
        batch = await self.handlers.looked(request)
        return self.handlers.service.refusal() if batch is None else web.json_response(self.shown(batch))

    async def results(self, request: web.Request) -> web.Response:
        return await self.handlers.read_results(request, request.match_info["id"])


class Gemini:
    """``/v1beta/batches`` and the files of ``/upload/v1beta/files``."""

    def __init__(self, handlers: Handlers) -> None:
        self.handlers = handlers

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/upload/v1beta/files", self.begin), web.post("/upload/v1beta/files/{id}", self.upload),
            web.post("/v1beta/models/{model}:batchGenerateContent", self.create),
            web.get("/v1beta/batches", self.listed), web.get("/v1beta/batches/{id}", self.look),
            web.get("/v1beta/files/{id}:download", self.content),
        ]  # fmt: skip

    def shown(self, batch: Batch) -> dict[str, Any]:
        state = STATES.get(batch.status, batch.status.upper())
        facts: dict[str, Any] = {
            "displayName": batch.metadata["name"], "state": f"BATCH_STATE_{state}",
            "batchStats": {"requestCount": str(len(batch.lines))},
        }  # fmt: skip
        if batch.output_file_id is not None:
            facts["output"] = {"responsesFile": f"files/{batch.output_file_id}"}
        code = {"token_limit_exceeded": 8}.get(batch.code, 3)
        error = {"error": {"code": code, "message": f"stub: {batch.code}"}} if batch.status == "failed" else {}
        return {"name": f"batches/{batch.id}", "metadata": facts, "done": batch.status != "in_progress", **error}

    async def begin(self, request: web.Request) -> web.Response:
        service = self.handlers.service
        if service.refuses(request):
            return service.refusal()
        assert request.headers["X-Goog-Upload-Command"] == "start"
        address = f"https://elsewhere.invalid/upload/v1beta/files/{time.monotonic_ns()}?upload_id=x"
        return web.json_response({}, headers={"X-Goog-Upload-URL": address})

    async def upload(self, request: web.Request) -> web.Response:
        service = self.handlers.service
        assert request.query["upload_id"] == "x"
        content = await request.read()
        await service.at("uploading")
        assert len(content) <= service.settings.max_bytes
        name = service.add_file(content)
        await service.at("uploaded")
        return web.json_response({"file": {"name": f"files/{name}"}})

    async def create(self, request: web.Request) -> web.Response:
        service, refused = self.handlers.service, self.handlers.service.refuses(request)
        assert request.headers["x-goog-api-key"]
        wanted = (await request.json())["batch"]
        await service.at("creating")
        is_gone = request.transport is None or request.transport.is_closing()
        if is_gone or (refused and not service.settings.is_done):
            return service.refusal()
        content = service.files[wanted["inputConfig"]["fileName"].removeprefix("files/")]
        lines = [json.loads(line) for line in content.splitlines()]
        named = [{"custom_id": line["key"], "body": line["request"]} for line in lines]
        batch = self.handlers.add_batch("gemini", named, {"name": wanted["displayName"]})
        await service.at("created")
        return service.refusal() if refused else web.json_response(self.shown(batch))

    async def listed(self, request: web.Request) -> web.Response:
        service = self.handlers.service
        if service.refuses(request):
            return service.refusal()
        found = list(service.batches.values())[::-1]
        start = int(request.query.get("pageToken", 0))
        page = [self.shown(batch) for batch in found[start : start + service.settings.page]]
        following = start + service.settings.page
        more: Mapping[str, Any] = {"nextPageToken": str(following)} if following < len(found) else {}
        return web.json_response({"operations": page, **more})

    async def look(self, request: web.Request) -> web.Response:
        batch = await self.handlers.looked(request)
        return self.handlers.service.refusal() if batch is None else web.json_response(self.shown(batch))

    async def content(self, request: web.Request) -> web.Response:
        assert request.query["alt"] == "media"
        return await self.handlers.read_results(request, request.match_info["id"])
