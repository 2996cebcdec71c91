"""LaTeX that compiles with any engine: escaped texts, and tables in the style of booktabs with caption and notes.

The output is ASCII except for characters that LaTeX has no command for. These are arguments of ``\\evalglyph``, which
LuaLaTeX and XeLaTeX print, while pdfLaTeX prints their code points instead of stopping with an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from lmms_eval.utils.terminal import Column, column_layout, printable

_NARROW, _WIDE = 70, 84
"""Letters of a line that a column of 345 pt holds in small and in footnote-sized letters."""
_RESIZED = "\\resizebox{\\linewidth}{!}{"
_GLYPH = "\\evalglyph"
_GLYPHS = (
    "% characters that pdfLaTeX lacks: LuaLaTeX and XeLaTeX print them if the font has them\n"
    f"\\DeclareRobustCommand{{{_GLYPH}}}[2]{{\\ifdefined\\Umathcode #1\\else [#2]\\fi}}\n"
)
_MARKUP = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}  # fmt: skip
"""Characters that LaTeX reads as markup."""
_SIGNS = {
    "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", "←": r"$\leftarrow$",
    "×": r"$\times$", "÷": r"$\div$", "·": r"$\cdot$", "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$",
    "≈": r"$\approx$", "∞": r"$\infty$", "°": r"$^\circ$", "µ": r"$\mu$", "μ": r"$\mu$", "α": r"$\alpha$",
    "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "ε": r"$\epsilon$", "λ": r"$\lambda$", "π": r"$\pi$",
    "σ": r"$\sigma$", "τ": r"$\tau$", "φ": r"$\phi$", "ω": r"$\omega$", "Δ": r"$\Delta$", "Σ": r"$\Sigma$",
    "Ω": r"$\Omega$", "†": r"$\dagger$", "‡": r"$\ddagger$", "²": "$^2$", "³": "$^3$", "–": "--", "—": "---",
    "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "§": r"\S{}", "\u00a0": "~", "•": r"$\bullet$",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}",
    "ł": r"\l{}", "Ł": r"\L{}", "å": r"\aa{}", "Å": r"\AA{}", "ı": r"\i{}", "¿": "?`", "¡": "!`",
}  # fmt: skip
"""Characters with commands that every LaTeX has."""
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u0304": "=", "\u0307": ".",
    "\u0306": "u ", "\u030c": "v ", "\u030b": "H ", "\u0327": "c ", "\u0323": "d ", "\u0331": "b ",
}  # fmt: skip
"""Combining accents with their commands."""
_MINUS = re.compile(r"(?<![\w)}.-])-(?=\d)")
"""The sign of a number."""
_DASHES = re.compile(r"-(?=-)")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_MOST_CODES = 12
"""Characters of one text whose code points pdfLaTeX prints."""


def latex_text(text: str) -> str:
    """Return a text as LaTeX prints it, in one line. Nothing in it is a command of its own."""
    shown = unicodedata.normalize("NFC", " ".join(printable(text).split()))
    marked = _MINUS.sub("\x00", _DASHES.sub("\x01", shown))
    made = "".join(_MARKUP.get(character) or _SIGNS.get(character) or _accented(character) for character in marked)
    made = made.replace("\x00", "$-$").replace("\x01", "-{}")
    return _FOREIGN.sub(_glyphs, made)


def _accented(character: str) -> str:
    """Return the command of a Latin letter with an accent; other characters as they are."""
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    letter, accent = parts[0], parts[1:]
    if accent not in _ACCENTS or not (letter.isascii() and letter.isalpha()):
        return character
    base = f"\\{letter}" if letter in "ij" and accent not in "\u0327\u0323\u0331" else letter
    return f"{{\\{_ACCENTS[accent]}{base}}}"


def _glyphs(found: re.Match[str]) -> str:
    codes = [f"U+{ord(character):04X}" for character in found[0]]
    more = r" \ldots{}" if len(codes) > _MOST_CODES else ""
    return f"{_GLYPH}{{{found[0]}}}{{{' '.join(codes[:_MOST_CODES])}{more}}}"


def latex_document(body: str) -> str:
    """Put the lines that a table needs before it: a comment on its packages, and ``\\evalglyph`` if it is used."""
    packages = "booktabs,graphicx" if _RESIZED in body else "booktabs"
    return f"% needs \\usepackage{{{packages}}}\n" + (_GLYPHS if _GLYPH in body else "") + body


def tabular(form: str, head: Sequence[str], body: Sequence[Sequence[Sequence[str]]]) -> str:
    """Return a ``tabular`` of cells that are LaTeX already.

    Args:
        form: the columns, such as ``lrr``.
        head: the lines of the head (``latex_line``).
        body: groups of lines of cells; there is a little space between groups of several lines.
    """
    space = "\\addlinespace\n" if any(len(group) > 1 for group in body) else ""
    groups = space.join("".join(map(latex_line, group)) for group in body)
    return (
        f"\\begin{{tabular}}{{{form}}}\n\\toprule\n{''.join(head)}\\midrule\n{groups}\\bottomrule\n\\end{{tabular}}\n"
    )


def latex_line(cells: Sequence[str]) -> str:
    """Return a line of a ``tabular``."""
    # An empty group before a bracket keeps it from being an argument of the line break before it.
    return f"{{}}{' & '.join(cells)} \\\\\n"


def latex_tabular(columns: Sequence[Column]) -> str:
    """Return columns of texts as a ``tabular``; columns of numbers are right-aligned."""
    laid = [column_layout(column) for column in columns]
    form = "".join("r" if all_numbers else "l" for _, _, all_numbers in laid)
    rows = zip(*(cells for cells, _, _ in laid), strict=True)
    head = [latex_line([latex_text(column.heading) for column in columns])]
    return tabular(form, head, [[list(map(latex_text, row))] for row in rows])


def latex_table(columns: Sequence[Column]) -> str:
    """Return columns of texts as a ``tabular`` with what it needs before it."""
    return latex_document(latex_tabular(columns))


def latex_float(table: str, title: str, caption: str, notes: Sequence[str] = (), width: int = 0) -> str:
    """Put a ``tabular`` into a ``table`` environment, with a caption above it and notes below it.

    Args:
        table: the ``tabular``.
        title: the entry in the list of tables, in plain letters.
        caption: the caption, which is LaTeX already.
        notes: the notes, which are LaTeX already; each begins a line.
        width: letters of the table's widest line. Wide tables get small letters, the width of the page, and are
            scaled to it.
    """
    name, before, after = "table", "\\small\n", ""
    if width > _NARROW:
        name, before = "table*", "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n"
    if width > _WIDE:
        before, after = f"{before}{_RESIZED}%\n", "}\n"
    lines = " \\\\\n".join(f"\\leavevmode{{}}{note}" for note in notes)
    below = f"\n\\smallskip\n\\parbox{{\\linewidth}}{{\\footnotesize\\raggedright\n{lines}}}\n" if notes else ""
    inner = f"\\caption[{title}]{{{caption}}}\n\\smallskip\n{before}{table}{after}{below}"
    return f"\\begin{{{name}}}[t]\n\\centering\n{inner}\\end{{{name}}}\n"
