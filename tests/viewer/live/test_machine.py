"""What nvidia-smi tells of accelerators."""

from __future__ import annotations

import time
from pathlib import Path

from lmms_eval.viewer.live.unfinished import Machine, read_gpus


def test_lines_are_read_as_far_as_they_can_be() -> None:
    lines = ["NVIDIA H100, 80GB HBM3, 45, 2048, 81559", "Old, [N/A], [Not Supported], 1", "no line of it", ""]
    assert read_gpus(lines) == [
        {"name": "NVIDIA H100, 80GB HBM3", "busy": 0.45, "used": 2048 << 20, "total": 81559 << 20},
        {"name": "Old", "busy": None, "used": None, "total": 1 << 20},
    ]


def test_the_program_is_asked_in_the_background(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU, 7, 1, 2'\n")
    program.chmod(0o755)
    machine = Machine(str(program))
    machine.start()
    end = time.monotonic() + 20
    while not machine.gpus and time.monotonic() < end:
        time.sleep(0.01)
    machine.close()
    assert machine.gpus == [{"name": "GPU", "busy": 0.07, "used": 1 << 20, "total": 2 << 20}]
