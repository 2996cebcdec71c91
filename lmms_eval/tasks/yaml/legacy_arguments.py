"""The argument tuples of the class interface (harness specification §3.4)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.api.request import Request
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.prompts import as_turns
from lmms_eval.tasks.yaml.render import call_messages, call_text
from lmms_eval.tasks.yaml.requests import MessageBuilder, RequestFactory
from lmms_eval.utils.signatures import accepts

Doc = Mapping[str, Any]


def arguments_of(requests: RequestFactory, request: Request, chat: bool) -> tuple[Any, ...]:
    """The tuple for a request.

    Raises:
        TaskError: a likelihood is asked of a chat plugin, which has no form for it.
    """
    task = requests.task
    place = (request.doc_id, task.name, task.split)
    show, policy = _visuals(requests, request), requests.prompts.media
    visual = show if policy is None else lambda doc: policy.media(show(doc))
    if request.kind == "loglikelihood":
        if chat:
            raise TaskError(
                f"task {task.name!r} ({task.output_type}) asks for likelihoods, which chat plugins cannot give: use "
                "--force_simple or another model"
            )
        continuation: Any = request.continuation
        if task.output_type == "loglikelihood":
            continuation = requests.prompts.answer_text
        return (request.context, continuation, visual, *place)
    # Plugins of the family expect the few-shot delimiter here, and those that chat drop it themselves.
    generation = copy.deepcopy(dict(request.generation_after(has_template=False)))
    if chat:
        return (request.context, _doc_to_messages(requests, request), generation, *place)
    if request.kind == "generate_until_multi_round":

        def doc_to_text(doc: Doc, **rounds: Any) -> Any:
            return call_text(requests.config.doc_to_text, doc, requests.prompts.kwargs, **rounds)

        return (request.context, generation, visual, doc_to_text, *place)
    return (request.context, generation, visual, *place)


def _visuals(requests: RequestFactory, request: Request) -> Callable[[Doc], Any]:
    builder = request.build_messages
    if isinstance(builder, MessageBuilder) and builder.own is not None:
        own = builder.own
        return lambda doc: [part["url"] for turn in own(doc) for part in turn["content"] if part["type"] != "text"]
    return requests.prompts.visuals


def _doc_to_messages(requests: RequestFactory, request: Request) -> Callable[..., Any]:
    """Messages with system instruction, description and examples in them; later rounds by the rounds protocol."""
    builder = request.build_messages

    def doc_to_messages(doc: Doc, **rounds: Any) -> Any:
        if rounds.get("round_idx"):
            return _later_round(requests, doc, rounds)
        if isinstance(builder, MessageBuilder):
            return builder.turns(doc)
        return requests.prompts.allowed(requests.builder.turns(request.doc_id, doc))

    return doc_to_messages


def _later_round(requests: RequestFactory, doc: Doc, rounds: Mapping[str, Any]) -> tuple[Any, bool, Any, Any]:
    """``(messages | None, stop, outputs, info)``."""
    own = requests.config.doc_to_messages
    if own is not None and accepts(own, "round_idx"):
        messages, stop, outputs, info = call_messages(own, doc, requests.prompts.kwargs, **rounds)
        turns = None if messages is None else as_turns(messages, f"{requests.where}: doc_to_messages")
    else:
        visuals, text, stop, outputs, info = call_text(
            requests.config.doc_to_text, doc, requests.prompts.kwargs, **rounds
        )
        turns = None if stop else requests.prompts.user_turn(visuals or [], str(text))
    shown = None if turns is None else requests.prompts.allowed(requests.builder.with_system(turns))
    return shown, bool(stop), outputs, info
