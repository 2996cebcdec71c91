"""Whatever a run of these tests leaves on disk fits the schemas that are shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.results.schema.checking import checked


@pytest.fixture(autouse=True)
def _files_fit_their_schemas(tmp_path: Path) -> Iterator[None]:
    yield
    checked(tmp_path)
