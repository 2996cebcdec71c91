"""The pages of a view in headless Chromium, over a real run against a slow server."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.results.journals import Journals
from tests.results.records import Record
from tests.servers.stub import StubServer
from tests.viewer.conftest import HOSTILE, quiz_rows, write_task
from tests.viewer.conftest import until as wait_until
from tests.viewer.live.conftest import View, run_against, view_of

SLOW_MS = 60_000


@dataclass(slots=True)
class Watched:
    """A page of a view with everything that it did that it should not."""

    page: Any
    root: str = ""
    faults: list[str] = field(default_factory=list)
    is_ended: bool = False
    """The view has ended: what it does not answer is no fault, as long as it is little."""
    unanswered: int = 0

    def open(self, view: View, address: str = "") -> Any:
        self.root = view.root
        self.page.goto(view.address + address)
        self.page.wait_for_selector("h1")
        assert self.page.url == view.root + address  # the token has left the address
        return self.page


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page())
    page = found.page
    page.set_default_timeout(20_000)

    def fault(text: str) -> None:
        if found.is_ended and ("ERR_CONNECTION_" in text or "403 (Forbidden)" in text or text.startswith("failed: ")):
            found.unanswered += 1
        else:
            found.faults.append(text)

    def asked(dialog: Any) -> None:
        found.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def requested(request: Any) -> None:
        if not request.url.startswith((found.root, "about:")):
            found.faults.append(f"request: {request.url}")

    page.on("console", lambda message: fault(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: fault(f"error: {error}"))
    page.on("requestfailed", lambda request: fault(f"failed: {request.url}"))
    page.on("request", requested)
    page.on("dialog", asked)
    yield found
    context.close()
    assert found.faults == []


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    rows = quiz_rows(folder)
    for number, row in enumerate(rows):
        said = row["answer"] if number % 2 else "no"
        row["question"] = f"{row['question']} ANSWER={said}"
    return write_task(folder, rows)


def until(page: Any, condition: str, arg: Any = None) -> None:
    wait_until(page, condition, arg, timeout_s=SLOW_MS / 1000)


def done(page: Any) -> int:
    return int(page.inner_text(".figure:has(dt:text-is('Documents')) b").split(" of ")[0])


def test_a_run_is_watched_from_its_first_sample_to_its_end(tmp_path: Path, task: Path, watched: Watched) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with StubServer(delay=1.0, fault="500", share=0.1) as server, view_of(out, "--no_browser") as view:
        page = watched.open(view)
        assert page.inner_text("h1") == "No run yet"
        with run_against(server.url, task, out, "--order", "random") as run:
            until(page, "() => document.querySelector('.live-line')")
            page.click("tbody a >> nth=0")
            until(page, "() => document.querySelector('#live tbody tr')")
            first = done(page)
            documents = "[...document.querySelectorAll('.figure')].find(one => one.innerText.startsWith('Documents'))"
            until(page, f"least => parseInt({documents}?.querySelector('b').innerText) > least", first + 4)
            assert "running" in page.inner_text(".badge")
            shown = page.inner_text("#live")
            assert "In flight" in shown
            assert "of at most 4 requests" in shown
            assert "the first " in shown
            # Samples appear as they come, and one is opened while the run goes on.
            page.goto(f"{view.root}#/stub/quiz")
            page.wait_for_selector(".list a.row")
            page.wait_for_selector(".row .thumb")
            before = page.inner_text("[role=status]")
            until(page, "text => document.querySelector('[role=status]').innerText !== text", before)
            page.click(".list a.row >> nth=1")
            page.wait_for_selector(".picture img")
            assert page.evaluate("() => document.querySelector('.picture img').naturalWidth") == 512
            page.goto(f"{view.root}#/stub")
            until(page, "() => document.querySelector('.badge')?.innerText === 'complete'")
            run.communicate(timeout=60)
        assert page.query_selector("#live") is None
        (record,) = (out / "stub" / ".runs").glob("*/run.json")
        lines = [line.record for line in Journals.read(record.parent).samples("quiz", {}).lines()]
        scores = [line["exact_match"] for line in lines if "exact_match" in line]
        assert 0 < len(scores) < len(lines) == 60 + len(HOSTILE)
        results = page.inner_text("section:has(h2:text-is('Results')) tbody")
        assert f"{math.fsum(scores) / len(scores):.4f}" in results
        assert f"\t{len(scores)}\t" in results
        assert f"{len(lines)} samples" in page.inner_text(".run-head")
    watched.is_ended = True


def test_numbers_on_the_page_are_the_journals(tmp_path: Path, watched: Watched) -> None:
    record = Record(tmp_path, 400)
    for place, doc_id in enumerate(record.order[:150]):
        record.score(doc_id, float(place % 3 == 0))
    for text in HOSTILE:
        record.fail(record.order.pop(), text)
    with view_of(tmp_path, "--no_browser") as view:
        page = watched.open(view, "#/modest")
        until(page, "() => document.querySelector('#live tbody tr')")
        task, score, done_of, failed = (cell.strip() for cell in page.inner_text("#live tbody tr").split("\t")[:4])
        assert (task, done_of, failed) == ("quiz", "159 of 400", "9")
        assert score.startswith("0.3333\n0.")
        figure = page.inner_text(".figure:has(dt:text-is('Provisional score'))")
        assert "0.3333" in figure and "over the first 150 of 400" in figure
        assert "39 %" in page.inner_text(".progress-line") and "now quiz" in page.inner_text(".progress-line")
        words = [row.inner_text().split()[0] for row in page.query_selector_all(".latest li")]
        assert words == ["failed"] * 8  # the newest first
        assert "the first 150" in page.inner_text("#live tbody tr")
        reasons = page.inner_text(".reasons")
        assert "<script>alert(1)</script>" in reasons
        assert "U+202E" in reasons
        assert "1,500 in, 300 out" in page.inner_text("#live")
        for place, doc_id in enumerate(record.order[150:200], 150):
            record.score(doc_id, float(place % 3 == 0))
        until(page, "() => document.querySelector('#live tbody tr').innerText.includes('209 of 400')")
        assert page.inner_text("#live .score b") == "0.3350"
        low, high = (float(end) for end in page.inner_text("#live .score small").split(" – "))
        assert 0.2 < low < 0.335 < high < 0.5
        # While texts are searched the list stays; without a search it grows.
        page.goto(f"{view.root}#/modest/quiz?q=which")
        until(page, "() => document.querySelector('[role=status]')?.innerText.startsWith('200 of 209 samples')")
        record.score(record.order[200], 1.0)
        page.wait_for_timeout(2500)
        assert page.inner_text("[role=status]").startswith("200 of 209 samples")
        page.fill("#search", "")
        until(page, "() => document.querySelector('[role=status]')?.innerText === '210 samples'")
        view.end()
        watched.is_ended = True


def test_a_list_that_outgrows_one_piece_stays_whole(tmp_path: Path, watched: Watched) -> None:
    record = Record(tmp_path, 1300)
    for doc_id in record.order[:490]:
        record.score(doc_id, float(doc_id % 2))
    with view_of(tmp_path, "--no_browser") as view:
        page = watched.open(view, "#/modest/quiz?sort=s.acc,none&m.kind=1")
        until(page, "() => document.querySelector('[role=status]')?.innerText.endsWith(' of 490 samples')")
        for doc_id in record.order[490:1290]:
            record.score(doc_id, float(doc_id % 2))
        until(page, "() => document.querySelector('[role=status]')?.innerText.endsWith(' of 1,290 samples')")
        odd = sum(doc_id % 2 for doc_id in record.order[:1290])
        assert page.inner_text("[role=status]") == f"{odd} of 1,290 samples"
        page.wait_for_selector(".list a.row >> nth=8")
        rows = [row.split() for row in page.locator(".list a.row").all_inner_texts()]
        assert all(int(row[0]) % 2 and row[1:4] == ["correct", "1", "B"] for row in rows)
        page.goto(f"{view.root}#/modest/quiz/{record.order[1289]}")
        page.wait_for_selector(f"h1 bdi:text-is('{record.order[1289]}')")
        page.wait_for_selector("text=Raw JSON")
        view.end()
        watched.is_ended = True


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_the_page_survives_the_end_of_the_view_and_its_return(tmp_path: Path, watched: Watched, by: int) -> None:
    record = Record(tmp_path, 40)
    for doc_id in range(10):
        record.score(doc_id, 1.0)
    with view_of(tmp_path, "--no_browser") as view:
        page = watched.open(view, "#/modest/quiz")
        page.wait_for_selector(".list a.row")
        page.click(".list a.row >> nth=2")
        page.wait_for_selector("text=Raw JSON")
        watched.is_ended = True
        view.end(by)
    until(page, "() => document.querySelector('.banner')?.innerText.startsWith('The view has ended')")
    page.wait_for_timeout(10_000)
    assert 0 < watched.unanswered <= 8  # a few lines of the browser's own, no flood
    page.keyboard.press("j")  # what was loaded is still there
    page.wait_for_selector("h1 bdi:text-is('3')")
    page.wait_for_selector("text=Raw JSON")
    record.score(30, 1.0)
    with view_of(tmp_path, "--no_browser", "--port", str(view.port)) as again:
        page.click(".banner button")
        until(page, "() => document.querySelector('.banner')?.innerText.includes('new address')")
        other = page.context.new_page()
        other.goto(again.address)
        other.wait_for_selector("h1")
        page.click(".banner button")
        page.wait_for_selector(".banner", state="detached")
        page.keyboard.press("u")
        until(page, "() => document.querySelector('[role=status]')?.innerText === '11 samples'")
        other.close()


def test_a_run_that_is_deleted_is_told(tmp_path: Path, watched: Watched) -> None:
    record = Record(tmp_path, 40)
    record.score(1, 1.0)
    with view_of(tmp_path, "--no_browser") as view:
        page = watched.open(view, "#/modest")
        until(page, "() => document.querySelector('#live tbody tr')")
        record.folder.clear()
        record.folder.release()
        record.path.rmdir()
        until(page, "() => document.querySelector('.warnings')?.innerText.includes('was deleted or moved')")
        assert page.inner_text(".badge") == "deleted"
        page.click("[role=tab]:has-text('Samples')")
        page.wait_for_selector(".list a.row")
        watched.is_ended = True
