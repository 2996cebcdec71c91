"""Findings of a gate, for people, CI systems and programs: lines, Markdown, JUnit XML, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from xml.etree import ElementTree as ET

from lmms_eval.compare.gate import Check, GateResult
from lmms_eval.utils.markdown import Column, escaped, markdown_table
from lmms_eval.utils.terminal import printable

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_WORDS = {"held": "HELD", "fell": "FELL", "cannot tell": "CANNOT TELL"}


def gate_table(result: GateResult, shown: Callable[[str], str] = str) -> str:
    """Lay out the checks as a table; ``shown`` makes names and reasons fit for where it is shown."""
    columns = {
        "Outcome": [_WORDS[check.outcome] for check in result.checks],
        "Task": [shown(check.name) for check in result.checks],
        "Metric": [shown(check.metric) for check in result.checks],
        "RUN": [_number(check.run) for check in result.checks],
        "BASE": [_number(check.base) for check in result.checks],
        "Difference": [_number(check.difference) for check in result.checks],
        f"{100 * (1 - 2 * result.alpha):.4g} % interval": [_interval(check) for check in result.checks],
        "Margin": [f"{check.margin:g}" for check in result.checks],
        "N": [str(check.documents) for check in result.checks],
        "Why": [shown(why(check)) for check in result.checks],
    }
    return markdown_table([Column(name, tuple(cells), is_text=True) for name, cells in columns.items()])


def headline(result: GateResult) -> str:
    """Say the whole in one line."""
    counts = [
        f"{sum(check.outcome == one for check in result.checks)} {one}" for one in ("held", "fell", "cannot tell")
    ]
    return f"gate {_WORDS[result.outcome]}: {result.run} against {result.base}, {', '.join(counts)}"


def gate_markdown(result: GateResult) -> str:
    """Write the summary for CI systems."""
    note = (
        f"One-sided tests at {result.alpha:g}, p of a fall corrected: {result.correction}. Differences: RUN less BASE."
    )
    lines = [note, *map(escaped, result.notes)]
    return f"## {escaped(headline(result))}\n\n{gate_table(result, escaped)}\n" + "\n\n".join(lines) + "\n"


def gate_json(result: GateResult) -> str:
    """Write everything, unrounded."""
    return (
        json.dumps({"outcome": result.outcome, **asdict(result)}, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    )


def gate_junit(result: GateResult) -> str:
    """Write JUnit XML: a fall is a failure, what cannot be told an error."""
    fell = sum(check.outcome == "fell" for check in result.checks)
    unknown = sum(check.outcome == "cannot tell" for check in result.checks)
    counts = {"tests": str(len(result.checks)), "failures": str(fell), "errors": str(unknown)}
    suites = ET.Element("testsuites", {"name": "lmms-eval gate", **counts})
    name = _allowed(f"{result.run} against {result.base}")
    suite = ET.SubElement(suites, "testsuite", {"name": name, **counts, "skipped": "0"})
    for check in result.checks:
        case = ET.SubElement(
            suite, "testcase", {"classname": _allowed(f"gate.{check.metric or 'task'}"), "name": _allowed(check.name)}
        )
        text = _allowed(f"{why(check)} (n = {check.documents})")
        if check.outcome == "fell":
            ET.SubElement(case, "failure", {"type": "fell", "message": text}).text = text
        elif check.outcome == "cannot tell":
            ET.SubElement(case, "error", {"type": "cannot tell", "message": text}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    if result.notes:
        ET.SubElement(suite, "system-out").text = _allowed("\n".join(result.notes))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def why(check: Check) -> str:
    """Say what an outcome rests on."""
    if check.reason:
        return check.reason
    ends = "" if check.interval is None else f", interval {_interval(check)}"
    found = f"difference {_number(check.difference)}{ends}, margin {check.margin:g}"
    if check.outcome == "cannot tell":
        return f"the documents do not settle it: {found}"
    return found


def _interval(check: Check) -> str:
    return "" if check.interval is None else f"[{_number(check.interval.low)}, {_number(check.interval.high)}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("", printable(text))
