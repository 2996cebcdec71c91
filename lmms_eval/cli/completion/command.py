"""``lmms-eval completion``: prints the completion script of a shell, and answers the requests of that script.

The answers come from an index in the user's cache. Building it opens every command and every model's class and takes a
second; reading the file takes a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import lmms_eval
from lmms_eval.utils.terminal import printable

if TYPE_CHECKING:
    from lmms_eval.cli.completion.gather import Index, Node, Value

_PACKAGE = os.path.dirname(lmms_eval.__file__)
_PARTS = ("cli", "config", "models", "tasks")
"""Folders of the package that the index is built from."""
_ENDINGS = (".py", ".yaml", ".tsv")
_UNSAFE = re.compile(r"[^\w%+,./:=@-]")
_ASSIGNMENT = re.compile(r"^[^\W\d]\w*=")
_IN_DOUBLE_QUOTES = re.compile(r'["$`\\]')
WORDS, KEYS, FILES = "words", "keys", "files"
SHELLS = ("bash", "zsh", "fish")
ANSWER, LEAST_ANSWERED = "answer", 3
"""Word that a shell's script passes, followed by the shell's name and the words of the line."""


class TypedLine(NamedTuple):
    """The words after the command. A named tuple, since one is built at every key press."""

    words: list[str]
    """Words without quotes and backslashes; the last one is being typed and may be empty."""
    quote: str = ""
    """The open quotation mark."""
    kept: int = 0
    """Characters of the last word that the shell does not replace, up to a character that breaks words."""

    def typed(self, value: str) -> str:
        """Return a value of the last word as it must be typed; empty if it cannot be typed."""
        rest = value[self.kept :]
        if self.quote == "'":
            return rest if "'" not in rest else ""
        if self.quote == '"':
            return _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", rest) if "!" not in rest else ""
        return _UNSAFE.sub(r"\\\g<0>", rest)


def lexed(text: str, breaks: str) -> TypedLine:
    """Split a line up to the cursor into words. Leading assignments and the command itself are dropped.

    Args:
        text: the line, or, without ``breaks``, one word of it.
        breaks: the shell's characters that may break words (``COMP_WORDBREAKS``).
    """
    words, word, quote, kept = [], "", "", 0
    is_open, escaped = False, False
    for char in text:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\" and quote != "'":
            escaped = is_open = True
        elif quote:
            quote, word = ("", word) if char == quote else (quote, word + char)
        elif char in "\"'":
            quote, kept, is_open = char, len(word), True
        elif char in " \t\n" and breaks:
            if is_open:
                words.append(word)
            word, kept, is_open = "", 0, False
        else:
            word, is_open = word + char, True
            kept = len(word) if char in ":=" and char in breaks else kept
    words.append(word)
    if not breaks:
        return TypedLine(words, quote, kept)
    first = next((place for place, each in enumerate(words) if not _ASSIGNMENT.match(each)), 0)
    return TypedLine(words[first + 1 :] or [""], quote, kept)


class Suggestions(NamedTuple):
    """Values for the word that is being typed. A named tuple, since one is built at every key press."""

    kind: str
    """``words``, ``keys`` (a value follows without a space), or ``files``, which the shell completes."""
    values: list[str]
    """Whole words."""
    prefix: str = ""
    """Common beginning of all values, which shown lists leave out."""


def suggest(words: Sequence[str], index: Index) -> Suggestions:
    """Return suggestions for the last of the words after ``lmms-eval``."""
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
    """Find the command that the words name, and return the words after it."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in index["nodes"]:
            return index["nodes"][name], words[count:]
    return index["nodes"]["eval"], words


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
    """Return the values of a flag that begin with ``text``. ``prefix`` is the part of the word before ``text``."""
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
    names = [*value["choices"], *(_tasks(last, index) if kind == "task" else ())]
    folder = given.get("--include_path") or given.get("--include-path")  # the last one counts
    if kind == "task" and folder:
        names += [name for name in more_tasks(folder) if name not in index["tasks"]]
    found = [name for name in _beginning(last, names) if name not in taken and "," not in name]
    if kind == "task" and not found:  # a task may be a file
        return Suggestions(FILES, [], prefix)
    return Suggestions(WORDS, [prefix + name for name in found], prefix)


def _tasks(text: str, index: Index) -> Iterable[str]:
    """Return the names of tasks; after ``PACK:`` those of the pack, each with that beginning."""
    pack, colon, _ = text.partition(":")
    if not colon or pack not in index["packs"]:
        return index["tasks"]
    beginning = f"{pack}:"
    return (beginning + index["tasks"][place].removeprefix(beginning) for place in index["packs"][pack])


def _beginning(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with ``text``, without those with control characters, tabs or line ends."""
    found = (name for name in names if name.startswith(text))
    return [name for name in found if printable(name) == name and "\n" not in name and "\t" not in name]


def run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [ANSWER] and len(arguments) >= LEAST_ANSWERED:
        return _answer(arguments[1], arguments[2:])
    from lmms_eval.cli.arguments import command_parser
    from lmms_eval.cli.output import emit

    parser = command_parser("completion", "print the script for a shell that completes commands, options, names")
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh: source <(lmms-eval completion SHELL); fish: | source")
    shell = parser.parse_args(list(arguments)).shell
    current_index()  # so that the first answer is as fast as all others
    emit((Path(__file__).parent / f"completion.{shell}").read_text("utf-8").rstrip("\n"))
    return 0


def _answer(shell: str, words: Sequence[str]) -> int:
    """Write suggestions for the last word: a line with their kind, then one line for each.

    They repeat what the user has typed, secrets included, and go back to the user's shell, so they are neither masked
    nor escaped. Suggestions that do not fit on a line were left out before.
    """
    if shell == "bash":
        line = lexed(words[0], words[-1])
        found = suggest(line.words, current_index())
        rows = [f"{found.kind}\t", *filter(None, map(line.typed, found.values))]
    else:
        last = lexed(words[-1], "").words[-1] if shell == "fish" else words[-1]
        found = suggest([*words[:-1], last], current_index())
        shown = (value[len(found.prefix) :] for value in found.values)
        rows = [f"{found.kind}\t{found.prefix}", *map("\t".join, zip(found.values, shown, strict=True))]
    sys.stdout.buffer.write("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape"))
    return 0


def current_index() -> Index:
    """Return the index of this installation, from its file if nothing has changed since it was written."""

    packages = (place for place in sys.path if place.endswith(("site-packages", "dist-packages")))
    installed = [os.stat(place).st_mtime_ns for place in packages if os.path.isdir(place)]
    own = [_state(os.path.join(_PACKAGE, part)) for part in _PARTS]
    state = [sys.version, os.environ.get("LMMS_EVAL_PLUGINS", ""), installed, own, _state_of_packs()]
    index: Index = _kept("index", _PACKAGE, state, lambda gather: gather.gathered_index())
    return index


def _state_of_packs() -> list[Any]:
    """Return the place and time of the table of packs. What ``tasks.packs.store`` would import takes too long here."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.environ.get("LMMS_EVAL_PACKS") or os.path.join(base, "lmms_eval", "packs")
    with contextlib.suppress(OSError):
        return [folder, os.stat(os.path.join(folder, "packs.json")).st_mtime_ns]
    return [folder]


def more_tasks(folder: str) -> list[str]:
    """Return the names of the tasks in a folder; empty if it cannot be read."""
    path = os.path.abspath(os.path.expanduser(folder))

    if not os.path.isdir(path):
        return []
    names: list[str] = _kept("tasks", path, [_state(path)], lambda gather: gather.tasks_of(path))
    return names


def _state(folder: str) -> list[int]:
    """Return the number of files below a folder and the time of the newest change."""
    count = newest = 0
    for base, _, names in os.walk(folder):
        for name in names:
            if name.endswith(_ENDINGS):
                count += 1
                with contextlib.suppress(OSError):  # removed meanwhile, or a link to nothing
                    newest = max(newest, os.stat(os.path.join(base, name)).st_mtime_ns)
    return [count, newest]


def _kept(name: str, place: str, state: list[Any], make: Callable[[Any], Any]) -> Any:
    """Return what ``make`` returns for the module ``gather``, from the file of an earlier process with this state."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "lmms_eval", "completion", f"{name}-{zlib.crc32(os.fsencode(place)):08x}.json")
    state = [place, *state]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # the file does not exist, or is not ours
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["state"] == state:
            return kept["content"]
    from lmms_eval.cli.completion import gather
    from lmms_eval.storage.atomic import replacing

    content = make(gather)
    with contextlib.suppress(OSError), replacing(Path(path), survives_power_loss=False) as file:
        file.write(json.dumps({"state": state, "content": content}).encode())
    return content
