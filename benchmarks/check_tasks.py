"""Measure the time of ``lmms-eval check`` over many tasks whose data are missing.

    python -m benchmarks.check_tasks            # one JSON object on standard output

Writes folders of task files in the family's style (each with a template that its tasks include, and a module with the
usual imports of such modules) and checks them all with two processes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.workload import run_child

BAR_S = 60.0
TASKS, FOLDERS = 1600, 130
_TEMPLATE = """\
dataset_path: nobody/{folder}
dataset_kwargs: {{token: true}}
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: answer
process_results: !function utils.process_results
generation_kwargs: {{max_new_tokens: 16, temperature: 0, top_p: 1.0, num_beams: 1, do_sample: false}}
lmms_eval_specific_kwargs:
  default: {{pre_prompt: "", post_prompt: "\\nAnswer with the option's letter."}}
metric_list:
  - {{metric: accuracy, aggregation: !function utils.aggregate, higher_is_better: true}}
metadata: [{{version: 0.0}}]
"""
_CODE = """\
import json
import re
from collections import defaultdict
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import yaml
from loguru import logger as eval_logger
from PIL import Image

from lmms_eval.filters.extraction import ExtendedRegexFilter
from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer


def doc_to_visual(doc):
    return [doc["image"].convert("RGB")]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    return doc["question"] + lmms_eval_specific_kwargs["post_prompt"]


def process_results(doc, results):
    return {"accuracy": {"right": extract_mcq_answer(results[0]) == doc["answer"]}}


def aggregate(results):
    return float(np.mean([result["right"] for result in results]))
"""


def write_folders(root: Path, tasks: int = TASKS, folders: int = FOLDERS) -> None:
    """Write the tasks, evenly over the folders."""
    for number in range(tasks):
        folder = root / f"set_{number % folders}"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            (folder / "_default_template_yaml").write_text(_TEMPLATE.format(folder=folder.name), encoding="utf-8")
            (folder / "utils.py").write_text(_CODE, encoding="utf-8")
        name = f"scale_{number}"
        head = f"task: {name}\ndataset_name: part_{number}\ntest_split: test\ninclude: _default_template_yaml\n"
        (folder / f"{name}.yaml").write_text(head, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_folders(Path(folder), given.tasks)
        command = ["-m", "lmms_eval", "check", "--include-path", folder, "--tasks", "scale_*", "--json"]
        finished = run_child([*command, "--processes", str(given.processes)])
    if finished.exit_code:
        raise SystemExit(f"the check ended with code {finished.exit_code}: {finished.output}")
    found = json.loads(finished.output)
    result = {
        "benchmark": "check_tasks",
        "tasks": given.tasks,
        "processes": given.processes,
        "counts": found["counts"],
        "wall_s": finished.wall_s,
        "cpu_s": finished.cpu_s,
        "peak_mb": finished.peak_mb,
        "bar_s": BAR_S,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
