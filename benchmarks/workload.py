"""Tasks and child processes shared by the benchmarks."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UTILS = """
from pathlib import Path


def doc_to_visual(doc):
    return [str(Path(__file__).parent / doc["image"])]
"""


def text_task(folder: Path, documents: int, name: str = "bench_text") -> str:
    """Write a task of ``documents`` short questions that the stub server answers correctly."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for number in range(documents):
            file.write(
                json.dumps({"question": f"Question {number}: say it. ANSWER=a{number}", "answer": f"a{number}"}) + "\n"
            )
    _write_yaml(folder, name, "")
    return name


def picture_task(folder: Path, documents: int, pictures: int = 20, name: str = "bench_image") -> str:
    """Write a task with one 1024x768 JPEG (about 120 kB) per document, of ``pictures`` different ones."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(0)
    for number in range(pictures):
        small = Image.frombytes("RGB", (256, 192), source.randbytes(256 * 192 * 3))
        small.resize((1024, 768), Image.Resampling.BICUBIC).save(folder / f"{name}_{number}.jpg", quality=60)
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for number in range(documents):
            row = {
                "question": f"Picture {number}? ANSWER=a{number}",
                "answer": f"a{number}",
                "image": f"{name}_{number % pictures}.jpg",
            }
            file.write(json.dumps(row) + "\n")
    (folder / "utils.py").write_text(UTILS, encoding="utf-8")
    _write_yaml(folder, name, "doc_to_visual: !function utils.doc_to_visual\n")
    return name


def _write_yaml(folder: Path, name: str, extra: str) -> None:
    (folder / f"{name}.yaml").write_text(
        f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files: {{test: {name}.jsonl}}\ntest_split: test\n"
        f"output_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n{extra}"
        "generation_kwargs: {max_new_tokens: 16, until: []}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n",
        encoding="utf-8",
    )


@dataclass(frozen=True, slots=True)
class Finished:
    """A child process after its end."""

    exit_code: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    started_at: float
    """Seconds since 1970."""
    output: str


def run_child(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Finished:
    """Run a command with this interpreter and measure it as a whole, worker processes included."""
    return run_command([sys.executable, *arguments], environment, folder)


def run_command(
    command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Finished:
    """Run a command and measure it as a whole, worker processes included."""
    started_at, start = time.time(), time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(environment or {})},
        cwd=folder,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as stream:
        output = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Finished(
        process.returncode,
        time.monotonic() - start,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        started_at,
        output,
    )


def results_of(folder: Path) -> dict[str, Any]:
    """Return the latest results file below a folder."""
    files = sorted(folder.rglob("*_results.json"), key=lambda path: path.stat().st_mtime)
    content: dict[str, Any] = json.loads(files[-1].read_text(encoding="utf-8"))
    return content
