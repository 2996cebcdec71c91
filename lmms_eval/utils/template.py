"""Rendering of the Jinja templates of task files (harness specification §2.2)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def regex_replace(text: str, pattern: str, repl: str, count: int = 0) -> str:
    """``re.sub`` as a template filter."""
    return re.sub(pattern, repl, text, count=count)


def sandbox(keeps_newline: bool = False) -> Environment:
    """Return a new environment whose templates cannot access Python's internal attributes or change what they get.

    Unknown names are errors. A newline at the end of a template is dropped unless ``keeps_newline`` is set.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=keeps_newline)
    environment.filters["regex_replace"] = regex_replace
    return environment


_environment = functools.cache(sandbox)


@functools.lru_cache(maxsize=4096)
def compiled(template: str, keeps_newline: bool = False) -> Template:
    """Compile a template in a sandbox, where it cannot access Python's internal attributes or change the document.

    A newline at its end is dropped unless ``keeps_newline`` is set. Raises ``jinja2.TemplateSyntaxError`` if the
    template is broken.
    """
    return _environment(keeps_newline).from_string(template)


def apply_template(template: str, doc: Mapping[str, Any]) -> str:
    """Render a template with the fields of a document. Unknown fields are errors; one newline at the end is dropped.

    Raises ``UsageError`` if the template is broken, or names a field that the document does not have.
    """
    from jinja2 import TemplateError

    try:
        return compiled(template).render(**doc)
    except (TemplateError, re.error, TypeError) as error:
        raise UsageError(f"template {template[:200]!r}: {error}; the document has {sorted(doc)}") from error
