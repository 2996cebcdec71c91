"""The terminal's screen, driven by keys without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.evaluation.run import run
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import ReportOptions
from tests.evaluation.kit import NAME, Told, config, fails_on

pytest.importorskip("textual")
from lmms_eval.viewer.live.screen import RunsScreen

Step = Callable[[Any, Any], Awaitable[None]]


def driven(folder: Path, step: Step, **more: Any) -> RunsScreen:
    """Show a folder and do what ``step`` does with the screen and its keys."""

    async def drive(screen: RunsScreen) -> None:
        async with screen.run_test(size=(120, 30)) as pilot:
            await pilot.pause()
            await step(screen, pilot)

    with Watch(folder, ReportOptions(media="none")) as watch:
        screen = RunsScreen(watch, **more)
        with ThreadPoolExecutor(1) as apart:  # a browser of other tests has the event loop of this thread
            apart.submit(asyncio.run, drive(screen)).result()
    return screen


def cells(screen: RunsScreen, name: str) -> list[list[str]]:
    table = screen.query_one(name)
    return [[str(cell) for cell in table.get_row_at(place)] for place in range(table.row_count)]  # type: ignore[attr-defined]


def text(screen: RunsScreen, name: str) -> str:
    return str(screen.query_one(name).render())


def test_the_numbers_are_those_of_the_chosen_run(tmp_path: Path) -> None:
    run(config(tmp_path, model="told", model_args="pretrained=one"), Told())
    run(config(tmp_path, model="told", model_args="pretrained=two"), Told(fails_on(1, 2)))

    async def look(screen: RunsScreen, pilot: Any) -> None:
        runs = {row[0]: row for row in cells(screen, "#runs")}
        assert runs["one"][:4] == ["one", "complete", "6/6", ""]
        assert runs["two"][1:3] == ["withheld", "6/6"] and runs["two"][6] == "2"
        first = cells(screen, "#numbers")
        await pilot.press("down")
        await pilot.pause()
        both = [*first, *cells(screen, "#numbers")]
        assert sorted(row[7] for row in both) == ["0", "2"]
        assert {row[0] for row in both} == {NAME}

    driven(tmp_path / "out", look)


def test_a_run_that_begins_later_appears(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    async def look(screen: RunsScreen, pilot: Any) -> None:
        assert text(screen, "#remarks") == "no run has begun here yet"
        await asyncio.to_thread(run, config(tmp_path, model="told"), Told())
        for _ in range(100):
            if cells(screen, "#runs"):
                break
            await pilot.pause(0.1)
        assert cells(screen, "#runs")[0][1] == "complete"

    driven(tmp_path / "out", look)


def test_lines_of_the_log_are_only_text(tmp_path: Path) -> None:
    async def look(screen: RunsScreen, _pilot: Any) -> None:
        assert text(screen, "#log") == "[bold]x[/bold] \\u001b[31mred"

    driven(tmp_path, look, log=lambda: ["[bold]x[/bold] \x1b[31mred"])


def test_keys_end_the_run_or_leave(tmp_path: Path) -> None:
    pressed: list[str] = []

    async def interrupt(screen: RunsScreen, pilot: Any) -> None:
        await pilot.press("ctrl+c")
        assert screen.is_running and pressed == ["interrupted"]
        await pilot.press("q")
        await pilot.pause()
        assert not screen.is_running

    driven(tmp_path, interrupt, interrupt=lambda: pressed.append("interrupted"))

    async def leave(screen: RunsScreen, pilot: Any) -> None:
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not screen.is_running

    driven(tmp_path, leave)


def test_the_screen_is_left_when_the_run_is_over(tmp_path: Path) -> None:
    over: list[bool] = []

    async def look(screen: RunsScreen, pilot: Any) -> None:
        assert screen.is_running
        over.append(True)
        for _ in range(100):
            if not screen.is_running:
                break
            await pilot.pause(0.1)
        assert not screen.is_running

    driven(tmp_path, look, has_ended=lambda: bool(over))
