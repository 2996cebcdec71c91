"""The place in a user's own files that an error came from."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def place_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return ``FILE:LINE`` of the innermost frame of an error that is in the files of ``function``.

    These are the files in the folder of its module and below, without installed packages. If no frame is among them (a
    call with the wrong number of arguments), this is the function's definition; empty if the function has no file.
    """
    target = getattr(function, "func", function)  # of a functools.partial
    file = getattr(sys.modules.get(getattr(target, "__module__", None) or ""), "__file__", None)
    home = Path(file).resolve().parent if file else None
    if home is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_below(frame.filename, home)]
    if own:
        return f"{own[-1].filename}:{own[-1].lineno}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _is_below(name: str, home: Path) -> bool:
    path = Path(name).resolve()
    if not path.is_relative_to(home) or _INSTALLED.intersection(path.relative_to(home).parts):
        return False
    return home.is_relative_to(_PACKAGE) or not path.is_relative_to(_PACKAGE)
