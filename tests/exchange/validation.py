"""Checks of Every Eval Ever records: by the format's own validator if it is installed, else by its JSON Schemas."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).with_name("schemas")
PROGRAM = os.environ.get("EVERY_EVAL_EVER") or shutil.which("every_eval_ever")
"""The validator of the package ``every-eval-ever`` (Python 3.12), which needs an environment of its own."""


@cache
def _validator(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads((SCHEMAS / name).read_text("utf-8")))


def problems(folder: Path) -> list[str]:
    """Return what is wrong with all records and samples below a folder; at least one record is there."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".jsonl"))
    assert any(path.suffix == ".json" for path in files), folder
    found = [problem for path in files for problem in _by_schema(path)] + _by_reference(folder, files)
    return found + _by_program(folder, files)


def _by_schema(path: Path) -> list[str]:
    name = "eval.schema.json" if path.suffix == ".json" else "instance_level_eval.schema.json"
    texts = path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
    errors = [error for text in texts for error in _validator(name).iter_errors(json.loads(text))]
    return [f"{path.name}: {error.json_path}: {error.message:.200}" for error in errors]


def _by_reference(folder: Path, files: list[Path]) -> list[str]:
    """Compare what records state about their samples with the samples."""
    found = []
    for path in files:
        record = json.loads(path.read_text("utf-8")) if path.suffix == ".json" else {}
        if stated := record.get("detailed_evaluation_results"):
            samples = folder / stated["file_path"]
            content = samples.read_bytes()
            if hashlib.sha256(content).hexdigest() != stated["checksum"]:
                found.append(f"{samples.name}: checksum")
            if content.count(b"\n") != stated["total_rows"]:
                found.append(f"{samples.name}: rows")
            results = {one["evaluation_result_id"] for one in record["evaluation_results"]}
            for line in lines_of(samples):
                if line["evaluation_id"] != record["evaluation_id"] or line["evaluation_result_id"] not in results:
                    found.append(f"{samples.name}: {line['evaluation_result_id']}")
    return found


def _by_program(folder: Path, files: list[Path]) -> list[str]:
    if PROGRAM is None:
        return []
    words = [PROGRAM, "validate", "--format", "json", *(str(path.relative_to(folder)) for path in files)]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    reports = json.loads(ended.stdout)
    assert len(reports) == len(files), ended.stderr
    return [f"{one['file']}: {error}" for one in reports for error in one["errors"]]


def lines_of(samples: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in samples.read_text("utf-8").splitlines()]


def records_in(folder: Path) -> list[dict[str, Any]]:
    """Return all records below a folder, by their places."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))]
