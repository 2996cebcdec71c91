"""Every key of the records of media and prompts is compared, or named as information by its adapter."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.parity.adapters import milebench_prompts, mmie
from tests.parity.discovery import match
from tests.parity.keys import Keyed, Keys, keyed, leaves
from tests.parity.replay import verdicts, write_json, write_lines
from tests.parity.vectors import GOLDEN_DIR, LINE_ADAPTERS, PASSED, Vector, Verdict, failed

Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where values and lists stand in a record."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*place, key))
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*place, number))
    yield place


def another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 100
    return value[:-1] if isinstance(value, list) and value else ["another"] if isinstance(value, list) else "another"


def changed(record: dict[str, Any], place: Place) -> dict[str, Any]:
    made = copy.deepcopy(record)
    *above, last = place
    holder: Any = made
    for key in above:
        holder = holder[key]
    holder[last] = another(holder[last])
    return made


def path_of(place: Place) -> str:
    return ".".join("*" if isinstance(key, int) else key for key in place)


def check_keys(keys: Keys, records: Sequence[dict[str, Any]], judge: Any) -> None:
    """A key whose value may be another in each of the records must be named, and nothing else may.

    Of a key in many places the first and the last are tried.
    """
    noticed: dict[str, bool] = {}
    ignored: dict[str, bool] = {}
    for record in records:
        untouched = judge(record)
        assert untouched.state != "failed", untouched.detail
        last = {path_of(place): place for place in places(record)}
        first = {path_of(place): place for place in reversed(list(places(record)))}
        for place in {*first.values(), *last.values()}:
            path, is_noticed = path_of(place), judge(changed(record, place)).state == "failed"
            noticed[path] = noticed.get(path, False) or is_noticed
            ignored[path] = ignored.get(path, False) or not is_noticed
    unnamed = [path for path, is_noticed in noticed.items() if not is_noticed and not keys.is_information(path)]
    assert not unnamed, f"not compared, and not named as information: {unnamed}"
    wrong = [path for path, is_ignored in ignored.items() if not is_ignored and keys.is_information(path)]
    assert not wrong, f"named as information, and compared: {wrong}"


MILEBENCH = {
    "name": "in words",
    "dataset": "GPR1200",
    "tokenizer": "char",
    "max_context_len": 90,
    "n_tokens_per_image": 10,
    "combine_image": None,
    "img_dir": "d/images",
    "task_instruction": ["unused", "Do."],
    "sample": {
        "sample_id": 1,
        "task_instruction_id": 1,
        "task_instance": {
            "context": "So long that it is cut from the front: {image#1}what is in {image#2}it?",
            "images_path": ["a.jpg", "b.jpg"],
            "choice_list": ["yes", "no"],
        },
        "response": "yes",
        "image_quantity_level": "Few",
    },
    "result": {
        "item": {
            "sample_id": 1,
            "context": "Do.\n<ImageHere>what is in <ImageHere>it?\nChoice list: \nyes\nno\nYour answer is: ",
            "raw_img_list": ["d/images/a.jpg", "d/images/b.jpg"],
            "response": "yes",
        }
    },
}
TWO_SHEETS = {
    **MILEBENCH,
    "combine_image": 2,
    "sample": {
        **MILEBENCH["sample"],
        "task_instance": {
            "context": "what is {image#1}?",
            "images_path": ["a.jpg"],
            "combined_2_images": ["1-0.jpg", "1-1.jpg"],
        },
    },
    "result": {"error": "AssertionError"},
}
ONE_SHEET = {
    **TWO_SHEETS,
    "sample": {
        **MILEBENCH["sample"],
        "task_instance": {
            "context": "what is {image#1}?",
            "images_path": ["a.jpg"],
            "combined_2_images": ["1-0.jpg"],
        },
    },
    "result": {
        "item": {
            "sample_id": 1,
            "context": "<ImageHere>\nDo.\nwhat is <Image 1> ?",
            "raw_img_list": ["d/combined_2_images/1-0.jpg"],
            "response": "yes",
        }
    },
}
LAYOUT = {
    "sample_id": 7,
    "n_images": 3,
    "max_img_num": 2,
    "sheets": [
        {"file": "7-0.jpg", "size": [1600, 800], "mode": "RGB", "captions": ["Image 1", "Image 2"]},
        {"file": "7-1.jpg", "size": [800, 800], "mode": "RGB", "captions": ["Image 3"]},
    ],
}
MMIE_RECORD = {
    "id": "SA-0",
    "question": [{"text": "q", "image": "gone.png"}],
    "answer": [{"text": "a", "image": None}],
    "model": "toy",
    "gt_answer": [{"text": "ref", "image": "images/0.png"}],
    "field": "x",
    "catagory": "y",
}
MMIE_CASE = {
    "case": "in words",
    "input": [MMIE_RECORD],
    "processed": [{"id": "SA-0", "model": "toy", "question": "q\n", "answer": "a\n", "gt_answer": "ref", "images": []}],
    "printed": "in/gone.png not found!\n",
}
MMIE_STOP = {
    "case": "in words",
    "input": [{key: value for key, value in MMIE_RECORD.items() if key != "gt_answer"}],
    "error": "KeyError",
    "printed": "",
}
CONVERSATIONS = [
    {"from": "human", "content": [{"text": "Look", "image": "0.png"}, {"text": "then?", "image": None}]},
    {"from": "gpt", "content": [{"text": "End", "image": None}]},
]
RECORDS: dict[str, list[dict[str, Any]]] = {
    "milebench/units/prompts.jsonl": [MILEBENCH, ONE_SHEET, TWO_SHEETS],
    "milebench/units/combine_layout.jsonl": [LAYOUT],
    "mmie/dataset/cases.jsonl": [MMIE_CASE, MMIE_STOP],
    "mmie/units/lmms_docs.jsonl": [
        {
            "doc": {"id": "SA-0", "catagory": "c", "field": "f", "conversations": CONVERSATIONS},
            "kwargs": {"pre_prompt": "PRE ", "post_prompt": " POST"},
            "text": "PRE Look\n<image>\nthen? POST",
            "target": "End",
        }
    ],
    "mmie/units/tiling.jsonl": [
        {"width": 30, "height": 10, "max_num": 2, "columns": 2, "rows": 1, "tiles": 2, "tiles_with_thumbnail": 3},
        {"width": 10, "height": 30, "max_num": 2, "columns": 1, "rows": 2, "tiles": 2, "tiles_with_thumbnail": 3},
    ],
    "mmie/units/id_routing.jsonl": [{"id": "MSR-1", "prompt": "MSR", "bucket": "MSR", "gt_answer_passed": True}],
    "general_bench/predictor_extraction.jsonl": [
        {
            "id": "predictor_extraction-1",
            "type": "classification",
            "task": "stance_detection_x",
            "note": "in words",
            "items": [{"id": 0, "input": {"tweets": "tw", "target": "tg", "prompt": "<<<tweets>>>/<<<target>>>"}}],
            "responses": ["FAVOR"],
            "expected": {"value": {"records": [{"id": 0, "prediction": "favor"}], "max_new_tokens": [64], "calls": 1}},
        },
        {"type": "time_series_parse", "horizon": 2, "responses": ["[1,2]"], "expected": {"value": [1.0, 2.0]}},
        {
            "type": "OpenQA",
            "task": "Table Question Answering",
            "items": [{"id": 0, "input": {"question": "q?"}}],
            "responses": ["5"],
            "expected": {"error": "KeyError"},
        },
    ],
    "harness/functions/video.jsonl": [
        {"function": "compute_uniform_indices", "args": [9, 1, True], "kwargs": {}, "expected": [8]},
        {"function": "compute_sample_count", "args": [300, 32, 1.0, 30.0], "kwargs": {}, "expected": 10},
    ],
}
"""Records in which every key matters that matters at all."""


def line_keys(path: str) -> Keys:
    adapter = match(LINE_ADAPTERS, path)
    assert isinstance(adapter, Keyed), f"{path}: its adapter does not say which keys it looks at"
    return adapter.keys


def line_verdict(root: Path, path: str, record: dict[str, Any]) -> Verdict:
    write_lines(root, path, record)
    (verdict,) = verdicts(root)
    return verdict


@for_each("path", RECORDS)
def test_every_key_of_a_line_is_compared_or_named(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmie, "GOLDEN_DIR", tmp_path)  # beside whose lines the pictures lie
    check_keys(line_keys(path), RECORDS[path], lambda record: line_verdict(tmp_path, path, record))


@for_each("path", RECORDS)
def test_a_key_that_nobody_looks_at_fails_its_line(tmp_path: Path, path: str) -> None:
    verdict = line_verdict(tmp_path, path, {**RECORDS[path][0], "another_key": 1})
    assert verdict.state == "failed" and "nobody looks at another_key" in verdict.detail


def recorded_prompts() -> list[dict[str, Any]]:
    """For each form of visual the record with the fewest visuals."""
    file = GOLDEN_DIR / "megabench_pipeline/prompts.jsonl"
    if not file.is_file():
        pytest.skip(f"no recorded prompts of MEGA-Bench at {GOLDEN_DIR}, whose pictures lie beside them")
    found: dict[frozenset[str], dict[str, Any]] = {}
    for record in sorted(map(json.loads, file.read_text("utf-8").splitlines()), key=lambda one: len(one["visuals"])):
        for visual in record["visuals"]:
            found.setdefault(frozenset(visual), record)
    return list({record["id"]: record for record in found.values()}.values())


def test_every_key_of_megabench_prompts_is_compared_or_named(tmp_path: Path) -> None:
    path, records = "megabench_pipeline/prompts.jsonl", recorded_prompts()
    check_keys(line_keys(path), records, lambda record: line_verdict(tmp_path, path, record))
    assert line_verdict(tmp_path, path, {**records[0], "another_key": 1}).state == "failed"


def test_fingerprints_of_prompts(tmp_path: Path) -> None:
    path = "mmie/units/system_prompt_fingerprints.json"
    content = {tag: {"chars": 1, "sha256": value} for tag, value in mmie.OFFICIAL.items()}

    def judge(record: dict[str, Any]) -> Verdict:
        write_json(tmp_path, path, record)
        (verdict,) = verdicts(tmp_path)
        return verdict

    check_keys(mmie.FINGERPRINTS, [content], judge)
    assert judge({**content, "SA": {**content["SA"], "another_key": 1}}).state == "failed"


def test_runs_of_generation(tmp_path: Path) -> None:
    source = GOLDEN_DIR / "milebench/generate"
    if not source.is_dir():
        pytest.skip(f"no recorded generation of MileBench at {GOLDEN_DIR}")
    shutil.copytree(source, tmp_path / "milebench/generate")
    content = json.loads((source / "runs.json").read_text("utf-8"))
    content["runs"] = [{**content["runs"][-1], "batch_sizes_seen": [5, 3]}]

    def judge(record: dict[str, Any]) -> Verdict:
        (tmp_path / "milebench/generate/runs.json").unlink()
        write_json(tmp_path, "milebench/generate/runs.json", record)
        found = verdicts(tmp_path)
        return next((verdict for verdict in found if verdict != PASSED), PASSED) if found else failed("no run")

    check_keys(milebench_prompts.RUNS, [content], judge)
    content["runs"][0]["another_key"] = 1
    assert judge(content).state == "failed"


def test_leaves_and_patterns() -> None:
    record = {"a": [{"b": 1}, {"b": 2}], "c": {}, "d": {"e": []}, "id": 3, "wanted": {"x": {"y": 1}}}
    assert list(leaves(record)) == ["a.*.b", "a.*.b", "c", "d.e", "id", "wanted.x.y"]
    keys = Keys(("a.*", "c.*.x"), {"a.*.b": "why", "d.e.*": "why"})
    assert not keys.unseen(record) and keys.unseen({**record, "z": 1}) == "nobody looks at z"
    assert keys.is_information("a.*.b") and not keys.is_information("a.*.x") and keys.is_information("wanted.x")
    assert keyed("a")(lambda vector: PASSED)(Vector("x", 0, {"a": 1})) == PASSED
