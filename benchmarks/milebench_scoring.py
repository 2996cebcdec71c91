"""Measure the stand-alone evaluator on 6,440 synthetic MileBench answers, including start-up and files.

    python -m benchmarks.milebench_scoring      # one JSON object on standard output; exit code 1 if the bar is missed

All 29 data sets with their published numbers of samples, once in one process and once in one process per data set.
Free-text answers and references have 25 and 300 words. Bar: 2 s in one process for 25 words. The
reference takes 32 s (25 words) and 39 s (300 words) in 29 processes, on two cores. ``load_average``: of the last
minute; if other programs use the cores, the processor time (``cpu_s``) is more meaningful than the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, run_child
from lmms_eval.tasks.milebench.facts import Dataset, datasets

SCRIPT = "lmms_eval/tasks/milebench/evaluate.py"
REFERENCE_S: Mapping[int, float] = {25: 32.0, 300: 39.0}
"""Seconds of the reference's 29 processes, by number of words of a free text."""
BAR_S = 2.0
BAR_WORDS = 25
SAMPLES = 6440
MODEL = "synthetic"
CHOICES, RETRIEVAL_CHOICES = 4, 30
IMAGE_COUNTS = (2, 3, 4, 5, 8, 12, 20, 31, 32, 64, 109)
LETTERS = "abcdefghilmnoprstuw"
FORMS = (
    "{letter}",
    "{letter}. {text}",
    "{text}",
    "The answer is {letter}.",
    "I would say ({letter}), {text}, because",
    "",
)
"""Forms of an answer to a choice question."""


class Writer:
    """Writes data sets and predictions. A fixed seed makes them reproducible."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.source = random.Random(29)

    def write(self, root: Path) -> int:
        """Write data sets below ``ROOT/data``, predictions below ``ROOT/outputs/MODEL``, and return their number."""
        return sum(self.write_dataset(root, facts) for facts in datasets().values())

    def write_dataset(self, root: Path, facts: Dataset) -> int:
        data, predictions = [], []
        for number in range(facts.samples):
            sample, answer = self.sample(facts, number)
            data.append(sample)
            predictions.append(
                {
                    "sample_id": number,
                    "image": sample["task_instance"]["images_path"],
                    "question": sample["task_instance"]["context"],
                    "gt_response": sample["response"],
                    "gen_model_id": MODEL,
                    "pred_response": answer,
                    "gen_kwargs": {"max_new_tokens": 512},
                }
            )
        is_open = facts.metric == "rouge_l"
        meta = {"question_type": "open-ended" if is_open else "multi-choice", "task_instruction": ["Answer."]}
        dump(root / "data" / facts.name / f"{facts.name}.json", {"meta_data": meta, "data": data})
        dump(root / "outputs" / MODEL / facts.name / "pred.json", predictions)
        return len(predictions)

    def sample(self, facts: Dataset, number: int) -> tuple[dict[str, Any], str]:
        """Return an entry of the annotation and an answer to it. About half of the answers are right."""
        n_images = self.source.choice(IMAGE_COUNTS)
        instance: dict[str, Any] = {
            "context": self.text(40),
            "images_path": [f"{facts.name}/{number}_{place}.jpg" for place in range(n_images)],
        }
        if facts.metric == "rouge_l":
            response = self.text(self.words)
            answer = self.text(self.words) if self.source.random() < 0.5 else response[: len(response) // 2]
        elif facts.category == "needle" or facts.name == "MMCoQA":
            response = self.text(1)
            answer = f"{self.text(self.words)} {response if self.source.random() < 0.5 else ''}!"
        else:
            instance["choice_list"] = self.choices(facts)
            response = self.source.choice(instance["choice_list"])
            answer = self.choice_answer(instance["choice_list"])
        sample = {
            "sample_id": number,
            "task_instruction_id": 0,
            "task_instance": instance,
            "response": response,
            "image_quantity_level": "Few",
        }
        return sample, answer

    def choices(self, facts: Dataset) -> list[str]:
        count = RETRIEVAL_CHOICES if facts.category == "retrieval" else CHOICES
        return [f"image {place}" for place in range(1, count + 1)] if count > CHOICES else self.texts(count)

    def choice_answer(self, choices: Sequence[str]) -> str:
        place = self.source.randrange(len(choices))
        form = self.source.choice(FORMS)
        answer = form.format(letter=chr(65 + place), text=choices[place])
        return f"{answer} {self.text(self.words)}" if answer.endswith("because") else answer

    def texts(self, count: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            found[self.text(self.source.randint(1, 6))] = None
        return list(found)

    def text(self, words: int) -> str:
        """Return words of three to eight letters, some with a comma or a full stop."""
        return " ".join(
            "".join(self.source.choices(LETTERS, k=self.source.randint(3, 8)))
            + self.source.choice(("", "", "", ",", "."))
            for _ in range(words)
        )


def dump(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=4), encoding="utf-8")


def evaluate(root: Path, *further: str) -> Finished:
    finished = run_child(
        [SCRIPT, "--data-dir", str(root / "data"), "--result-dir", str(root / "outputs" / MODEL), *further]
    )
    if finished.exit_code != 0:
        raise SystemExit(finished.output)
    return finished


def measure(words: int, folder: Path) -> dict[str, Any]:
    """Measure one process for all data sets (the best of three), and one for each."""
    written = Writer(words).write(folder)
    together = min((evaluate(folder) for _ in range(3)), key=lambda finished: finished.wall_s)
    scored = sum(
        sum(count for _, count in json.loads(path.read_bytes())["image_quantity_level-Result"].values())
        for path in (folder / "outputs" / MODEL).glob("*/eval.json")
    )
    if not scored == written == SAMPLES:
        raise SystemExit(f"{scored} answers were scored, {written} written; there must be {SAMPLES}")
    apart = [evaluate(folder, "--dataset", name) for name in datasets()]
    wall_apart = sum(finished.wall_s for finished in apart)
    return {
        "answers": scored,
        "one_process": {"wall_s": together.wall_s, "cpu_s": together.cpu_s, "peak_mb": together.peak_mb},
        "processes_29": {
            "wall_s": wall_apart,
            "cpu_s": sum(finished.cpu_s for finished in apart),
            "peak_mb": max(finished.peak_mb for finished in apart),
        },
        "reference_29_processes_s": REFERENCE_S[words],
        "ratio_one_process": together.wall_s / REFERENCE_S[words],
        "ratio_29_processes": wall_apart / REFERENCE_S[words],
    }


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    start = min(run_child([SCRIPT, "--help"]).wall_s for _ in range(3))
    report: dict[str, Any] = {
        "benchmark": "milebench_scoring",
        "load_average": os.getloadavg()[0],
        "start_s": start,
        "bar_s": BAR_S,
    }
    for words in REFERENCE_S:
        with tempfile.TemporaryDirectory() as folder:
            report[f"words_{words}"] = measure(words, Path(folder))
    report["is_within_bar"] = report[f"words_{BAR_WORDS}"]["one_process"]["wall_s"] <= BAR_S
    print(json.dumps(report, indent=2))
    return 0 if report["is_within_bar"] else 1


if __name__ == "__main__":
    sys.exit(main())
