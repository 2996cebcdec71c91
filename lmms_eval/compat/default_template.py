"""The template that the YAML files of a task folder include, read by the folder's code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml


def load_default_template_yaml(task_file: str | os.PathLike[str]) -> Any:
    """Read ``_default_template_yaml`` in the folder of a module, without the lines that name a ``!function``.

    Args:
        task_file: ``__file__`` of the module.

    Returns:
        The content as safe YAML: usually a mapping, or ``None`` for an empty file.

    Raises:
        OSError: the file is missing or cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        yaml.YAMLError: it is not YAML.
    """
    with (Path(task_file).parent / "_default_template_yaml").open(encoding="utf-8-sig") as lines:
        return yaml.safe_load("".join(line for line in lines if "!function" not in line))
