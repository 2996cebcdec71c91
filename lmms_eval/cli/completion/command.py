"""``lmms-eval completion``: the script of a shell, and the answers that the script asks for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.completion.index import current_index
from lmms_eval.cli.completion.line import lexed
from lmms_eval.cli.completion.suggestions import suggest

SHELLS = ("bash", "zsh", "fish")
ANSWER, LEAST_ANSWERED = "answer", 3
"""Word behind which a shell's script gives its name and the words of the line."""


def run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [ANSWER] and len(arguments) >= LEAST_ANSWERED:
        return _answer(arguments[1], arguments[2:])
    from lmms_eval.cli.arguments import command_parser
    from lmms_eval.cli.output import emit

    parser = command_parser("completion", "print what makes a shell complete commands, options, tasks and models")
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh: source <(lmms-eval completion SHELL); fish: | source")
    shell = parser.parse_args(list(arguments)).shell
    current_index()  # so that the first answer comes as fast as all others
    emit((Path(__file__).parent / f"completion.{shell}").read_text("utf-8").rstrip("\n"))
    return 0


def _answer(shell: str, words: Sequence[str]) -> int:
    """Write suggestions for the last word: a line with their kind, then a line for each.

    They repeat what was typed before them, secrets included, so they are neither masked nor escaped: they go to the
    shell that sent them. Suggestions that no shell can take on a line were left out.
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
