from __future__ import annotations

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.utils.launch import (
    accelerate_started_one,
    count_gpus,
    local_processes,
    own_gpus,
    own_part,
    visible_gpus,
    without_launcher,
)
from tests.cases import for_each

TORCHRUN = {"WORLD_SIZE": "8", "RANK": "6", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "4"}


@for_each(
    ("environ", "processes"),
    [
        ({}, 1),
        (TORCHRUN, 4),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}, 1),
        ({"WORLD_SIZE": "8"}, 8),
        ({"WORLD_SIZE": "8", "CUDA_VISIBLE_DEVICES": "3"}, 1),
        ({"WORLD_SIZE": ""}, 1),
    ],
)
def test_processes_that_see_the_same_gpus(environ: dict[str, str], processes: int) -> None:
    assert local_processes(environ) == processes


ACCELERATE = {"ACCELERATE_USE_CPU": "True", "ACCELERATE_MIXED_PRECISION": "no"}
"""What ``accelerate launch --cpu`` sets; with ``--num_processes 2`` a meeting place too."""
MEETING = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@for_each(
    ("environ", "is_one_of_several"),
    [
        ({**ACCELERATE, **MEETING}, True),
        (ACCELERATE, False),
        (MEETING, False),
        ({**ACCELERATE, **MEETING, "RANK": "0", "WORLD_SIZE": "2"}, False),
        ({**ACCELERATE, **MEETING, "OMPI_COMM_WORLD_SIZE": "2"}, False),
        ({}, False),
    ],
)
def test_one_process_where_several_were_asked_of_accelerate(environ: dict[str, str], is_one_of_several: bool) -> None:
    assert accelerate_started_one(environ) is is_one_of_several


def test_gpus_that_are_visible() -> None:
    assert visible_gpus({}, lambda: 2) == ["0", "1"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "4, GPU-1a"}, lambda: 8) == ["4", "GPU-1a"]


@for_each(
    ("environ", "gpus", "each", "own"),
    [
        (TORCHRUN, "abcd", 1, "c"),
        (TORCHRUN, "abcdefgh", 2, "ef"),
        ({}, "abcd", 3, "abcd"),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}, "abcd", 4, "abcd"),
        (TORCHRUN, "", 1, ""),
    ],
)
def test_gpus_of_one_process(environ: dict[str, str], gpus: str, each: int, own: str) -> None:
    assert own_gpus(environ, gpus, each, "vllm") == own


@for_each(("gpus", "each"), [("abc", 1), ("abcdef", 2), ("", 2)])
def test_too_few_gpus_for_all(gpus: str, each: int) -> None:
    with pytest.raises(ModelError, match=f"vllm takes {each} GPU.* 4 processes .* has {len(gpus)}: start fewer"):
        own_gpus(TORCHRUN, gpus, each, "vllm")


def test_the_launch_is_hidden_and_put_back() -> None:
    environ = {**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True", "HOME": "/h", "CUDA_VISIBLE_DEVICES": "0,1"}
    before = dict(environ)
    with without_launcher(environ, {"CUDA_VISIBLE_DEVICES": "1", "NEW": "2"}):
        assert environ == {"HOME": "/h", "CUDA_VISIBLE_DEVICES": "1", "NEW": "2"}
        environ["ENGINE"] = "set by the engine"
    assert environ == {**before, "ENGINE": "set by the engine"}


def test_the_launch_comes_back_after_a_failed_start() -> None:
    environ = dict(TORCHRUN)
    with pytest.raises(ZeroDivisionError), without_launcher(environ, {}):
        raise ZeroDivisionError
    assert environ == TORCHRUN


def test_a_number_for_all_processes_of_one_command_is_divided() -> None:
    places = [{"RANK": str(rank), "WORLD_SIZE": "3", "LMMS_EVAL_STORE_PORT": "1"} for rank in range(3)]
    assert [own_part(place, 8) for place in places] == [3, 3, 2]
    assert [own_part(place, 2) for place in places] == [1, 1, 1]
    assert own_part({"RANK": "1", "WORLD_SIZE": "3"}, 8) == own_part({}, 8) == 8


def _machine(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@for_each(
    ("files", "variables", "count"),
    [
        ({}, {}, 0),
        ({"dev/nvidiactl": "", "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidia-uvm": ""}, {}, 2),
        ({"dev/nvidia0": "", "dev/nvidia1": ""}, {"CUDA_VISIBLE_DEVICES": "1"}, 1),
        ({"dev/nvidia0": "", "dev/nvidia1": ""}, {"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"dev/nvidia0": "", "dev/nvidia1": ""}, {"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 1),
        ({"dev/nvidia0": ""}, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 1),
        ({f"sys/class/kfd/kfd/topology/nodes/{n}/gpu_id": text for n, text in enumerate(("0\n", "5\n", "7\n"))}, {}, 2),
        ({"dev/nvhost-gpu": ""}, {}, 1),
    ],
)
def test_gpus_are_counted_by_their_device_files(tmp_path, files, variables, count):
    assert count_gpus(variables, _machine(tmp_path, files)) == count
