"""Render formulas as MathML, which browsers draw without scripts, fonts or requests."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)


def visit_inline(translator: Any, node: Any) -> None:
    """Write a formula within a line."""
    translator.body.append(_mathml(node, is_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: Any) -> None:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{_mathml(node, is_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: Any, is_block: bool) -> str:
    """Convert LaTeX. Unknown input is a warning, which ends a strict build."""
    try:
        return str(latex2mathml.tex2mathml(node.astext(), as_block=is_block))
    except MathError as error:
        _LOGGER.warning("formula: %s", error, location=node)
        return ""


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
