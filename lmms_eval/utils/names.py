"""Names of files, models and tasks, and the documents of each rank (harness specification §1.6, §5.1, §8)."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Container, Iterable, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

from lmms_eval.errors import UsageError

_UNSAFE = re.compile(r"[\"<>:/|\\?*\[\]]+")
_REFUSED = re.compile(r'[\x00-\x1f"%*/:<>?\\|]')
"""Characters that some file systems refuse in names, and ``%``."""
_STEM = 30
FAMILY_PRESETS = frozenset({"qwen25vl"})
"""Built-in names of baselines. Files of presets (``--baseline_presets``) define others."""
MODEL_KEYS = (
    "peft=", "delta=", "pretrained=", "model=", "model_version=", "model_name=", "model_id=", "path=", "engine=",
)  # fmt: skip


def sanitize_model_name(model_name: str, full_path: bool = False) -> str:
    """Return a model name as a folder name: its last two ``/`` parts (or all), unsafe characters replaced by ``__``."""
    if not full_path:
        model_name = "/".join(model_name.split("/")[-2:])
    return _UNSAFE.sub("__", model_name)


def model_name_from_args(model_args: str) -> str:
    """Return the model's name in an argument string: the text from a known key to the next comma or that key again.

    The name is empty if there is no key. Keys are tried in the order of ``MODEL_KEYS`` and may be anywhere in the text:
    ``base_model=x`` counts as ``model=x``.
    """
    for key in MODEL_KEYS:
        if key in model_args:
            return model_args.split(key, 2)[1].split(",", 1)[0]
    return ""


def file_part(task: str) -> str:
    """Return a task's name as a part of file names: a character that some file systems refuse is ``%`` and its code.

    ``lm-eval:gsm8k`` becomes ``lm-eval%3Agsm8k``.
    """
    return _REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", task)


def task_of_part(part: str) -> str:
    """Return the name of a task from a part of a file name that ``file_part`` made."""
    return unquote(part)


def sanitize_task_name(task_name: str) -> str:
    """Replace everything in a task name but letters, digits and underscores by ``_``."""
    return re.sub(r"\W", "_", task_name)


def sanitize_long_string(text: str, max_length: int = 40) -> str:
    """Shorten a text to ``max_length`` characters of its beginning and end, with ``...`` between them."""
    if len(text) <= max_length:
        return text
    head = max_length // 2
    return f"{text[:head]}...{text[len(text) - (max_length - head) :]}"


def pattern_match(patterns: str | Iterable[str], source_list: Iterable[str]) -> list[str]:
    """Return the names that match one of the case-sensitive shell patterns, sorted, without duplicates."""
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    return sorted({name for name in source_list if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)})


def baseline_display_name(baseline: str, presets: Container[str] = FAMILY_PRESETS) -> str:
    """Return the name of a ``--baseline`` for the table.

    This is ``user/repo`` of the hub, the first 30 characters of a file's stem, or the preset of ``PRESET:TASK``. Any
    other text stays unchanged: a hub address without a repository (``hf://only``), an unknown name before a colon.

    Args:
        baseline: value of the option.
        presets: names of known presets.
    """
    if baseline.startswith("hf://"):
        repository = baseline.removeprefix("hf://").split("/")[:2]
        return "/".join(repository) if len(repository) == 2 else baseline
    if "/" in baseline or baseline.endswith((".jsonl", ".json")):
        return PurePosixPath(baseline).stem[:_STEM]
    name = baseline.partition(":")[0]
    return name if name in presets else baseline


def get_sample_size(n_docs: int, limit: float | None) -> int | None:
    """Convert ``--limit`` to a number of the ``n_docs`` documents; ``None`` means all.

    −1 or ``None`` means all documents, a number between 0 and 1 that share (rounded up), a number from 1 on that many
    (truncated to a whole number). Raises ``UsageError`` if the limit is another negative number or not finite.
    """
    if limit is None or limit == -1:
        return None
    if not math.isfinite(limit) or limit < 0:
        raise UsageError(f"limit: {limit}; give -1 for all, a share between 0 and 1, or a number of documents")
    return math.ceil(n_docs * limit) if limit < 1 else int(limit)


def shard_indices(n_docs: int, world_size: int, limit: int | None = None, offset: int = 0) -> list[list[int]]:
    """Return the document indices of each rank, if documents are assigned in turn from ``offset`` on.

    Raises ``UsageError`` if there is no rank, or a number is negative.
    """
    if world_size < 1 or offset < 0 or (limit is not None and limit < 0):
        raise UsageError(f"shards: world size {world_size}, offset {offset}, limit {limit}; none may be negative")
    end = n_docs if limit is None else min(n_docs, offset + limit)
    return [list(range(offset + rank, end, world_size)) for rank in range(world_size)]


def some_of(items: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first items, and state how many more there are."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return f"{separator.join(items[:most])}{more}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 run`` and ``1,200 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
