"""Measure time, memory and bytes of ``lmms-eval report``, and of its pages in Chromium. Prints JSON.

    python -m benchmarks.report [--texts 100000] [--pictures 10000] [--folder DIR]

Both runs are the harness's own, by the baseline model: short questions, and questions with a 640x480 JPEG each, half of
them smooth and half noise, which compresses worst. The report is written in a separate process, twice into one
folder. ``bare`` makes the same thumbnails by Pillow alone, in as many threads: decode, resize, one WebP, write. Pages
are opened from disk, in a fresh page each: ``home``, the ``list`` of samples, one ``sample`` by its address, and the
list in the ``order`` of the answers, which has to read them all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.workload import run_child, text_task
from lmms_eval.viewer.media import SIDE

SIZE = (640, 480)
SAMPLE = ".sample"
BARS = {"pictures_megabytes": 250, "first_paint_s": 1.0, "megabytes_before_sample": 3.0, "text_ms": 2.0}
UTILS = """
from pathlib import Path


def doc_to_visual(doc):
    return [str(Path(__file__).parent / doc["image"])]
"""


def picture_task(folder: Path, documents: int) -> str:
    """Make a task with a different picture for each document."""
    from PIL import Image

    name = text_task(folder, documents, "bench_pictures")
    (folder / "pictures").mkdir(exist_ok=True)
    source = random.Random(0)
    rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row["image"] = f"pictures/{number}.jpg"
        small = SIZE if number % 2 else (SIZE[0] // 8, SIZE[1] // 8)
        picture = Image.frombytes("RGB", small, source.randbytes(small[0] * small[1] * 3))
        picture.resize(SIZE, Image.Resampling.BICUBIC).save(folder / row["image"], quality=75)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text(UTILS)
    with open(folder / f"{name}.yaml", "a", encoding="utf-8") as yaml:
        yaml.write("doc_to_visual: !function utils.doc_to_visual\n")
    return name


def run_of(folder: Path, task: str) -> Path:
    """Run the baseline over a task."""
    arguments = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", task]
    out = folder / "out"
    finished = run_child(
        ["-m", "lmms_eval", *arguments, "--include_path", str(folder), "--output_path", str(out), "--log_samples"]
    )
    if finished.exit_code:
        raise SystemExit(finished.output)
    return out


def written(run: Path, out: Path, samples: int) -> dict[str, float]:
    """Write a report with the command and return its costs."""
    finished = run_child(["-m", "lmms_eval", "report", str(run), "--out", str(out)])
    if finished.exit_code:
        raise SystemExit(finished.output)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return {
        "seconds": round(finished.wall_s, 2),
        "processor_seconds": round(finished.cpu_s, 2),
        "ms_per_sample": round(1000 * finished.wall_s / samples, 3),
        "peak_megabytes": round(finished.peak_mb),
        "megabytes": round(size / 1e6, 1),
        "files": sum(path.is_file() for path in out.rglob("*")),
    }


def bare_thumbnails(pictures: Path, out: Path) -> dict[str, float]:
    """Make one thumbnail of each picture with only Pillow."""
    from PIL import Image

    def make(path: Path) -> None:
        with Image.open(path) as image:
            image.draft(None, (SIDE, SIDE))
            image.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
            image.save(out / f"{path.stem}.webp", "WEBP", quality=72, method=0)

    out.mkdir(parents=True, exist_ok=True)
    begin, processor = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(min(8, (os.cpu_count() or 1) + 1)) as pool:
        for _ in pool.map(make, sorted(pictures.iterdir())):
            pass
    return {
        "seconds": round(time.perf_counter() - begin, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
    }


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium. Yields ``None`` if it or its driver is missing."""
    path = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def opened(browser: Any, report: Path, address: str, shows: str) -> dict[str, float]:
    """Open a page until it shows an element and return first paint, bytes read and the heap of its script."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    read: list[Path] = []
    page.on("request", lambda request: read.append(Path(request.url.removeprefix("file://").partition("#")[0])))
    begin = time.perf_counter()
    page.goto(f"{(report / 'index.html').resolve().as_uri()}{address}")
    page.wait_for_selector(shows, timeout=60_000)
    seconds = time.perf_counter() - begin
    page.wait_for_timeout(300)  # visible pictures and pieces that load later
    paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")
    session = context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    context.close()
    files = [path for path in read if path.is_file()]
    return {
        "first_paint_s": round(paint / 1000, 3),
        "shown_s": round(seconds, 3),
        "files": len(files),
        "megabytes": round(sum(path.stat().st_size for path in files) / 1e6, 3),
        "data_megabytes": round(sum(path.stat().st_size for path in files if path.parent.name == "data") / 1e6, 3),
        "heap_megabytes": round(heap / 1e6, 1),
    }


def pages(browser: Any, report: Path, task: str, samples: int) -> dict[str, Any]:
    samples_page = f"#/baseline/{task}"
    return {
        "home": opened(browser, report, "#/", "table"),
        "list": opened(browser, report, samples_page, ".list a.row:has-text('a3')"),
        "sample": opened(browser, report, f"{samples_page}/{samples // 2}", SAMPLE),
        "order": opened(
            browser, report, f"{samples_page}?sort=answer&down=1", f".list a.row:has-text('a{samples - 1}')"
        ),
    }


def measured(folder: Path, task: str, samples: int, browser: Any) -> dict[str, Any]:
    """Run, write the report twice, and open it."""
    run, out = run_of(folder, task), folder / "report"
    found: dict[str, Any] = {"samples": samples, "first": written(run, out, samples)}
    found["again"] = written(run, out, samples)
    if browser is not None:
        found["pages"] = pages(browser, out, task, samples)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where the runs are made; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        folder: Path = given.folder or Path(temporary)
        found: dict[str, Any] = {"python": sys.version.split()[0], "cores": os.cpu_count(), "bars": BARS}
        found["load_before"] = [round(one, 1) for one in os.getloadavg()]
        if given.texts:
            text = text_task(folder / "texts", given.texts)
            found["texts"] = measured(folder / "texts", text, given.texts, browser)
        if given.pictures:
            task = picture_task(folder / "pictures", given.pictures)
            found["pictures"] = measured(folder / "pictures", task, given.pictures, browser)
            bare = bare_thumbnails(folder / "pictures/pictures", folder / "pictures/bare")
            spent = found["pictures"]["first"]["processor_seconds"] / bare["processor_seconds"]
            found["pictures"] |= {"bare": bare, "processor_ratio_to_bare": round(spent, 2)}
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
