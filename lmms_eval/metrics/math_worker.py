"""The child process in which math-verify runs; started by ``math_answers``."""

from __future__ import annotations

import functools
from typing import Any

from lmms_eval.metrics.guarded_worker import run


@functools.cache
def _repair_grammar() -> None:
    """Add the accessor that the package's reader asks of its own grammar for antlr 4.11, which lacks it.

    Without it a number with a percent sign counts as not readable.
    """
    from latex2sympy2_extended.gen.antlr4_11_0.PSParser import PSParser

    if not hasattr(PSParser.AtomContext, "FUNC_GAMMA"):
        PSParser.AtomContext.FUNC_GAMMA = lambda _context: None


def default_verify(truth: str, predict: str) -> bool:
    """Compare two texts with the package's defaults."""
    from math_verify import parse, verify

    _repair_grammar()
    predicted = parse(predict)
    return bool(verify(parse(truth), predicted))


def verify_boxed(solution: str, truth: str, timeout_s: int, strict: bool) -> tuple[bool, str]:
    """Compare the first answer of a solution, boxed ones before others, with the truth's; and the answer's text."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse, verify

    _repair_grammar()
    normalization = NormalizationConfig(
        basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="last", equations=False
    )
    config = LatexExtractionConfig(boxed_match_priority=0, normalization_config=normalization)
    gold, found = (
        parse(text, extraction_mode="first_match", extraction_config=[config], parsing_timeout=timeout_s)
        for text in (truth, solution)
    )
    is_equal = bool(found) and bool(verify(gold, found, timeout_seconds=timeout_s, strict=strict))
    return is_equal, _shown(found)


def _shown(found: list[Any]) -> str:
    """The first text among the forms of an answer, else the first form as a text."""
    texts = [form for form in found if isinstance(form, str)]
    return texts[0] if texts else str(found[0]) if found else ""


def _prepare() -> None:
    default_verify("1", "1")


if __name__ == "__main__":
    run({"default_verify": default_verify, "verify_boxed": verify_boxed}, _prepare)
