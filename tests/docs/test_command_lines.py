"""Every command line in the documentation is one that the command takes, and names what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval.errors import LmmsEvalError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.tasks.catalogue import Catalogue
from tests.cases import for_each
from tests.docs.command_lines import LANGUAGES, Line, flags_of, lines_in, lines_of, parse
from tests.docs.pages import PAGES, ROOT, blocks, indented, spans

_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*|my_\w+|.*[*?].*|\.\.\.|list(_\w+)?")
"""Names that stand for the reader's own, patterns and lists."""
OWN = {
    "kitchen:spoons",
    "mine:sums",
    "colours",
    "essays",
    "reviews",
    "rated_colours",
    "birds",
    "echo",
    "parrot",
    "shout",
    "sizes",
    "colour_meter",
    "pages",
    "less",
    "moods",
    "twice",
    "wavering",
}
"""Tasks and models that the pages themselves make."""


def _all_lines() -> Iterator[Line]:
    for page in PAGES:
        for block in blocks(page):
            yield from lines_in(block)
        yield from lines_of(indented(page), str(page.relative_to(ROOT)))


LINES = list(_all_lines())
FILES = {
    (str(page.relative_to(ROOT)), block.mark.removeprefix("file: ")): block.text
    for page in PAGES
    for block in blocks(page)
    if block.mark.startswith("file: ")
}
"""Files that options read at once, by page and name."""
SPANS = sorted({span for page in PAGES for span in spans(page) if span.startswith("lmms-eval ")})


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


@pytest.fixture(scope="module")
def models() -> set[str]:
    registry = ModelRegistry()
    return {name for entry in registry.list_models() for name in (entry.model_id, *entry.aliases)}


def _names(value: object) -> Iterator[str]:
    listed = value if isinstance(value, list | tuple) else str(value or "").split(",")
    yield from (str(name).strip() for name in listed if not _PLACEHOLDER.fullmatch(str(name).strip()) and name)


def _written(word: str, line: Line, folder: Path) -> str:
    """Write a file that the page gives into a folder, and return its path there; any other word is returned."""
    text = FILES.get((line.place.rpartition(":")[0], word))
    if text is None:
        return word
    (folder / word).write_text(text, encoding="utf-8")
    return str(folder / word)


def test_there_are_many() -> None:
    assert len(LINES) > 50 and len(SPANS) > 50


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.place} {' '.join(line.words)[:50]}")
def test_a_line_is_read_and_names_what_is_there(
    line: Line, catalogue: Catalogue, models: set[str], tmp_path: Path
) -> None:
    try:
        given = parse([_written(word, line, tmp_path) for word in line.words])
    except LmmsEvalError as error:
        pytest.fail(f"{line.place}: lmms-eval {' '.join(line.words)}: {error}")
    for name in _names(given.get("tasks")):
        assert name in OWN or catalogue.match([name]), f"{line.place}: there is no task {name!r}"
    for name in _names(given.get("model")):
        assert name in OWN | models, f"{line.place}: there is no model {name!r}"


@for_each("span", SPANS)
def test_a_command_within_a_sentence_has_its_flags(span: str) -> None:
    words = span.split()[1:]
    named = []
    for word in words:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        named.append(word)
    has_actions = named[:1] and named[0] in ("tasks", "packs", "cache", "judge", "megabench", "milebench")
    known = flags_of(named[: 2 if has_actions else 1])
    for flag in re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", span):
        assert flag in known, f"{span}: there is no flag {flag}; those are {sorted(known)}"


@for_each(
    "text",
    [
        "tasks --nope",
        "show",
        "nothing",
        "--model hf --task mme",
        "gate --policy FILE RUN",
        "cache sum DIR",
        "score R --x 1",
    ],
)
def test_a_wrong_line_is_refused(text: str) -> None:
    with pytest.raises(LmmsEvalError):
        parse(text.split())


def test_blocks_of_commands_say_their_language() -> None:
    """Blocks without one are not coloured, and no other test of the snippets looks at them."""
    bare = [block.place for page in PAGES for block in blocks(page) if block.language == "" and [*lines_in(block)]]
    assert not bare, f"begin these with ```bash (output with ```text): {bare}"
    assert "text" not in LANGUAGES
