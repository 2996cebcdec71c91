"""Declares torchvision's operators as soon as something imports it; until then torch is not imported either.

Python reads this at its start where the folder is on ``PYTHONPATH``: in the processes that an engine starts, too.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any

from tests.torchvision_operators import declare


class _BeforeTorchvision(importlib.abc.MetaPathFinder):
    """Finds nothing itself."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            declare()
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
