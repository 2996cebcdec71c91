"""Make the pictures of the README: ``python examples/make_screenshots.py [FOLDER]``.

Runs the demonstration (``demo.py``), writes its report, opens it in headless Chromium, and saves the page of the
embedded model's run and of one of its samples below ``docs/images``; also the page of a run with several answers to
each question, with its section on certainty. Needs Playwright (extra ``dev``) and Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

REPOSITORY = Path(__file__).parents[1]
DEFAULT_FOLDER = REPOSITORY / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, SCALE = 1120, 1.5
MOST_BYTES = 200_000
RUN = "#/embedded"


@dataclass(frozen=True)
class Shot:
    """A page to show: its address, an element to wait for, and the element below which the picture is cut off."""

    name: str
    address: str
    awaited: str
    last: str
    click: str = ""
    report: str = "report"


BREAKDOWN = "[aria-label='MEGA-Bench by app'] svg.plot"
SHOTS = (
    Shot("report_run", f"{RUN}?page=breakdown", BREAKDOWN, "details.breakdown:has(h3:text-is('Input format'))"),
    Shot("report_sample", f"{RUN}/megabench_demo/20", "figure img", "details:has-text('Document')", "button.picture"),
    Shot("report_certainty", "#/baseline", "#certainty svg.shares", "#certainty", report="certain"),
)
REPEATED = (
    "--model",
    "baseline",
    "--model_args",
    "strategy=random_choice,options=red|blue|green",
    "--tasks",
    "colours",
)
REDUCED = ("--repeats", "8", "--reduce", "pass@4,maj@8", "--log_samples", "--output_path", "out/repeats")


def write_reports(folder: Path) -> None:
    """Run the demonstration and write the reports, with names that do not depend on this machine."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    program = [sys.executable, "-m", "lmms_eval"]
    for command in (
        [sys.executable, str(REPOSITORY / "examples" / "demo.py"), "--out", "out"],
        [*program, "report", "out", "--out", "report"],
        [*program, *REPEATED, "--include_path", str(REPOSITORY / "examples" / "task"), *REDUCED],
        [*program, "report", "out/repeats", "--out", "certain"],
    ):
        subprocess.run(command, check=True, cwd=folder, env=environment)


def take(page: Any, folder: Path, shot: Shot) -> Image.Image:
    """Return a picture of a page from its top to the end of the last element to show."""
    page.goto("about:blank")
    page.goto(f"{(folder / shot.report / 'index.html').as_uri()}{shot.address}")
    page.wait_for_selector(shot.awaited)
    if shot.click:
        page.click(shot.click)
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)  # pictures are decoded and charts are drawn after the elements appear
    box = page.query_selector(shot.last).bounding_box()
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 16}
    return Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip))).convert("RGB")


def save(image: Image.Image, path: Path) -> int:
    """Write a picture as WebP, lossless if that is small enough, and return its size in bytes."""
    image.save(path, lossless=True, method=6)
    if path.stat().st_size > MOST_BYTES:
        image.save(path, quality=85, method=6)
    return path.stat().st_size


@contextmanager
def chromium_page() -> Iterator[Any]:
    """Open an empty page of headless Chromium."""
    from playwright.sync_api import sync_playwright

    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("pictures are made in Chromium: apt-get install chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        yield chromium.new_page(viewport={"width": WIDTH, "height": 700}, device_scale_factor=SCALE)
        chromium.close()


def make(folder: Path) -> None:
    """Make all pictures, replacing existing ones."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium_page() as page:
        reports = Path(scratch).resolve()
        write_reports(reports)
        for shot in SHOTS:
            path = folder / f"{shot.name}.webp"
            image = take(page, reports, shot)
            sys.stdout.write(f"{path}: {image.width}x{image.height}, {save(image, path):,} bytes\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER)
