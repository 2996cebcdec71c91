"""MMIE: reading, the judge's view, scores, averages, tiling. Whole runs: ``mmie_runs``; F1 and EM: ``mmie_f1``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.internvl import choose_grid
from lmms_eval.models.chat_form.loading import device_map
from lmms_eval.tasks.mmie.data.records import route
from lmms_eval.tasks.mmie.judge_prompts import OFFICIAL
from lmms_eval.tasks.mmie.scoring import read_score, valid_score
from lmms_eval.tasks.mmie.submission import feedback_from_temporary, processed_record, read_records
from lmms_eval.tasks.mmie.summary import official_average
from lmms_eval.tasks.mmie.view import build_view, in_folder
from tests.parity.keys import Keys, keyed
from tests.parity.vectors import GOLDEN_DIR, PASSED, Vector, Verdict, deviates, failed, line_adapter, path_adapter

FOLDER = "in"
POSITION = "mmie_temporary_file_is_matched"


def verdict(is_right: bool, found: Any) -> Verdict:
    return PASSED if is_right else failed(f"found {found!r}")


@line_adapter("mmie/units/find_score.jsonl")
def check_score(vector: Vector) -> Verdict:
    text = vector.record["text"]
    found = read_score(text), valid_score(text) is not None
    return verdict(found == (vector.record["score"], vector.record["counted"]), found)


@line_adapter("mmie/units/average.jsonl")
def check_average(vector: Vector) -> Verdict:
    scores = [score for score, count in enumerate(vector.record["counts"]) for _ in range(count)]
    found = official_average(scores)
    return verdict(found == vector.record["average"], found)


@line_adapter("mmie/units/tiling.jsonl")
@keyed("width", "height", "max_num", "columns", "rows", "tiles", "tiles_with_thumbnail")
def check_tiling(vector: Vector) -> Verdict:
    record = vector.record
    grid = choose_grid(record["width"], record["height"], record["max_num"])
    found = (grid.columns, grid.rows, grid.tiles, grid.tiles_with_thumbnail)
    return verdict(found == (record["columns"], record["rows"], record["tiles"], record["tiles_with_thumbnail"]), found)


@line_adapter("mmie/units/device_map.jsonl")
def check_device_map(vector: Vector) -> Verdict:
    record = vector.record
    try:
        found = device_map(record["gpus"])
    except ModelError as error:
        return verdict("error" in record, error)
    if "error" in record:
        return failed(f"found {found!r}")
    prefix = "language_model.model.layers."
    layers = {int(key.removeprefix(prefix)): gpu for key, gpu in found.items() if key.startswith(prefix)}
    by_gpu: dict[str, list[int]] = {}
    for layer in sorted(layer for layer in layers if layer < 32):
        by_gpu.setdefault(str(layers[layer]), []).append(layer)
    past = sum(layer > 31 for layer in layers)
    others = sorted(key for key, gpu in found.items() if not key.startswith(prefix) and gpu == 0)
    expected = (record["layers_by_gpu"], record["layer_keys_past_31"], record["other_keys_on_gpu0"])
    return verdict((by_gpu, past, others) == expected, (by_gpu, past, others))


@line_adapter("mmie/units/id_routing.jsonl")
@keyed("id", "prompt", "bucket", "gt_answer_passed")
def check_route(vector: Vector) -> Verdict:
    record = vector.record
    found = route(record["id"])
    expected = (record["prompt"], record["bucket"], record["gt_answer_passed"])
    return verdict((found.category, found.category, "MSR" in found.tags) == expected, found)


FINGERPRINTS = Keys(("*.sha256",), {"*.chars": "length of a text that only its user has"})


@path_adapter("mmie/units/system_prompt_fingerprints.json")
def check_fingerprints(path: Path) -> Sequence[Verdict]:
    content = json.loads(path.read_text("utf-8"))
    if unseen := FINGERPRINTS.unseen(content):
        return [failed(unseen)]
    expected = {tag: entry["sha256"] for tag, entry in content.items()}
    return [verdict(dict(OFFICIAL) == expected, dict(OFFICIAL))]


def processed(entries: Any, folder: Path) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Records as the benchmark's files have them, lines of missing pictures, errors."""
    placed, problems = read_records(entries, "the vector")
    find = in_folder(FOLDER)
    records, printed = [], ""
    here = Path.cwd()
    os.chdir(folder)
    try:
        for record in placed.values():
            view = build_view(record.question, record.answer, find)
            printed += "".join(f"{name} not found!\n" for name in view.missing)
            if not view.is_skipped:
                records.append(processed_record(record, view))
    finally:
        os.chdir(here)
    return records, printed, [problem.message for problem in problems]


def _dataset(vector: Vector) -> Path:
    return (GOLDEN_DIR / vector.path).parent


@line_adapter("mmie/dataset/cases.jsonl")
@keyed(
    "input.*", "processed.*.id", "processed.*.model", "processed.*.question", "processed.*.answer",
    "processed.*.gt_answer", "processed.*.images.*",
    information={
        "error": "the type of the reference's exception is not compared (scoring rules §2)",
        "printed": "where the reference stops, what it had printed until then is not compared",
        "input.*.gt_answer.*.image": "pictures of the reference answer are not shown",
        "input.*.field": "no part of a processed record",
        "input.*.catagory": "no part of a processed record; the id decides",
    },
)  # fmt: skip
def check_case(vector: Vector) -> Verdict:
    record = vector.record
    records, printed, errors = processed(record["input"], _dataset(vector))
    if "error" in record:
        return verdict(bool(errors) and not records, (records, errors))
    same_order = [list(found) for found in records] == [list(wanted) for wanted in record["processed"]]
    is_right = records == record["processed"] and same_order and printed == record["printed"] and not errors
    return verdict(is_right, (records, printed, errors))


@line_adapter("mmie/dataset/resume.jsonl")
def check_resume(vector: Vector) -> Verdict:
    """Where the reference stops with an error, what matches by id and position is kept and nothing else."""
    record = vector.record
    records, _, _ = processed(record["input"], _dataset(vector))
    feedback, mismatches = feedback_from_temporary(record["temp"], records)
    found = [[entry["id"], feedback.get(number)] for number, entry in enumerate(records)]
    if "error" not in record:
        return verdict(found == record["feedback_after_resume"], found)
    expected = [
        [entry["id"], kept.get("gpt_feedback") if kept["id"] == entry["id"] else None]
        for entry, kept in zip(records, record["temp"], strict=False)
    ]
    expected += [[entry["id"], None] for entry in records[len(expected) :]]
    return deviates(POSITION) if found == expected and mismatches else failed(f"found {found!r}")
