"""Checks when a run is resumed: its journals must answer the same prompts that would be sent now.

The run key covers the code and the files that a task is known to depend on. It cannot cover everything that a task's
code may read to build a prompt, nor the content of every picture. So some answered documents of each task are rendered
again and compared with their records, as is each document with a media file that is newer than the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loguru import logger
from msgspec import Struct

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request, SentMedia
from lmms_eval.api.task import Task
from lmms_eval.engine.prompts import message_fingerprint, messages_with, outline, text_fingerprint
from lmms_eval.engine.records import media_from_record
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.media.sent import recording, unrecorded
from lmms_eval.utils.names import counted

DOCUMENTS = 8
"""Number of answered documents per task that are rendered again, at even distances."""
PATIENCE_S = 20.0
"""After so many seconds only one document of each remaining task is checked."""


def check_continued(tasks: Sequence[Task], model: Model, store: RunStore, is_first: bool = True) -> None:
    """Compare the journals with the prompts of now; documents with changed media will be asked again.

    ``is_first``: compare prompts too and report the number of kept answers, which only one process of a launch needs
    to do. Raises ``UsageError`` if the prompt of a document has changed.
    """
    _ask_again_changed_media(tasks, model, store)
    if is_first:
        deadline, answered = time.monotonic() + PATIENCE_S, store.answered()
        for task in tasks:
            _check_task(task, model, store, answered.get(task.name, []), deadline)
        if store.resumed_responses:
            logger.info("{} of earlier starts kept", counted(store.resumed_responses, "answer"))


def _ask_again_changed_media(tasks: Sequence[Task], model: Model, store: RunStore) -> None:
    by_name = {task.name: task for task in tasks}
    for name, ids in store.with_newer_media().items():
        task = by_name.get(name)
        if task is None:
            continue
        changed = sorted({_doc_id(one) for one in ids if _has_changed_media(task, model, store, one)})
        if changed:
            logger.warning(
                "{}: pictures, videos or sounds of {} answered documents have changed since (the first is document "
                "{}): they are asked again",
                name, len(changed), changed[0],
            )  # fmt: skip
            store.forget(name, changed)


def _has_changed_media(task: Task, model: Model, store: RunStore, request_id: str) -> bool:
    """Return whether a request would be sent with other media, or cannot be rendered by itself."""
    record, now = store.record(request_id), _rendered(task, model, request_id)
    if now is None or len(now.media) != len(media_from_record(record)):
        return True
    return _differing_media(record, now.media) is not None


def _check_task(task: Task, model: Model, store: RunStore, answered: Sequence[str], deadline: float) -> None:
    for number, request_id in enumerate(_spread(answered)):
        if number and time.monotonic() > deadline:
            return
        now = _rendered(task, model, request_id)
        if now is None:
            continue
        record = store.record(request_id)
        if (differing := _differing_media(record, now.media)) is not None:
            if not differing.path:
                raise _changed(task, request_id, store, f"its {differing.type} has")
            store.forget(task.name, [_doc_id(request_id)])
            logger.warning(
                "{}: {} has changed: document {} is asked again", task.name, differing.path, _doc_id(request_id)
            )
        elif record.get("prompt", now.prompt) != now.prompt and not _is_same_text(record, now, store, task):
            again = _rendered(task, model, request_id)
            if again is not None and again.prompt != now.prompt:
                logger.warning(
                    "{}: its prompts differ each time they are made (document {}), so it is unknown whether they "
                    "have changed since this run began",
                    task.name, _doc_id(request_id),
                )  # fmt: skip
                return
            raise _changed(task, request_id, store, "its text or the order of its parts has")


def _changed(task: Task, request_id: str, store: RunStore, what: str) -> UsageError:
    return UsageError(
        f"task {task.name!r}: the prompt of document {_doc_id(request_id)} is another one than when this run recorded "
        f"its answer: {what} changed. Resuming would mix answers to two prompts. Restore what the prompt is made of "
        "(code, files, environment) and start the same command again; or give another --output_path, or delete "
        f"{store.folder}, to ask everything anew"
    )


class _Rendered(Struct, frozen=True):
    """A request as it would be sent now."""

    request: Request
    prompt: str
    media: tuple[SentMedia, ...]
    messages: tuple[Mapping[str, Any], ...]


def _rendered(task: Task, model: Model, request_id: str) -> _Rendered | None:
    """Render a request of a first round as the driver does; ``None`` for other rounds, or if that fails."""
    _, doc_id, repeat, *_ = request_id.rsplit("/", 4)
    try:
        requests = task.exchange(int(doc_id), int(repeat)).open()
        request = next((one for one in requests if one.id == request_id), None)
        return None if request is None else _prepared(request, model)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - a task's functions may raise anything; it will fail when it is asked
        kind = "" if isinstance(error, LmmsEvalError) else f"{type(error).__name__}: "
        logger.debug("{}: cannot be rendered again: {}{}", request_id, kind, error)
        return None


def _prepared(request: Request, model: Model) -> _Rendered:
    seen: list[ChatMessages] = []

    def build() -> ChatMessages:
        with unrecorded():
            messages = request.build_messages()
        seen.append(messages)
        return messages

    with recording() as sent:
        prepared = model.prepare(request.with_messages(build))
    media = tuple(sent)
    prompt = message_fingerprint(seen[0]) if seen else text_fingerprint(request.context)
    outlined = outline(seen[0], request.context) if seen else None
    sent_messages = () if outlined is None else messages_with(outlined, media)
    prepared.free()
    return _Rendered(request, prompt, media, tuple(message.to_dict() for message in sent_messages))


def _differing_media(record: Mapping[str, Any], now: Sequence[SentMedia]) -> SentMedia | None:
    """Return the first medium whose content differs from the record; ``None`` if all are equal or unknown."""
    recorded = media_from_record(record)
    if len(recorded) != len(now):
        return None
    pairs = zip(recorded, now, strict=True)
    return next((new for old, new in pairs if old.sha256 and new.sha256 and old.sha256 != new.sha256), None)


def _is_same_text(record: Mapping[str, Any], now: _Rendered, store: RunStore, task: Task) -> bool:
    """Return whether two prompts with different fingerprints differ only in the paths of their media files."""
    media, score = media_from_record(record), store.score(task.name, now.request.doc_id)
    if not media or len(media) != len(now.media) or score is None or len(score["answers"]) <= now.request.repeat:
        return False
    if any(not old.sha256 or old.sha256 != new.sha256 for old, new in zip(media, now.media, strict=True)):
        return False
    is_same_context = score["answers"][now.request.repeat].get("input") == now.request.context
    return is_same_context and list(now.messages) == list(record.get("messages", ()))


def _spread(ids: Sequence[str]) -> Iterator[str]:
    """Yield ``DOCUMENTS`` of the ids at even distances, from the first to the last."""
    count = min(DOCUMENTS, len(ids))
    places = {round(number * (len(ids) - 1) / max(count - 1, 1)) for number in range(count)}
    return (ids[place] for place in sorted(places))


def _doc_id(request_id: str) -> int:
    return int(request_id.rsplit("/", 4)[1])
