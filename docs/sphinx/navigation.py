"""Write the navigation from the sections of the index, and the page of benchmarks from folders and registry."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import sources

from lmms_eval.tasks.catalogue import Catalogue, IndexEntry
from lmms_eval.tasks.describing import card_of
from lmms_eval.tasks.facts import Facts, facts_of

TASKS = Path("lmms_eval/tasks")
GENERATED = {
    "Reference": ("reference/schemas.md", "reference/python.rst"),
    "Benchmarks": ("benchmarks.md",),
}
CAPTIONS = ("Start", "Guides", "Benchmarks", "Reference", "How it works", "Coming from")
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SHOWN = 12
"""Largest number of tasks of a folder that are listed by name."""


def write_index(source: Path) -> None:
    """Add the navigation trees to the index, one per section."""
    text = (source / "index.md").read_text(encoding="utf-8")
    trees = []
    for caption in CAPTIONS:
        section = re.split(rf"^## {caption}$", text, maxsplit=1, flags=re.MULTILINE)
        body = re.split(r"^## ", section[1], maxsplit=1, flags=re.MULTILINE)[0] if len(section) > 1 else ""
        named = [target for _, target in sources.links(body) if target.endswith(".md") and ":" not in target]
        trees.append(_tree([*named, *GENERATED.get(caption, ())], caption))
    (source / "index.md").write_text(text + "\n".join(trees), encoding="utf-8")
    for page, folder in (
        ("models/README.md", "models"),
        ("commands.md", "commands"),
        ("decisions/README.md", "decisions"),
    ):
        beside = sorted((source / "docs" / folder).glob("*.md"))
        _add(source / "docs" / page, [os.path.relpath(path, (source / "docs" / page).parent) for path in beside])
    examples = sorted(source.glob("examples/*/README.md"))
    _add(source / "docs/task_guide.md", [f"../{path.relative_to(source)}" for path in examples])


def write_benchmarks(source: Path) -> list[Path]:
    """Write the page of all benchmarks, and the registry's facts at the end of each card."""
    catalogue = Catalogue()
    rows = []
    cards = sorted((source / TASKS).glob("*/README.md"))
    for card in cards:
        entries = _entries(catalogue, card.parent.name)
        title, _, first = card_of(sources.ROOT / TASKS / card.parent.name).partition(". ")
        where = card.relative_to(source)
        first = _LINKED.sub(r"\1", first).replace("|", "\\|")
        rows.append(f"| [{title}]({where}) | {first} | {_names(entries)} | {_modalities(entries)} |")
        beside = [path.name for path in card.parent.glob("*.md") if path != card]
        card.write_text(card.read_text(encoding="utf-8") + "\n".join(_facts(entries)), encoding="utf-8")
        _add(card, beside)
    head = [
        "# Benchmarks",
        "",
        f"The cards of {len(cards)} benchmarks. Each says where its data are from, how it is scored, and every "
        "deviation from what its authors published. `lmms-eval tasks search WORD` finds tasks on the command line.",
        "",
        "| card | about | tasks | asks with |",
        "|---|---|---|---|",
    ]
    page = source / "benchmarks.md"
    page.write_text("\n".join([*head, *rows, ""]), encoding="utf-8")
    _add(page, [str(card.relative_to(source)) for card in cards])
    return [page]


def _entries(catalogue: Catalogue, folder: str) -> list[IndexEntry]:
    inside = sources.ROOT / TASKS / folder
    found = [*catalogue.tasks.values(), *catalogue.groups.values()]
    return sorted((entry for entry in found if entry.file.is_relative_to(inside)), key=lambda entry: entry.name)


def _names(entries: list[IndexEntry]) -> str:
    named = ", ".join(f"`{entry.name}`" for entry in entries[:3])
    return f"{named} and {len(entries) - 3:,} more" if len(entries) > 3 else named


def _modalities(entries: list[IndexEntry]) -> str:
    told = [facts_of(entry.name, entry.kind == "group") for entry in entries]
    return ", ".join(dict.fromkeys(word for facts in told if facts is not None for word in facts.modalities))


def _facts(entries: list[IndexEntry]) -> Iterator[str]:
    """Return a table of the tasks of a folder, with the facts of ``lmms-eval tasks describe``."""
    yield "\n## In the registry\n"
    if not entries:
        return
    yield "| name | kind | documents | needs | chance | licence |"
    yield "|---|---|---:|---|---|---|"
    for entry in entries[:_SHOWN]:
        yield _row(entry, facts_of(entry.name, entry.kind == "group"))
    if len(entries) > _SHOWN:
        yield f"\n{len(entries) - _SHOWN:,} more names: `lmms-eval tasks list`."
    yield f"\n`lmms-eval tasks describe {entries[0].name}` shows more, and what is missing on your machine.\n"


def _row(entry: IndexEntry, facts: Facts | None) -> str:
    if facts is None:
        return f"| `{entry.name}` | {entry.kind} | | | | |"
    documents = "" if facts.documents is None else f"{facts.documents:,}"
    return (
        f"| `{entry.name}` | {entry.kind} | {documents} | {', '.join(facts.needs)} | {facts.chance} | {facts.licence} |"
    )


def _add(page: Path, targets: list[str]) -> None:
    named = [target for target in targets if target != page.name]
    if page.is_file() and named:
        page.write_text(page.read_text(encoding="utf-8") + "\n" + _tree(named), encoding="utf-8")


def _tree(targets: list[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    entries = [target.removesuffix(".md").removesuffix(".rst") for target in targets]
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])
