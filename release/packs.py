"""The tables of ``docs/packs.md``: what ``lmms-eval check`` finds in a pack, by class and with reasons.

``lmms-eval check --tasks 'lm-eval:*' --json | python -m release.packs``. The command ends with 1 if a class of what is
broken has no reason in ``REASONS``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.checks.findings import RECORDED, SHOWN

Record = Mapping[str, Any]
PACKAGES = "package missing"
REASONS: Sequence[tuple[str, str, str]] = (
    ("environment variable missing", "", "its code needs the variable when it is imported: set it"),
    ("package of another version", "load_metric", "broken in the pack: `datasets` had this function before version 3"),
    ("program missing", "SWI-Prolog", "install the program `swipl`"),
    ("task file wrong", "'dataset_path' is missing", "broken in the pack: neither tasks nor their include name data"),
    ("task file wrong", "inline task needs 'task: NAME'", "broken in the pack: the members of the group have no names"),
    ("task file wrong", "has no function", "broken in the pack: files name functions that their module lacks"),
    ("task file wrong", "unknown task", "broken in the pack: a group names members that no file defines"),
    ("task file wrong", "valid dictionary", "broken in the pack: an empty entry in `metric_list`"),
    ("unknown name", "unknown aggregation", "broken in the pack: no package registers this aggregation"),
)  # fmt: skip
"""Kinds of findings, texts of their causes, and why they are broken or what helps."""
_EXAMPLES = 3
_WORDS = {RECORDED[status]: SHOWN[status] for status in SHOWN}


def deciding(record: Record) -> Record:
    """Return the finding that decides the outcome of a record; empty if it is OK."""
    status = {"broken": "failed"}.get(str(record["status"]), record["status"])
    return next((one for one in record["findings"] if one.get("status") == status), {})


def packages_of(finding: Record) -> str:
    """Return the packages that a finding names, in its order."""
    return str(finding["cause"]).partition(":")[0]


def reason_of(finding: Record) -> str:
    """Return why something is broken, or an empty text for an unknown class."""
    kind, cause = finding["kind"], finding["cause"]
    return next((text for known, part, text in REASONS if known == kind and part in cause), "")


def rows(document: Record) -> Iterator[tuple[int, str, str, str]]:
    """Yield number, outcome, what and reason of each class: what is OK, skipped, then broken, the largest first."""
    records: Sequence[Record] = document["checked"]
    well = Counter(record["what"] for record in records if record["status"] == "well")
    for what, number in well.most_common():
        yield number, _WORDS["well"], f"{what}s", ""
    for status in ("doubtful", "skipped", "broken"):
        found: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record["status"] == status:
                found.setdefault(_class(record), []).append(record)
        for (kind, why), members in sorted(found.items(), key=lambda item: -len(item[1])):
            yield len(members), _WORDS[status], kind, why or _packages(members)


def _class(record: Record) -> tuple[str, str]:
    finding = deciding(record)
    kind = str(finding["kind"])
    if record["status"] != "broken":
        return kind, str(finding["cause"])
    if kind == PACKAGES:
        return kind, ""
    why = reason_of(finding)
    if not why:
        return kind, f"UNKNOWN: {record['name']}: {finding['cause']}"
    name = str(finding["cause"]).partition(":")[0] if kind == "environment variable missing" else ""
    return f"{kind}: {name}" if name else kind, why


def _packages(members: Sequence[Record]) -> str:
    counts = Counter(packages_of(deciding(record)) for record in members)
    return ", ".join(f"`{names}` {number}" for names, number in counts.most_common())


def examples(document: Record, kind: str, why: str) -> str:
    """Return the first names of a class of what is broken."""
    broken = (record for record in document["checked"] if record["status"] == "broken")
    names = [str(record["name"]) for record in broken if _class(record) == (kind, why)]
    return ", ".join(f"`{name}`" for name in names[:_EXAMPLES]) + (", …" if len(names) > _EXAMPLES else "")


def table(document: Record) -> list[str]:
    """Return the lines of the table in Markdown."""
    lines = ["| number | outcome | what | why, or what helps |", "|---:|---|---|---|"]
    for number, outcome, kind, why in rows(document):
        shown = f" ({examples(document, kind, why)})" if outcome == "broken" and kind != PACKAGES else ""
        lines.append(f"| {number:,} | {outcome} | {kind} | {why}{shown} |")
    return lines


def main(content: str) -> int:
    """Print the table of the JSON that the check printed."""
    document = json.loads(content)
    counts = ", ".join(f"{number:,} {_WORDS[word]}" for word, number in document["counts"].items())
    text = "\n".join(table(document))
    print(f"{len(document['checked']):,} checked: {counts}; {document['seconds']:.0f} s\n\n{text}")
    return int("UNKNOWN: " in text)


if __name__ == "__main__":
    raise SystemExit(main(sys.stdin.read()))
