"""Train, and have an evaluation server score the checkpoints: ``python examples/training_loop.py --out FOLDER``.

The model that the package ships learns an unknown code: each colour of a disc has its own word. Every few steps a
checkpoint is written and submitted, and the training continues at once. At the end the scores of all checkpoints are
fetched and drawn over the steps: ``curve.csv``, and ``curve.png`` if matplotlib is installed.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from PIL import Image, ImageDraw
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer

import lmms_eval
from lmms_eval.entrypoints import EvalClient

START = Path(lmms_eval.__file__).parent / "models" / "embedded"
TASK, METRIC = "colour_code", "exact_match"
CODE = {"red": "sun", "green": "tree", "blue": "boat", "yellow": "star", "black": "moon", "white": "cloud"}
QUESTION = "Which word stands for this disc?"
YAML = f"""task: {TASK}
dataset_path: json
dataset_kwargs: {{data_files: {{test: documents.jsonl}}}}
test_split: test
doc_to_visual: image
doc_to_text: question
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 8}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One checkpoint: the time that its evaluation cost the training, and its score."""

    step: int
    job_id: str
    save_s: float
    submit_s: float
    score: float | None = None
    """The score; ``None`` if the evaluation has failed."""


def draw_disc(colour: str, random: Random) -> Image.Image:
    image, radius = Image.new("RGB", (48, 48), (128, 128, 128)), random.randint(10, 20)
    left, top = (random.randint(0, 48 - 2 * radius) for _ in range(2))
    ImageDraw.Draw(image).ellipse((left, top, left + 2 * radius, top + 2 * radius), fill=colour)
    return image


def write_task(folder: Path, documents: int) -> None:
    """Write the task of held-out drawings that the server evaluates."""
    folder.mkdir(parents=True, exist_ok=True)
    random, rows = Random("held out"), []
    for number in range(documents):
        colour, picture = list(CODE)[number % len(CODE)], folder / f"{number}.png"
        draw_disc(colour, random).save(picture)
        rows.append({"image": str(picture.resolve()), "question": QUESTION, "answer": CODE[colour]})
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"{TASK}.yaml").write_text(YAML)


class Trainer:
    """The model, its optimizer and its batches of drawings."""

    def __init__(self, batch: int) -> None:
        torch.manual_seed(0)
        self._random, self._batch = Random(0), batch
        self._tokenizer = AutoTokenizer.from_pretrained(START)
        self._eye = AutoImageProcessor.from_pretrained(START, backend="pil")
        self._model = AutoModelForImageTextToText.from_pretrained(START, dtype=torch.float32)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=2e-3)

    def step(self) -> float:
        """Learn from one batch and return the loss."""
        loss = self._model(**self._inputs()).loss
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(loss.detach())

    def save(self, folder: Path) -> None:
        """Write a checkpoint that any evaluation can load. It has a temporary name until it is complete."""
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.copytree(START, unfinished, ignore=shutil.ignore_patterns("*.safetensors"))
        self._model.save_pretrained(unfinished)
        unfinished.rename(folder)

    def _inputs(self) -> dict[str, Any]:
        colours = self._random.choices(list(CODE), k=self._batch)
        seen = self._eye(images=[draw_disc(colour, self._random) for colour in colours], return_tensors="pt")
        places = "<|image_pad|>" * (int(seen["image_grid_thw"][0].prod()) // self._eye.merge_size**2)
        prompt = f"<|user|><|vision_start|>{places}<|vision_end|>{QUESTION}<|end|><|assistant|>"
        texts = [f"{prompt}{CODE[colour]}<|end|>" for colour in colours]
        read = self._tokenizer(texts, return_tensors="pt", padding=True, padding_side="right")
        ids = read["input_ids"]
        labels = ids.masked_fill(read["attention_mask"] == 0, -100)
        labels[:, : len(self._tokenizer(prompt)["input_ids"])] = -100
        is_picture = (ids == self._tokenizer.convert_tokens_to_ids("<|image_pad|>")).long()
        return {**read, **seen, "labels": labels, "mm_token_type_ids": is_picture}


@contextmanager
def server(out: Path) -> Iterator[str]:
    """Start an evaluation server that may read the folder and knows its task, and yield its address."""
    command = [sys.executable, "-m", "lmms_eval", "serve", "--port", "0", "--folder", str(out / "server")]
    command += ["--allow_path", str(out), "--include_path", str(out / "task")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(
            (word.rstrip(",") for line in process.stdout for word in line.split() if word.startswith("http")), None
        )
        if address is None:
            raise SystemExit("the evaluation server did not start: see above")
        yield address
    finally:
        process.terminate()
        process.wait()


def train(client: EvalClient, out: Path, arguments: argparse.Namespace) -> tuple[list[Point], list[float]]:
    """Train and submit a checkpoint every few steps. Returns the points without scores and each step's seconds."""
    trainer, points, seconds = Trainer(arguments.batch), [], []
    for step in range(arguments.steps + 1):
        if step % arguments.every == 0:
            folder, begin = out / "checkpoints" / f"step_{step:04d}", time.perf_counter()
            trainer.save(folder)
            saved = time.perf_counter()
            job = client.evaluate(
                model="hf",
                tasks=[TASK],
                model_args={"pretrained": str(folder), "dtype": "float32"},
                batch_size=8,
                device="cpu",
            )
            points.append(Point(step, job["job_id"], saved - begin, time.perf_counter() - saved))
        if step < arguments.steps:
            begin = time.perf_counter()
            loss = trainer.step()
            seconds.append(time.perf_counter() - begin)
            if (step + 1) % arguments.every == 0:
                print(
                    f"step {step + 1}: loss {loss:.3f}, {statistics.median(seconds[-arguments.every :]):.3f} s a step"
                )
    return points, seconds


def fetch(client: EvalClient, point: Point) -> Point:
    """Wait for a checkpoint's evaluation and return its score."""
    try:
        client.wait_for_job(point.job_id, poll_interval=0.5, verbose=False)
    except RuntimeError as error:
        print(f"step {point.step}: {error}", file=sys.stderr)
        return point
    score = client.results(point.job_id).score(TASK, METRIC)
    return Point(point.step, point.job_id, point.save_s, point.submit_s, score)


def draw(points: list[Point], out: Path) -> None:
    with (out / "curve.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["step", "score", "save_s", "submit_s"])
        table.writerows([one.step, one.score, f"{one.save_s:.4f}", f"{one.submit_s:.4f}"] for one in points)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed: no curve.png, only curve.csv")
        return
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel=f"{TASK}: {METRIC}", ylim=(-0.03, 1.03))
    known = [(one.step, one.score) for one in points if one.score is not None]
    axes.plot([step for step, _ in known], [score for _, score in known], marker="o")
    figure.savefig(out / "curve.png", dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for task, checkpoints and curve")
    parser.add_argument(
        "--server",
        help="one that was started with --allow_path OUT --include_path OUT/task",
    )
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--documents", type=int, default=36, help="held-out drawings that each checkpoint is asked")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    (out / "checkpoints").mkdir(parents=True)
    write_task(out / "task", arguments.documents)
    torch.set_num_threads(1)  # the evaluations need a core too
    with (
        server(out) if arguments.server is None else nullcontext(arguments.server) as address,
        EvalClient(address) as client,
    ):
        points, seconds = train(client, out, arguments)
        print(f"trained in {sum(seconds):.1f} s; waiting for the evaluations")
        points = [fetch(client, point) for point in points]
    draw(points, out)
    for point in points:
        print(f"step {point.step:4d}  score {'failed' if point.score is None else f'{point.score:.3f}'}")
    saving, submitting = (statistics.median(getattr(one, name) for one in points) for name in ("save_s", "submit_s"))
    print(f"a checkpoint costs the training {saving * 1000:.0f} ms to write and {submitting * 1000:.0f} ms to submit")
    return 0 if all(one.score is not None for one in points) else 1


if __name__ == "__main__":
    raise SystemExit(main())
