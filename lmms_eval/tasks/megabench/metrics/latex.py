"""Symbolic equality of LaTeX expressions."""

from __future__ import annotations

import re
from typing import Any

from lmms_eval.metrics.guard import LimitExceeded
from lmms_eval.tasks.megabench.conversions.latex import first_tokens, normalize_latex, token_count
from lmms_eval.tasks.megabench.metrics.latex_process import evaluate_in_process
from lmms_eval.tasks.megabench.metrics.strings import simple_str_match

MAX_LATEX_CHARS = 10_000
"""Longer true expressions are compared as texts."""
MAX_LATEX_TOKENS = 250
"""Most tokens of a response that are parsed, unless twice the length of the truth is more. The parser takes
milliseconds a token and accepts a valid prefix."""
EQUALITY_LIMIT = 15.0
"""Seconds; then the texts are compared."""

_FORMULA = re.compile(r"\$([^$]*)\$")


def latex_expr_equality(response: Any, truth: Any) -> float:
    """Compare two expressions symbolically; unreadable ones are compared by ``simple_str_match``."""
    if not (isinstance(response, str) and isinstance(truth, str)):
        return 0.0
    response, truth = normalize_latex(response), normalize_latex(truth)
    if len(truth) > MAX_LATEX_CHARS:
        return simple_str_match(response, truth)
    head = first_tokens(response, max(MAX_LATEX_TOKENS, 2 * token_count(truth)))
    try:
        outcome = evaluate_in_process("latex_equal", head, truth, limit=EQUALITY_LIMIT)
    except LimitExceeded:
        outcome = "unparsed"
    return simple_str_match(response, truth) if outcome == "unparsed" else float(outcome == "equal")


def text_with_latex_expr_equality(response: Any, truth: Any) -> float:
    """Match of the plain parts by ``simple_str_match`` and equality of the joined ``$...$`` parts as expressions."""
    if not (isinstance(response, str) and isinstance(truth, str)):
        return 0.0
    response_text, response_latex = _split(response)
    truth_text, truth_latex = _split(truth)
    if not simple_str_match(response_text, truth_text):
        return 0.0
    return latex_expr_equality(response_latex, truth_latex)


def _split(text: str) -> tuple[str, str]:
    """Split a text into plain parts, concatenated, and formulas, joined by blanks; commas are removed from both.

    A plain part that is a lone ``$`` counts as an empty formula.
    """
    plain: list[str] = []
    formulas: list[str] = []
    for place, piece in enumerate(_FORMULA.split(text)):
        if place % 2:
            formulas.append(piece.strip())
        elif piece == "$":
            formulas.append("")
        else:
            plain.append(piece.strip())
    return "".join(plain).replace(",", ""), " ".join(formulas).replace(",", "")
