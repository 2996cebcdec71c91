"""Check the files of a run against the schemas that are shipped, taken as closed: what they do not name is wrong."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jsonschema import Draft202012Validator

from lmms_eval.results.files import RUNS
from lmms_eval.results.schema import TYPES, schema_file
from lmms_eval.storage.lines import unsealed

JOURNALS = {"responses": "response", "scores": "score", "judgements": "judgement"}


def checked(folder: Path) -> Counter[str]:
    """Check every file of the runs in a folder, decode it as its type, and count what was checked by its kind."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        for kind, content in _contents(path):
            problems = [f"{error.json_path}: {error.message[:300]}" for error in validator(kind).iter_errors(content)]
            assert not problems, f"{path.name}: {problems}"
            msgspec.convert(content, TYPES[kind])
            counts[kind] += 1
    return counts


@cache
def validator(kind: str) -> Draft202012Validator:
    schema = json.loads(schema_file(kind).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **made} if "properties" in made else made


def _contents(path: Path) -> list[tuple[str, Any]]:
    name = path.name
    if name == "run.json":
        content = unsealed(path.read_bytes())
        return [] if content is None else [("run", json.loads(content))]
    if name.endswith("_results.json") and name[:8].isdigit():
        return [("results", json.loads(path.read_text(encoding="utf-8")))]
    if "_samples_" in name and not (path.parent / RUNS).is_dir():
        return []  # a test's own file in the family's form
    if path.suffix != ".jsonl":
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    if "_samples_" in name:
        return [("sample", json.loads(line)) for line in lines if line.endswith(b"}\n")]  # not the torn
    kind = JOURNALS.get(name.split("-")[0])
    return [] if kind is None else [(kind, json.loads(line)) for line in lines if unsealed(line) is not None]
