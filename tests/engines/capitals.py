"""Thirty-two questions of capitals, as task files of this package and of lm-eval, whose forms are nearly the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CITIES = {
    "Argentina": ("Buenos Aires", "Córdoba", "Rosario", "Mendoza"),
    "Australia": ("Canberra", "Sydney", "Melbourne", "Perth"),
    "Austria": ("Vienna", "Salzburg", "Graz", "Linz"),
    "Belgium": ("Brussels", "Antwerp", "Ghent", "Bruges"),
    "Bolivia": ("Sucre", "La Paz", "Santa Cruz", "Cochabamba"),
    "Brazil": ("Brasília", "São Paulo", "Rio de Janeiro", "Salvador"),
    "Canada": ("Ottawa", "Toronto", "Montreal", "Vancouver"),
    "Chile": ("Santiago", "Valparaíso", "Concepción", "Antofagasta"),
    "China": ("Beijing", "Shanghai", "Guangzhou", "Wuhan"),
    "Denmark": ("Copenhagen", "Aarhus", "Odense", "Aalborg"),
    "Egypt": ("Cairo", "Alexandria", "Luxor", "Aswan"),
    "Finland": ("Helsinki", "Tampere", "Turku", "Oulu"),
    "France": ("Paris", "Lyon", "Marseille", "Toulouse"),
    "Germany": ("Berlin", "Hamburg", "Munich", "Frankfurt"),
    "Greece": ("Athens", "Thessaloniki", "Patras", "Heraklion"),
    "India": ("New Delhi", "Mumbai", "Kolkata", "Bangalore"),
    "Ireland": ("Dublin", "Cork", "Galway", "Limerick"),
    "Italy": ("Rome", "Milan", "Naples", "Turin"),
    "Japan": ("Tokyo", "Osaka", "Kyoto", "Nagoya"),
    "Kazakhstan": ("Astana", "Almaty", "Shymkent", "Karaganda"),
    "Kenya": ("Nairobi", "Mombasa", "Kisumu", "Nakuru"),
    "Morocco": ("Rabat", "Casablanca", "Marrakesh", "Fez"),
    "Myanmar": ("Naypyidaw", "Yangon", "Mandalay", "Bago"),
    "New Zealand": ("Wellington", "Auckland", "Christchurch", "Hamilton"),
    "Nigeria": ("Abuja", "Lagos", "Kano", "Ibadan"),
    "Norway": ("Oslo", "Bergen", "Trondheim", "Stavanger"),
    "Poland": ("Warsaw", "Kraków", "Gdańsk", "Łódź"),
    "South Korea": ("Seoul", "Busan", "Incheon", "Daegu"),
    "Spain": ("Madrid", "Barcelona", "Seville", "Valencia"),
    "Switzerland": ("Bern", "Zurich", "Geneva", "Basel"),
    "Turkey": ("Ankara", "Istanbul", "Izmir", "Antalya"),
    "Vietnam": ("Hanoi", "Ho Chi Minh City", "Da Nang", "Hue"),
}
"""The capital of each country first, then other cities of it, which a small model does not tell apart well: after a
template its ``acc_norm`` is 0.34, and 0.75 with capitals of other countries as wrong choices."""
CHOICES = 4
GENERATED, CHOSEN = "capitals_written", "capitals_chosen"
_GENERATION = {"until": ["\n"], "do_sample": False}


def rows() -> list[dict[str, Any]]:
    """The questions; the place of the right choice moves about."""
    made = []
    for number, (country, (capital, *others)) in enumerate(CITIES.items()):
        gold = number * 7 % CHOICES
        choices = [*others[:gold], capital, *others[gold:]]
        made.append({"country": country, "choices": choices, "gold": gold, "capital": capital})
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
        "doc_to_text": "Question: What is the capital of {{country}}?\nAnswer:",
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
