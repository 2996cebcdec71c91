"""The tests' copy of NLTK's data."""

from __future__ import annotations

import pytest

from tests.parity.vectors import DATA_DIR

NLTK_DATA = DATA_DIR / "nltk_data"
needs_nltk_data = pytest.mark.skipif(not NLTK_DATA.is_dir(), reason=f"no linguistic data in {NLTK_DATA}")
