from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmms_eval.compat.reports import SPEEDS, USAGE


@pytest.fixture(autouse=True)
def _fresh_collectors() -> Iterator[None]:
    """What plugins report is collected for the whole process: every test begins and ends with nothing."""
    for collector in (SPEEDS, USAGE):
        collector.reset()
    yield
    for collector in (SPEEDS, USAGE):
        collector.reset()
