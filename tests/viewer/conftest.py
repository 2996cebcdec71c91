"""Runs for reports, made by the harness itself, and a headless Chromium that looks at them from disk."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.cli.main import main

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg onload=alert(3)><style>*{display:none}</style></svg>",
    "</script></pre><iframe src=javascript:alert(4)></iframe>",
    "[link](javascript:alert(5)) data:text/html,<script>alert(6)</script>",
    'a" onmouseover="alert(7)" x="',
    "safe\u202eevil\u202c \x1b[31mred\x07 \u2066x\u2069 \u200b",
    "{{constructor.constructor('alert(8)')()}} ${alert(9)}",
    "url(https://example.invalid/x.png) @import 'https://example.invalid/y.css'",
)
UTILS = """
from pathlib import Path


def doc_to_visual(doc):
    return [str(Path(__file__).parent / name) for name in doc["media"]]
"""


def write_task(folder: Path, rows: list[dict[str, Any]], name: str = "quiz") -> Path:
    """Write a task whose documents are independent, also if they share pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text(UTILS)
    (folder / f"{name}.yaml").write_text(
        f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files: {{test: {name}.jsonl}}\ntest_split: test\n"
        "cluster_key: question\ndoc_to_text: question\ndoc_to_target: answer\n"
        "doc_to_visual: !function utils.doc_to_visual\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )
    return folder


def run_task(folder: Path, out: Path, model_args: str, name: str = "quiz") -> Path:
    arguments = ["--model", "baseline", "--model_args", model_args, "--tasks", name, "--include_path", str(folder)]
    assert main(["eval", *arguments, "--output_path", str(out), "--log_samples"]) == 0
    return out


def quiz_rows(folder: Path) -> list[dict[str, Any]]:
    """Sixty documents with a picture each, the last of them hostile."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(60):
        picture = f"picture{number % 6}.png"
        Image.new("RGB", (900, 600), (40 * (number % 6), 90, 160)).save(folder / picture)
        rows.append(
            {
                "question": f"What is {number} and one?",
                "answer": "A" if number % 3 == 0 else str(number + 1),
                "media": [picture],
                "kind": ("even", "odd")[number % 2],
                "level": str(number % 4),
            }
        )
    for number, text in enumerate(HOSTILE, 60):
        name = f"<img src=x onerror=alert({number})>.png"
        Image.new("RGB", (40, 30)).save(folder / name)
        rows.append({"question": text, "answer": text, "media": [name], "kind": text[:40], "level": "0"})
    for row in rows:
        row["<b onclick=alert(10)>key</b>"] = ("<i>one</i>", "<u>two</u>")[row["level"] == "0"]
    return rows


@pytest.fixture(scope="session")
def quiz_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of one task: with the reference answers, and with the same letter for every document."""
    folder = tmp_path_factory.mktemp("quiz")
    task = write_task(folder / "task", quiz_rows(folder / "task"))
    gold = run_task(task, folder / "gold", "strategy=gold")
    return gold, run_task(task, folder / "letter", "strategy=constant,text=A")


def until(page: Any, condition: str, arg: Any = None, *, timeout_s: float = 5.0) -> None:
    """Wait until an expression, or a function of one argument, holds in a page.

    Playwright's own ``wait_for_function`` evaluates text inside the page from its second look on, which the policy of
    reports forbids: it fails whenever the first look came too early.
    """
    end = time.monotonic() + timeout_s
    while not page.evaluate(condition, arg):
        assert time.monotonic() < end, f"after {timeout_s} s still not so: {condition} ({arg})"
        page.wait_for_timeout(20)


def painted(page: Any) -> None:
    """Wait until a page has been painted: it listens to keys shortly after its text can be found."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))"
    )


@dataclass(slots=True)
class Watched:
    """A page with everything that it did that it should not."""

    page: Any
    faults: list[str] = field(default_factory=list)

    def open(self, report: Path, address: str = "#/") -> Any:
        self.page.goto("about:blank")
        file = report / "index.html" if report.is_dir() else report
        self.page.goto(f"{file.resolve().as_uri()}{address}")
        self.page.wait_for_selector("h1, .problem")
        return self.page


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """A page; at the end of the test it must have had no error, no dialog and no request beyond the disk."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found = Watched(context.new_page())
    page = found.page
    page.set_default_timeout(5000)
    page.on("console", lambda message: found.faults.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.faults.append(f"error: {error}"))

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the next page was opened before a piece was there
            found.faults.append(f"failed: {request.url}: {request.failure}")

    page.on("requestfailed", failed)

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            found.faults.append(f"request: {request.url}")

    def asked(dialog: Any) -> None:
        found.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("request", requested)
    page.on("dialog", asked)
    yield found
    context.close()
    assert found.faults == []
