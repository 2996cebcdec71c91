"""Names of files, models and tasks, and which documents a rank takes (harness specification §1.6, §5.1, §8)."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Container, Iterable
from pathlib import PurePosixPath

from lmms_eval.errors import UsageError

_UNSAFE = re.compile(r"[\"<>:/|\\?*\[\]]+")
_STEM = 30
FAMILY_PRESETS = frozenset({"qwen25vl"})
"""Baselines that the family knows by name; files of presets (``--baseline_presets``) name others."""
MODEL_KEYS = (
    "peft=", "delta=", "pretrained=", "model=", "model_version=", "model_name=", "model_id=", "path=", "engine=",
)  # fmt: skip


def sanitize_model_name(model_name: str, full_path: bool = False) -> str:
    """A model name as a folder name: its last two ``/`` parts (or all), unsafe characters replaced by ``__``."""
    if not full_path:
        model_name = "/".join(model_name.split("/")[-2:])
    return _UNSAFE.sub("__", model_name)


def model_name_from_args(model_args: str) -> str:
    """Return the model's name in an argument string: the text from a known key to the next comma or that key again.

    Empty without a key. Keys are tried in the family's order, and found anywhere: ``base_model=x`` counts as
    ``model=x``.
    """
    for key in MODEL_KEYS:
        if key in model_args:
            return model_args.split(key, 2)[1].split(",", 1)[0]
    return ""


def sanitize_task_name(task_name: str) -> str:
    """A task name with everything but letters, digits and underscores replaced by ``_``."""
    return re.sub(r"\W", "_", task_name)


def sanitize_long_string(text: str, max_length: int = 40) -> str:
    """Text of more than ``max_length`` characters as its first and last halves around ``...``."""
    if len(text) <= max_length:
        return text
    head = max_length // 2
    return f"{text[:head]}...{text[len(text) - (max_length - head) :]}"


def pattern_match(patterns: str | Iterable[str], source_list: Iterable[str]) -> list[str]:
    """The names that match one of the shell patterns (upper and lower case told apart), sorted, each once."""
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    return sorted({name for name in source_list if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)})


def baseline_display_name(baseline: str, presets: Container[str] = FAMILY_PRESETS) -> str:
    """Name a ``--baseline`` for the table.

    ``user/repo`` of the hub, the first 30 characters of a file's stem, the preset of ``PRESET:TASK``. What is none of
    them stays whole: an address of the hub without a repository (``hf://only``), a name before a colon that is no
    preset.

    Args:
        baseline: as it is written.
        presets: names of presets that are known.
    """
    if baseline.startswith("hf://"):
        repository = baseline.removeprefix("hf://").split("/")[:2]
        return "/".join(repository) if len(repository) == 2 else baseline
    if "/" in baseline or baseline.endswith((".jsonl", ".json")):
        return PurePosixPath(baseline).stem[:_STEM]
    name = baseline.partition(":")[0]
    return name if name in presets else baseline


def get_sample_size(n_docs: int, limit: float | None) -> int | None:
    """Convert ``--limit`` to a number of the ``n_docs`` documents; ``None`` for all.

    −1 or none: all; between 0 and 1: that share, rounded up; from 1: that many (truncated to a whole number).

    Raises:
        UsageError: another negative number, or no finite number.
    """
    if limit is None or limit == -1:
        return None
    if not math.isfinite(limit) or limit < 0:
        raise UsageError(f"limit: {limit}; give -1 for all, a share between 0 and 1, or a number of documents")
    return math.ceil(n_docs * limit) if limit < 1 else int(limit)


def shard_indices(n_docs: int, world_size: int, limit: int | None = None, offset: int = 0) -> list[list[int]]:
    """The document indices of each rank where documents are dealt out in turn from ``offset``.

    Raises:
        UsageError: no rank, or a negative number.
    """
    if world_size < 1 or offset < 0 or (limit is not None and limit < 0):
        raise UsageError(f"shards: world size {world_size}, offset {offset}, limit {limit}; none may be negative")
    end = n_docs if limit is None else min(n_docs, offset + limit)
    return [list(range(offset + rank, end, world_size)) for rank in range(world_size)]
