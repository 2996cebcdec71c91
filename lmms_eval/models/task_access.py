"""Attributes of a task that some models use in addition to ``lmms_eval.api.task.Task``. YAML tasks have all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from lmms_eval.api.task import Task
from lmms_eval.errors import ModelError

OPTION_LINE = re.compile(r"^[^\S\n]*\(?([A-Z])[).:]\s*\S", re.MULTILINE)


def legacy_task(task: Task) -> Any:
    """Return the task for plugins, with three more methods.

    ``legacy_arguments(request, chat)`` returns the tuple that the plugin unpacks (see ``docs/model_guide.md``),
    ``legacy_metadata(request)`` the split and the task's own metadata, and ``legacy_context_turns(request)`` the
    context as messages with role and content, for ``--apply_chat_template``. Raises ``ModelError`` if the task does not
    support the class interface.
    """
    if not callable(getattr(task, "legacy_arguments", None)) or not callable(getattr(task, "legacy_metadata", None)):
        raise ModelError(f"task {task.name!r} does not support plugins of the class interface (no legacy_arguments)")
    return task


def wants_chat_template(task: Task) -> bool:
    """Return whether the run was started with ``--apply_chat_template``."""
    return bool(getattr(getattr(task, "options", None), "apply_chat_template", False))


def target_of(task: Task, doc_id: int) -> Any:
    """Return the reference answer by ``doc_to_target``. Raises ``ModelError`` if the task has no reference answers."""
    offered = getattr(task, "target", None)
    if not callable(offered):
        raise ModelError(f"task {task.name!r} has no reference answers (no target)")
    return offered(doc_id)


def gold_answer_of(task: Task, doc_id: int) -> str:
    """Return an answer with a full score: the task's own ``gold_answer`` if it has one, else its target."""
    offered = getattr(task, "gold_answer", None)
    value = offered(doc_id) if callable(offered) else target_of(task, doc_id)
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = value[0] if value else ""
    choices = choices_of(task, doc_id)
    if choices and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return choices[value]
    return str(value)


def choices_of(task: Task, doc_id: int) -> tuple[str, ...]:
    """Return the document's choices as texts; empty if the task has no choices."""
    offered = getattr(task, "choices", None)
    return tuple(str(choice) for choice in offered(doc_id) or ()) if callable(offered) else ()


def offered_options(task: Task, doc_id: int, context: str) -> tuple[str, ...]:
    """Return the options of a document: its choices, or the letters of the option lines in its prompt."""
    return choices_of(task, doc_id) or tuple(dict.fromkeys(OPTION_LINE.findall(context)))


def document_hash_of(task: Task, doc_id: int) -> str:
    """Return the ``doc_hash`` of a document, as in its samples row; empty if the task has none."""
    offered = getattr(task, "document_hash", None)
    return str(offered(doc_id)) if callable(offered) else ""


def document_of(task: Task, doc_id: int) -> Mapping[str, Any]:
    """Return a document of the evaluated split, without media if the task supports that."""
    offered = getattr(task, "document", None)
    document = offered(doc_id) if callable(offered) else task.dataset_dict()[task.split][doc_id]
    return cast(Mapping[str, Any], document)
