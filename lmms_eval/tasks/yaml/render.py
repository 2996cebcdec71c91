"""Values of a document by the rules of task YAML: column, Jinja template, function, number or list."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.utils.signatures import parameters_of
from lmms_eval.utils.template import compiled

Doc = Mapping[str, Any]


class RenderError(LmmsEvalError):
    """A value of one document cannot be made. The sample fails and the run continues."""


def check_template(text: str, where: str) -> None:
    """Raise ``TaskError`` for a template with a syntax error."""
    from jinja2 import TemplateSyntaxError

    try:
        compiled(text)
    except TemplateSyntaxError as error:
        raise TaskError(f"{where}: template {text!r}: {error}") from error


def render_template(text: str, doc: Doc, where: str) -> str:
    """Render a Jinja2 template with a document's columns. A missing column is an error.

    Raises:
        RenderError: a name is undefined, or an expression fails for this document.
    """
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text[:-1] if text.endswith("\n") else text  # one trailing newline is dropped, as Jinja does
    from jinja2 import TemplateError

    try:
        return str(compiled(text).render(dict(doc.items())))
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, re.error) as error:
        columns = ", ".join(doc)
        raise RenderError(f"{where}: template {text!r}: {error}; the document has the columns {columns}") from error


def bound_text(function: Callable[..., Any], kwargs: Any) -> Callable[..., Any]:
    """Bind ``doc_to_text`` or a similar function to its settings, if any: the second positional argument."""
    takes = parameters_of(function)
    if kwargs is None or (takes.positional < 2 and not takes.any_positional):
        return function
    return lambda doc, **rounds: function(doc, kwargs, **rounds)


def bound_target(function: Callable[..., Any], target_kwargs: Any, kwargs: Any) -> Callable[..., Any]:
    """Bind ``doc_to_target`` to a model's settings, as ``bound_text``, else to the settings if it names them."""
    if target_kwargs is None and "lmms_eval_specific_kwargs" in parameters_of(function).names:
        return partial(function, lmms_eval_specific_kwargs=kwargs)
    return bound_text(function, target_kwargs)


def bound_visual(function: Callable[..., Any], kwargs: Any) -> Callable[[Doc], Any]:
    """Bind ``doc_to_visual`` to its settings if it has exactly two parameters."""
    takes = parameters_of(function)
    if max(takes.positional, len(takes.names)) == takes.positional == 2:
        return lambda doc: function(doc, kwargs)
    return function


def bound_messages(function: Callable[..., Any], kwargs: Any) -> Callable[..., Any]:
    """Bind ``doc_to_messages`` to its settings: a keyword, or the second parameter unless a round gives that one."""
    takes = parameters_of(function)
    if "lmms_eval_specific_kwargs" in takes.names or takes.any_keyword:
        return partial(function, lmms_eval_specific_kwargs=kwargs)
    if takes.positional != 2 or len(takes.names) < 2:
        return function
    second = takes.names[1]
    return lambda doc, **rounds: function(doc, **rounds) if second in rounds else function(doc, kwargs, **rounds)


@functools.cache
def keep_originals() -> None:
    """Keep the bytes of files that a function opens by ``Image.open``, so that they are sent unchanged."""
    from lmms_eval.media import opened

    opened.keep_originals()


def field_value(spec: Any, doc: Doc, where: str) -> Any:
    """Return the value of a key that is not a function: column, template, number, or literal list."""
    if isinstance(spec, str):
        return doc[spec] if spec in doc else render_template(spec, doc, where)
    return spec


def choices_value(spec: Any, doc: Doc, where: str) -> list[str]:
    """Return the choices of a document as texts.

    Raises:
        RenderError: they are not a list.
    """
    value = spec(doc) if callable(spec) else field_value(spec, doc, where)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise RenderError(f"{where}: {value!r} is no list of choices: {error}") from error
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple) or not value:
        raise RenderError(f"{where}: choices must be a list that is not empty, not {value!r:.80}")
    return [str(choice) for choice in value]
