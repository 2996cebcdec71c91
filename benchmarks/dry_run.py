"""Measure time and memory of ``--dry_run`` over many documents with pictures.

    python -m benchmarks.dry_run                       # one JSON object on standard output
    python -m benchmarks.dry_run --documents 1000

Each document has a picture (640x480 JPEG). ``path``: the task names its file, and each document has its own file;
``column``: it is in a column of a parquet file. The command runs in a separate process, as users run it.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import UTILS, run_child

SIZE = (640, 480)
DIFFERENT = 100
"""Number of different pictures; the files are copies of them."""
BAR_S = 20.0
COLUMN = "def doc_to_visual(doc):\n    return [doc['image']]\n"
YAML = """
task: {name}
dataset_path: {kind}
dataset_kwargs:
  data_files: {{test: {file}}}
test_split: test
doc_to_text: question
doc_to_visual: !function {name}_utils.doc_to_visual
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 16}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""


def jpegs() -> list[bytes]:
    """Return pictures of noise that is smooth enough to be compressed."""
    from PIL import Image

    source, made = random.Random(0), []
    for _ in range(DIFFERENT):
        small = Image.frombytes("RGB", (80, 60), source.randbytes(80 * 60 * 3))
        buffer = io.BytesIO()
        small.resize(SIZE, Image.Resampling.BICUBIC).save(buffer, format="JPEG", quality=75)
        made.append(buffer.getvalue())
    return made


def write_task(folder: Path, name: str, documents: int) -> None:
    """Write the task ``path`` or ``column`` with its data."""
    pictures = jpegs()
    rows: list[dict[str, Any]] = [{"question": f"Picture {number}?", "answer": "yes"} for number in range(documents)]
    if name == "column":
        import datasets

        for number, row in enumerate(rows):
            row["image"] = {"bytes": pictures[number % DIFFERENT], "path": None}
        made = datasets.Dataset.from_list(rows).cast_column("image", datasets.Image())
        made.to_parquet(str(folder / "column.parquet"))
    else:
        (folder / "pictures").mkdir()
        with open(folder / "path.jsonl", "w", encoding="utf-8") as file:
            for number, row in enumerate(rows):
                row["image"] = f"pictures/{number}.jpg"
                (folder / row["image"]).write_bytes(pictures[number % DIFFERENT])
                file.write(json.dumps(row) + "\n")
    (folder / f"{name}_utils.py").write_text(COLUMN if name == "column" else UTILS, encoding="utf-8")
    kind, file_name = ("parquet", "column.parquet") if name == "column" else ("json", "path.jsonl")
    (folder / f"{name}.yaml").write_text(YAML.format(name=name, kind=kind, file=file_name), encoding="utf-8")


def measure(name: str, documents: int) -> dict[str, Any]:
    """Run the command over one task and measure its whole time, including the start of Python."""
    with tempfile.TemporaryDirectory() as place:
        # In a separate process, since a child's peak memory includes that of the process which starts it.
        script = f"from benchmarks.dry_run import *; write_task(Path({place!r}), {name!r}, {documents})"
        wrote = run_child(["-c", script])
        if wrote.exit_code:
            sys.exit(wrote.output)
        arguments = ["--model", "openai", "--model_args", "model=m,base_url=http://localhost:9", "--tasks", name]
        finished = run_child(["-m", "lmms_eval", "eval", *arguments, "--include_path", place, "--dry_run"])
    if finished.exit_code:
        sys.exit(finished.output)
    return {"wall_s": round(finished.wall_s, 2), "cpu_s": round(finished.cpu_s, 2), "peak_mb": round(finished.peak_mb)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000)
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {name: measure(name, options.documents) for name in ("path", "column")}
    slowest = max(part["wall_s"] for part in found.values())
    held = slowest < BAR_S
    print(json.dumps({"documents": options.documents, **found, "bar_s": BAR_S, "held": held}, indent=2))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
