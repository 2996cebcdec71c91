"""The replay of MMIE's vectors takes what is right and refuses what was tampered with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cases import for_each
from tests.parity.replay import verdicts, write_json, write_text
from tests.parity.vectors import PASSED, deviates

CASE = "mmie/e2e/any_name"
RULE = "mmie_judge_failure_leaves_the_record_unscored"
GENERATION = {"max_new_tokens": 1024, "do_sample": False}


def call(number: int) -> dict[str, Any]:
    tail = f"### Question\n[#{number}] q\n\n### Answer\na\n\n### Feedback\n"
    pixels = {"num_patches_list": [], "pixel_values_shape": None, "pixel_values_dtype": None}
    return {"system_prompt": "SA", "prompt_tail": tail, **pixels, "generation_config": GENERATION}


REPLIES = {"0": "### Score\n4", "1": "RuntimeError", "2": "### Score\n5"}
"""The judge fails at the second record."""
WANTED: Mapping[str, Any] = {
    "argv": ["--save_step", "2", "--output_dir", "out", "--output_name", "o.json"],
    "error": None,
    "report": {"file": "data.json", "sample_size": "2", "AVG": "4.5", "SA": "4.5", "PBL": "None", "MSR": "None"},
    "calls": [call(0), call(1), call(2)],
    "unrecognised_messages": 0,
    "missing_messages": 0,
    "exit_code": 3,
    "unscored": [1],
    "deviation": RULE,
}


def output(number: int) -> dict[str, Any]:
    """A record of the benchmark's output file."""
    made = {"id": f"SA-{number}", "model": "toy", "question": f"[#{number}] q\n", "answer": "a\n", "gt_answer": "ref"}
    scored = {} if REPLIES[str(number)] == "RuntimeError" else {"gpt_feedback": REPLIES[str(number)]}
    return {**made, "images": [], **scored}


def write_case(root: Path, wanted: Mapping[str, Any]) -> None:
    records = [
        {
            "id": f"SA-{number}",
            "model": "toy",
            "question": [{"text": f"[#{number}] q", "image": None}],
            "answer": [{"text": "a", "image": None}],
            "gt_answer": [{"text": "ref", "image": None}],
        }
        for number in range(3)
    ]
    write_json(root, f"{CASE}/eval_inputs/data.json", records)
    write_json(root, f"{CASE}/canned_feedback.json", REPLIES)
    write_json(root, f"{CASE}/expected.json", {**WANTED, "error": "RuntimeError", "report": None, "calls": [call(0)]})
    write_text(root / CASE / "expected_files/out/temp/o.json", "what the reference left when it stopped")
    write_json(root, f"{CASE}/expected_wanted.json", wanted)
    whole = json.dumps([output(number) for number in range(3)], indent=4)
    for name in ("o.json", "temp/o.json"):  # the temporary file is written after the second reply, that of record 2
        write_text(root / CASE / "expected_wanted_files/out" / name, whole)


def test_a_corrected_run_counts_under_its_rule(tmp_path: Path) -> None:
    write_case(tmp_path, WANTED)
    assert verdicts(tmp_path) == [deviates(RULE)] * 3


def test_a_corrected_run_without_a_rule_passes(tmp_path: Path) -> None:
    write_case(tmp_path, {key: value for key, value in WANTED.items() if key != "deviation"})
    assert verdicts(tmp_path) == [PASSED] * 3


@for_each(
    ("key", "value"),
    [
        ("exit_code", 0),
        ("unscored", [2]),
        ("calls", [call(0), call(2)]),
        ("report", {**WANTED["report"], "SA": "3.0"}),
        ("missing_messages", 1),
        ("unrecognised_messages", 1),
    ],
)
def test_another_value_fails(tmp_path: Path, key: str, value: Any) -> None:
    write_case(tmp_path, {**WANTED, key: value})
    first, *_ = verdicts(tmp_path)
    assert first.state == "failed" and key in first.detail


@for_each("key", ["exit_code", "unscored"])
def test_a_run_without_these_keys_ended_well(tmp_path: Path, key: str) -> None:
    write_case(tmp_path, {name: value for name, value in WANTED.items() if name != key})
    assert verdicts(tmp_path)[0].state == "failed"


def test_another_file_fails(tmp_path: Path) -> None:
    write_case(tmp_path, WANTED)
    write_text(tmp_path / CASE / "expected_wanted_files/out/o.json", "[]")
    assert [verdict.state for verdict in verdicts(tmp_path)] == ["deviates", "failed", "deviates"]


def spelled(root: Path, argv: list[str]) -> str:
    write_case(root, WANTED)
    (root / CASE / "expected_wanted.json").unlink()
    write_json(root, f"{CASE}/canned_feedback.json", {**REPLIES, "1": "### Score\n6"})
    write_json(root, f"{CASE}/expected.json", {**WANTED, "argv": argv, "error": "SystemExit", "calls": []})
    (verdict,) = verdicts(root)
    return verdict.detail if verdict.state == "deviates" else verdict.state


def test_only_the_flags_of_the_readme_are_a_deviation(tmp_path: Path) -> None:
    assert spelled(tmp_path / "readme", ["--input_file", "data.json"]) == "mmie_readme_flags_are_accepted"
    assert spelled(tmp_path / "script", ["--input_name", "data.json"]) == "failed"


def unroutable(root: Path, ids: list[str], calls: list[dict[str, Any]]) -> str:
    write_case(root, WANTED)
    case = root / CASE
    (case / "expected_wanted.json").unlink()
    records = json.loads((case / "eval_inputs/data.json").read_text())
    for record, name in zip(records, ids, strict=True):
        record["id"] = name
    write_json(root, f"{CASE}/eval_inputs/data.json", records)
    write_json(root, f"{CASE}/canned_feedback.json", {**REPLIES, "1": "### Score\n6"})
    write_json(
        root, f"{CASE}/expected.json", {**WANTED, "error": "AttributeError", "unrecognised_messages": 1, "calls": calls}
    )
    (verdict,) = verdicts(root)
    return verdict.state


def test_a_record_that_stops_the_reference_is_named_after_those_that_it_judged(tmp_path: Path) -> None:
    ids = ["SA-0", "ZZ-1", "SA-2"]
    assert unroutable(tmp_path / "right", ids, [call(0)]) == "passed"
    assert unroutable(tmp_path / "too_late", ids, [call(0), call(2)]) == "failed"
    assert unroutable(tmp_path / "none", ["SA-0", "SA-1", "SA-2"], [call(0)]) == "failed"
