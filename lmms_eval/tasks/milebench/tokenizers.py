"""Tokenizers that count a prompt which must fit into a context."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Protocol

from lmms_eval.errors import TaskError

_WORD = re.compile(r"\s*\S+|\s+\Z")


class Tokenizer(Protocol):
    """Cuts a text into tokens and puts tokens together again."""

    def encode(self, text: str) -> Sequence[Any]:
        """The tokens, without special ones."""

    def decode(self, tokens: Sequence[Any]) -> str:
        """The text of some tokens."""


class Characters:
    """One token per code point."""

    def encode(self, text: str) -> Sequence[Any]:
        return text

    def decode(self, tokens: Sequence[Any]) -> str:
        return "".join(tokens)


class Words:
    """Words with the white space in front of them; white space at the end is a token too."""

    def encode(self, text: str) -> Sequence[Any]:
        return _WORD.findall(text)

    def decode(self, tokens: Sequence[Any]) -> str:
        return "".join(tokens)


class Checkpoint:
    """The tokenizer of a checkpoint of the transformers library.

    Raises:
        TaskError: the library is not installed or the checkpoint has no tokenizer that can be read.
    """

    def __init__(self, name: str) -> None:
        try:
            from transformers import AutoTokenizer

            self._tokenizer: Any = AutoTokenizer.from_pretrained(name)
        except (ImportError, OSError, ValueError, KeyError) as error:
            raise TaskError(f"MileBench: the tokenizer of {name!r} cannot be loaded: {error}") from error

    def encode(self, text: str) -> Sequence[Any]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def decode(self, tokens: Sequence[Any]) -> str:
        return str(self._tokenizer.decode(tokens))


@functools.lru_cache(maxsize=8)
def tokenizer(name: str) -> Tokenizer:
    """``characters``, ``words``, or the tokenizer of a checkpoint (folder or name on the hub).

    Raises:
        TaskError: it cannot be loaded.
    """
    if name == "characters":
        return Characters()
    return Words() if name == "words" else Checkpoint(name)
