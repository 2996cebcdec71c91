"""Prompts of judges and their replies: filled templates, pictures of bounded size, and readers of numbers and JSON."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lmms_eval.api.response import is_invisible
from lmms_eval.errors import TaskError

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WRONG = ("INCORRECT", "NOT_ATTEMPTED")
_RIGHT = ("correct", "yes", "true", "1")
NO_SCORES = (-1.0, -1.0)


def parse_binary(text: str, output_format: str = "0/1") -> int | bool:
    """For ``0/1``, return 1 if the text contains the character 1; else (``yes/no``) whether it begins with yes."""
    if output_format == "0/1":
        return 1 if "1" in text else 0
    return text.strip().lower().startswith("yes")


def parse_binary_response(text: str) -> bool:
    """Return whether a reply means right: it contains correct, yes, true or 1 in any case, and no wrong verdict.

    Wrong verdicts are ``INCORRECT`` and ``NOT_ATTEMPTED``. Parts of words count, so ``untrue`` and ``10`` mean right.
    """
    if any(verdict in text.upper() for verdict in _WRONG):
        return False
    return any(word in text.lower() for word in _RIGHT)


def parse_comparative(text: str) -> tuple[float, float]:
    """Return the first two numbers of the first line, or ``(-1, -1)`` if there are fewer."""
    numbers = _NUMBER.findall(text.strip().split("\n")[0])
    return (float(numbers[0]), float(numbers[1])) if len(numbers) >= 2 else NO_SCORES


def parse_score(text: str, score_range: tuple[float, float] | None = None) -> float:
    """Return the first number, clipped to the range; without a number, the range's lower bound, or 0."""
    found = _NUMBER.search(text)
    if found is None:
        return float(score_range[0]) if score_range else 0.0
    value = float(found.group())
    return value if score_range is None else max(float(score_range[0]), min(float(score_range[1]), value))


def parse_json(text: str) -> dict[str, Any]:
    """Return the object from the first brace to the last one; an empty one if that is not a JSON object."""
    try:
        value = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


READERS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "text": lambda text: not is_invisible(text),
        "score": lambda text: _NUMBER.search(text) is not None,
        "binary": lambda text: "0" in text or "1" in text,
        "yes_no": lambda text: re.search(r"\b(?:yes|no)\b", text, re.IGNORECASE) is not None,
        "comparative": lambda text: parse_comparative(text) != NO_SCORES,
        "json": lambda text: bool(parse_json(text)),
    }
)
"""Tests of replies by name: each returns whether the text can be parsed in that form."""


def reader(named: Any, where: str) -> Callable[[str], bool]:
    """Return the test that ``named`` selects: one of ``READERS`` by name, or a function of the reply's text.

    Raises:
        TaskError: ``named`` is neither.
    """
    if callable(named):
        function: Callable[[str], Any] = named

        def is_read(text: str) -> bool:
            """A task's own reader rejects a reply with ``False``, ``None`` or a conversion error."""
            try:
                value = function(text)
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
                return False
            return value is not None and value is not False

        return is_read
    if named not in READERS:
        raise TaskError(f"{where}: reader {named!r} is unknown; give a function or one of {', '.join(READERS)}")
    return READERS[named]


MAX_SIDE = 1000
JPEG_QUALITY = 95


def fill_template(template: str, values: Mapping[str, Any], where: str) -> str:
    """Fill a Python format string whose placeholders are plain names. The values are not read as templates.

    Raises:
        TaskError: a placeholder is not a plain name or has no value, or the text is not a format string.
    """
    try:
        for _, name, _, _ in string.Formatter().parse(template):
            if name is not None and name not in values:
                raise TaskError(f"{where}: the placeholder {name!r} of the judge's prompt has no value")
        return string.Formatter().vformat(template, (), values)
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise TaskError(f"{where}: the judge's prompt cannot be filled: {error}") from error


def user_turn(text: str, pictures: Iterable[Any] = ()) -> ChatMessages:
    """Return one user message: all pictures, then the text."""
    from lmms_eval.api.messages import ChatImageContent, ChatMessage, ChatMessages, ChatTextContent

    parts: list[Any] = [ChatImageContent(url=picture) for picture in pictures]
    return ChatMessages(messages=[ChatMessage(role="user", content=[*parts, ChatTextContent(text=text)])])


def bounded_picture(value: Any, max_side: int | None = MAX_SIDE) -> Any:
    """Return a picture as a judge gets it: RGB over white, with no side longer than ``max_side``.

    A file that already meets this is returned unchanged; anything else is returned as the bytes of a JPEG. Raises
    ``MediaError`` if the picture cannot be found or read.
    """
    from lmms_eval.media import encode_image, header, load_image, shrink, to_rgb

    found = header(value)
    fits = max_side is None or max(found.width, found.height) <= max_side
    if fits and not hasattr(value, "convert") and found.is_plain:
        return value
    image = to_rgb(load_image(value))
    return encode_image(image if fits else shrink(image, max_side=max_side), "JPEG", JPEG_QUALITY)
