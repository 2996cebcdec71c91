"""``doc_to_judge`` of task YAML: converts the mappings that a task's function returns into questions to a judge.

A task with several filter pipelines or repeats asks about each set of answers that it scores. The names of all sets but
the first have a scope, ``@PIPELINE#ANSWER/NAME``. ``--judge_repeats`` repeats each question as ``NAME~2``, ...
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lmms_eval.api.judging import JudgeQuestion, Verdict, repeat_name
from lmms_eval.errors import TaskError
from lmms_eval.judges.prompts import MAX_SIDE, bounded_picture, user_turn
from lmms_eval.judges.replies import reader
from lmms_eval.tasks.yaml.prompts import dump
from lmms_eval.utils.signatures import keywords_for

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages
    from lmms_eval.media.policy import MediaPolicy

KEYS = ("name", "prompt", "messages", "images", "generation", "reader", "max_side", "details")
DEFAULT_GENERATION: Mapping[str, Any] = MappingProxyType({"temperature": 0, "max_new_tokens": 1024})
_MARK = "@"


def scope(pipeline: str, number: int | None) -> str:
    """Return the prefix of an evaluation's names: ``number`` counts single answers, ``None`` means all together."""
    if pipeline == "none" and not number:
        return ""
    return f"{_MARK}{pipeline}{'' if number is None else f'#{number}'}/"


def verdicts_in(verdicts: Sequence[Verdict], prefix: str) -> dict[str, Verdict]:
    """Return the verdicts of one evaluation by the names that the task gave."""
    if not prefix:
        return {verdict.name: verdict for verdict in verdicts if not verdict.name.startswith(_MARK)}
    return {
        verdict.name.removeprefix(prefix): verdict for verdict in verdicts if verdict.name.startswith(prefix)
    }  # fmt: skip


def repeated(found: Iterable[JudgeQuestion], times: int) -> list[JudgeQuestion]:
    """Repeat every question ``times`` times."""
    return [
        replace(question, name=repeat_name(question.name, number), asking=number)
        for question in found
        for number in range(1, times + 1)
    ]


def questions(
    function: Any,
    doc: Mapping[str, Any],
    results: list[Any],
    settings: Any,
    where: str,
    media: MediaPolicy | None = None,
) -> list[JudgeQuestion]:
    """Call ``doc_to_judge``.

    Raises:
        TaskError: it did not return a list of mappings with the keys of ``KEYS``.
        MediaError: a document from the hub names a picture that it must not show.
    """
    more = keywords_for(function, {"lmms_eval_specific_kwargs": settings})
    made = function(doc, results, **more) or []
    if not isinstance(made, list | tuple):
        raise TaskError(f"{where}: doc_to_judge must return a list of questions, not a {type(made).__name__}")
    found = [item if isinstance(item, JudgeQuestion) else _question(item, where, media) for item in made]
    names = [question.name for question in found]
    if len(set(names)) < len(names) or any(name.startswith(_MARK) for name in names):
        raise TaskError(f"{where}: doc_to_judge: names must differ and not begin with {_MARK!r}: {names}")
    return found


def _question(item: Any, where: str, media: MediaPolicy | None) -> JudgeQuestion:
    if not isinstance(item, Mapping) or not (set(item) <= set(KEYS)):
        raise TaskError(f"{where}: doc_to_judge: a question is a mapping with some of {', '.join(KEYS)}: {item!r:.200}")
    prompt, messages = item.get("prompt"), item.get("messages")
    if (prompt is None) == (messages is None):
        raise TaskError(f"{where}: doc_to_judge: a question needs either prompt or messages: {item!r:.200}")
    if prompt is not None:
        side = item.get("max_side", MAX_SIDE)
        images = tuple(item.get("images") or ())
        build = functools.partial(_turn, str(prompt), images if media is None else tuple(media.media(images)), side)
    else:
        build = functools.partial(_given, messages, media)
    return JudgeQuestion(
        name=str(item.get("name", "judge")),
        build_messages=build,
        accepts=reader(item.get("reader", "text"), f"{where}: doc_to_judge"),
        generation={**DEFAULT_GENERATION, **(item.get("generation") or {})},
        details=dict(item.get("details") or {}),
    )


def _turn(prompt: str, images: Sequence[Any], max_side: int | None) -> ChatMessages:
    return user_turn(prompt, [bounded_picture(image, max_side) for image in images])


def _given(messages: Any, media: MediaPolicy | None) -> ChatMessages:
    from lmms_eval.api.messages import ChatMessages

    made = messages if isinstance(messages, ChatMessages) else ChatMessages(messages=list(messages))
    return made if media is None else ChatMessages.model_validate({"messages": media.turns(dump(made))})
