"""Parsing of argument strings and seed lists (harness specification §1.4, §1.8)."""

from __future__ import annotations

from lmms_eval.errors import UsageError

ArgumentValue = bool | int | float | str
DEFAULT_SEEDS: tuple[int | None, ...] = (0, 1234, 1234, 1234)
_OPENING, _CLOSING = "{[", "}]"


def handle_arg_string(text: str) -> ArgumentValue:
    """Convert the value of an argument to a bool (``true``, ``false``), int (digits of any script) or float.

    Any other value stays a text.
    """
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def simple_parse_args_string(args_string: str | None) -> dict[str, ArgumentValue]:
    """Parse ``k=v,k=v`` into a dictionary; an empty text gives an empty one.

    Commas inside quotes, braces or brackets do not separate parts. The first ``=`` of a part ends the key. Values are
    converted by ``handle_arg_string``; quotes stay. White space is trimmed only around separating commas. If a key is
    repeated, the last value wins. Raises ``UsageError`` if a part has no ``=``.
    """
    return {key: handle_arg_string(value) for key, value in split_args_string(args_string).items()}


def split_args_string(args_string: str | None) -> dict[str, str]:
    """Split ``k=v,k=v`` as ``simple_parse_args_string`` does, but leave the values as texts.

    Raises ``UsageError`` if a part has no ``=``.
    """
    parsed: dict[str, str] = {}
    text = (args_string or "").strip()
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(0, depth - 1)
        elif character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    for part in [*parts, text[start:]]:
        if not (part := part.strip()):
            continue
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"argument string: {part!r} has no '='; write key=value, separated by commas")
        parsed[key] = value
    return parsed


def comma_list(text: str | None) -> tuple[str, ...]:
    """Split a comma list into its parts, trimmed and without empty ones."""
    return tuple(item for part in (text or "").split(",") if (item := part.strip()))


def parse_seed_list(text: str, defaults: tuple[int | None, ...] = DEFAULT_SEEDS) -> list[int | None]:
    """Parse the seeds of python, numpy, torch and few-shot sampling; ``None`` leaves a generator unseeded.

    One value applies to all four. If three are given, the fourth comes from ``defaults``; the caller should report it.
    Raises ``UsageError`` if the number of values is wrong, or a value is neither a whole number nor ``None``.
    """
    seeds: list[int | None] = []
    for item in text.split(","):
        item = item.strip()
        try:
            seeds.append(None if item.lower() == "none" else int(item))
        except ValueError as error:
            raise UsageError(f"seed: {item!r} is neither a whole number nor None (in {text!r})") from error
    if len(seeds) == 1:
        return seeds * len(defaults)
    if len(seeds) == len(defaults) - 1:
        return [*seeds, defaults[-1]]
    if len(seeds) != len(defaults):
        raise UsageError(f"seed: {len(seeds)} values in {text!r}; give one, or {len(defaults)} separated by commas")
    return seeds
