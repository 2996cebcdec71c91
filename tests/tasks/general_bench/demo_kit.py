"""The demonstration data for tests: where they lie, copies of them, their documents, and the script that makes them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lmms_eval.tasks.general_bench import utils
from lmms_eval.tasks.general_bench.data import documents
from lmms_eval.tasks.general_bench.settings import Settings

DEMO = Path(utils.__file__).parent / "demo"
SET = "General-Bench-Openset"
OPTIONS = {"data_folder": "demo"}
DEMO_SETTINGS = Settings.of(OPTIONS)
DEFECTS = "nlp_code_defect_detection"
CHOICES = "nlp_commonsense_reasoning"
PROBLEMS = "nlp_mathematical_word_problem_solving"
SERIES = "nlp_time_series"
DETECTION = "image_comprehension_traffic_signs_detection"
TRACKING = "video_comprehension_ball_tracking"
SPEECH = "audio_comprehension_speech_command"
POINTS = "3d_comprehension_3d_furniture_classification"
EXAMPLES = Path(__file__).parents[3] / "examples"


def script() -> ModuleType:
    """``examples/make_general_bench_demo.py``."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        path = EXAMPLES / "make_general_bench_demo.py"
        spec = importlib.util.spec_from_file_location("make_general_bench_demo", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


def copied(target: Path, *folders: str) -> Path:
    """Task folders of the demonstration (``nlp/Defects``), all without names, below ``target``, which comes back."""
    for folder in folders or ("",):
        shutil.copytree(DEMO / SET / folder, target / SET / folder)
    return target


def rows(name: str, options: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The documents of a task."""
    return [dict(row) for row in documents.documents(name, OPTIONS if options is None else options).rows]


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    """Rewrite a JSON file; what ``change`` returns is written, else what it was given."""
    content = json.loads(file.read_text("utf-8"))
    changed = change(content)
    file.write_text(json.dumps(content if changed is None else changed), "utf-8")
