import json
import os
import subprocess
import sys

import pytest

from tests import torchvision_operators
from tests.models.architectures.table import COLUMNS, markdown
from tests.models.hf.test_model import ROOT

needs_torchvision = pytest.mark.skipif(
    not torchvision_operators.is_there(), reason="torchvision is not installed (`make test` puts it beside)"
)


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=600, cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_torchvision
def test_architectures_that_need_torchvision_answer():
    """Qwen2-VL with its video part, and InternVL with the processor that torchvision has: both as published. Cosmos
    wants types of tokens that its processor gives only when asked, and GLM a mark before and behind each picture.
    """
    names = ("qwen2_vl", "internvl", "cosmos3_edge", "glm4v")
    rows = {}
    for line in run("-m", "tests.models.architectures.table", *names):
        rows.update(json.loads(line))
    assert rows == {name: dict.fromkeys((*COLUMNS, "batch"), "yes") for name in names}


def test_a_row_of_the_table():
    rows = {
        "whole": dict.fromkeys((*COLUMNS, "batch"), "yes"),
        "blind": {
            **dict.fromkeys((*COLUMNS, "batch"), "yes"),
            "text": "TypeError: no | pixels",
            "video": "hf: x do not match",
        },
        "odd": {"build": "KeyError: 'a'"},
    }
    lines = markdown(rows).splitlines()
    assert lines[0] == "3 architectures; 2 were built and loaded, 1 of them answer everything."
    assert lines[4:] == [
        "| `whole` | yes | yes | yes | yes | yes | yes |  |",
        "| `blind` | no | yes | yes | yes | no | yes | text: TypeError: no / pixels; video: hf: x do not match |",
        "| `odd` |  |  |  |  |  |  | could not be built small: KeyError: 'a' |",
    ]
