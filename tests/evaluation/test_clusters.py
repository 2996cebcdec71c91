"""Runs of a task with four questions about each picture."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.task import TaskOptions
from lmms_eval.cli.main import main
from lmms_eval.results import load
from lmms_eval.results.breakdown import breakdown
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from tests.cases import for_each

PICTURES = 12
TASK = """
task: four
dataset_path: json
dataset_kwargs: {{data_files: {{test: docs.jsonl}}}}
test_split: test
doc_to_visual: !function utils.pictures
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
{more}
"""
UTILS = """
from pathlib import Path
from PIL import Image

def pictures(doc):
    return [Image.open(Path(__file__).parent / doc["image"])]
"""


def folder(tmp: Path, more: str = "") -> Path:
    made = tmp / "tasks"
    made.mkdir()
    (made / "four.yaml").write_text(TASK.format(more=more))
    (made / "utils.py").write_text(UTILS)
    documents = []
    for number in range(4 * PICTURES):
        name, picture = f"{number // 4}.png", number // 4
        Image.new("RGB", (8, 8), (picture, 0, 0)).save(made / name)
        answer = "yes" if picture % 3 else "no"
        documents.append({"image": name, "place": picture % 4, "question": f"{number}?", "answer": answer})
    (made / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    return made


def run(tmp: Path, tasks: Path, answer: str = "yes", *more: str) -> tuple[Path, dict[str, Any]]:
    out = tmp / answer
    arguments = ["--model", "baseline", "--model_args", f"strategy=constant,text={answer}", "--tasks", "four"]
    code = main([*arguments, "--include_path", str(tasks), "--log_samples", "--output_path", str(out), *more])
    assert code == 0
    (found,) = out.rglob("*_results.json")
    return found, json.loads(found.read_text())


@for_each(
    "more, by, count, noun",
    [
        ("", "first medium", 12, "pictures"),
        ("cluster_key: place", "column place", 4, "clusters by place"),
        ("cluster_key: question", "column question", 48, ""),
    ],
)
def test_the_results_state_the_clusters_and_readers_use_them(
    tmp_path: Path, more: str, by: str, count: int, noun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, document = run(tmp_path, folder(tmp_path, more))
    entry = document["clusters"]["four"]
    assert (entry["by"], entry["count"], entry["documents"]) == (by, count, 48)
    printed = "".join(capsys.readouterr())
    line = f"four: intervals over {count} {noun} (48 documents)"
    assert (line in printed) is bool(noun) and ("intervals over" in printed) is bool(noun)
    interval = document["intervals"]["four"]["exact_match,none"]
    shown = load(path)
    assert main(["show", str(path)]) == 0
    assert (f"clusters of four: {count} by {by} (48 documents)" in capsys.readouterr().out) is bool(noun)
    (whole, *_) = breakdown(shown, shown.tasks["four"]).cells
    assert (whole.low, whole.high) == (pytest.approx(interval["low"]), pytest.approx(interval["high"]))


def test_a_key_that_no_document_has_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = run(tmp_path, folder(tmp_path, "cluster_key: picure"))
    assert document["clusters"]["four"]["by"] == "first medium"
    printed = "".join(capsys.readouterr())
    assert "four: no document has its cluster_key 'picure', so clusters are by first medium; name a column" in printed


def test_compare_pairs_pictures_and_older_results_pair_documents(tmp_path: Path) -> None:
    tasks = folder(tmp_path)
    paths = [run(tmp_path, tasks, answer)[0] for answer in ("yes", "no")]

    def differences(name: str) -> dict[str, Any]:
        target = tmp_path / f"{name}.json"
        arguments = ["compare", *map(str, paths), "--draws", "200", "--json", str(target)]
        assert main(arguments) == 0
        (pair,) = json.loads(target.read_text())["pairs"]
        (row,) = pair["rows"]
        return {"value": row["value"], "p": row["p"], "width": row["interval"]["high"] - row["interval"]["low"]}

    now = differences("now")
    for path in paths:
        document = json.loads(path.read_text())
        del document["clusters"]
        path.write_text(json.dumps(document))
    shutil.rmtree(tmp_path / "yes" / ".runs", ignore_errors=True)
    before = differences("before")
    assert now["value"] == before["value"]
    assert now["width"] > 1.5 * before["width"] and now["p"] > before["p"]


@for_each(
    "task, column",
    [
        ("gqa", "imageId"), ("vqav2_val", "image_id"), ("textvqa_val", "image_id"), ("docvqa_val", "ucsf_document_id"),
        ("infovqa_val", "image_url"), ("pope", "image_source"), ("mme", "question_id"), ("nextqa_mc_test", "video"),
        ("hallusion_bench_image", "filename"), ("mlvu_dev", "video_name"), ("refcoco_bbox_rec_val", None),
        ("mmmu_val", None),
    ],
)  # fmt: skip
def test_tasks_name_the_column_of_what_their_questions_share(task: str, column: str | None) -> None:
    (found,) = select_tasks([task], Catalogue(), TaskOptions()).tasks
    assert found.cluster_key == column
