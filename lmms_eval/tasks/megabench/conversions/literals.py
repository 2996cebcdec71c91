"""Python literals in texts of models and data sets."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Literal

from lmms_eval.errors import LmmsEvalError

MAX_LITERAL_CHARS = 200_000
"""Longer texts are read only if they are also JSON: the syntax tree of a megabyte takes seconds and a gigabyte."""
_SHALLOW_CHARS = 64
"""The parser has stack enough for any shorter text."""
_JSON_ONLY = re.compile(r"\\|\b(?:true|false|null|NaN|Infinity)\b")
"""Spellings that JSON and Python read differently."""

_WARNINGS_LOCK = threading.Lock()


LiteralProblem = Literal["syntax", "memory", "unhashable", "value"]


class ConversionError(LmmsEvalError):
    """A value cannot be converted; inside a metric this scores 0."""


class LiteralError(ConversionError):
    """The text is not a Python literal, or one that is too long or too deep.

    ``problem``: ``syntax`` for a text that is not a Python expression, ``memory`` if the parser gave up on its
    size, ``unhashable`` for a set or dictionary with unhashable items, ``value`` for all else.
    """

    def __init__(self, message: str, problem: LiteralProblem = "value") -> None:
        super().__init__(message)
        self.problem = problem


@contextlib.contextmanager
def quiet_parser() -> Iterator[None]:
    """Suppress the warnings of Python's parser, so that invalid escape sequences in replies do not reach the log."""
    with _WARNINGS_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_literal(value: Any) -> Any:
    """Read a Python literal. Raises ``LiteralError`` for anything else, also for values that are not texts."""
    if not isinstance(value, str):
        raise LiteralError(f"a {type(value).__name__} is no text of a literal")
    if len(value) > MAX_LITERAL_CHARS:
        try:  # only texts that JSON spells in the same way
            value.encode()  # half surrogates are not valid Python
            if not _JSON_ONLY.search(value):
                return json.loads(value)
        except (ValueError, RecursionError):
            pass
        raise LiteralError(f"{len(value)} characters are too many for a literal that is not JSON")
    try:
        with _WARNINGS_LOCK, warnings.catch_warnings():  # as ``quiet_parser``, which costs a call more
            warnings.simplefilter("ignore")
            return ast.literal_eval(value)
    except SyntaxError as error:
        raise LiteralError(f"no Python expression: {error.msg}", "syntax") from None
    except MemoryError:
        raise LiteralError("too deeply nested for the Python parser", "memory") from None
    except TypeError as error:
        raise LiteralError(f"no literal: {error}", "unhashable") from None
    except (ValueError, RecursionError) as error:
        raise LiteralError(f"no literal: {error}") from None


def unwrap_string(value: Any) -> Any:
    """Return the content of a text that is itself a Python string literal; any other value unchanged. One layer only.

    If the Python parser runs out of stack, the result is empty, as in the official evaluator.
    """
    is_bare = isinstance(value, str) and len(value) < _SHALLOW_CHARS and "'" not in value and '"' not in value
    if is_bare or not isinstance(value, str):
        return value
    try:
        inner = read_literal(value)
    except LiteralError as error:
        return "" if error.problem == "memory" else value
    return inner if isinstance(inner, str) else value
