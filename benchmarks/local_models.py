"""Compare the speed of ``--model hf`` with the best bare loop: prompts sorted by length, with a prefetch thread.

    python -m benchmarks.local_models                        # one JSON object on standard output
    python -m benchmarks.local_models --workload one --runs 1

Workloads of 200 samples for a tiny model of random weights on the CPU, one thread of torch, batches of 8 rows:
``text``, ``one`` and ``eight`` pictures a sample, ``video``. Each child process loads the model, warms up on eight
documents, is measured on eight others and on 208 others; ours and the bare loop alternate. No document or picture
occurs twice, so caches of pictures help neither. CPU and wall time are those of the whole run
(documents, preparation, generation, scoring, journals, results) over the 208 documents less those of the run over
eight. Bar: bare over ours at least 0.97, medians of five. The answers of both are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import run_child

DOCUMENTS, FEW, ROWS, FRAMES = 208, 8, 8, 8
TASKS = {"warm": FEW, "few": FEW, "full": DOCUMENTS}
"""Documents by task."""
BAR = 0.97
WORDS = ("water", "picture", "left", "right", "number", "between", "question", "colour", "does", "which")
UTILS = """
from pathlib import Path


def visuals(doc):
    return [str(Path(__file__).parent / name) for name in doc["media"]]


def messages(doc):
    media = [{"type": "video", "url": path} for path in visuals(doc)]
    return [{"role": "user", "content": [*media, {"type": "text", "text": doc["question"]}]}]
"""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    pictures: int = 0
    is_video: bool = False
    max_new_tokens: int = 64


WORKLOADS = {
    made.name: made for made in (Workload("text"), Workload("one", 1), Workload("eight", 8), Workload("video", 1, True))
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Times of one run, and its answers by document."""

    cpu_s: float
    wall_s: float
    answers: Mapping[int, str]

    def less(self, base: Measured) -> Measured:
        return Measured(self.cpu_s - base.cpu_s, self.wall_s - base.wall_s, self.answers)


def write_tasks(folder: Path, load: Workload) -> None:
    """Write ``TASKS`` with documents of different lengths and media."""
    folder.mkdir(parents=True)
    source = random.Random(0)
    (folder / "utils.py").write_text(UTILS, encoding="utf-8")
    function = (
        "doc_to_messages: !function utils.messages" if load.is_video else "doc_to_visual: !function utils.visuals"
    )
    for task, count in TASKS.items():
        rows = []
        for number in range(count):
            ending = "mp4" if load.is_video else "jpg"
            names = [f"{task}_{number}_{place}.{ending}" for place in range(load.pictures)]
            for name in names:
                (write_video if load.is_video else write_picture)(folder / name, source)
            question = " ".join(source.choices(WORDS, k=source.randint(4, 40)))
            rows.append(json.dumps({"number": number, "question": question, "answer": "", "media": names}) + "\n")
        (folder / f"{task}.jsonl").write_text("".join(rows), encoding="utf-8")
        (folder / f"{task}.yaml").write_text(
            f"task: {task}\ndataset_path: json\ndataset_kwargs:\n  data_files: {{test: {task}.jsonl}}\n"
            f"test_split: test\noutput_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n{function}\n"
            f"generation_kwargs: {{max_new_tokens: {load.max_new_tokens}, until: []}}\n"
            "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n",
            encoding="utf-8",
        )


def write_picture(path: Path, source: random.Random) -> None:
    noise(source).resize((source.randint(240, 320), 240)).save(path, quality=80)


def noise(source: random.Random) -> Any:
    from PIL import Image

    return Image.frombytes("RGB", (20, 15), source.randbytes(20 * 15 * 3))


def write_video(path: Path, source: random.Random) -> None:
    """Write a video of two seconds, 160x120 at 12 frames per second."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=12)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for _ in range(24):
            container.mux(stream.encode(av.VideoFrame.from_image(noise(source).resize((160, 120)))))
        container.mux(stream.encode())


def measured(work: Callable[[], dict[int, str]]) -> Measured:
    cpu, wall = cpu_seconds(), time.monotonic()
    answers = work()
    return Measured(cpu_seconds() - cpu, time.monotonic() - wall, answers)


def cpu_seconds() -> float:
    """Return the processor time of this process and of its living descendants."""
    from lmms_eval.processes import descendants

    ticks = 0
    for pid in descendants(os.getpid()):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def ours(_load: Workload, model_folder: str, tasks: Path, out: Path, **arguments: Any) -> Measured:
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run
    from lmms_eval.models.hf.model import HuggingFace

    model = HuggingFace(pretrained=model_folder, batch_size=ROWS, device="cpu", max_num_frames=FRAMES, **arguments)

    def evaluate(task: str) -> dict[int, str]:
        values = {
            "model": "hf", "tasks": task, "include_path": str(tasks), "output_path": str(out / task),
            "verbosity": "ERROR", "log_samples": True,
        }  # fmt: skip
        report = run(build_config(values), model)
        if report.exit_code:
            raise SystemExit(f"the run ended with code {report.exit_code}: {report.results['outcomes']}")
        (file,) = (out / task).rglob("*_samples_*.jsonl")
        samples = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        return {row["doc_id"]: row["filtered_resps"] for row in samples}

    evaluate("warm")
    few = measured(lambda: evaluate("few"))
    found = measured(lambda: evaluate("full")).less(few)
    model.close()
    return found


def in_process(load: Workload, model_folder: str, tasks: Path, out: Path) -> Measured:
    """Run ours with the processor in a process of its own."""
    return ours(load, model_folder, tasks, out, preprocess_processes=True, preprocess_workers=1)


def bare(load: Workload, model_folder: str, tasks: Path, _out: Path) -> Measured:
    """Run the best hand-written loop for this model and these documents."""
    import torch
    import transformers

    processor = transformers.AutoTokenizer.from_pretrained(model_folder)
    if load.pictures:
        from lmms_eval.models.hf.load import load_processor
        from lmms_eval.models.hf.options import HFOptions, Profile

        processor, *_ = load_processor(HFOptions(model_folder), Profile())
    tokenizer = getattr(processor, "tokenizer", processor)
    tokenizer.padding_side = "left"
    model = transformers.AutoModelForImageTextToText.from_pretrained(model_folder).eval()

    def encoded(batch: Sequence[dict[str, Any]]) -> Any:
        media = [decoded(tasks, row["media"], load.is_video) for row in batch]
        texts = [
            processor.apply_chat_template(
                [
                    {
                        "role": "user",
                        "content": [{"type": "image"}] * len(images) + [{"type": "text", "text": row["question"]}],
                    }
                ],
                tokenize=False,
                add_generation_prompt=True,
            )
            for row, images in zip(batch, media, strict=True)
        ]
        images = {"images": media} if load.pictures else {}
        return processor(text=texts, **images, return_tensors="pt", padding=True, add_special_tokens=False)

    def loop(task: str) -> dict[int, str]:
        rows = [json.loads(line) for line in (tasks / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()]
        rows.sort(key=lambda row: len(row["question"]), reverse=True)
        batches = [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]
        answers: dict[int, str] = {}
        for batch, inputs in zip(batches, prefetched(batches, encoded), strict=True):
            with torch.inference_mode():
                output = model.generate(**inputs, max_new_tokens=load.max_new_tokens, do_sample=False)
            texts = tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
            answers.update(zip((row["number"] for row in batch), (text.strip() for text in texts), strict=True))
        return answers

    loop("warm")
    few = measured(lambda: loop("few"))
    return measured(lambda: loop("full")).less(few)


def prefetched(batches: Sequence[Any], encode: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield batches that are encoded in a separate thread, two batches ahead."""
    made: queue.Queue[Any] = queue.Queue(maxsize=2)

    def work() -> None:
        for batch in batches:
            made.put(encode(batch))

    threading.Thread(target=work, daemon=True).start()
    for _ in batches:
        yield made.get()


def decoded(folder: Path, names: Sequence[str], is_video: bool) -> list[Any]:
    import av
    from PIL import Image

    if not is_video:
        return [Image.open(folder / name).convert("RGB") for name in names]
    with av.open(str(folder / names[0])) as container:
        frames = list(container.decode(video=0))
    from lmms_eval.media import uniform_indices
    from lmms_eval.media.video import one_thread

    return [frames[place].to_image(**one_thread()) for place in uniform_indices(len(frames), FRAMES)]


SIDES: Mapping[str, Callable[[Workload, str, Path, Path], Measured]] = {
    "ours": ours, "processes": in_process, "bare": bare,
}  # fmt: skip


def child(side: str, load: Workload, model_folder: str, tasks: Path) -> None:
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as out:
        result = SIDES[side](load, model_folder, tasks, Path(out))
    print(json.dumps({"cpu_s": result.cpu_s, "wall_s": result.wall_s, "answers": result.answers}))


def compared(load: Workload, model_folder: str, tasks: Path, runs: int, sides: Sequence[str]) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, results in found.items():
            arguments = ["--child", side, "--workload", load.name, "--model", model_folder, "--tasks", str(tasks)]
            environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
            finished = run_child(["-m", "benchmarks.local_models", *arguments], environment)
            if finished.exit_code:
                raise SystemExit(finished.output)
            results.append(json.loads(finished.output.splitlines()[-1]))
    first = {side: results[0]["answers"] for side, results in found.items()}
    ours = [side for side in sides if side != "bare"]
    equal = {side: sum(first[side][key] == text for key, text in first["bare"].items()) for side in ours}
    report: dict[str, Any] = {"equal_answers": equal}
    for unit in ("cpu_s", "wall_s"):
        medians = {side: statistics.median(result[unit] for result in results) for side, results in found.items()}
        report[unit] = {
            **medians,
            **{f"bare_over_{side}": medians["bare"] / medians[side] for side in ours},
            "all": {side: [round(result[unit], 3) for result in results] for side, results in found.items()},
        }
    return report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=WORKLOADS, nargs="*", default=list(WORKLOADS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--processes", action="store_true", help="also measure preprocess_processes=true")
    parser.add_argument("--child", choices=SIDES)
    parser.add_argument("--model", default="")
    parser.add_argument("--tasks", default="")
    given = parser.parse_args()
    if given.child:
        child(given.child, WORKLOADS[given.workload[0]], given.model, Path(given.tasks))
        return
    from examples.build_tiny_model import build_tiny_vlm

    sides = [side for side in SIDES if side != "processes" or given.processes]
    report: dict[str, Any] = {"benchmark": "local_models", "samples": DOCUMENTS - FEW, "bar": BAR}
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny_vlm(Path(folder) / "model", architecture="qwen2_vl")
        for name in given.workload:
            write_tasks(Path(folder) / name, WORKLOADS[name])
            report[name] = compared(WORKLOADS[name], str(model), Path(folder) / name, given.runs, sides)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
