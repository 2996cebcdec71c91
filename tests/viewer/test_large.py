"""Pages of a large run in headless Chromium: how little they read, and that what they read is enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched, painted
from tests.viewer.test_pages import rows, status

SAMPLES = 21_000
RUN = "#/20250101_000000_samples_many/many"


def write_samples(file: Path, name: str) -> None:
    """Samples of which every seventh is wrong, the ids in no order; NAME stands before the number in each id."""
    with open(file, "w") as out:
        for number in range(SAMPLES):
            place = number if name == "" else (number * 8_191) % SAMPLES
            line = {
                "doc_id": f"{name}{place}" if name else place,
                "input": f"question {place}",
                "target": f"target {place}",
                "filtered_resps": f"answer {place}",
                "filter": "none",
                "acc": float(place % 7 != 0),
                "elapsed": place / 1000,
                "doc": {"town": f"town {place % 100}"},
                **({"status": "failed", "error": f"no answer {place}"} if place % 1000 == 999 else {}),
            }
            out.write(json.dumps(line) + "\n")


def report_of(folder: Path, name: str) -> Path:
    write_samples(folder / "20250101_000000_samples_many.jsonl", name)
    write_report([str(folder / "20250101_000000_samples_many.jsonl")], folder / "report", ReportOptions())
    return folder / "report"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents that are numbered in their order."""
    return report_of(tmp_path_factory.mktemp("counted"), "")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents with names, in no order."""
    return report_of(tmp_path_factory.mktemp("named"), "doc-")


def files_read(watched: Watched) -> list[Path]:
    found: list[Path] = []
    watched.page.on("request", lambda request: found.append(Path(request.url.removeprefix("file://").split("#")[0])))
    return found


def data_of(read: list[Path]) -> set[str]:
    return {path.stem for path in read if path.parent.name == "data"}


def test_the_list_reads_only_what_is_in_sight(counted: Path, watched: Watched) -> None:
    read = files_read(watched)
    page = watched.open(counted, RUN)
    page.wait_for_selector("text=answer 5")
    assert sum(path.stat().st_size for path in read if path.parent.name == "data") < 300_000
    assert {name for name in data_of(read) if name.startswith("rows-")} == {"rows-0-0-0"}
    assert not [name for name in data_of(read) if name.startswith("text-")]
    page.evaluate("document.querySelector('.list').scrollTop = 40 * 20_500")
    page.wait_for_selector("text=answer 20500")
    assert "rows-0-0-50" not in data_of(read)


@pytest.mark.parametrize(("fixture", "doc", "most"), [("counted", "12345", 7), ("named", "doc-12345", 8)])
def test_one_sample_by_its_address_reads_little(
    fixture: str, doc: str, most: int, watched: Watched, request: pytest.FixtureRequest
) -> None:
    report = request.getfixturevalue(fixture)
    read = files_read(watched)
    page = watched.open(report, f"{RUN}/{doc}")
    page.wait_for_selector("pre:has-text('question 12345')")
    page.wait_for_selector("a:text-is('Next')")
    names = data_of(read)
    assert len(names) <= most, names
    assert sum((report / f"data/{name}.js").stat().st_size for name in names) < 300_000
    painted(page)
    page.keyboard.press("j")
    page.wait_for_selector("h1:not(:has-text('12345'))")
    following = page.inner_text("h1 > bdi").removeprefix("doc-")
    page.wait_for_selector(f"pre:has-text('question {following}')")


def test_a_name_that_is_not_there_is_told(named: Path, watched: Watched) -> None:
    for name in ("doc-21000", "a", "~"):
        page = watched.open(named, f"{RUN}/{name}")
        page.wait_for_selector(f".problem:has-text('no sample {name} of this task')")


def test_filters_and_orders_hold_over_all_pieces(named: Path, watched: Watched) -> None:
    page = watched.open(named, f"{RUN}?score.max=0")
    status(page, "2,997 of 21,000 samples")  # of 3,000 three failed
    page = watched.open(named, f"{RUN}?status=failed&sort=latency")
    status(page, "21 of 21,000 samples")
    page.wait_for_selector("text=doc-999")  # names are read after the order
    assert rows(page)[0].startswith("doc-999")
    page = watched.open(named, f"{RUN}?m.town=town%2042&sort=answer&down=1")
    status(page, "210 of 21,000 samples")
    page.wait_for_selector("text=answer 20942")
    assert [row.split("\n")[0] for row in rows(page)[:2]] == ["doc-20942", "doc-20842"]
    page = watched.open(named, f"{RUN}?sort=id")
    page.wait_for_selector("text=answer 2")
    assert [row.split("\n")[0] for row in rows(page)[:3]] == ["doc-0", "doc-1", "doc-2"]
    page = watched.open(named, f"{RUN}?answer=ANSWER+77")
    status(page, "1 of 21,000 samples")


def test_values_of_a_column_of_many_are_offered(named: Path, watched: Watched) -> None:
    page = watched.open(named, f"{RUN}?latency.min=1")
    status(page, "20,000 of 21,000 samples")
    page.select_option("label:has-text('town') select", "town 99")
    status(page, "200 of 21,000 samples")


def test_search_reads_all_texts(named: Path, watched: Watched) -> None:
    page: Any = watched.open(named, f"{RUN}?q=question+20999")
    page.set_default_timeout(30_000)
    status(page, "1 of 21,000 samples")
