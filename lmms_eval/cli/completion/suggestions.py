"""Suggestions for the word that is being typed, from the index alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lmms_eval.cli.completion.contents import EVALUATION, Index, Node, Value
from lmms_eval.cli.completion.index import more_tasks
from lmms_eval.utils.terminal import printable

WORDS, KEYS, FILES = "words", "keys", "files"


class Suggestions(NamedTuple):
    """Values of the word that is being typed. A named tuple, since it is made at every press of a key."""

    kind: str
    """``words``, ``keys`` (a value is typed right behind them), or ``files``, which the shell knows."""
    values: list[str]
    """Whole words."""
    prefix: str = ""
    """Part of the word that all values share, and that lists of them leave out."""


def suggest(words: Sequence[str], index: Index) -> Suggestions:
    """Return what the last of the words behind ``lmms-eval`` may be.

    A name with a character that a terminal would obey, or that ends a line, is never suggested.
    """
    found = _suggest(words, index)
    values = [value for value in found.values if printable(value) == value and "\n" not in value and "\t" not in value]
    return found._replace(values=values)


def _suggest(words: Sequence[str], index: Index) -> Suggestions:
    *before, current = words
    if not before and not current.startswith("-"):
        return Suggestions(WORDS, _beginning(current, (name for name in index["nodes"] if " " not in name)))
    node, rest = _node(before, index)
    given, places, waiting = _read(rest, node)
    if waiting is not None and not (waiting["optional"] and current.startswith("-")):
        return _values(waiting, current, "", given, index)
    flag, equals, text = current.partition("=")
    if equals and (known := node["flags"].get(node["spellings"].get(flag, flag))) and current.startswith("-"):
        return _values(known, text, f"{flag}=", given, index)
    expected = node["words"][min(places, len(node["words"]) - 1)] if node["words"] else None
    if expected is not None and not current.startswith("-"):
        return _values(expected, current, "", given, index)
    main = _beginning(current, node["flags"])
    return Suggestions(WORDS, main or _beginning(current, node["spellings"]))


def _node(words: Sequence[str], index: Index) -> tuple[Node, Sequence[str]]:
    """Find the command that the words name, and return the words behind it."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in index["nodes"]:
            return index["nodes"][name], words[count:]
    return index["nodes"][EVALUATION], words


def _read(words: Iterable[str], node: Node) -> tuple[dict[str, str], int, Value | None]:
    """Return the flags given with their values, the number of other words, and the flag that waits for a value."""
    given: dict[str, str] = {}
    places, waiting, name = 0, None, ""
    for word in words:
        flag, equals, text = word.partition("=")
        known = node["flags"].get(node["spellings"].get(flag, flag)) if word.startswith("-") else None
        if known is not None:
            name = node["spellings"].get(flag, flag)
            given[name] = text
            waiting = known if known["takes"] and not equals else None
        elif waiting is not None:
            given[name], waiting = word, None
        else:
            places += 1
    return given, places, waiting


def _values(value: Value, text: str, prefix: str, given: dict[str, str], index: Index) -> Suggestions:
    """Return the values of a flag that begin with ``text``; ``prefix`` is what stands before it in its word."""
    kind = value["kind"]
    if kind == "file":
        return Suggestions(FILES, [], prefix)
    if not value["is_list"]:
        names = {"model": index["models"], "choice": value["choices"]}.get(kind, [])
        found = _beginning(text, names) or (_beginning(text, index["aliases"]) if kind == "model" else [])
        return Suggestions(WORDS, [prefix + name for name in found], prefix)
    head, comma, last = text.rpartition(",")
    prefix += head + comma
    taken = {part.partition("=")[0] for part in head.split(",")}
    if kind == "model_args":
        if "=" in last:
            return Suggestions(FILES, [], prefix + last.partition("=")[0] + "=")
        model = given.get("--model", "hf")
        keys = index["model_args"].get(index["aliases"].get(model, model), [])
        return Suggestions(KEYS, [f"{prefix}{key}=" for key in _beginning(last, keys) if key not in taken], prefix)
    names = [*value["choices"], *(_tasks(given, index) if kind == "task" else ())]
    found = [name for name in _beginning(last, names) if name not in taken and "," not in name]
    if kind == "task" and not found:  # a task may be a file
        return Suggestions(FILES, [], prefix)
    return Suggestions(WORDS, [prefix + name for name in found], prefix)


def _tasks(given: dict[str, str], index: Index) -> Iterator[str]:
    yield from index["tasks"]
    folder = given.get("--include_path") or given.get("--include-path")  # the last one, where there are several
    if folder:
        yield from (name for name in more_tasks(folder) if name not in index["tasks"])


def _beginning(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(text)]
