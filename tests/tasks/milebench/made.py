"""MileBench's made data for the tests: the generator of ``examples`` and small documents."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

SCRIPT = Path(__file__).parents[3] / "examples" / "make_milebench_demo.py"


@functools.cache
def generator() -> ModuleType:
    """The module ``examples/make_milebench_demo.py``."""
    spec = importlib.util.spec_from_file_location("make_milebench_demo", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write(root: Path, *names: str, counts: Sequence[int] = (2, 5, 8), size: tuple[int, int] = (16, 12)) -> Path:
    """Some data sets (all without names) below ``root``, which comes back."""
    generator().write_all(root, counts, size, names)
    return root


def edit(file: Path, **changes: Any) -> None:
    """Change keys of the first sample of an annotation; those of ``task_instance`` where it has them."""
    whole = json.loads(file.read_text("utf-8"))
    entry = whole["data"][0]
    for key, value in changes.items():
        place = entry if key in entry else entry["task_instance"]
        place[key] = value
    file.write_text(json.dumps(whole), encoding="utf-8")


def document(**changes: Any) -> Mapping[str, Any]:
    """A document as ``data.documents`` gives it."""
    return {
        "sample_id": 7, "dataset": "TQA", "instruction": "Look.", "context": "{image#1} or {image#2}?",
        "images_path": ["a.png", "b.png"], "choice_list": ["up", "down"], "response": "down",
        "question_type": "multi-choice", "image_quantity_level": "Few", "sheets": None, "needle_depth": None,
        "needle_length": None, **changes,
    }  # fmt: skip
