"""Paths of the files that a task writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.utils import sanitize_model_name
from lmms_eval.utils.names import model_name_from_args


def generate_submission_file(file_name: str, args: Any, subpath: str = "submissions") -> str:
    """Return the absolute path ``OUT/SUBPATH/FILE_NAME`` and make its folder; without output path, ``./SUBPATH/...``.

    Args:
        file_name: name of the file.
        args: the run's arguments (an object or mapping with ``output_path``), as aggregations get them.
        subpath: folder below the output path.

    Raises:
        OSError: the folder cannot be made.
    """
    output_path = args.get("output_path") if isinstance(args, Mapping) else getattr(args, "output_path", None)
    folder = Path(output_path or ".") / subpath
    folder.mkdir(parents=True, exist_ok=True)
    return str((folder / file_name).resolve())


def model_name(args: Any) -> str:
    """Return the model of a run: the name in its arguments, else the text of ``--model``."""
    stated = getattr(args, "model_args", None) or ""
    text = ",".join(f"{key}={value}" for key, value in stated.items()) if isinstance(stated, Mapping) else str(stated)
    return model_name_from_args(text) or str(getattr(args, "model", "") or "model")


def shared_model_name(args: Any) -> str:
    """Return the model of a run for files that are shared; for a local folder only its name."""
    name = model_name(args)
    path = Path(name).expanduser()
    return path.resolve().name if path.is_absolute() or name.startswith(".") or path.is_dir() else name


def model_folder(output_path: str, args: Any, marks: Sequence[str], top: str) -> Path:
    """Return ``OUT/TOP/MODEL``, a model's folder for stand-alone scorers; ``marks`` distinguish its variants."""
    return Path(output_path) / top / "-".join([sanitize_model_name(model_name(args)), *marks])
