"""Values of a document by the rules of task YAML: column, Jinja template, function, number or list."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.utils.signatures import keywords_for, parameters_of
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


def call_text(function: Callable[..., Any], doc: Doc, kwargs: Any, **more: Any) -> Any:
    """Call ``doc_to_text`` or a similar function. Settings, if any, are the second positional argument."""
    if kwargs is None:
        return function(doc, **more)
    takes = parameters_of(function)
    return function(doc, kwargs, **more) if takes.positional >= 2 or takes.any_positional else function(doc, **more)


def call_target(function: Callable[..., Any], doc: Doc, target_kwargs: Any, kwargs: Any) -> Any:
    """Call ``doc_to_target`` with a model's settings, as ``call_text``, else with the settings if it names them."""
    if target_kwargs is None and "lmms_eval_specific_kwargs" in parameters_of(function).names:
        return function(doc, lmms_eval_specific_kwargs=kwargs)
    return call_text(function, doc, target_kwargs)


def call_visual(function: Callable[..., Any], doc: Doc, kwargs: Any) -> Any:
    """Call ``doc_to_visual``. It gets the settings only if it has exactly two parameters."""
    _keep_originals()
    takes = parameters_of(function)
    return function(doc, kwargs) if max(takes.positional, len(takes.names)) == takes.positional == 2 else function(doc)


def call_messages(function: Callable[..., Any], doc: Doc, kwargs: Any, **more: Any) -> Any:
    """Call ``doc_to_messages`` with the settings, as keyword or second parameter, and other arguments that it takes."""
    _keep_originals()
    takes, given = parameters_of(function), keywords_for(function, more) if more else {}
    if "lmms_eval_specific_kwargs" in takes.names or takes.any_keyword:
        return function(doc, lmms_eval_specific_kwargs=kwargs, **given)
    if takes.positional == 2 and takes.names[1:2] and takes.names[1] not in given:
        return function(doc, kwargs, **given)
    return function(doc, **given)


@functools.cache
def _keep_originals() -> None:
    """Keep the bytes of files that the function opens by ``Image.open``, so that they are sent unchanged."""
    from lmms_eval.media.opened import keep_originals

    keep_originals()


def field_value(spec: Any, doc: Doc, where: str) -> Any:
    """Return the value of a key that is not a function: column, template, number, or literal list."""
    if isinstance(spec, str):
        return doc[spec] if spec in doc else render_template(spec, doc, where)
    return spec


def text_or_index(value: Any, spec: Any, doc: Doc, has_choices: bool) -> Any:
    """Read a rendered template: digits are a number if the task has choices, and ``[...]`` is a list."""
    if not isinstance(value, str) or not isinstance(spec, str) or spec in doc:
        return value
    if has_choices and value.isdigit():
        return int(value)
    return value


def target_value(value: Any, spec: Any, doc: Doc, has_choices: bool) -> Any:
    """Read a target as ``text_or_index`` does; it may also be the text of a list."""
    value = text_or_index(value, spec, doc, has_choices)
    rendered = isinstance(value, str) and isinstance(spec, str) and spec not in doc
    if rendered and value.startswith("[") and value.endswith("]"):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


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
