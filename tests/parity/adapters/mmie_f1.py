"""MMIE: the vectors of lmms-eval's task (``mmie_f1``). The judged metric: ``mmie``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.tasks.mmie import utils
from lmms_eval.tasks.mmie.utils import exact_match, token_f1
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter, path_adapter


@line_adapter("mmie/units/lmms_f1_em.jsonl")
def check_metrics(vector: Vector) -> Verdict:
    record = vector.record
    pair = record["reference"], record["prediction"]
    found = {"f1": token_f1(*pair), "exact_match": exact_match(*pair)}
    return PASSED if all(record[name] == value for name, value in found.items()) else failed(f"found {found}")


@line_adapter("mmie/units/lmms_docs.jsonl")
@keyed(
    "doc.conversations*", "kwargs.*", "text", "target",
    information={
        "doc.*": "of no use for a prompt",
        "doc.conversations.*.content.*.image": "a text shows that there is a picture, not which",
    },
)  # fmt: skip
def check_documents(vector: Vector) -> Verdict:
    record = vector.record
    found = {
        "text": utils.f1_doc_to_text(record["doc"], record["kwargs"]),
        "target": utils.f1_doc_to_target(record["doc"]),
    }
    return PASSED if all(record[name] == value for name, value in found.items()) else failed(f"found {found}")


@path_adapter("mmie/units/lmms_aggregate.json")
def check_aggregate(path: Path) -> Sequence[Verdict]:
    content = json.loads(path.read_text(encoding="utf-8"))
    scores = [item["score"] for item in content["items"]]
    expected = {"f1": scores, "exact_match": scores, "empty": []}
    found = {name: utils.aggregate_f1(values) for name, values in expected.items()}
    return [PASSED if content[name] == value else failed(f"{name}: found {value}") for name, value in found.items()]
