"""CodeBLEU by the ``codebleu`` package. Its failures are reported and not scored 0.

S. Ren et al., "CodeBLEU: a method for automatic evaluation of code synthesis", 2020: the mean of BLEU, keyword-weighted
BLEU, the share of common syntax subtrees and that of common data flow. If the references have no data flow, the package
counts that part as 1, so that an unrelated answer scores 0.25.

The package numbers the variables of a data flow by the order of a set of their names, so that its value for the same
answers changes with the seed of Python's hashes, by up to half a point of 100. Here the names keep their order of
appearance, which gives one value.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path

from lmms_eval.api.outcome import NotEvaluated

REMEDY = "install lmms_eval[general_bench] with the versions of constraints.txt"
WEIGHTS = (0.25, 0.25, 0.25, 0.25)
MAX_CODE = 20_000
"""Most characters of an answer."""
MAX_DEPTH, MAX_NODES = 300, 20_000
"""Bounds of an answer's syntax tree. The package writes out every subtree, so that its work grows with depth times
size, and the parser's own printing recurses and can end the process.
"""


def code_bleu(predictions: Sequence[str], references: Sequence[str], language: str = "python") -> float:
    """Return the CodeBLEU of a corpus with one reference each, 0 to 1. Without items it is 0.

    Raises:
        NotEvaluated: the package or the grammar of ``language`` is missing, does not fit, or fails on these texts; or
            an answer is too large (``code_fault``).
    """
    if not predictions:
        return 0.0
    for index, prediction in enumerate(predictions):
        if fault := code_fault(prediction, language):
            raise NotEvaluated(f"CodeBLEU: answer {index} {fault}")
    with _package_errors(), _quiet_package():
        from codebleu import calc_codebleu, dataflow_match
        from codebleu.parser import DFG

        for module in (dataflow_match, DFG):
            vars(module)["set"] = _OrderedSet  # what these modules call `set`
        scores = calc_codebleu(
            [_encodable(text) for text in references],
            [_encodable(text) for text in predictions],
            language,
            weights=WEIGHTS,
        )
    return float(scores["codebleu"])


def code_fault(text: str, language: str = "python") -> str:
    """Return why a predicted program must not be given to the package ("has more than ..."), or an empty text.

    Raises ``NotEvaluated`` if the package or the grammar of ``language`` is missing or does not fit.
    """
    if len(text) > MAX_CODE:
        return f"has more than {MAX_CODE} characters"
    with _package_errors():
        from codebleu.utils import get_tree_sitter_language
        from tree_sitter import Parser

        parser = Parser()
        parser.language = get_tree_sitter_language(language)
        cursor = parser.parse(_encodable(text).encode()).walk()
    depth = nodes = 0
    while depth <= MAX_DEPTH and nodes <= MAX_NODES:
        nodes += 1
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return ""
            depth -= 1
    return f"has a syntax tree deeper than {MAX_DEPTH} or of more than {MAX_NODES} nodes"


class _OrderedSet(dict[Hashable, None]):
    """A set, as the package uses it, that keeps the order of insertion."""

    def __init__(self, members: Iterable[Hashable] = ()) -> None:
        super().__init__(dict.fromkeys(members))

    def add(self, member: Hashable) -> None:
        self[member] = None


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can hold and no encoding can."""
    return text.encode("utf-8", "replace").decode()


@contextlib.contextmanager
def _package_errors() -> Iterator[None]:
    """Turn errors of the package and its parsers into ``NotEvaluated``, because they do not mean a score of 0."""
    try:
        yield
    except ImportError as error:
        raise NotEvaluated(f"CodeBLEU: the package codebleu cannot be imported ({error}): {REMEDY}") from error
    except Exception as error:  # codebleu lets any error of its parsers through
        raise NotEvaluated(f"CodeBLEU: codebleu failed ({type(error).__name__}: {error}): {REMEDY}") from error


@contextlib.contextmanager
def _quiet_package() -> Iterator[None]:
    """Silence the package's warnings on the root logger, which would otherwise get a handler."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def drop(record: logging.LogRecord) -> bool:
        return "codebleu" not in Path(record.pathname).parts

    root.addHandler(handler)
    root.addFilter(drop)
    try:
        yield
    finally:
        root.removeFilter(drop)
        root.removeHandler(handler)
