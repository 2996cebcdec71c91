"""Checkpoints of a sharded training (FSDP) merged into one that models can be loaded from."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from lmms_eval.errors import BusyError, LmmsEvalError, MissingOptionalDependencyError, RequestError
from lmms_eval.server.command import environment

TIMEOUT_S = 3600.0
MOST_AT_ONCE, RETRY_S = 2, 30.0
_room = threading.BoundedSemaphore(MOST_AT_ONCE)
KINDS = {"regular": "pytorch_model_fsdp_0", "ema": "ema_fsdp_0"}
"""Folders of the shards within a checkpoint, as training libraries name them."""


class MergeRequest(BaseModel):
    """The body of ``POST /merge``."""

    model_config = ConfigDict(extra="forbid")
    checkpoint_path: str
    output_path: str | None = None
    checkpoint_type: Literal["regular", "ema"] = "regular"


class NoCheckpointError(RequestError):
    """There is no checkpoint at the path."""


def shards_of(checkpoint: Path, kind: str) -> Path:
    """Find the folder of a checkpoint's shards.

    Raises:
        NoCheckpointError: there is nothing at the path.
        RequestError: no shards are there.
    """
    if not checkpoint.is_dir():
        raise NoCheckpointError("checkpoint_path: there is no such folder")
    for folder in (checkpoint / KINDS[kind], *([checkpoint] if kind == "regular" else [])):
        if (folder / ".metadata").is_file():
            return folder
    raise RequestError(
        f"checkpoint_path: no shards of kind {kind} are there; looked for .metadata in {KINDS[kind]}"
        + (" and in the folder itself" if kind == "regular" else "")
    )


def merge(shards: Path, output: Path) -> None:
    """Merge the shards into ``output`` as safetensors, in a process of its own, whose memory holds the whole model.

    Raises:
        MissingOptionalDependencyError: accelerate is not installed.
        BusyError: others are being merged.
        LmmsEvalError: it fails.
    """
    if find_spec("accelerate") is None:
        raise MissingOptionalDependencyError("merging needs accelerate: pip install accelerate")
    if not _room.acquire(blocking=False):
        raise BusyError(f"{MOST_AT_ONCE} checkpoints are being merged: try again when they are done", RETRY_S)
    try:
        _run(shards, output)
    finally:
        _room.release()


def _run(shards: Path, output: Path) -> None:
    command = [sys.executable, "-m", "lmms_eval.server.merging", str(shards), str(output)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(os.environ, ()), timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LmmsEvalError(f"the checkpoint cannot be merged: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise LmmsEvalError(
            f"the checkpoint cannot be merged: {lines[-1] if lines else f'exit code {done.returncode}'}"
        )


def main(arguments: list[str]) -> int:
    from accelerate.utils import merge_fsdp_weights

    merge_fsdp_weights(arguments[0], arguments[1], safe_serialization=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
