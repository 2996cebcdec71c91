from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmms_eval.compat.model_utils import gen_metrics, usage_metrics


@pytest.fixture(autouse=True)
def _fresh_collectors() -> Iterator[None]:
    """What plugins report is collected for the whole process: every test begins and ends with nothing."""
    for module in (gen_metrics, usage_metrics):
        module.COLLECTOR.reset()
    yield
    for module in (gen_metrics, usage_metrics):
        module.COLLECTOR.reset()
