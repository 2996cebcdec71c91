from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.namespaces import outermost


def test_setups_travel_as_json() -> None:
    setup = Setup("/empty", ("/a/b",), landlock=True)
    assert Setup.from_dict({**asdict(setup), "packages": ["/a/b"]}) == setup


def test_only_libraries_are_readable() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        readable = Setup("/empty", ("/usr/lib",)).readable
    finally:
        sys.path.pop(0)
    assert os.path.dirname(os.__file__) in readable
    for private in (Path.cwd(), Path(__file__), Path.home() / ".ssh"):
        assert not any(private.is_relative_to(folder) for folder in readable), private


def test_outermost() -> None:
    assert outermost(["/usr/lib/python3", "/usr/lib", "/usr/lib64", "/usr/lib/", "/a/../b"]) == [
        "/b",
        "/usr/lib",
        "/usr/lib64",
    ]
