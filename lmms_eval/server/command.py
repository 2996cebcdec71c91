"""Child processes of the server: the command, options and environment of a job's run, and checkpoint merging.

``python -m lmms_eval.server.command SHARDS OUTPUT`` merges the shards of a checkpoint.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

import lmms_eval
from lmms_eval.errors import BusyError, LmmsEvalError, MissingOptionalDependencyError, RequestError
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.settings import TOKEN_VARIABLE, ServerSettings
from lmms_eval.utils.launch import LAUNCHER_VARIABLES, VISIBLE

_OF_LAUNCHERS = ("TORCHELASTIC_", "ACCELERATE_", "OMPI_COMM_WORLD_", "PMI_", "SLURM_PROCID", "SLURM_LOCALID")
_NOT_OPTIONS = frozenset({"num_gpus", "output_dir"})
TIMEOUT_S = 3600.0
MOST_AT_ONCE, RETRY_S = 2, 30.0
_room = threading.BoundedSemaphore(MOST_AT_ONCE)
KINDS = {"regular": "pytorch_model_fsdp_0", "ema": "ema_fsdp_0"}
"""Folders of the shards in a checkpoint, as training libraries name them."""


def with_sources(options: Mapping[str, Any], settings: ServerSettings) -> dict[str, Any]:
    """Add the server's own tasks, models and data to the options of a run."""
    joined = dict(options)
    for name, own in (("include_path", settings.include_paths), ("plugins", settings.plugins)):
        stated = options.get(name) or ()
        both = [*own, *([stated] if isinstance(stated, str) else stated)]
        if both:
            joined[name] = both
    if settings.data_root is not None:
        joined.setdefault("data_root", settings.data_root)
    return joined


def run_options(request: Mapping[str, Any], folder: JobFolder, gpus: Sequence[str]) -> dict[str, Any]:
    """Return the options of the run that a submission asks for, by name."""
    options = {name: value for name, value in request.items() if name not in _NOT_OPTIONS and value is not None}
    stated = request.get("output_dir")
    options["output_path"] = str(folder.work / Path(stated).expanduser() if stated else folder.output)
    if gpus and str(options.get("device", "")).startswith("cuda:"):
        options["device"] = "cuda"  # the only GPU that the run sees
    return options


def write_config(options: Mapping[str, Any], folder: JobFolder) -> None:
    """Write the options of the run to its configuration file. Raises ``OSError``."""
    # YAML's own writer preserves every text, including commas, quotes and control characters.
    text = yaml.safe_dump(dict(options), allow_unicode=True, sort_keys=False)
    folder.config_file.write_text(text, encoding="utf-8")


def command_line(request: Mapping[str, Any], folder: JobFolder, continues: bool) -> list[str]:
    """Return the command of a run as a list of words, to be executed without a shell.

    A run that ``continues`` resumes from its journal, even if every document was answered.
    """
    processes = int(request.get("num_gpus") or 1)
    words = [sys.executable, "-m"]
    if processes > 1:
        words += ["accelerate.commands.accelerate_cli", "launch", "--multi_gpu", "--num_processes", str(processes)]
        words += ["--main_process_port", "0", "-m"]
    words += ["lmms_eval", "--config", str(folder.config_file)]
    # In a folder that other runs write into too, a complete run of the same options may be another job's.
    return [*words, "--resume"] if continues and not request.get("output_dir") else words


def environment(environ: Mapping[str, str], gpus: Sequence[str] | None) -> dict[str, str]:
    """Return the environment of a run, without launcher variables and the server's token, and with its ``gpus``."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in LAUNCHER_VARIABLES and name != TOKEN_VARIABLE and not name.startswith(_OF_LAUNCHERS)
    }
    package = str(Path(lmms_eval.__file__).resolve().parents[1])
    paths = [os.path.abspath(part) for part in kept.get("PYTHONPATH", "").split(os.pathsep) if part]
    if "site-packages" not in package:  # started from a checkout
        paths = [package, *(part for part in paths if part != package)]
    if paths:
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    kept |= {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
    return kept if gpus is None else {**kept, VISIBLE: ",".join(gpus)}


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
        NoCheckpointError: the checkpoint's folder does not exist.
        RequestError: the folder has no shards.
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
    """Merge the shards into ``output`` as safetensors. A separate process holds the whole model in its memory.

    Raises:
        MissingOptionalDependencyError: accelerate is not installed.
        BusyError: too many checkpoints are being merged.
        LmmsEvalError: merging fails.
    """
    if find_spec("accelerate") is None:
        raise MissingOptionalDependencyError("merging needs accelerate: pip install accelerate")
    if not _room.acquire(blocking=False):
        raise BusyError(f"{MOST_AT_ONCE} checkpoints are being merged: try again when they are done", RETRY_S)
    command = [sys.executable, "-m", "lmms_eval.server.command", str(shards), str(output)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(os.environ, ()), timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LmmsEvalError(f"the checkpoint cannot be merged: {error}") from error
    finally:
        _room.release()
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
