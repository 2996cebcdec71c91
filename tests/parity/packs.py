"""The packs whose tasks the vectors are about. ``make`` gets them from the package index before the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmms_eval.tasks.packs.store import VARIABLE, Pack, packs

FOLDER = Path(os.environ.get("LMMS_EVAL_TEST_PACKS") or Path(sys.prefix, "packs"))


def absent(package: str) -> str:
    """Why vectors of a package are pending."""
    return f"the pack of {package} is not in {FOLDER}: with a network, make test gets it from the package index"


@contextmanager
def pack_of(package: str) -> Iterator[Pack | None]:
    """The pack of a package, which the block sees as the user's own; ``None`` if it is not here."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(FOLDER)
    try:
        yield next((pack for pack in packs() if pack.package == package), None)
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
