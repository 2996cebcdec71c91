"""Chat templates: the template in use, its variables, and the options of a request that set them."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmms_eval.api.generation import TEMPLATE_OPTIONS

log = logging.getLogger(__name__)
NO_TEMPLATE = "none"
"""The value of ``chat_template`` that selects the plain context."""
RESERVED = frozenset({
    "add_generation_prompt", "audios", "bos_token", "chat_template", "continue_final_message", "conversation",
    "documents", "eos_token", "images", "messages", "pad_token", "raise_exception", "return_dict", "strftime_now",
    "tokenize", "tools", "unk_token", "videos",
})  # fmt: skip
"""Names that the back end or transformers sets."""
_GENERATION = re.compile(r"{%-?\s*(?:end)?generation\s*-?%}")
"""Marks of transformers around the assistant's text. Jinja does not know this tag."""


def plain_context(turns: Sequence[Mapping[str, Any]], marks: Mapping[str, str]) -> str:
    """Join the texts of a conversation with blank lines between messages, without roles.

    Args:
        turns: messages in the form for chat templates: ``role``, and ``content`` as a list of parts.
        marks: the placeholder of each type of part other than text. Without one, ``ValueError`` is raised.
    """
    texts = []
    for turn in turns:
        text, follows_text = "", False
        for part in turn["content"]:
            is_text = part["type"] == "text"
            if not is_text and part["type"] not in marks:
                raise ValueError(f"chat_template=none: this model has no mark for {part['type']} in a plain text")
            text += ("\n" if is_text and follows_text else "") + (part["text"] if is_text else marks[part["type"]])
            follows_text = is_text
        texts.append(text)
    return "\n\n".join(texts)


def template_of(holder: Any, stated: str | None = None) -> str:
    """Return the chat template in use: ``stated``, else that of a processor or tokenizer, or an empty text."""
    found = stated or getattr(holder, "chat_template", None)
    found = found or getattr(getattr(holder, "tokenizer", None), "chat_template", None)
    if isinstance(found, Mapping):
        found = found.get("default") or next(iter(found.values()), "")
    return found if isinstance(found, str) else ""


def template_variables(template: str) -> frozenset[str]:
    """Return the variables that a template reads and the caller may set; empty if it cannot be parsed."""
    from jinja2 import Environment, TemplateError, meta

    environment = Environment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"])
    try:
        found = meta.find_undeclared_variables(environment.parse(_GENERATION.sub("", template)))
    except TemplateError:
        return frozenset()
    return frozenset(found - RESERVED - set(environment.globals))


def template_options(generation: Mapping[str, Any], variables: Collection[str]) -> dict[str, Any]:
    """Select the template's variables from a request's options: by name, or from ``chat_template_kwargs``."""
    stated = generation.get(TEMPLATE_OPTIONS)
    named = {name: value for name, value in generation.items() if name in variables and value is not None}
    inner = {name: value for name, value in stated.items() if name in variables} if isinstance(stated, Mapping) else {}
    return {**named, **inner}


def warn_of_unread(template: str, stated: Collection[str], where: str) -> None:
    """Warn about variables in a model's arguments that its chat template does not read."""
    unread = sorted(set(stated) - template_variables(template))
    if template and unread:
        log.warning("%s: the chat template reads no %s: it has no effect", where, ", ".join(unread))


def template_digest(template: str | None) -> str | None:
    """Return the SHA-256 digest of a template; ``None`` without a template."""
    return hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest() if template else None
