"""JSON Schemas of a run's files, made from their types. The schemas of this version are in ``lmms_eval/schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lmms_eval.results.schema.document import ResultsDocument
from lmms_eval.results.schema.journal import JudgementLine, ResponseLine, RunFile, ScoreLine
from lmms_eval.results.schema.sample import SampleLine

FOLDER = Path(__file__).parents[2] / "schemas"
TYPES: dict[str, Any] = {
    "results": ResultsDocument,
    "sample": SampleLine,
    "response": ResponseLine,
    "score": ScoreLine,
    "judgement": JudgementLine,
    "run": RunFile,
}
"""Type of the file, by the name of its schema."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(name: str) -> str:
    """Return the JSON Schema of one kind of file."""
    schema = {"$schema": _DIALECT, **TypeAdapter(TYPES[name]).json_schema()}
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def schema_file(name: str) -> Path:
    """Return the path of the schema that this version ships."""
    return FOLDER / f"{name}.schema.json"
