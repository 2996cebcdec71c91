"""Clean-up of LaTeX before it is parsed."""

from __future__ import annotations

import itertools
import re
import unicodedata

from lmms_eval.tasks.megabench.conversions.literals import ConversionError

_MACRON = "\u0304"
_WITH_MACRONS = re.compile("([^\u0304])(\u0304*)", re.DOTALL)
_OVERLINE_SUBSCRIPT = re.compile(r"\\overline\{([^{}]*)\}_([^{}\\\s]*)")
_UNNAMED_GREEK = re.compile("[ς\u03a2]")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^{}]*\}(?:\[[^\[\]]*\])?")
CHARS_PER_TOKEN = 40
MAX_BARS = 17
"""Most vertical bars that are parsed: the time doubles with every few, since each may open or close."""
_BAR = re.compile(r"\|")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\S")
_DELIMITER = re.compile(r"\\[()\[\]]")
_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
# fmt: off
_NAMES = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
]
# fmt: on
_GREEK_COMMANDS = str.maketrans(
    {letter: f"\\{name} " for letter, name in zip(_LETTERS, _NAMES, strict=True)}
    | {letter.upper(): f"\\{name.capitalize()} " for letter, name in zip(_LETTERS, _NAMES, strict=True)}
)


def normalize_latex(text: str) -> str:
    """Unify overlined symbols, write Greek letters as commands, and remove environments and formula delimiters.

    Raises ``ConversionError`` for the final sigma, which LaTeX does not name, and for a text that starts with a
    combining macron.
    """
    text = text.replace("\\bar", "\\overline")
    if _MACRON in unicodedata.normalize("NFD", text):
        if text.startswith(_MACRON):
            raise ConversionError("a combining macron with nothing before it")
        text = _WITH_MACRONS.sub(_overline, text)
    text = _OVERLINE_SUBSCRIPT.sub(r"\\overline{\1_\2}", text)
    unnamed = _UNNAMED_GREEK.search(text)
    if unnamed is not None:
        raise ConversionError(f"LaTeX has no command for {unnamed.group()!r}")
    text = text.translate(_GREEK_COMMANDS)
    return _DELIMITER.sub("", _ENVIRONMENT.sub("", text))


def _overline(match: re.Match[str]) -> str:
    """A letter with macrons, precomposed or combining, as ``\\overline{letter}``, once for each macron."""
    letter, count = match.group(1), len(match.group(2))
    decomposed = unicodedata.normalize("NFD", letter)
    if decomposed[1:2] == _MACRON:
        letter, count = decomposed[0], count + 1
    return "\\overline{" * count + letter + "}" * count


def token_count(text: str) -> int:
    """Count the LaTeX tokens: commands, and all other characters except white space."""
    return sum(1 for _ in _TOKEN.finditer(text))


def first_tokens(text: str, count: int) -> str:
    """Return the first ``count`` tokens of a text, at most up to vertical bar number ``MAX_BARS``.

    Never more than ``CHARS_PER_TOKEN`` characters a token, blanks included.
    """
    text = text[: count * CHARS_PER_TOKEN]
    last = next(itertools.islice(_TOKEN.finditer(text), count - 1, None), None)
    text = text if last is None else text[: last.end()]
    bar = next(itertools.islice(_BAR.finditer(text), MAX_BARS - 1, None), None)
    return text if bar is None else text[: bar.start()]


def unwrap_delimiters(text: str, opening: str, closing: str) -> str:
    """Remove each pair of delimiters on one line; the text between them is kept."""
    if opening not in text:
        return text
    return "\n".join(_unwrap_line(line, opening, closing) for line in text.split("\n"))


def _unwrap_line(line: str, opening: str, closing: str) -> str:
    output: list[str] = []
    position = 0
    while True:
        start = line.find(opening, position)
        stop = line.find(closing, start + len(opening)) if start >= 0 else -1
        if stop < 0:
            return "".join([*output, line[position:]])
        output += [line[position:start], line[start + len(opening) : stop]]
        position = stop + len(closing)


_BOXED = re.compile(r"\\boxed\{((?:[^{}]++|\{[^{}]*+\})*+)\}")


def unbox(text: str) -> str:
    r"""Return the content of the first ``\boxed{...}`` with at most one nested level of braces, else the text."""
    match = _BOXED.search(text)
    return match.group(1) if match else text
