"""Prints the parity report after the tests, also when xdist's workers ran them."""

from __future__ import annotations

from typing import Any

from tests.parity.report import PROPERTY, summary_lines


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tallies = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if not tallies:
        return
    terminalreporter.section("parity")
    for line in summary_lines(tallies):
        terminalreporter.write_line(line)
