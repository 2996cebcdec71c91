"""Launches of several processes (accelerate, torchrun, SLURM): their variables, and the GPUs of each process."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from lmms_eval.errors import ModelError

_M_ARENA_MAX = -8
STORE_PORT, STORE_TOKEN = "LMMS_EVAL_STORE_PORT", "LMMS_EVAL_STORE_TOKEN"
"""Variables that lead the processes of ``--processes`` to their store: a port of the loopback address, and a key."""
LAUNCHER_VARIABLES = frozenset({
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", STORE_PORT, STORE_TOKEN,
})  # fmt: skip
GPU_DRIVERS = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/kfd", "/dev/dxg")
"""Devices of NVIDIA cards, NVIDIA boards, AMD cards, and WSL."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_OF_MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


@functools.cache
def share_heap() -> bool:
    """Make all threads that start from now on allocate from one heap (glibc); return whether that was possible.

    Otherwise each thread has its own heap. Memory that one thread has freed then lies idle while another decodes, and a
    process with two preparing threads takes twice the memory of its pictures. ``MALLOC_ARENA_MAX`` has precedence.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, 1))


def accelerate_started_one(environ: Mapping[str, str]) -> bool:
    """Return whether ``accelerate launch`` was asked for several processes but has started only this one.

    With ``--cpu``, and on a machine without accelerators, it starts one process whatever ``--num_processes`` says. It
    does not pass that number on. If the number is above 1, it sets ``MASTER_PORT`` but no rank.
    """
    is_simple = "ACCELERATE_MIXED_PRECISION" in environ and not environ.get("RANK") and not environ.get("WORLD_SIZE")
    return is_simple and bool(environ.get("MASTER_PORT")) and not any(name in environ for name in _OF_MPI)


def may_have_gpus() -> bool:
    """Return whether torch may find GPUs, without importing it, which takes a second: Linux shows the drivers."""
    return not sys.platform.startswith("linux") or any(map(os.path.exists, GPU_DRIVERS))


def count_gpus(environ: Mapping[str, str], root: Path = Path("/")) -> int:
    """Count the GPUs that a process sees, by their device files, without importing torch.

    Args:
        environ: environment of the process; ``CUDA_VISIBLE_DEVICES`` hides GPUs.
        root: folder that contains ``dev`` and ``sys``.
    """
    cards = [path for path in (root / "dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    nodes = (root / "sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id")  # AMD; a CPU is a node with the id 0
    found = len(cards) or sum(_text(node) not in ("", "0") for node in nodes)
    if not found:  # boards and WSL have one GPU
        found = int(any((root / driver.lstrip("/")).exists() for driver in GPU_DRIVERS))
    stated = environ.get(VISIBLE)
    if stated is None:
        return found
    shown = takewhile(lambda name: name and not name.startswith("-"), map(str.strip, stated.split(",")))
    return min(found, len(list(shown)))


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def local_processes(environ: Mapping[str, str]) -> int:
    """Return the number of processes of the launch that see the same GPUs as this one, including this one.

    A launcher that does not state the number on this machine but shows each process its own GPUs (SLURM) counts as 1.
    """
    if environ.get("LOCAL_WORLD_SIZE", "").isdigit():
        return int(environ["LOCAL_WORLD_SIZE"])
    return 1 if environ.get(VISIBLE) else int(environ.get("WORLD_SIZE") or 1)


def own_part(environ: Mapping[str, str], total: int) -> int:
    """Return this process's part, at least 1, of a number that the user gave for all processes of ``--processes``.

    Under a launcher, the number applies to each process.
    """
    if STORE_PORT not in environ:
        return total
    rank, size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
    return max(1, total // size + (rank < total % size))


def visible_gpus(environ: Mapping[str, str], count: Callable[[], int]) -> list[str]:
    """Return the names of the GPUs that this process may use; ``count`` counts those of the machine."""
    stated = environ.get(VISIBLE)
    return [name.strip() for name in stated.split(",") if name.strip()] if stated else [str(n) for n in range(count())]


def own_gpus(environ: Mapping[str, str], gpus: Sequence[str], each: int, name: str) -> Sequence[str]:
    """Return the GPUs among ``gpus`` for this process, if each process on the machine takes ``each`` of them.

    Raises ``ModelError`` if there are not enough GPUs for all processes.
    """
    processes = local_processes(environ)
    if processes == 1 or (each == 1 and not gpus):
        return gpus
    if each * processes > len(gpus):
        raise ModelError(
            f"{name} takes {each} GPU(s) in each of the {processes} processes on this machine, which has {len(gpus)}: "
            "start fewer processes, or one plain `python -m lmms_eval` without accelerate or torchrun, where "
            f"{name} starts its own"
        )
    first = int(environ.get("LOCAL_RANK") or 0) * each
    return gpus[first : first + each]


@contextmanager
def without_launcher(environ: MutableMapping[str, str], instead: Mapping[str, str]) -> Iterator[None]:
    """Hide the variables of the launch, and set ``instead``, within the block.

    An engine that starts its own processes must not give them the ranks and ports of the launch.
    """
    before = dict(environ)
    for name in before:
        if name in LAUNCHER_VARIABLES or name.startswith("TORCHELASTIC_"):
            del environ[name]
    environ.update(instead)
    try:
        yield
    finally:
        for name in instead:
            environ.pop(name, None)
        environ.update({name: value for name, value in before.items() if name in instead or name not in environ})
