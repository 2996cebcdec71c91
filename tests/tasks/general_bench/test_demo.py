"""The demonstration data: made by their script, small, of every kind, and usable from end to end."""

from __future__ import annotations

import filecmp
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.tasks.general_bench.data.scanning import match, scan
from lmms_eval.tasks.general_bench.facts import sheets, tasks_by_id
from lmms_eval.tasks.general_bench.nlp.types import TYPES
from lmms_eval.utils.files import read_table
from tests.faults.bad_input import here
from tests.faults.command import results
from tests.tasks.general_bench.demo_kit import DEMO, SET, script

MAX_BYTES = 200_000
IDS = [row["id"] for row in read_table(DEMO / "tasks.tsv")]
PREFIX = "general_bench_demo_"
CURVE = 100 * 20 / 21
"""Of a perfect tracker: no overlap is above the last of the 21 thresholds, which is 1."""
PERFECT = {"video_comprehension_ball_tracking": CURVE, "nlp_time_series": 0.0}
"""Scores of right replies that are not 100."""
GENERATED = {
    "image_generation_image_deraining": "psnr",
    "video_comprehension_optical_flow_in_simple_synthetic_scene": "epe",
    "video_generation_static_video_generation": "temporal_flickering",
    "video_generation_video_denoising": "psnr/video",
    "audio_generation_emotionalspeechsynthesis": "mcd",
    "audio_generation_texttospeech": "wer",
    "3d_generation_3d_point_cloud_completion": "chamfer_distance",
}
"""Tasks that are scored from the files beside their annotations, and what scores them."""


def test_the_data_are_small_and_made_by_the_script(tmp_path: Path) -> None:
    assert sorted(script().make(tmp_path)) == sorted(IDS)
    files = sorted(path.relative_to(tmp_path / SET) for path in (tmp_path / SET).rglob("*") if path.is_file())
    shipped = DEMO / SET
    assert files == sorted(path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file())
    pictures = [file for file in files if file.suffix == ".png"]
    others = [str(file) for file in files if file.suffix != ".png"]
    assert filecmp.cmpfiles(tmp_path / SET, shipped, others, shallow=False)[0] == others
    for file in pictures:
        with Image.open(tmp_path / SET / file) as mine, Image.open(shipped / file) as theirs:
            assert mine.tobytes() == theirs.tobytes()
    assert sum((shipped / file).stat().st_size for file in files) < MAX_BYTES


def test_every_sheet_and_every_type_of_language_task() -> None:
    assert {tasks_by_id()[name].sheet for name in IDS} == set(sheets())
    kinds = {json.loads(path.read_text())["type"] for path in (DEMO / SET / "nlp").rglob("annotation.json")}
    assert kinds == set(TYPES)


def test_the_folder_holds_the_tasks_of_the_table() -> None:
    found, faults = scan(DEMO)
    folders, problems = match(found)
    assert not faults and not problems
    assert sorted(facts.id for facts in folders) == sorted(IDS)


@dataclass(frozen=True)
class Run:
    """A run of right replies."""

    out: Path
    printed: str
    document: dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("gold")
    flags = {"--model": "baseline", "--model_args": "strategy=gold", "--tasks": "general_bench_demo"}
    ended = here({**flags, "--output_path": str(out)})
    assert ended.code == 0, ended.shown
    return Run(out, ended.out, results(out))


def test_right_replies_score_in_full(run: Run) -> None:
    asked = [name for name in IDS if name not in GENERATED]
    assert len(asked) == 38
    for name in asked:
        numbers = run.document["results"][PREFIX + name]
        value = numbers[f"{tasks_by_id()[name].metric},none"]
        assert value == pytest.approx(PERFECT.get(name, 100.0)), name


def test_all_tasks_are_in_the_report(run: Run) -> None:
    part = run.document["general_bench_report"]["general_bench_demo"]
    scores = {score["task"]: score for score in part["tasks"]}
    assert sorted(scores) == sorted(IDS)
    for name, measure in GENERATED.items():
        assert scores[name]["measure"] == measure
    assert all(score["status"] == "scored" for score in scores.values())
    assert scores["image_generation_image_deraining"]["strict"] == pytest.approx(38.7, abs=0.05)
    assert "demonstration data: no General-Level of a model" in run.printed
    assert set(part["levels"]) == {"2", "3", "4", "5"}


def test_files_of_the_run(run: Run) -> None:
    written = {path.parent.name for path in run.out.rglob("prediction.json")}
    assert len(written) == 38 and {"Defects", "Sign-Detection", "3d_classification"} <= written
    (folder,) = (path for path in run.out.iterdir() if path.name.endswith("_general_bench_demo"))
    assert {path.suffix for path in folder.iterdir()} >= {".log", ".json", ".csv"}
