"""Where a task's submission file goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def generate_submission_file(file_name: str, args: Any, subpath: str = "submissions") -> str:
    """The absolute path ``OUT/SUBPATH/FILE_NAME``; its folder is made. Without an output path it is ``./SUBPATH/...``.

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
