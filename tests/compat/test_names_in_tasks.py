"""A task in the family's style scores by the helpers that its code imports, from the YAML file to the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.evaluation.run import run
from tests.evaluation.kit import Told, config
from tests.tasks.kit import Function, write_rows, write_yaml

TEMPLATE = """\
doc_to_visual: !function utils.none
dataset_kwargs:
  cache_dir: set
metadata:
  version: 1.0
"""
CODE = """\
import os

from lmms_eval import utils
from lmms_eval.api.metrics import anls, levenshtein_distance
from lmms_eval.tasks._task_utils.default_template_yaml import load_default_template_yaml
from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer
from lmms_eval.tasks._task_utils.mmmu_mcq_utils import (
    get_multi_choice_info,
    parse_jmmmu_multi_choice_response,
    parse_jmmmu_pro_multi_choice_response,
    parse_mmmu_multi_choice_response,
    parse_videommmu_multi_choice_response,
)
from lmms_eval.tasks._task_utils.point_format import parse_point2d
from lmms_eval.tasks._task_utils.video_loader import get_cache_dir, get_video
from lmms_eval.tasks._task_utils.vqa_eval_metric import EvalAIAnswerProcessor
from lmms_eval.utils import eval_logger

CONFIG = load_default_template_yaml(__file__)
FOLDER = get_cache_dir(CONFIG)
ANSWERS = EvalAIAnswerProcessor()


def process_results(doc, results):
    text = results[0]
    eval_logger.debug(f"answer: {text}")
    index2ans, letters = get_multi_choice_info(doc["options"])
    x, y = parse_point2d(text, 640, 480)[0]
    right = {
        "extract_mcq_answer": extract_mcq_answer(text) == "B",
        "parse_mmmu": parse_mmmu_multi_choice_response(text, letters, index2ans) == "B",
        "parse_jmmmu": parse_jmmmu_multi_choice_response(text, letters, index2ans) == "B",
        "parse_jmmmu_pro": parse_jmmmu_pro_multi_choice_response(text, letters) == "B",
        "parse_videommmu": parse_videommmu_multi_choice_response(text, letters, index2ans) == "B",
        "parse_point2d": (x, y) == (320, 240),
        "EvalAIAnswerProcessor": ANSWERS("The Two dogs.") == "2 dogs",
        "anls": anls([text], [text])["anls"] == 1.0,
        "levenshtein_distance": levenshtein_distance(text, text[1:]) == 1,
        "get_video": get_video(FOLDER, "clip") == os.path.join(FOLDER, "clip.MP4"),
        "load_default_template_yaml": CONFIG["metadata"]["version"] == 1.0 and "doc_to_visual" not in CONFIG,
        "resolve_cache_dir": utils.resolve_cache_dir("$HF_HOME/set/videos") == FOLDER,
        "is_json": utils.is_json("{}"),
    }
    return {name: float(value) for name, value in right.items()}
"""
NAMES = (
    "extract_mcq_answer", "parse_mmmu", "parse_jmmmu", "parse_jmmmu_pro", "parse_videommmu", "parse_point2d",
    "EvalAIAnswerProcessor", "anls", "levenshtein_distance", "get_video", "load_default_template_yaml",
    "resolve_cache_dir", "is_json",
)  # fmt: skip


def write_task(folder: Path) -> None:
    write_yaml(
        folder / "family.yaml",
        {
            "task": "family",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
            "test_split": "test",
            "doc_to_text": "{{question}}",
            "doc_to_target": "answer",
            "process_results": Function("utils.process_results"),
            "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in NAMES],
        },
    )
    (folder / "_default_template_yaml").write_text(TEMPLATE, encoding="utf-8")
    (folder / "utils.py").write_text(CODE, encoding="utf-8")
    write_rows(folder, [{"question": "q", "answer": "B", "options": ["red", "blue", "green"]}])


def test_every_name_takes_part_in_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    videos = tmp_path / "hub" / "set" / "videos"
    videos.mkdir(parents=True)
    (videos / "clip.MP4").touch()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    write_task(tmp_path / "tasks")

    def answer(request: Request) -> Response:
        return Response(request.id, text="Answer: (B) at (500, 500)")

    report = run(config(tmp_path, model="told", tasks="family"), Told(answer))
    assert report.exit_code == 0
    results = report.results["results"]["family"]
    assert {name: results[f"{name},none"] for name in NAMES} == dict.fromkeys(NAMES, 1.0)
