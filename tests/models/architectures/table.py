"""Tries every architecture of transformers' image-text-to-text mapping, each in a process of its own.

``python -m tests.models.architectures.table`` writes the second table of ``docs/models/conformance.md`` (some four
minutes of CPU); with names of architectures it prints their rows.
"""

import gc
import json
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

from tests import torchvision_operators

DOCUMENT = Path(__file__).parents[3] / "docs" / "models" / "conformance.md"
MARK = "<!-- made by tests/models/architectures/table.py: everything from here on -->"
COLUMNS = ("text", "1 image", "several images", "mixed order", "video")
NAMES = {"build": "could not be built small", "load": "hf, at load", "defect": "hf lets an error through"}
LONGEST = 200
WORKERS = 2
CPU_S, MEMORY = 40, 12 << 30


def child(model_type, pipe):
    """Sends the row; the limits end a child that takes too much."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from tests.models.architectures.build import build
    from tests.models.architectures.check import outcome

    with tempfile.TemporaryDirectory() as folder:
        pipe.send(outcome(build, model_type, Path(folder)))


def row(model_type):
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(model_type, theirs))
    process.start()
    theirs.close()
    try:
        return mine.recv()
    except EOFError:
        process.join()
        return {"build": f"the process ended with {process.exitcode} (limits: {CPU_S} s of CPU, {MEMORY >> 30} GiB)"}
    finally:
        process.join()


def cell(row, column):
    value = row.get(column, "")
    return value if value in ("", "yes") else "no"


def failure(row):
    """Reasons of what is not ``yes``, each once, with the columns that they concern."""
    found = {}
    for column, value in row.items():
        if value != "yes":
            reason = " ".join(value.split()).replace("|", "/").replace("`", "'").replace("<", "&lt;")
            reason = re.sub(r"/[\w./-]{12,}/", ".../", reason)
            found.setdefault(reason if len(reason) <= LONGEST else reason[:LONGEST] + "...", []).append(column)
    return "; ".join(
        f"{', '.join(NAMES.get(column, column) for column in columns)}: {reason}" for reason, columns in found.items()
    )


def markdown(rows):
    names = [*COLUMNS, "batch"]
    lines = [f"| architecture | {' | '.join(COLUMNS)} | batch of 8 | reason |", "|---" * (len(COLUMNS) + 3) + "|"]
    for name, row in rows.items():
        cells = [cell(row, column) for column in names]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {failure(row)} |")
    built = sum("text" in row for row in rows.values())
    whole = sum(all(value == "yes" for value in row.values()) for row in rows.values())
    head = f"{len(rows)} architectures; {built} were built and loaded, {whole} of them answer everything."
    return "\n".join([head, "", *lines])


def write(rows):
    text = DOCUMENT.read_text(encoding="utf-8").partition(MARK)[0]
    DOCUMENT.write_text(f"{text}{MARK}\n\n{markdown(rows)}\n", encoding="utf-8")


def load_what_children_share():
    """Imports and tables that each child would otherwise make for itself: two thirds of its time."""
    import torch
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    import tests.models.architectures.build
    import tests.models.architectures.check  # noqa: F401

    torch.set_num_threads(1)
    get_checkpoint_conversion_mapping("llava")
    gc.collect()
    gc.freeze()


def main():
    torchvision_operators.declare()
    warnings.simplefilter("ignore")
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    load_what_children_share()
    chosen = sys.argv[1:]
    rows = {}
    names = chosen or list(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    with ThreadPoolExecutor(WORKERS) as pool:
        for model_type, found in zip(names, pool.map(row, names), strict=True):
            rows[model_type] = found
            print(json.dumps({model_type: found}), flush=True)
    if not chosen:
        write(rows)


if __name__ == "__main__":
    main()
