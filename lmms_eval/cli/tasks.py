"""``lmms-eval tasks``: lists, describes and searches tasks; also the listings of ``--tasks``."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lmms_eval.cli.arguments import TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.tasks.catalogue import Catalogue, IndexEntry
    from lmms_eval.tasks.describing import Description


NOT_STATED = "not stated"
MOST_CHECKED = 20
"""Tasks of a group that are tried, since a group may have hundreds."""
_MOST_SHOWN = 40
WHAT = ("list", "groups", "subtasks", "tags")
ACTIONS = ("describe", "search")
"""Actions that take further words."""


def run_describe(arguments: Sequence[str]) -> int:
    parser = command_parser("tasks describe", "what is known of a task, group or tag, and what it lacks here")
    parser.add_argument("name", metavar="NAME", help="task, group or tag")
    parser.add_argument("--json", action="store_true", help="print the description as JSON")
    parser.add_argument(
        "--no-check", "--no_check", action="store_true", help="skip the check of what is missing on this machine"
    )
    parser.add_argument("--data_root", "--data-root", metavar="DIR", help="folder with local data of benchmarks")
    add_catalogue_flags(parser, "ERROR")
    given = parser.read(arguments)
    from lmms_eval.tasks.describing import describe

    source = replace(TaskSources.of_flags(given), data_root=given.data_root)
    catalogue = source.open()
    found = describe(given.name, catalogue)
    missing = None if given.no_check else list(_missing(found, catalogue, source, given.verbosity))
    emit(_as_json({**to_dict(found), "missing": missing}) if given.json else _lines(found, missing))
    return 0


def run_search(arguments: Sequence[str]) -> int:
    from lmms_eval.tasks.facts import MODALITIES, NEEDS

    parser = command_parser("tasks search", "tasks by word, modality and need; no data set is opened")
    parser.add_argument("word", nargs="?", default="", help="part of a name, of a tag or of the beginning of a card")
    parser.add_argument(
        "--modality", choices=MODALITIES, default="", help="only tasks whose questions have this modality"
    )
    parser.add_argument("--needs", choices=tuple(NEEDS), default="", help="only tasks whose scoring needs this")
    parser.add_argument(
        "--no-needs", "--no_needs", nargs="?", const="", choices=("", *NEEDS), metavar="NEED",
        help="only tasks whose scoring does not need this; without a word: that need nothing",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the tasks as JSON")
    add_catalogue_flags(parser)
    given = parser.read(arguments)
    from lmms_eval.tasks.describing import SearchTerms, search

    catalogue = TaskSources.of_flags(given).open()
    found = search(catalogue, SearchTerms(given.word, given.modality, given.needs, given.no_needs))
    rows = [_row(entry) for entry in found]
    emit(_as_json(rows) if given.json else _table(rows, catalogue, given))
    return 0


def _as_json(document: Any) -> str:
    import json

    return json.dumps(document, indent=2)


def _row(entry: IndexEntry) -> dict[str, Any]:
    from lmms_eval.tasks.facts import facts_of

    facts = None if entry.pack else facts_of(entry.name)
    return {
        "name": entry.name,
        "documents": facts.documents if facts else None,
        "modalities": list(facts.modalities) if facts else [],
        "needs": list(facts.needs) if facts else [],
        "tags": list(entry.tags),
        "file": entry.location,
    }


def _table(rows: Sequence[dict[str, Any]], catalogue: Catalogue, given: Namespace) -> list[str]:
    """Return a Markdown table of the tasks, and the groups and tags whose names contain the word."""
    from lmms_eval.utils.terminal import named_table

    lines = []
    if rows:
        columns = {"name": [row["name"] for row in rows], "documents": [str(row["documents"] or "") for row in rows]}
        columns |= {key: [", ".join(row[key]) for row in rows] for key in ("modalities", "needs", "tags")}
        lines += [named_table(columns, ("documents",)).rstrip("\n"), ""]
    lines.append(f"{len(rows)} of {len(catalogue.tasks)} tasks")
    if given.word:
        for kind, names in (("groups", catalogue.groups), ("tags", catalogue.tags)):
            if held := sorted(name for name in names if given.word.casefold() in name.casefold()):
                lines.append(f"{kind}: {', '.join(held)}")
    return lines


def _missing(found: Description, catalogue: Catalogue, source: TaskSources, verbosity: str) -> Iterator[str]:
    """Yield the needs, data and packages that are missing on this machine. Nothing is downloaded."""
    from lmms_eval.api.task import TaskOptions
    from lmms_eval.checks.findings import NO_DATA, NO_FILE, absent_needs
    from lmms_eval.checks.workers import CheckOptions, jobs_of, run_checks

    yield from absent_needs((*found.needs, *found.uses))
    names = [part.name for part in found.parts if part.name in catalogue.tasks]
    root = os.path.abspath(source.data_root) if source.data_root else None
    options = CheckOptions(
        documents=1, include_paths=[os.path.abspath(path) for path in source.include_paths], plugins=source.plugins,
        tasks=TaskOptions(data_root=root, run_options=source.run_options), verbosity=verbosity,
    )  # fmt: skip
    tried = names[:MOST_CHECKED]
    alike: dict[str, list[str]] = {}
    for checked in run_checks(jobs_of(catalogue, tried, options.tasks), options).checked:
        for finding in checked.findings:
            if finding.status in ("failed", "skipped"):
                alike.setdefault(f"{finding.kind}: {finding.cause or finding.message}", []).append(checked.name)
    for what, lacking in alike.items():
        yield f"{what} ({', '.join(lacking)})" if len(found.parts) > 1 else what
    if any(what.startswith((NO_DATA, NO_FILE)) for what in alike):
        yield f"lmms-eval fetch {found.name} gets the data"
    if len(tried) < len(names):
        rest = len(names) - len(tried)
        yield f"{rest} more of its tasks were not tried: lmms-eval check --tasks {found.name} tries all"


def _lines(found: Description, missing: list[str] | None) -> list[str]:
    from lmms_eval.tasks.facts import NEEDS

    def with_counts(words: Sequence[str], of_part: str) -> str:
        counts = [(NEEDS[word], sum(word in getattr(part, of_part) for part in found.parts)) for word in words]
        return ", ".join(
            text if count in (0, len(found.parts)) else f"{text} ({count} of {len(found.parts)} tasks)"
            for text, count in counts
        )  # fmt: skip

    rows = [
        ("card", found.title or NOT_STATED),
        ("file", found.file),
        ("tags", ", ".join(found.tags)),
        ("documents", f"{found.documents:,}" if found.documents is not None else NOT_STATED),
        ("modalities", ", ".join(found.modalities) or NOT_STATED),
        ("download", "; ".join(found.download) or NOT_STATED),
        ("licence", "; ".join(found.licence) or NOT_STATED),
        ("needs", with_counts(found.needs, "needs") or "nothing"),
        ("uses", with_counts(found.uses, "uses")),
        ("chance", "; ".join(found.chance) or NOT_STATED),
        ("controls", ", ".join(found.controls)),
        ("published", "; ".join(found.published) or NOT_STATED),
    ]
    width = max(len(key) for key, _ in rows)
    lines = [f"{found.name} ({found.kind})", *(f"  {key:<{width}}  {text}" for key, text in rows if text), ""]
    for part in found.parts[:_MOST_SHOWN]:
        documents = f"{part.documents:,}" if part.documents is not None else f"number {NOT_STATED}"
        place = " ".join(filter(None, (part.data_set or "own reader", part.configuration)))
        lines.append(f"  {part.name}: documents: {documents}; {place}, split {part.split}")
        metrics = []
        for one in part.metrics:
            ends = (f"from {one.low:g}" if one.low is not None else "", f"to {one.high:g}" if one.high else "")
            direction = f"{'higher' if one.higher_is_better else 'lower'} is better"
            metrics.append(f"{one.name} ({', '.join(filter(None, (direction, ' '.join(filter(None, ends)))))})")
        lines.append(f"    metrics: {'; '.join(metrics)}")
    if len(found.parts) > _MOST_SHOWN:
        lines.append(f"  ... and {len(found.parts) - _MOST_SHOWN} more (--json shows all)")
    if missing is not None:
        lines += ["", "missing here:" if missing else "missing here: nothing", *(f"  {text}" for text in missing)]
    return lines


def run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in ACTIONS:
        return (run_describe if arguments[0] == "describe" else run_search)(arguments[1:])
    parser = command_parser(
        "tasks", "list tasks, groups, subtasks or tags; describe NAME and search WORD have a --help of their own"
    )
    parser.add_argument("what", nargs="?", default="list", choices=(*WHAT, *ACTIONS), help="what to print")
    add_catalogue_flags(parser)
    given = parser.read(arguments)
    source = TaskSources.of_flags(given)
    if given.what == "list":
        names = source.open().names()
        emit([f"Available tasks ({len(names)}):", "", *(f"  {name}" for name in names)])
    else:
        emit(listing(given.what, source))
    return 0


def listing(what: str, source: TaskSources) -> list[str]:
    """Return a listing: names with a dash (``list``), or a Markdown table.

    Raises ``UsageError`` if the listing is not one of ``WHAT``.
    """
    if what not in WHAT:
        raise UsageError(f"tasks: there is no listing {what!r}; choose one of {', '.join(WHAT)}")
    catalogue = source.open()
    if what == "list":
        return [f" - {name}" for name in catalogue.names()]
    from lmms_eval.tasks.manager import groups_table, subtasks_table, tags_table

    tables = {"groups": groups_table, "subtasks": subtasks_table, "tags": tags_table}
    return tables[what](catalogue).rstrip("\n").split("\n")
