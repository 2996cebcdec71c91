"""Tries every architecture of transformers' image-text-to-text mapping, each in a process of its own.

``python -m tests.models.architectures.table`` writes the second table of ``docs/models/conformance.md`` (some fifteen
minutes of CPU); with names of architectures it prints their rows.
"""

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

from tests import torchvision_operators

CPU_S, MEMORY = 120, 12 << 30


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


def main():
    torchvision_operators.declare()
    warnings.simplefilter("ignore")
    import torch
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    import tests.models.architectures.check

    torch.set_num_threads(1)
    for model_type in sys.argv[1:] or MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        print(json.dumps({model_type: row(model_type)}), flush=True)


if __name__ == "__main__":
    main()
