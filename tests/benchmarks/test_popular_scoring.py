"""The cost of scoring by each rule is measured on documents that their tasks score."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.popular_scoring import KINDS, Kind, answer_to, loaded, measure
from lmms_eval.api.task import Answer
from lmms_eval.tasks.catalogue import Catalogue
from tests.cases import for_each

KNOWN = Catalogue().tasks


@for_each("kind", [kind for kind in KINDS if kind.task in KNOWN], ids=lambda kind: kind.rule)
def test_documents_of_a_kind_are_scored(kind: Kind, tmp_path: Path) -> None:
    made = measure(kind, tmp_path, documents=12, rounds=1)
    assert made["rule_ms"] > 0 and made["document_ms"] > 0
    task = loaded(kind.task, tmp_path / "rows.jsonl")
    scores = [task.score(doc_id, [Answer("B")]).scores[0] for doc_id in range(12)]
    assert {score.status for score in scores} == {"scored"}


def test_answers_are_the_same_in_every_run() -> None:
    one, other = ([answer_to(KINDS[0], "Yes", random.Random(5)) for _ in range(3)] for _ in range(2))
    assert one == other
