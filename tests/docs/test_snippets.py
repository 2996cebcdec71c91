"""Every snippet of the documentation runs as it is printed, or says why it cannot be run here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.docs.snippets import LANGUAGES, READERS, Folder, chosen, fault_of_mark, marked, missing_lines
from tests.server.process import ServerProcess
from tests.servers.stub import StubServer

BLOCKS = {page: list(blocks(page)) for page in PAGES}
ALL = [block for found in BLOCKS.values() for block in found]
RUN = [page for page in PAGES if [*chosen(BLOCKS[page])]]
RUN_AT_LEAST, REFUSED_AT_MOST = 94, 14
"""Blocks that run or are read, and those that say why they do not."""
ADDRESS = "http://127.0.0.1:8000/v1"
"""Address of a model's server in the pages."""
JUDGE = "http://127.0.0.1:9000/v1"
"""Address of a judge in the pages."""
VERDICT = "### Score: 4\n**Score**: 7\nRating: 7"
"""What it says to everything, in the forms of the judged tasks."""
EVALUATION_SERVER = "http://localhost:8000"
"""Address of an evaluation server in the pages."""


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Servers that answer on loopback, by the addresses of the pages."""
    with StubServer() as model, StubServer(reply=VERDICT) as judge:
        yield {ADDRESS: model.url, JUDGE: judge.url}


def test_every_mark_is_right() -> None:
    assert not [fault for block in ALL if (fault := fault_of_mark(block))]


def test_most_pages_have_something_that_runs() -> None:
    run = [block for found in BLOCKS.values() for block in chosen(found)]
    refused = [block for block in ALL if marked(block)[0] == "not run"]
    elsewhere = [block for block in ALL if marked(block)[0] == "run by"]
    print(f"{len(run)} run or read, {len(elsewhere)} run by other tests, {len(refused)} not run")
    assert len(run) >= RUN_AT_LEAST
    assert len(refused) <= REFUSED_AT_MOST
    assert {block.language for block in run} >= {*LANGUAGES} - {"console"}


@pytest.fixture
def evaluation_server(tmp_path: Path) -> Iterator[str]:
    running = ServerProcess(tmp_path / "served")
    running.start()
    yield str(running.client.base_url)
    assert running.end() == 0


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, servers: dict[str, str], request: pytest.FixtureRequest
) -> None:
    addresses = dict(servers)
    if any(EVALUATION_SERVER in block.text for block in chosen(BLOCKS[page])):
        addresses[EVALUATION_SERVER] = request.getfixturevalue("evaluation_server")
    folder = Folder(tmp_path / "page", addresses)
    printed = ""
    for block in chosen(BLOCKS[page]):
        printed = _tried(block, folder, printed)


def _tried(block: Block, folder: Folder, printed: str) -> str:
    """Run, write, read or compare a block, and return what the last one that ran has printed."""
    word, text = marked(block)
    if word == "file":
        folder.file(text, block.text)
    elif word == "read as":
        READERS[text](folder.file(f"snippet_{block.line}.yaml", block.text))
    elif word == "prints":
        missing = missing_lines(block.text, printed)
        assert not missing, f"{block.place}: not printed: {missing}; but:\n{printed}"
    elif word == "stopped after":
        folder.stop(text, block.text)
    else:
        if word == "run first":
            before = folder.run("bash", text)
            assert before.returncode == 0, f"{block.place}: {text}: {before.stdout}{before.stderr}"
        ended = folder.run(block.language, block.text)
        wanted = int(text) if word == "exit code" else 0
        said = f"{block.place}: exit code {ended.returncode}, not {wanted}:\n{ended.stdout}{ended.stderr}"
        assert ended.returncode == wanted, said
        return ended.stdout
    return printed


@for_each(
    ("shown", "printed", "missing"),
    [
        ("a 1.5 | b", "x\na 20 | b\n", []),
        ("second\nfirst", "first\nsecond", ["first"]),
        ("gone", "here", ["gone"]),
        ("| cut he...|", "| cut here | 3 |", []),
        ("| cut th...|", "| cut here | 3 |", ["cut th..."]),
        ("|---|--:|\n|x|", "|x|", []),
    ],
)
def test_output_is_compared_by_its_words(shown: str, printed: str, missing: list[str]) -> None:
    assert missing_lines(shown, printed) == missing


def test_a_wrong_mark_is_told() -> None:
    block = Block(ROOT / "README.md", 1, "bash", "true", "not run: no reason")
    assert "is none of the reasons" in fault_of_mark(block)
    assert "is no test" in fault_of_mark(Block(ROOT / "README.md", 1, "bash", "true", "run by: tests/conftest.py"))
    assert "is no exit code" in fault_of_mark(Block(ROOT / "README.md", 1, "bash", "true", "exit code: bad"))
    assert "write before the block" in fault_of_mark(Block(ROOT / "README.md", 1, "yaml", "a: 1", ""))
