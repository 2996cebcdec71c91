"""Pages of the documentation, and what stands in their fenced and indented blocks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATTERNS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "lmms_eval/tasks/*/*.md", "examples/**/README.md")
PAGES = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern) if "node_modules" not in path.parts)
_FENCE = re.compile(r"^( *)```(\w*)\s*$")
_MARK = re.compile(r"^ *<!-- (.*) -->\s*$")
_SPAN = re.compile(r"(`+)(.+?)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    language: str
    text: str
    mark: str
    """The comment on the line before it: how it is tested, or why it cannot be run here."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Read the fenced blocks of a page."""
    begin, indent, language, mark = 0, "", "", ""
    body: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if begin and line.strip() == "```":
            yield Block(page, begin, language, textwrap.dedent("\n".join(body)) + "\n", mark)
            begin, mark = 0, ""
        elif begin:
            body.append(line)
        elif fence:
            begin, indent, language, body = number, fence[1], fence[2], []
        else:
            found = _MARK.match(line)
            mark = found[1] if found else mark if not line.strip() else ""
    assert not begin, f"{page}:{begin}: a fence is not closed ({indent!r})"


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    kept, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def spans(page: Path) -> Iterator[str]:
    """Read the pieces of code within sentences and tables."""
    for match in _SPAN.finditer(prose(page)):
        yield " ".join(match[2].replace("\\|", "|").split())


def indented(page: Path) -> str:
    """Return what is set as code by four spaces."""
    return "\n".join(line.strip() for line in prose(page).splitlines() if line.startswith("    lmms-eval"))
