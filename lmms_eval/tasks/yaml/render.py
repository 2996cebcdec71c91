"""Values of a document by the rules of task YAML: a column, a Jinja template, a function, a number or a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.utils.signatures import has_parameter, keywords_for, parameters_of
from lmms_eval.utils.template import compiled

Doc = Mapping[str, Any]


class RenderError(LmmsEvalError):
    """A value of one document cannot be made; the sample fails, the run goes on."""


def check_template(text: str, where: str) -> None:
    """Raises ``TaskError`` for a template with a syntax error."""
    from jinja2 import TemplateSyntaxError

    try:
        compiled(text)
    except TemplateSyntaxError as error:
        raise TaskError(f"{where}: template {text!r}: {error}") from error


def render_template(text: str, doc: Doc, where: str) -> str:
    """A Jinja2 template over a document's columns; a column that is not there is an error.

    Raises:
        RenderError: an undefined name, or an expression that does not work on this document.
    """
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text[:-1] if text.endswith("\n") else text  # as Jinja: one trailing newline is dropped
    from jinja2 import TemplateError

    try:
        return str(compiled(text).render(dict(doc.items())))
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, re.error) as error:
        columns = ", ".join(doc)
        raise RenderError(f"{where}: template {text!r}: {error}; the document has the columns {columns}") from error


def call_text(function: Callable[..., Any], doc: Doc, kwargs: Any, **more: Any) -> Any:
    """``doc_to_text`` and its like: the settings are the second positional argument if there are any."""
    takes = parameters_of(function)
    if kwargs is not None and (takes.positional >= 2 or takes.any_positional):
        return function(doc, kwargs, **more)
    return function(doc, **more)


def call_target(function: Callable[..., Any], doc: Doc, target_kwargs: Any, kwargs: Any) -> Any:
    """``doc_to_target``: as ``call_text`` with what it is told for a model, else the settings if it names them."""
    if target_kwargs is None and has_parameter(function, "lmms_eval_specific_kwargs"):
        return function(doc, lmms_eval_specific_kwargs=kwargs)
    return call_text(function, doc, target_kwargs)


def call_visual(function: Callable[..., Any], doc: Doc, kwargs: Any) -> Any:
    """``doc_to_visual``: the settings are handed over only if it has exactly two parameters."""
    _keep_originals()
    takes = parameters_of(function)
    return function(doc, kwargs) if max(takes.positional, len(takes.names)) == takes.positional == 2 else function(doc)


def call_messages(function: Callable[..., Any], doc: Doc, kwargs: Any, **more: Any) -> Any:
    """``doc_to_messages``: settings as keyword (or second parameter), and of the rest what the function takes."""
    _keep_originals()
    takes, given = parameters_of(function), keywords_for(function, more)
    if "lmms_eval_specific_kwargs" in takes.names or takes.any_keyword:
        return function(doc, lmms_eval_specific_kwargs=kwargs, **given)
    if takes.positional == 2 and takes.names[1:2] and takes.names[1] not in given:
        return function(doc, kwargs, **given)
    return function(doc, **given)


def _keep_originals() -> None:
    """Keep the bytes of what the function opens by ``Image.open``, which is sent as the file that it is."""
    from lmms_eval.media.opened import keep_originals

    keep_originals()


def field_value(spec: Any, doc: Doc, where: str, call: Callable[[Any], Any]) -> Any:
    """A text key of a document: column, template, function (through ``call``), number, or literal list."""
    if isinstance(spec, str):
        return doc[spec] if spec in doc else render_template(spec, doc, where)
    if callable(spec):
        return call(spec)
    return spec


def text_or_index(value: Any, spec: Any, doc: Doc, has_choices: bool) -> Any:
    """Read a rendered template: all digits are a number where there are choices, ``[...]`` is a list."""
    if not isinstance(value, str) or not isinstance(spec, str) or spec in doc:
        return value
    if has_choices and value.isdigit():
        return int(value)
    return value


def target_value(value: Any, spec: Any, doc: Doc, has_choices: bool) -> Any:
    """``text_or_index`` for a target, which may also be the text of a list."""
    value = text_or_index(value, spec, doc, has_choices)
    rendered = isinstance(value, str) and isinstance(spec, str) and spec not in doc
    if rendered and value.startswith("[") and value.endswith("]"):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


def choices_value(spec: Any, doc: Doc, where: str) -> list[str]:
    """The choices of a document as texts.

    Raises:
        RenderError: they are no list.
    """
    value = field_value(spec, doc, where, lambda function: function(doc))
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
