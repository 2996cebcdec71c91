"""Files that a command writes: checked before anything is computed, and put in place together."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from lmms_eval.errors import LmmsEvalError, UsageError

STANDARD_OUTPUT = "-"

Content = bytes | Iterable[str]
"""Bytes, or texts with known secrets masked."""


def stated_files(given: Namespace, options: Sequence[str], printed: Collection[str] = ("json",)) -> dict[str, str]:
    """Return the files that options name, by option. Options of ``printed`` that are ``-``, to print, are left out."""
    found = {option: getattr(given, option) for option in options if getattr(given, option) is not None}
    return {option: name for option, name in found.items() if option not in printed or name != STANDARD_OUTPUT}


def check_files(files: Mapping[str, str], inputs: Sequence[str], runs: Sequence[str]) -> None:
    """Refuse files that cannot be written, and files that would replace an input or one another.

    Args:
        files: the file that each option writes.
        inputs: other files that the command reads.
        runs: files or folders of the runs that the command reads. Their files may not be replaced.

    Raises:
        UsageError: the message names the option.
    """
    from lmms_eval.compare.readers import run_with_file

    taken = {Path(name).resolve(): f"{name} is read" for name in inputs}
    for option, name in files.items():
        if name == STANDARD_OUTPUT:
            raise UsageError(f"--{option} -: only --json can be printed; name a file")
        path = Path(name).resolve()
        if (run := run_with_file(path, runs)) is not None:
            raise UsageError(f"--{option} {name}: that is a file of the run {run}; choose another place")
        if (why := taken.get(path) or _obstacle(path)) is not None:
            raise UsageError(f"--{option} {name}: {why}")
        taken[path] = f"--{option} writes the same file"


def _obstacle(path: Path) -> str | None:
    """Return why a path cannot be written; ``None`` if nothing speaks against it."""
    if path.is_dir():
        return "that is a folder"
    if path.exists() and not path.is_file():
        return "that is not a regular file"
    folder = next(folder for folder in path.parents if folder.exists())
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {folder} cannot be written into"
    return None


def write_files(contents: Mapping[str, Content]) -> None:
    """Write all files and put them in place together. If one cannot be written, no file is changed.

    Raises ``LmmsEvalError`` if a file cannot be written.
    """
    from lmms_eval.storage.atomic import replacing
    from lmms_eval.utils.redaction import mask_known

    here = ""
    try:
        with ExitStack() as opened:
            for here, content in contents.items():
                file = opened.enter_context(replacing(Path(here)))
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    file.writelines(mask_known(text).encode("utf-8", "replace") for text in content)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {error.filename or here}: {error.strerror or error}") from error
