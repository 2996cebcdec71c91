"""Thirty-two questions of capitals, as task files of this package and of lm-eval, whose forms are nearly the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CAPITALS = {
    "Argentina": "Buenos Aires", "Australia": "Canberra", "Austria": "Vienna", "Belgium": "Brussels",
    "Canada": "Ottawa", "Chile": "Santiago", "Cuba": "Havana", "Denmark": "Copenhagen", "Egypt": "Cairo",
    "Finland": "Helsinki", "France": "Paris", "Germany": "Berlin", "Greece": "Athens", "Hungary": "Budapest",
    "Iceland": "Reykjavik", "India": "New Delhi", "Iran": "Tehran", "Iraq": "Baghdad", "Ireland": "Dublin",
    "Italy": "Rome", "Japan": "Tokyo", "Kenya": "Nairobi", "Morocco": "Rabat", "Nepal": "Kathmandu",
    "Norway": "Oslo", "Peru": "Lima", "Poland": "Warsaw", "Portugal": "Lisbon", "Russia": "Moscow", "Spain": "Madrid",
    "Sweden": "Stockholm", "Turkey": "Ankara",
}  # fmt: skip
CHOICES = 4
GENERATED, CHOSEN = "capitals_written", "capitals_chosen"
_GENERATION = {"until": ["\n"], "do_sample": False}


def rows() -> list[dict[str, Any]]:
    """The questions; the other choices are the capitals of other countries of the list, the right one moves about."""
    countries = list(CAPITALS)
    made = []
    for number, country in enumerate(countries):
        wrong = [CAPITALS[countries[(number + step) % len(countries)]] for step in (5, 11, 19)]
        gold = number * 7 % CHOICES
        choices = [*wrong[:gold], CAPITALS[country], *wrong[gold:]]
        made.append({"country": country, "choices": choices, "gold": gold, "capital": CAPITALS[country]})
    return made


def write_tasks(folder: Path) -> Path:
    """Task files of this package."""
    _write(folder, {"max_new_tokens": 12})
    return folder


def write_lm_eval_tasks(folder: Path) -> Path:
    """The same tasks as lm-eval writes them."""
    _write(folder, {"max_gen_toks": 12})
    return folder


def _write(folder: Path, length: dict[str, int]) -> None:
    """Task files are YAML, of which JSON is a part."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "capitals.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    shared = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
    written = {
        **shared,
        "task": GENERATED,
        "output_type": "generate_until",
        "doc_to_text": "What is the capital of {{country}}? Answer in one sentence.",
        "doc_to_target": "{{capital}}",
        "generation_kwargs": {**_GENERATION, **length},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    chosen = {
        **shared,
        "task": CHOSEN,
        "output_type": "multiple_choice",
        "doc_to_text": "The capital of {{country}} is",
        "doc_to_target": "gold",
        "doc_to_choice": "choices",
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("acc", "acc_norm")
        ],
    }
    for task in (written, chosen):
        (folder / f"{task['task']}.yaml").write_text(json.dumps(task))
