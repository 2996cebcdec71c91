from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmms_eval.sandbox import launcher
from lmms_eval.sandbox.policy import Policy
from tests.sandbox.kit import COMBINATIONS, policy_of


@pytest.fixture(scope="module", params=COMBINATIONS)
def policy(request: pytest.FixtureRequest) -> Iterator[Policy]:
    yield policy_of(COMBINATIONS[request.param])
    launcher.close()
