"""The argument tuples of the class interface (harness specification §3.4)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Request
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.exchange import MessageBuilder
from lmms_eval.tasks.yaml.prompts import as_turns
from lmms_eval.tasks.yaml.render import call_messages, call_text

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.task import YamlTask

Doc = Mapping[str, Any]


def arguments_of(task: YamlTask, request: Request, chat: bool) -> tuple[Any, ...]:
    """The tuple for a request.

    Raises:
        TaskError: a likelihood is asked of a chat plugin, which has no form for it.
    """
    place = (request.doc_id, task.name, task.split)
    visual = _doc_to_visual(task, request)
    if request.kind == "loglikelihood":
        if chat:
            raise TaskError(
                f"task {task.name!r} ({task.output_type}) asks for likelihoods, which chat plugins cannot give: use "
                "--force_simple or another model"
            )
        continuation: Any = request.continuation
        if task.output_type == "loglikelihood":
            continuation = task.prompts.answer_text
        return (request.context, continuation, visual, *place)
    generation = copy.deepcopy(dict(request.generation))
    if chat:
        return (request.context, _doc_to_messages(task, request), generation, *place)
    if request.kind == "generate_until_multi_round":
        return (request.context, generation, visual, _doc_to_text(task), *place)
    return (request.context, generation, visual, *place)


def _doc_to_visual(task: YamlTask, request: Request) -> Callable[[Doc], Any]:
    show, policy = _visuals(task, request), task.prompts.media
    return show if policy is None else lambda doc: policy.media(show(doc))


def _visuals(task: YamlTask, request: Request) -> Callable[[Doc], Any]:
    builder = request.build_messages
    if isinstance(builder, MessageBuilder) and builder.own is not None:
        own = builder.own
        return lambda doc: [part["url"] for turn in own(doc) for part in turn["content"] if part["type"] != "text"]
    return task.prompts.visuals


def _doc_to_text(task: YamlTask) -> Callable[..., Any]:
    """``doc_to_text`` for later rounds, with the task's prompt settings filled in."""

    def doc_to_text(doc: Doc, **rounds: Any) -> Any:
        return call_text(task.config.doc_to_text, doc, task.prompts.kwargs, **rounds)

    return doc_to_text


def _doc_to_messages(task: YamlTask, request: Request) -> Callable[..., Any]:
    """Messages with system instruction, description and examples in them; later rounds by the rounds protocol."""
    builder = request.build_messages

    def doc_to_messages(doc: Doc, **rounds: Any) -> Any:
        if rounds.get("round_idx"):
            return _later_round(task, doc, rounds)
        if isinstance(builder, MessageBuilder):
            return builder.turns(doc)
        return task.prompts.allowed(task.conversation.turns(request.doc_id, doc))

    return doc_to_messages


def _later_round(task: YamlTask, doc: Doc, rounds: Mapping[str, Any]) -> tuple[Any, bool, Any, Any]:
    """``(messages | None, stop, outputs, info)``."""
    from lmms_eval.tasks.yaml.render import accepts

    own = task.config.doc_to_messages
    if own is not None and accepts(own, "round_idx"):
        messages, stop, outputs, info = call_messages(own, doc, task.prompts.kwargs, **rounds)
        turns = None if messages is None else as_turns(messages, f"{task.where}: doc_to_messages")
    else:
        visuals, text, stop, outputs, info = call_text(task.config.doc_to_text, doc, task.prompts.kwargs, **rounds)
        turns = None if stop else task.prompts.user_turn(visuals or [], str(text))
    shown = None if turns is None else task.prompts.allowed(task.conversation.with_system(turns))
    return shown, bool(stop), outputs, info
