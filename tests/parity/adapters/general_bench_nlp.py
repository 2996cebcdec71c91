"""General-Bench's language tasks: prompts and extraction, the scorer of a task, and of a folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.levels.registering import LevelResult
from lmms_eval.tasks.general_bench.measures.text_math import fallback_tokens, treebank_tokens
from lmms_eval.tasks.general_bench.nlp.processor import Tokenize, process, process_folder
from lmms_eval.tasks.general_bench.prompts.nlp import extract, max_new_tokens, nlp_prompt, time_series_values
from tests.parity.adapters.general_bench_levels import verdict
from tests.parity.compare import agree
from tests.parity.keys import keyed
from tests.parity.vectors import DATA_DIR, PASSED, Vector, Verdict, failed, line_adapter

NLTK_DATA = DATA_DIR / "nltk_data"


@line_adapter("general_bench/predictor_extraction.jsonl")
@keyed(
    "type", "task", "horizon", "items.*.id", "items.*.dialog*", "responses.*", "expected.value*",
    information={
        "items.*": "goes into prompts, whose texts are this project's own, so that none is recorded",
        "expected.error": "the type of the reference's exception is not compared (scoring rules §2)",
    },
)  # fmt: skip
def check_extraction(vector: Vector) -> Verdict:
    record = vector.record
    if record["type"] == "time_series_parse":
        (reply,) = record["responses"]
        return verdict(record["expected"], lambda: time_series_values(reply, record["horizon"]))
    return verdict(record["expected"], lambda: predicted(record))


def predicted(record: Mapping[str, Any]) -> dict[str, Any]:
    """Each item that is asked takes the next scripted reply."""
    task, kind = record["task"], record["type"]
    replies = iter(record["responses"])
    prompts, records = [], []
    for item in record["items"]:
        if kind != "Dialogue" or item.get("dialog") != []:  # read as no item at all (data/items.py)
            prompts.append(nlp_prompt(task, kind, item))
            records.append({"id": item["id"], **extract(task, kind, item, next(replies))})
    return {
        "records": records,
        "max_new_tokens": [max_new_tokens(kind)] if prompts else [],
        "calls": len(prompts),
    }


@line_adapter("general_bench/nlp_processor.jsonl")
def check_processor(vector: Vector) -> Verdict:
    record, expected = vector.record, vector.record["expected"]
    tokenize = words(record["word_tokenizer"])
    try:
        found = process(record["annotation"], record["prediction"], tokenize)
    except LmmsEvalError as error:
        return PASSED if "error" in expected else failed(f"raised {error}")
    except NotEvaluated as error:
        return failed(error.reason)
    if "error" in expected:
        return failed(f"{found!r} instead of {expected['error']}")
    shown = plain(found, ("task_name", "metric", "score", "task_type")) if found else None
    return PASSED if agree(expected["result"], shown) else failed(f"{shown!r} instead of {expected['result']!r}")


@line_adapter("general_bench/nlp_process_dir.jsonl")
def check_folder(vector: Vector) -> Verdict:
    record = vector.record
    with tempfile.TemporaryDirectory() as folder:
        write_layout(Path(folder) / "nlp", record["layout"])
        results, problems = process_folder(Path(folder), record["prediction_file_name"], fallback_tokens)
    shown = [plain(result, ("task_name", "metric", "score")) for result in results]
    wanted = sorted(record["expected"], key=lambda result: str(result["task_name"]))
    if not agree(wanted, sorted(shown, key=lambda result: str(result["task_name"]))):
        return failed(f"{shown!r} instead of {wanted!r}")
    if len(results) + len(problems) != len(record["layout"]):
        return failed(f"folders without a word: {(results, problems)!r}")
    return PASSED


def words(name: str) -> Tokenize:
    return fallback_tokens if name == "fallback" else lambda text: treebank_tokens(text, str(NLTK_DATA))


def plain(result: LevelResult, keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: getattr(result, key) for key in keys}


def write_layout(root: Path, layout: Mapping[str, Mapping[str, Any]]) -> None:
    for task, files in layout.items():
        (root / task).mkdir(parents=True)
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (root / task / name).write_text(text, encoding="utf-8")
