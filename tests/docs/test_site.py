"""The site holds every page, its links hold, and its search works from the disk."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.cases import for_each
from tests.docs.pages import PAGES, ROOT, prose

_CODE = re.compile(r"`+[^`]*`+")
_LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
_TITLE = re.compile(r"^#{1,6} +(.*?) *#*$")


def _links(page: Path) -> Iterator[str]:
    yield from _LINK.findall(_CODE.sub("code", prose(page)))


def _anchors(page: Path) -> set[str]:
    """Anchors of the titles of a page, as forges and the site make them."""
    titles = [match[1] for line in prose(page).splitlines() if (match := _TITLE.match(line))]
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles)
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_hold(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{page.relative_to(ROOT)} names {link}, which is not there"
        if anchor:
            assert anchor in _anchors(target), f"{page.relative_to(ROOT)} names {link}: no such title"


def test_the_index_names_every_guide() -> None:
    named = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in _links(ROOT / "docs" / "index.md")}
    guides = {*(ROOT / "docs").glob("*.md"), ROOT / "docs/models/README.md", ROOT / "docs/decisions/README.md"}
    assert guides - named == {ROOT / "docs" / "index.md"}


PAGES_OF_CARDS = """
import sys
from pathlib import Path
sys.path.insert(0, "docs/sphinx")
import navigation, sources
sources.assemble(Path(sys.argv[1]))
navigation.write_benchmarks(Path(sys.argv[1]))
"""


def test_a_card_gets_the_facts_of_the_registry(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PAGES_OF_CARDS, str(tmp_path)]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    card = (tmp_path / "lmms_eval/tasks/muirbench/README.md").read_text(encoding="utf-8")
    assert "2,600" in card.partition("## In the registry")[2]
    assert "muirbench/README.md" in (tmp_path / "benchmarks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "furo", "myst_parser")):
        pytest.skip("the site is built by packages of the extra docs")
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, str(ROOT / "docs/sphinx/build.py"), str(out)],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)},  # the facts of this tree
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_the_site_is_searched_from_the_disk(site: Path, watched: Any) -> None:
    page = watched.page
    page.goto((site / "search.html").as_uri() + "?q=lockstep")
    page.wait_for_selector("ul.search li a")
    assert "docs/scale_out.html" in " ".join(
        link.get_attribute("href") for link in page.query_selector_all("ul.search li a")
    )
    page.goto((site / "search.html").as_uri() + "?q=qqqzzz")
    page.wait_for_selector("#search-results p.search-summary")
    assert not page.query_selector_all("ul.search li")


ANSWERS = {
    "resume": "docs/troubleshooting.html",
    "withheld": "docs/troubleshooting.html",
    "exit code 3": "docs/commands.html",
    "own model": "docs/model_guide.html",
    "own benchmark": "docs/task_guide.html",
    "llm judge": "docs/judges.html",
    "cuda out of memory": "docs/troubleshooting.html",
    "multiple GPUs": "docs/scale_out.html",
    "offline": "docs/clusters.html",
    "compare two runs": "docs/compare.html",
    "mmmu": "lmms_eval/tasks/mmmu/README.html",
    "EvalClient": "reference/entrypoints.html",
}


def test_the_first_results_of_a_search_answer_what_newcomers_ask(site: Path, watched: Any) -> None:
    page = watched.page
    for question, answer in ANSWERS.items():
        page.goto((site / "search.html").as_uri() + "?q=" + quote(question))
        page.wait_for_selector("ul.search li a")
        found = [link.get_attribute("href") for link in page.query_selector_all("ul.search li > a")]
        assert answer in [re.split("[?#]", link)[0] for link in found[:3]], question


def test_a_card_ends_with_the_facts_of_the_registry(site: Path) -> None:
    card = (site / "lmms_eval/tasks/muirbench/README.html").read_text(encoding="utf-8")
    assert "In the registry" in card and "2,600" in card.partition("In the registry")[2]


def test_help_and_names_are_those_of_the_declarations(site: Path) -> None:
    assert "--permute_choices" in (site / "docs/commands/eval.html").read_text(encoding="utf-8")
    keys = (site / "reference/schemas.html").read_text(encoding="utf-8")
    assert "Share of the requested documents that are scored." in keys and "<td><p></p></td>" not in keys


def test_the_reference_has_every_public_name(site: Path) -> None:
    listed = (ROOT / "tests/public_api.txt").read_text(encoding="utf-8")
    names = set(re.findall(r"^lmms_eval\.(?:api|entrypoints|errors|evaluator|results)\.\w+", listed, re.MULTILINE))
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    assert names
    assert {name for name in names if f'id="{name}"' not in pages} == set()


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    page = (site / "docs/formulas.html").read_text(encoding="utf-8")
    assert page.count("<math ") == (ROOT / "docs/formulas.md").read_text(encoding="utf-8").count("```math")


def test_every_module_of_estimators_has_its_formulas() -> None:
    page = (ROOT / "docs/formulas.md").read_text(encoding="utf-8")
    modules = {path.name for path in (ROOT / "lmms_eval/stats").glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if f"`stats/{name}`" not in page} == set()


def test_drawings_are_what_their_script_draws(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "docs/sphinx/drawings.py"), str(tmp_path)], check=True, timeout=60)
    drawn = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_bytes() for file in (ROOT / "docs/images").glob("*.svg")}


@pytest.mark.parametrize("drawing", sorted((ROOT / "docs/images").glob("*.svg")), ids=lambda path: path.stem)
def test_words_of_a_drawing_stay_in_their_boxes(drawing: Path, watched: Any) -> None:
    page = watched.page
    page.goto(drawing.as_uri())
    outside = page.evaluate(
        """() => {
            const boxes = [...document.querySelectorAll("rect")].map(box => box.getBBox());
            const holds = (box, text) => box.x < text.x && text.x + text.width < box.x + box.width
                && box.y <= text.y && text.y + text.height <= box.y + box.height;
            const wanted = text => text.classList.contains("label") ? boxes : boxes.slice(1);
            return [...document.querySelectorAll("text")]
                .filter(text => !wanted(text).some(box => holds(box, text.getBBox()))).map(text => text.textContent);
        }"""
    )
    assert outside == []
