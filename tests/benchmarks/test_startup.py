"""The start of a run imports what it needs before its first request."""

from __future__ import annotations

from benchmarks.startup import MOST_MODULES, first_request


def test_few_modules_are_imported_before_the_first_request() -> None:
    found = first_request(1)
    assert 50 < found["modules"] <= MOST_MODULES
    assert found["cpu_s"] > 0
