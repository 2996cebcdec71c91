"""A small data set of General-Bench with predictions, ways to spoil it, and what registering it gives."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.tasks.general_bench.facts import tasks_by_id
from tests.faults.bad_input import here
from tests.faults.command import Ended
from tests.tasks.general_bench.data.kit import write_task
from tests.tasks.general_bench.demo_kit import SET, copied, edit

DEFECTS, CHOICES = "nlp/Defects", "nlp/Commonsense-Reasoning"
RAIN, FLOOD = "image/generation/Deraining", "image/comprehension/Flood-Segmentation"
SPEECH = "audio/generation/TextToSpeech"
TASKS = {
    DEFECTS: "nlp_code_defect_detection",
    CHOICES: "nlp_commonsense_reasoning",
    RAIN: "image_generation_image_deraining",
    FLOOD: "image_comprehension_flood_area_segmentation",
    SPEECH: "audio_generation_texttospeech",
}
PREDICTIONS = {
    DEFECTS: {"q0": "0", "q1": "1", "q2": "1"},
    CHOICES: {"q0": "A", "q1": "B", "q2": "C"},
    FLOOD: {0: "images/mask0.png", 1: "images/mask0.png", 2: [[44, 30, 57, 30, 57, 41, 44, 41]]},
}
"""Of the tasks whose folder has none."""
Spoil = Callable[[Path], None]


def data_set(target: Path) -> Path:
    """Five tasks with predictions, some of which are wrong."""
    root = copied(target, *TASKS)
    for folder, given in PREDICTIONS.items():
        records = [{"id": key, "prediction": value} for key, value in given.items()]
        (root / SET / folder / "prediction.json").write_text(json.dumps(records))
    return root


@dataclass(frozen=True)
class Bad:
    """One bad input: how the data set is spoilt, what is said, and what becomes of whose score."""

    name: str
    spoil: Spoil
    says: tuple[str, ...]
    task: str = ""
    """Folder of the task that is affected; empty: none."""
    status: str = "failed"
    code: int = 2
    flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Registered:
    """What ``register`` left."""

    ended: Ended
    scores: Mapping[str, Mapping[str, Any]]
    """By task."""
    cells: Mapping[tuple[str, str], Any]
    """Of the workbook, by sheet and task."""


def register(root: Path, out: Path, **flags: str) -> Registered:
    """Score a data set in this process."""
    words = {"general-bench": "register", "-d": str(root), "-o": str(out), "-m": "Toy", **flags}
    ended = here(words)
    file = out / "Toy_scores.json"
    scores = {one["task"]: one for one in json.loads(file.read_text())} if file.exists() else {}
    return Registered(ended, scores, workbook_cells(out / "Toy_result.xlsx", "Toy"))


def workbook_cells(path: Path, model: str) -> dict[tuple[str, str], Any]:
    """The model's scores in a workbook, as openpyxl reads them."""
    import openpyxl

    found: dict[tuple[str, str], Any] = {}
    if not path.exists():
        return found
    for sheet in openpyxl.load_workbook(path).worksheets:
        header, *lines = sheet.iter_rows(values_only=True)
        name, score = header.index("Task Name"), header.index(model)
        found |= {(sheet.title, str(line[name])): line[score] for line in lines if line[score] is not None}
    return found


def cell_of(folder: str) -> tuple[str, str]:
    facts = tasks_by_id()[TASKS[folder]]
    return facts.sheet, facts.name


# --- ways to spoil


def cut(file: str, size: int = 60) -> Spoil:
    def spoil(root: Path) -> None:
        path = root / SET / file
        path.write_bytes(path.read_bytes()[:-size])

    return spoil


def gone(file: str) -> Spoil:
    return lambda root: (root / SET / file).unlink()


def junk(file: str) -> Spoil:
    return written(file, "no picture" * 20)


def written(file: str, content: str) -> Spoil:
    def spoil(root: Path) -> None:
        (root / SET / file).write_text(content)

    return spoil


def changed(file: str, change: Callable[[Any], Any]) -> Spoil:
    return lambda root: edit(root / SET / file, change)


def with_results(*results: dict[str, Any]) -> Spoil:
    """A result file of another name beside the predictions of one task, registered with ``-p``."""

    def spoil(root: Path) -> None:
        (root / "scores.json").write_text(json.dumps(list(results)))

    return spoil


def second_folder(root: Path) -> None:
    shutil.copytree(root / SET / DEFECTS, root / SET / "nlp" / "Defects-again")


def unknown_task(root: Path) -> None:
    folder = root / SET / "nlp" / "Odd"
    write_task(folder, "Basket Weaving", [{"id": 1}])
    (folder / "prediction.json").write_text('[{"id": 1, "prediction": "x"}]')


# --- many items


def many(root: Path, count: int) -> Path:
    """The data set with ``count`` items in each of two tasks."""
    data_set(root)
    for folder in (RAIN, CHOICES):
        for name in ("annotation.json", "prediction.json"):
            edit(root / SET / folder / name, lambda content: _repeated(content, count))
    return root


def _repeated(content: Any, count: int) -> Any:
    records = content["data"] if isinstance(content, dict) else content
    found = [{**records[number % len(records)], "id": number} for number in range(count)]
    return {**content, "data": found} if isinstance(content, dict) else found


def lines_of(place: Path) -> int:
    """Lines of a journal, or of all below a folder."""
    files = [place] if place.is_file() else place.rglob("*.jsonl")
    return sum(path.read_bytes().count(b"\n") for path in files)
