"""The application by itself, as a larger server mounts it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from lmms_eval.http.guard import Guard
from lmms_eval.viewer.live.app import live_app
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import ReportOptions
from tests.results.records import Record


def test_it_works_below_a_path_of_another_server(tmp_path: Path) -> None:
    record = Record(tmp_path, 10)
    record.score(3, 1.0)
    guard = Guard("mounted")

    async def ask(watch: Watch) -> list[httpx.Response]:
        outer = Starlette(routes=[Mount("/view", live_app(watch, guard))])
        transport = httpx.ASGITransport(outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000/view/") as client:
            paths = ("", f"?{guard.token}", "app.js", "data/runs.json", "data/text-0-0-0.json", "changes")
            return [*[await client.get(path) for path in paths], await client.head("")]

    with Watch(tmp_path, ReportOptions(redact=frozenset({"target"}))) as watch:
        refused, page, script, runs, texts, changes, head = asyncio.run(ask(watch))
    assert refused.status_code == 403
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert 'src="app.js"' in page.text  # relative: it is found below the path too
    assert "data-live" in page.text
    assert "lmmsChunk" in script.text
    assert runs.json()["runs"][0]["live"]["done"] == 1
    assert texts.json()[0]["lines"][0]["target"] == "[REDACTED]"
    assert changes.json()["names"] == ["*"]
    assert (head.status_code, head.content) == (200, b"")
