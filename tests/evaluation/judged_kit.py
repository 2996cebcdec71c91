"""A task whose answers a judge rates, as a benchmark's author writes it: YAML and two functions."""

from __future__ import annotations

import json
from pathlib import Path

NAME = "rated"
UTILS = """
import math

from lmms_eval.api import Unscored


def read_rating(text):
    return int(text) if text.isdigit() and len(text) < 3 else None


def doc_to_judge(doc, results):
    prompt = f"Rate the reply {results[0]!r} against {doc['answer']!r}. ANSWER={doc['rating']}"
    return [{"name": "rating", "prompt": prompt, "reader": read_rating, "images": doc.get("images") or ()}]


def process_results(doc, results, verdicts):
    verdict = verdicts.get("rating")
    if verdict is None:
        return {"rating": Unscored("no judge")}
    if verdict.text is None:
        return {"rating": Unscored(f"the judge gave no reply: {verdict.error}")}
    return {"rating": read_rating(verdict.text) or 0}
"""
YAML = """
task: rated
dataset_path: json
dataset_kwargs:
  data_files: rated.jsonl
test_split: train
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
process_results: !function rated_utils.process_results
doc_to_judge: !function rated_utils.doc_to_judge
generation_kwargs:
  max_new_tokens: 16
metric_list:
  - metric: rating
    aggregation: mean
    higher_is_better: true
"""


def rated_task(folder: Path, documents: int = 6, unreadable: tuple[int, ...] = (), scoring: str = "inline") -> Path:
    """Document N is rated N % 10; the judge's reply to the ``unreadable`` ones is no number."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rated_utils.py").write_text(UTILS, encoding="utf-8")
    (folder / "rated.yaml").write_text(f"{YAML}scoring: {scoring}\n", encoding="utf-8")
    with open(folder / "rated.jsonl", "w", encoding="utf-8") as file:
        for number in range(documents):
            row = {
                "question": f"Question {number}: say it. ANSWER=a{number}",
                "answer": f"a{number}",
                "rating": "cannot say" if number in unreadable else str(number % 10),
            }
            file.write(json.dumps(row) + "\n")
    return folder
