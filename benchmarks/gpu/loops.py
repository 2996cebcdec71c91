"""Ask a local model the same questions in two ways: through lmms_eval, and in the best bare loop that we can write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu.workloads import Question, Scale
from lmms_eval.config import build_config
from lmms_eval.evaluator import run
from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.hf.encode import to_device
from lmms_eval.models.hf.model import HuggingFace


@dataclass(slots=True)
class Clock:
    """Measures the time in calls of ``generate``, which end when the device has finished."""

    generating_s: float = 0.0
    tokens: int = 0
    rows: list[int] = field(default_factory=list)
    """Rows of each call."""

    def call(self, generate: Any, arguments: dict[str, Any]) -> Any:
        started = time.perf_counter()
        output = generate(**arguments)
        self.generating_s += time.perf_counter() - started
        self.tokens += output.shape[0] * (output.shape[1] - arguments["input_ids"].shape[1])
        self.rows.append(int(output.shape[0]))
        return output


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over all questions."""

    wall_s: float
    cpu_s: float
    clock: Clock

    def as_json(self) -> dict[str, Any]:
        return {
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "tokens_per_s": self.clock.tokens / self.wall_s,
            "answers": sum(self.clock.rows),
            "calls": len(self.clock.rows),
            "largest_batch": max(self.clock.rows),
            "waits_for_host": max(0.0, 1.0 - self.clock.generating_s / self.wall_s),
        }


class Clocked(HuggingFace):
    """The back end ``hf`` with a clock."""

    clock: Clock

    def generate(self, **arguments: Any) -> Any:
        return self.clock.call(super().generate, arguments)


class ClockedText(Clocked):
    """The back end ``hf_text`` with a clock."""

    profile = FAMILIES["hf_text"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of lmms_eval over a task."""

    passed: Pass
    results: dict[str, Any]


def open_model(folder: Path, is_text: bool, **arguments: Any) -> Clocked | ClockedText:
    """Load a folder through ``hf`` or ``hf_text``."""
    return (ClockedText if is_text else Clocked)(pretrained=str(folder), **arguments)


def ours(model: Clocked | ClockedText, tasks: Path, workload: str, **options: Any) -> Run:
    """Ask a task's questions through the engine; ``options`` are those of ``lmms-eval eval``."""
    values = {
        "model": "hf", "tasks": workload, "include_path": str(tasks), "output_path": "", "verbosity": "ERROR",
        **options,
    }  # fmt: skip
    model.clock = Clock()
    cpu = time.process_time()
    report = run(build_config(values), model)
    asked = report.results["timing"]["first_request_to_last_response"]
    return Run(Pass(asked, time.process_time() - cpu, model.clock), report.results)


def bare(loaded: Any, asked: Sequence[Question], rows: int, scale: Scale) -> Pass:
    """Ask the same with only transformers: sorted by length, batches of ``rows``, the next batch prepared in a thread.

    ``loaded``: model, processor and tokenizer, which must not be used by others in the meantime.
    """
    clock = Clock()
    order = sorted(asked, key=lambda question: len(question.text), reverse=True)
    batches = [order[start : start + rows] for start in range(0, len(order), rows)]
    wall, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(_inputs, loaded, batches[0], scale.frames)
        for number in range(len(batches)):
            inputs = following.result()
            if number + 1 < len(batches):
                following = thread.submit(_inputs, loaded, batches[number + 1], scale.frames)
            _generate(loaded, inputs, scale.tokens, clock)
    return Pass(time.perf_counter() - wall, time.process_time() - cpu, clock)


def _generate(loaded: Any, inputs: Any, tokens: int, clock: Clock) -> list[str]:
    import torch

    moved = to_device(inputs, loaded)
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    with torch.inference_mode():
        output = clock.call(loaded.model.generate, {**moved, **settings})
    texts: list[str] = loaded.tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :])
    return texts


def _inputs(loaded: Any, batch: Sequence[Question], frames: int) -> Any:
    messages, pictures = [], []
    for question in batch:
        images = [image for path in question.media for image in _images(path, frames)]
        content = [{"type": "image"} for _ in images] + [{"type": "text", "text": question.text}]
        messages.append([{"role": "user", "content": content if images else question.text}])
        pictures.append(images)
    texts = [
        loaded.tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=True) for each in messages
    ]
    media = {"images": pictures} if any(pictures) else {}
    return loaded.processor(
        text=texts, **media, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False
    )


def pictures_of(asked: Sequence[Question]) -> list[Any]:
    """Decode the pictures of some questions."""
    return [image for question in asked for path in question.media for image in _images(path, 2)]


def _images(path: Path, frames: int) -> list[Any]:
    from PIL import Image

    if path.suffix != ".mp4":
        return [Image.open(path).convert("RGB")]
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        wanted = set(_spread(stream.frames, frames))
        return [frame.to_image() for number, frame in enumerate(container.decode(stream)) if number in wanted]


def _spread(total: int, count: int) -> list[int]:
    return [round(position * (total - 1) / (count - 1)) for position in range(count)]
