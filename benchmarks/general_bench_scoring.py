"""Measure the scoring of 34,500 synthetic predictions of General-Bench's 115 language tasks: ``register`` as a process.

    python -m benchmarks.general_bench_scoring      # one JSON object; exit code 1 if the bar is missed

300 items a task, texts of 12 words, half of the predictions right. ``cold``: nothing scored yet; ``warm``: the same
command again, with every outcome in its journal (as after a kill). ``bound``: in one process, reading the
same files and computing the same states and values, without start-up, intervals (the values of 100 resamplings of each
task), journal and workbook. Bar: cold within 2.5 of the bound. ``load_average``: of the last minute.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, run_child
from lmms_eval.tasks.general_bench.data.annotations import read_annotation
from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.tasks.general_bench.data.reading import read_items
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts, sheets
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.registry import measure_for
from lmms_eval.tasks.general_bench.submission import read_predictions

SCRIPT = "lmms_eval/tasks/general_bench/register.py"
ITEMS = 300
WORDS = 12
BAR_RATIO = 2.5
LETTERS = "abcdefghilmnoprstuw"
Maker = Callable[["Writer"], tuple[dict[str, Any], str]]


class Writer:
    """Writes the tasks. A fixed seed makes them reproducible."""

    def __init__(self) -> None:
        self.source = random.Random(29)

    def text(self, words: int = WORDS) -> str:
        return " ".join("".join(self.source.choices(LETTERS, k=self.source.randint(2, 8))) for _ in range(words))

    def either(self, right: str, wrong: str) -> str:
        return right if self.source.random() < 0.5 else wrong

    def write(self, root: Path) -> None:
        for facts in sheets()[LANGUAGE]:
            kind, make = MAKERS.get(facts.metric, MAKERS["bleu1"])
            made = [make(self) for _ in range(ITEMS)]
            data = [{"id": number, **item} for number, (item, _) in enumerate(made)]
            predictions = [{"id": number, "prediction": answer} for number, (_, answer) in enumerate(made)]
            folder = root / "General-Bench-Openset" / "nlp" / facts.id
            folder.mkdir(parents=True)
            dump(folder / "annotation.json", {"task": facts.name, "type": kind, "data": data})
            dump(folder / "prediction.json", predictions)


def choice(writer: Writer) -> tuple[dict[str, Any], str]:
    item = {"input": {"question": writer.text(), "options": ["one", "two"]}, "output": {"answer": "B"}}
    return item, writer.either("B", "A")


def question(writer: Writer) -> tuple[dict[str, Any], str]:
    answer = writer.text()
    return {"input": {"question": writer.text()}, "output": {"answer": answer}}, writer.either(answer, writer.text())


def summary(writer: Writer) -> tuple[dict[str, Any], str]:
    answer = writer.text()
    return {"document": writer.text(), "output": {"summary": answer}}, writer.either(answer, writer.text())


def entities(writer: Writer) -> tuple[dict[str, Any], str]:
    names = writer.text(3).split()
    item = {"input": {"prompt": "<<<raw_text>>>", "raw_text": writer.text()}, "output": {"spans": ", ".join(names)}}
    return item, writer.either("<p>".join(names), names[0])


def series(writer: Writer) -> tuple[dict[str, Any], str]:
    return {"input": {"data": [1, 2, 3]}, "output": {"target": 4}}, writer.either("4", "3.5")


def code(writer: Writer) -> tuple[dict[str, Any], str]:
    right = f"def {writer.text(1)}(a, b):\n    return a + b\n"
    item = {"language": "python", "goal": writer.text(), "context": [], "output": {"response": {"content": right}}}
    return item, writer.either(right, "def f(x):\n    return x\n")


MAKERS: Mapping[str, tuple[str, Maker]] = {
    "accuracy": ("MultipleChoiceQA", choice),
    "bleu1": ("OpenQA", question),
    "f1": ("OpenQA", question),
    "rouge1": ("Summarization", summary),
    "micro_f1": ("ner", entities),
    "rmse": ("Time Series", series),
    "codebleu": ("Code Generation", code),
}


def dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def bare(root: Path) -> float:
    """Return the seconds of only reading and computing."""
    begun = time.perf_counter()
    for facts in sheets()[LANGUAGE]:
        score_bare(facts, root / "General-Bench-Openset" / "nlp" / facts.id)
    return time.perf_counter() - begun


def score_bare(facts: TaskFacts, folder: Path) -> None:
    items = read_items(facts, read_annotation(folder / "annotation.json"), folder, load_field_maps(None)(facts)).items
    given, _ = read_predictions(folder / "prediction.json")
    measure, context = measure_for(facts, items[0].form), Context()
    measure.value([measure.state(given[id_key(item.id)], item, context) for item in items])


def described(run: Finished) -> dict[str, float]:
    return {"wall_s": run.wall_s, "cpu_s": run.cpu_s, "peak_mb": run.peak_mb}


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        Writer().write(root)
        words = [SCRIPT, "-d", str(root), "-o", str(root / "outcome"), "-m", "synthetic"]
        cold, warm = run_child(words), run_child(words)
        for run in (cold, warm):
            if run.exit_code != 0:
                raise SystemExit(run.output)
        bound = bare(root)
    ratio = cold.wall_s / bound
    result = {
        "items": ITEMS * len(sheets()[LANGUAGE]),
        "cold": described(cold),
        "warm": described(warm),
        "bound_s": bound,
        "ratio_to_bound": ratio,
        "items_per_s": ITEMS * len(sheets()[LANGUAGE]) / cold.wall_s,
        "bar_ratio": BAR_RATIO,
        "is_within_bar": ratio <= BAR_RATIO,
        "load_average": os.getloadavg()[0],
    }
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0 if result["is_within_bar"] else 1


if __name__ == "__main__":
    sys.exit(main())
