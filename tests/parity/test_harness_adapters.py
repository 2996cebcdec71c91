"""The replay of the harness core's vectors takes what is right and refuses what was tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.engine.response_cache import CacheKeys
from tests.cases import for_each
from tests.parity.adapters import harness_cache, harness_runs
from tests.parity.replay import verdicts, write_json, write_lines, write_text
from tests.parity.vectors import Verdict, deviates

CACHE = "harness/functions/cache.jsonl"
OPTIONS = {"temperature": 0.0, "until": ["\n"], "seed": 3}
KEY = {
    "function": "compute_cache_key",
    "args": ["generate_until", "t", "doc-7", OPTIONS, 3, "tf", "ch"],
    "expected": "",
}
CANONICAL = {"function": "canonicalize_gen_kwargs", "args": [OPTIONS], "expected": '{"temperature":0,"until":["\\n"]}'}


def verdict(root: Path, record: dict[str, Any]) -> Verdict:
    write_lines(root, CACHE, record)
    (found,) = verdicts(root)
    return found


def recorded_key() -> dict[str, Any]:
    asked = harness_cache.Asked("generate_until", "t", "doc-7", OPTIONS, 3, "tf", "ch")
    return {**KEY, "expected": asked.reference_key()}


def test_exact_keys_are_a_deviation(tmp_path: Path) -> None:
    assert verdict(tmp_path, CANONICAL) == deviates("cache_key_is_exact")
    assert verdict(tmp_path, recorded_key()) == deviates("cache_key_is_exact")


def test_a_key_that_is_not_the_references_fails(tmp_path: Path) -> None:
    seed_kept = {**CANONICAL, "expected": '{"seed":3,"temperature":0,"until":["\\n"]}'}
    assert verdict(tmp_path, seed_kept).state == "failed"
    assert verdict(tmp_path, {**recorded_key(), "args": ["generate_until", "t", 7, {}, 3]}).state == "failed"


def without(**changes: Any) -> Callable[[Request], Request]:
    return lambda request: replace(request, **changes)


def without_seed(request: Request) -> Request:
    return replace(request, generation={name: value for name, value in request.generation.items() if name != "seed"})


@for_each(
    ("blind", "named"),
    [
        (without_seed, "seed"),
        (without(generation={}), "temperature"),
        (without(repeat=0), "repeat"),
        (without(kind="generate_until"), "kind"),
    ],
)
def test_a_key_that_does_not_see_an_argument_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blind: Callable[[Request], Request], named: str
) -> None:
    class Blind(CacheKeys):
        def key(self, request: Request, messages: ChatMessages) -> str:
            return super().key(blind(request), messages)

    monkeypatch.setattr(harness_cache, "CacheKeys", Blind)
    found = verdict(tmp_path, recorded_key())
    assert found.state == "failed" and named in found.detail


def test_a_key_that_does_not_see_the_document_or_the_model_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blind(CacheKeys):
        def __init__(self, identity: Any, reads_documents: bool) -> None:
            super().__init__({}, reads_documents)

        def key(self, request: Request, messages: ChatMessages) -> str:
            return super().key(request, ChatMessages(messages=[]))

    monkeypatch.setattr(harness_cache, "CacheKeys", Blind)
    found = verdict(tmp_path, recorded_key())
    assert all(name in found.detail for name in ("document", "task", "model_hash", "version", "content_hash"))


def test_a_key_that_changes_by_itself_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10_000))
    monkeypatch.setattr(harness_cache.Asked, "key", lambda asked: f"key {next(numbers)}")
    assert "two keys" in verdict(tmp_path, CANONICAL).detail


RUN = "harness/runs/any_name"
TABLE = """
|    Tasks     |Filter|n-shot|Metric|   |Value|   |Stderr|
|--------------|------|-----:|------|---|----:|---|-----:|
|Both parts    |none  |      |acc   |↑  | 0.75|±  |0.1369|
| - part A     |none  |     0|acc   |↑  | 0.75|±  |0.2500|
|part A        |none  |     0|acc   |↑  | 0.50|±  |0.2500|
"""
SAMPLES = [{"doc_id": 0, "acc": 1.0, "filtered_resps": ["a"]}, {"doc_id": 1, "acc": 0.0, "filtered_resps": ["b"]}]


def run_state(root: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], printed: str = TABLE) -> list[str]:
    """The states of a recorded run whose command gave the recorded samples and printed this."""

    def start(case: harness_runs.Case, work: Path) -> tuple[harness_runs.Outcome, str]:
        file = work / "samples_t.jsonl"
        write_text(file, "".join(f"{json.dumps({**row, 'filter': 'none'})}\n" for row in SAMPLES))
        return harness_runs.Outcome(0, printed, "", {"<DATE>_samples_t.jsonl": file}, []), "inputs"

    monkeypatch.setattr(harness_runs, "_start", start)
    write_json(root, f"{RUN}/command.json", {"argv": [], "exit_code": 0, "files_written": []})
    write_json(root, f"{RUN}/wanted.json", wanted)
    write_text(root / RUN / "table.txt", TABLE)
    write_lines(root, f"{RUN}/samples_t.jsonl", *SAMPLES)
    return [verdict.state for verdict in verdicts(root)]


def test_an_indented_alias_is_corrected_by_its_own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"table": {"- part A|none|acc": {"Value": 0.25}}, "why": ["a reason"]}
    right = TABLE.replace(
        "| - part A     |none  |     0|acc   |↑  | 0.75", "| - part A     |none  |     0|acc   |↑  | 0.25"
    )
    assert run_state(tmp_path, monkeypatch, wanted, right) == ["passed"] * 3
    assert run_state(tmp_path, monkeypatch, wanted) == ["passed", "passed", "failed"]
    assert run_state(tmp_path, monkeypatch, {}) == ["passed"] * 3
    assert run_state(tmp_path, monkeypatch, {}, TABLE.replace(" - part A", "part A   ")) == [
        "passed",
        "passed",
        "failed",
    ]


@for_each(
    ("wanted", "named"),
    [
        ({"table": {"part B|none|acc": {"Value": 0.25}}}, "part B|none|acc"),
        ({"table": {" - part A|none|acc": {"Value": 0.25}}}, "- part A|none|acc"),
        ({"samples": {"samples_t.jsonl": {"7": {"acc": 1.0}}}}, "samples_t.jsonl/7"),
        ({"samples": {"samples_u.jsonl": {}}}, "samples_u.jsonl"),
        ({"tables": {}}, "tables"),
    ],
)
def test_a_correction_that_fits_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], named: str
) -> None:
    assert run_state(tmp_path, monkeypatch, wanted) == ["failed"]
    assert named in verdicts(tmp_path)[0].detail


def test_a_correction_of_a_document_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = {"samples": {"samples_t.jsonl": {"1": {"acc": 0.0}}}}
    assert run_state(tmp_path, monkeypatch, same) == ["passed"] * 3
    other = {"samples": {"samples_t.jsonl": {"1": {"acc": 1.0}}}}
    assert run_state(tmp_path, monkeypatch, other) == ["passed", "failed", "passed"]


TABLES = "harness/functions/table.jsonl"
ARGUMENT = {
    "results": {"t": {"alias": "Task", "acc,none": 0.5, "acc_stderr,none": 0.1}, "u": {"alias": " - Sub", "f,x": 12}},
    "n-shot": {"t": 0, "u": 5},
    "higher_is_better": {"t": {"acc": True}},
}


@for_each(
    ("expected", "state"),
    [
        ("|Tasks|Filter|n-shot|Metric|  |Value|  |Stderr|\n|-|-|-|-|-|-|-|-|\n"
         "|Task|none|0|acc|↑|0.5000|±|0.1|\n| - Sub|x|5|f||12.00|±|N/A|\n", "passed"),
        ("|Tasks|Filter|Value|\n|-|-|-|\n|Task|none|0.5|\n| - Sub|x|12|\n", "passed"),
        ("|Tasks|Filter|Value|\n|-|-|-|\n|Task|none|0.5001|\n| - Sub|x|12|\n", "failed"),
        ("|Tasks|Filter|Value|\n|-|-|-|\n| - Sub|x|12|\n|Task|none|0.5|\n", "failed"),
        ("|Tasks|Filter|Value|\n|-|-|-|\n|Task|none|0.5|\n|Sub|x|12|\n", "failed"),
        ("|Tasks|Filter|Value|\n|-|-|-|\n|Task|none|0.5|\n", "failed"),
        ("|Groups|Filter|Value|\n|-|-|-|\n|Task|none|0.5|\n", "failed"),
        ("|Tasks|Filter|Worth|\n|-|-|-|\n|Task|none|0.5|\n| - Sub|x|12|\n", "failed"),
        ("Title\n|Tasks|Filter|Value|\n|-|-|-|\n|Task|none|0.5|\n| - Sub|x|12|\n", "failed"),
        ("", "failed"),
    ],
)  # fmt: skip
def test_tables_are_compared_by_cells(tmp_path: Path, expected: str, state: str) -> None:
    write_lines(tmp_path, TABLES, {"function": "make_table", "args": [ARGUMENT], "kwargs": {}, "expected": expected})
    assert [verdict.state for verdict in verdicts(tmp_path)] == [state]
