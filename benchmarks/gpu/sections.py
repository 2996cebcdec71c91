"""The measurements. Each runs in a separate process, which frees the device's memory at its end."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.gpu.activity import busy_share
from benchmarks.gpu.loops import Clocked, ClockedText, bare, open_model, ours, pictures_of
from benchmarks.gpu.shapes import SHAPES, build
from benchmarks.gpu.vllm import against_vllm
from benchmarks.gpu.workloads import SCALES, Scale, questions, write
from benchmarks.workload import run_child
from lmms_eval.models.hf.model import peak_memory

BATCH = 8
MOST_ROWS = 256
SMALL_SHARE = 1.5
"""Memory, as a multiple of a batch of eight: enough for that batch, and not for one of 32."""
AUTO_TIMES: Mapping[str, int] = MappingProxyType({"text": 8, "pictures": 2, "video": 2})
"""How many times the questions of a workload are multiplied, so that the largest batches are several."""
VLLM_TIMES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a suite, its size and the device."""

    folder: Path
    size: str
    device: str

    @property
    def scale(self) -> Scale:
        return SCALES[self.size]

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks"

    def model(self, name: str) -> Path:
        """Return the folder of a model, building it if it does not exist."""
        folder = self.folder / name
        if not (folder / "built").exists():
            width, height = self.scale.picture
            build(folder, SHAPES[self.size][name], self.device, width * height)
            (folder / "built").touch()
        return folder

    def open(self, name: str, **arguments: Any) -> Clocked | ClockedText:
        options = {"device": self.device, "max_num_frames": self.scale.frames, **arguments}
        if name.startswith("text"):
            del options["max_num_frames"]
        return open_model(self.model(name), name.startswith("text"), **options)

    def task(self, workload: str, times: int = 1) -> str:
        """Return the name of a task, writing it if it does not exist; ``times``: multiplies the number of questions."""
        name = workload if times == 1 else f"{workload}_x{times}"
        if not (self.tasks / f"{name}.yaml").exists():
            write(self.tasks, name, workload, replace(self.scale, samples=times * self.scale.samples))
        return name


def throughput(place: Place, name: str, workloads: Sequence[str]) -> dict[str, Any]:
    """Compare tokens per second through the engine with the bare loop, with the same model."""
    model = place.open(name, batch_size=BATCH)
    report: dict[str, Any] = {}
    for workload in map(place.task, workloads):
        asked = questions(place.tasks, workload)
        bare(model.loaded, asked[:BATCH], BATCH, place.scale)  # the first pass of a shape is slower
        engine = ours(model, place.tasks, workload).passed
        alone = bare(model.loaded, asked, BATCH, place.scale)
        report[workload] = {
            "ours": engine.as_json(),
            "bare": alone.as_json(),
            "ratio_wall": alone.wall_s / engine.wall_s,
            "ratio_cpu": alone.cpu_s / engine.cpu_s,
            "device_busy": busy_share(lambda: ours(model, place.tasks, workload, limit=2 * BATCH)),  # noqa: B023
        }
    return {**report, "peak_memory_bytes": peak_memory(model.loaded.device)}


def auto_batch(place: Place) -> dict[str, Any]:
    """Measure what ``batch_size=auto`` reaches for each workload, and compare its rows with the most that fit."""
    model = place.open("vlm-3b", batch_size="auto")
    report: dict[str, Any] = {}
    for workload, times in AUTO_TIMES.items():
        engine = ours(model, place.tasks, place.task(workload, times))
        report[workload] = {"ours": engine.passed.as_json(), "rows": engine.results["model"]["rows_of_a_batch"]}
    if model.loaded.device.type == "cuda":
        asked = questions(place.tasks, place.task("pictures", AUTO_TIMES["pictures"]))
        report["pictures"]["rows_that_fit"] = _largest(lambda rows: _fits(model, asked[:1] * rows, place.scale))
    return report


def vllm(place: Place) -> dict[str, Any]:
    """Compare ``--model vllm`` with a bare ``LLM.generate`` over the same questions, in turn."""
    if importlib.util.find_spec("vllm") is None:
        return {"not_measured": "vllm is not installed"}
    return against_vllm(place.model("text-7b"), place.tasks, place.task("text", VLLM_TIMES), place.scale)


def out_of_memory(place: Place) -> dict[str, Any]:
    """Run batches of 32 with memory for only eight: all are answered, in halves."""
    import torch

    workload = place.task("pictures")
    model = place.open("vlm-3b", batch_size=4 * BATCH)
    if model.loaded.device.type != "cuda":
        return {"not_measured": "the memory of a process on the CPU has no limit to run against"}
    bare(model.loaded, questions(place.tasks, workload)[:BATCH], BATCH, place.scale)
    needed = torch.cuda.max_memory_allocated()
    total = torch.cuda.get_device_properties(model.loaded.device).total_memory
    weights = sum(parameter.nbytes for parameter in model.loaded.model.parameters())
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, (weights + SMALL_SHARE * (needed - weights)) / total))
    engine = ours(model, place.tasks, workload)
    failed = sum(outcome.get("failed", 0) for outcome in engine.results.get("outcomes", {}).values())
    return {
        "batches_that_did_not_fit": engine.results["model"]["out_of_memory_batches"],
        "rows": sorted(set(engine.passed.clock.rows)),
        "failed": failed,
    }


def batch_dependence(place: Place) -> dict[str, Any]:
    """Count answers that change if their questions are asked alone."""
    model = place.open("vlm-3b", batch_size=BATCH)
    results = ours(model, place.tasks, place.task("picture"), check_batch=2 * BATCH).results
    found = {name: value for name, value in results["batch_check"].items() if name != "rows"}
    return {"dtype": model.loaded.dtype, **found}


def start(place: Place) -> dict[str, Any]:
    """Measure the time from the start of the command to a first answer of one token, with weights in the page cache."""
    place.task("text")
    place.model("text-7b")
    out = place.folder / "start"
    finished = run_child(_command(place, "hf_text", "text-7b", "text", out, ["--limit", "1", "--gen_kwargs", ONE]))
    return {"exit_code": finished.exit_code, "command_s": finished.wall_s, **_timing(out)}


def two_processes(place: Place) -> dict[str, Any]:
    """Compare two processes of a launch on one device with one process."""
    workload, report = place.task("picture"), {}
    place.model("vlm-3b")
    launch = [
        "-m",
        "accelerate.commands.launch",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
    ]
    launch += ["--dynamo_backend", "no", *(["--cpu"] if place.device == "cpu" else ["--multi_gpu"])]
    for name, before in (("one", []), ("two", launch)):
        out = place.folder / name
        finished = run_child([*before, *_command(place, "hf", "vlm-3b", workload, out, [])])
        report[name] = {"exit_code": finished.exit_code, **_timing(out)}
        if finished.exit_code:
            report[name]["output"] = finished.output[-2000:]
    return report


def preprocessing(place: Place) -> dict[str, Any]:
    """Measure pictures per second of the processor on the CPU and, if its operators run there, on the device."""
    model = place.open("vlm-3b", image_cache_mb=0)
    processor = model.loaded.processor.image_processor
    images = pictures_of(questions(place.tasks, place.task("pictures"))[:2])
    report: dict[str, Any] = {"processor": type(processor).__name__}
    for device in dict.fromkeys(("cpu", place.device)):
        try:
            report[device] = _rate(lambda: processor(images, return_tensors="pt", device=device), len(images))  # noqa: B023
        except (TypeError, ValueError, RuntimeError) as error:
            report[device] = f"not possible: {error}"
    return report


ONE = "max_new_tokens=1,min_new_tokens=1"
SECTIONS: Mapping[str, Callable[[Place], dict[str, Any]]] = MappingProxyType(
    {
        "vlm-3b": lambda place: throughput(place, "vlm-3b", ("text", "picture", "pictures", "video")),
        "vlm-7b": lambda place: throughput(place, "vlm-7b", ("picture",)),
        "text-7b": lambda place: throughput(place, "text-7b", ("text",)),
        "auto_batch": auto_batch,
        "vllm": vllm,
        "out_of_memory": out_of_memory,
        "batch_dependence": batch_dependence,
        "start": start,
        "two_processes": two_processes,
        "preprocessing": preprocessing,
    }
)
"""The sections, in the order of measurement."""


def _command(place: Place, model: str, name: str, task: str, out: Path, more: Sequence[str]) -> list[str]:
    arguments = f"pretrained={place.model(name)},device={place.device.split(':')[0]},batch_size={BATCH}"
    return [
        "-m", "lmms_eval", "--model", model, "--model_args", arguments, "--tasks", task,
        "--include_path", str(place.tasks), "--output_path", str(out), *more,
    ]  # fmt: skip


def _timing(out: Path) -> dict[str, Any]:
    files = sorted(out.rglob("*_results.json"))
    if not files:
        return {}
    timing: dict[str, Any] = json.loads(files[-1].read_text(encoding="utf-8"))["timing"]
    return {"asking_s": timing["first_request_to_last_response"], "timing": timing}


def _largest(fits: Callable[[int], bool]) -> int:
    """Return the most rows that fit, by doubling and then by bisection."""
    low = 1
    while low < MOST_ROWS and fits(2 * low):
        low *= 2
    high = 2 * low
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits(model: Clocked | ClockedText, asked: Sequence[Any], scale: Scale) -> bool:
    import torch

    try:
        bare(model.loaded, asked, len(asked), scale)
    except torch.cuda.OutOfMemoryError:
        return False
    finally:
        torch.cuda.empty_cache()
    return True


def _rate(work: Callable[[], Any], pictures: int) -> float:
    work()
    started = time.perf_counter()
    for _ in range(3):
        work()
    return 3 * pictures / (time.perf_counter() - started)


if __name__ == "__main__":
    section, size, device, folder, result = sys.argv[1:]
    Path(result).write_text(json.dumps(SECTIONS[section](Place(Path(folder), size, device))), encoding="utf-8")
