"""Assemble the pages in the layout of the repository, so that their links work both on the site and on a forge."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = ("CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "lmms_eval/tasks/*/*.md", "examples/**/README.md")
INDEX = ROOT / "docs" / "index.md"
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|!?\[[^\[\]]*\]\([^()]*\))*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_CODE = re.compile(r"`+[^`]*`+")


def pages() -> list[Path]:
    """Return the files that are pages, relative to the repository."""
    found = {path for pattern in PATTERNS for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT) for path in found if path.name != "index.md" or path == INDEX)


def assemble(folder: Path) -> None:
    """Write every page, and every other file that their links name, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        place = Path("index.md") if ROOT / page == INDEX else page
        text = _rewritten((ROOT / page).read_text(encoding="utf-8"), page, place, folder)
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")


def links(text: str) -> Iterator[tuple[str, str]]:
    """Return the links of a page outside code, as pairs of text and target."""
    for line in _prose(text):
        for match in _LINK.finditer(_CODE.sub("", line)):
            yield match[2], match[3]


def _prose(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def _rewritten(text: str, page: Path, place: Path, folder: Path) -> str:
    lines, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        lines.append(line if inside else _LINK.sub(lambda match: _link(match, page, place, folder), line))
    return "\n".join(lines) + "\n"


def _link(match: re.Match[str], page: Path, place: Path, folder: Path) -> str:
    """Return a link for the assembled page. A link to a folder without a page becomes its text."""
    mark, text, target = match.groups()
    path, _, anchor = target.partition("#")
    if not path or ":" in path:
        return match[0]
    named = Path(os.path.normpath(page.parent / path))
    if (ROOT / named).is_dir():
        named = named / "README.md"
        if not (ROOT / named).is_file():
            return text
    if named.name == "README.md" and len(named.parts) == 1:
        named = Path("index.md")
    elif named.suffix != ".md" and (ROOT / named).is_file():
        (folder / named).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / named, folder / named)
    there = os.path.relpath(named, place.parent) + (f"#{anchor}" if anchor else "")
    return f"{mark}[{text}]({there})"
