"""The completion index, kept in a file in the user's cache.

Building the index opens every command and every model's class and takes a second; reading the file, a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any

import lmms_eval
from lmms_eval.cli.completion.contents import Index

_PACKAGE = os.path.dirname(lmms_eval.__file__)
_PARTS = ("cli", "config", "models", "tasks")
"""Folders of the package that the index is built from."""
_ENDINGS = (".py", ".yaml", ".tsv")


def current_index() -> Index:
    """Return the index of this installation, from its file if nothing has changed since it was written."""

    def gathered() -> Index:
        from lmms_eval.cli.completion.gather import gathered_index

        return gathered_index()

    packages = (place for place in sys.path if place.endswith(("site-packages", "dist-packages")))
    installed = [os.stat(place).st_mtime_ns for place in packages if os.path.isdir(place)]
    own = [_state(os.path.join(_PACKAGE, part)) for part in _PARTS]
    state = [sys.version, os.environ.get("LMMS_EVAL_PLUGINS", ""), installed, own]
    index: Index = _kept("index", _PACKAGE, state, gathered)
    return index


def more_tasks(folder: str) -> list[str]:
    """Return the names of the tasks in a folder; empty if it cannot be read."""
    path = os.path.abspath(os.path.expanduser(folder))

    def gathered() -> list[str]:
        from lmms_eval.cli.completion.gather import tasks_of

        return tasks_of(path)

    names: list[str] = _kept("tasks", path, [_state(path)], gathered) if os.path.isdir(path) else []
    return names


def _state(folder: str) -> list[int]:
    """Return the number of files below a folder and the time of the newest change."""
    count = newest = 0
    for base, _, names in os.walk(folder):
        for name in names:
            if name.endswith(_ENDINGS):
                count += 1
                with contextlib.suppress(OSError):  # removed meanwhile, or a link to nothing
                    newest = max(newest, os.stat(os.path.join(base, name)).st_mtime_ns)
    return [count, newest]


def _kept(name: str, place: str, state: list[Any], make: Callable[[], Any]) -> Any:
    """Return the result of ``make`` for this state, from the file of an earlier process if that exists."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "lmms_eval", "completion", f"{name}-{zlib.crc32(os.fsencode(place)):08x}.json")
    state = [place, *state]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # the file does not exist, or is not ours
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["state"] == state:
            return kept["content"]
    content = make()
    from pathlib import Path

    from lmms_eval.storage.atomic import replacing

    with (
        contextlib.suppress(OSError),
        replacing(Path(path), survives_power_loss=False) as file,
    ):
        file.write(json.dumps({"state": state, "content": content}).encode())
    return content
