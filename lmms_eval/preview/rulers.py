"""Lengths of texts: in tokens where the model's tokenizer is at hand, else in characters."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.models.hf.folder import model_location

FILE = "tokenizer.json"
CHARACTERS_PER_TOKEN = 4
"""Usual mean of English texts: for estimates where no tokenizer is at hand."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """Measure of texts; safe from several threads."""

    unit: str
    """``tokens`` or ``characters``."""
    source: str
    """Origin of the tokenizer, or the reason for which there is none."""
    length: Callable[[str], int]

    @property
    def is_exact(self) -> bool:
        return self.unit == "tokens"

    def tokens(self, length: int) -> int:
        """Turn a length into tokens, by a rule of thumb where it is one of characters."""
        return length if self.is_exact else -(-length // CHARACTERS_PER_TOKEN)


def find_ruler(names: Sequence[str]) -> Ruler:
    """Find the tokenizer of a model by its folder or name. Nothing is fetched from the hub."""
    for name in names:
        path = tokenizer_file(name)
        if path is not None and (length := _length(path)) is not None:
            return Ruler("tokens", str(path), length)
    encoding = _tiktoken(names)
    if encoding is not None:
        return Ruler("tokens", f"tiktoken {encoding.name}", lambda text: len(encoding.encode_ordinary(text)))
    return Ruler("characters", "no tokenizer of the model is at hand", len)


def tokenizer_file(name: str) -> Path | None:
    """Find ``tokenizer.json`` in a model's folder, or in the local cache of the hub; ``None`` if it is in neither."""
    folder = Path(model_location(name)).expanduser()
    if (folder / FILE).is_file():
        return folder / FILE
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, FILE)
    except HFValidationError:  # a name that no repository can have
        return None
    return Path(found) if isinstance(found, str) else None


def _length(path: Path) -> Callable[[str], int] | None:
    """Make a function that counts tokens; ``None`` where the file cannot be read."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - the package raises bare exceptions for files that it cannot read
        logger.warning("{}: not a tokenizer that can be read: {}", path, error)
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _tiktoken(names: Sequence[str]) -> Any:
    """The encoding of the package ``tiktoken``, where that is installed and knows the model."""
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        return None
    for name in names:
        try:
            return tiktoken.encoding_for_model(name.rpartition("/")[2])
        except (KeyError, OSError, ValueError):  # an unknown model, or a table that cannot be fetched
            continue
    return None
