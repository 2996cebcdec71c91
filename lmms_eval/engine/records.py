"""Conversion of responses and scored documents to journal records and back, and the folder of their pictures."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from loguru import logger
from msgspec import Struct, convert, structs

from lmms_eval.api.interleaved import InterleavedText, media_type_of
from lmms_eval.api.records import AnswerRecord, ResponseLine, ThoughtsRecord
from lmms_eval.api.request import (
    ErrorKind,
    GeneratedImage,
    Part,
    Response,
    ResponseError,
    SentMedia,
    SentMessage,
    Thoughts,
    Usage,
)
from lmms_eval.api.response import is_invisible
from lmms_eval.api.task import Answer, ScoredDoc
from lmms_eval.errors import FunctionError, ItemError, JournalError, LmmsEvalError, MediaError
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.installed import error_text
from lmms_eval.utils.prices import Spending
from lmms_eval.utils.redaction import redact_text

FOLDER = "images"
"""Folder of pictures next to the samples files; without ``--output_path`` in the run's folder."""


class ImageFolder:
    """The pictures of a run; thread-safe.

    Args:
        path: the folder, which is created with the first picture.
        others: folders where an earlier start may have stored pictures; these are copied.
    """

    def __init__(self, path: Path, others: Sequence[Path] = ()) -> None:
        self.path, self._others = path.absolute(), tuple(others)
        self._lock = threading.Lock()
        self._known: set[str] = set()
        """Names of the files whose hash this process has checked."""

    def take_in(self, response: Response) -> Response:
        """Store the pictures of a response, and return it with their paths.

        If a picture is invalid, or does not match its media type or hash, the result is a ``malformed`` error. Raises
        ``JournalError`` if a file could not be written.
        """
        if not response.parts and not response.tool_messages:
            return response
        problem = next((text for image in images_of(response) if (text := self._problem(image))), "")
        if problem:
            return Response.failure(response.request_id, "malformed", problem, response.attempts)
        for image in images_of(response):
            if image.data is not None:
                self.keep(image, image.data)
        messages = tuple(
            mapped_pictures(message, lambda image: replace(image, data=None)) for message in response.tool_messages
        )
        return structs.replace(response, parts=self.located(response.parts), tool_messages=messages)

    def located(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """Return the parts with the paths of the pictures instead of their bytes."""
        return tuple(
            part if isinstance(part, str) else replace(part, data=None, path=str(self.path / part.file_name))
            for part in parts
        )

    def keep(self, image: GeneratedImage, data: bytes) -> None:
        """Write a picture unless it exists. Raises ``JournalError`` if the write failed."""
        with self._lock:
            if self._is_there(image):
                return
            path = self.path / image.file_name
            try:
                with replacing(path) as file:
                    file.write(data)
            except OSError as error:
                if not _has_hash(path, image.sha256):  # else another process has written the same one
                    raise JournalError(
                        f"cannot write the picture {path}: {error.strerror or error}; what was finished before is "
                        "kept: make room and start the same command again"
                    ) from error
            self._known.add(image.file_name)

    def holds(self, image: GeneratedImage) -> bool:
        """Return whether the file exists with the right hash; a file of an earlier start is copied from its folder.

        Raises ``JournalError`` if the file could not be copied.
        """
        with self._lock:
            if self._is_there(image):
                return True
        for folder in self._others:
            path = folder / image.file_name
            if _has_hash(path, image.sha256):
                self.keep(image, path.read_bytes())
                return True
        return False

    def read(self, image: GeneratedImage) -> bytes:
        """Return the bytes of a picture. Raises ``JournalError`` if the file is gone."""
        path = self.path / image.file_name
        try:
            return path.read_bytes()
        except OSError as error:
            raise JournalError(f"cannot read the picture {path}: {error.strerror or error}") from error

    def _is_there(self, image: GeneratedImage) -> bool:
        if image.file_name in self._known:
            return True
        is_there = _has_hash(self.path / image.file_name, image.sha256)
        if is_there:
            self._known.add(image.file_name)
        return is_there

    def _problem(self, image: GeneratedImage) -> str:
        if image.data is None:
            return "" if self.holds(image) else f"a picture without bytes ({image.sha256})"
        if media_type_of(image.data) != image.media_type:
            return f"a picture of {len(image.data)} bytes that is no {image.media_type.rpartition('/')[2]} file"
        is_named = hashlib.sha256(image.data).hexdigest() == image.sha256
        return "" if is_named else f"a picture whose bytes do not have its hash {image.sha256}"


def images_of(response: Response) -> list[GeneratedImage]:
    """Return the pictures from the model and from its tools."""
    shown = [part.picture for message in response.tool_messages for part in message.content]
    return [part for part in (*response.parts, *shown) if isinstance(part, GeneratedImage)]


def mapped_pictures(message: SentMessage, change: Callable[[GeneratedImage], GeneratedImage]) -> SentMessage:
    """Return the message with its pictures changed."""
    parts = (
        part if part.picture is None else structs.replace(part, picture=change(part.picture))
        for part in message.content
    )
    return structs.replace(message, content=tuple(parts))


def parts_record(parts: Iterable[Part], with_paths: bool = False) -> list[Any]:
    """Convert parts to JSON: texts unchanged, pictures as hash and media type (with the path for other processes)."""
    names = ("sha256", "media_type", "path") if with_paths else ("sha256", "media_type")
    return [part if isinstance(part, str) else {name: getattr(part, name) for name in names} for part in parts]


def _image(record: Mapping[str, Any]) -> GeneratedImage:
    return GeneratedImage(record["sha256"], record["media_type"], path=record.get("path"))


def parts_from_record(record: Iterable[Any]) -> tuple[Part, ...]:
    """Reverse ``parts_record``."""
    return tuple(part if isinstance(part, str) else _image(part) for part in record)


def value_parts(value: Any, with_paths: bool = False) -> list[Any] | None:
    """Return the parts of an answer's value, or a list with the parts of each text; ``None`` if all are plain texts."""
    if isinstance(value, InterleavedText):
        return parts_record(value.parts, with_paths)
    if not isinstance(value, list):
        return None
    of_each = [value_parts(item, with_paths) for item in value]
    return of_each if any(of_each) else None


def value_with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """Reverse ``value_parts``."""
    if isinstance(value, list):
        return [
            value_with_parts(item, of_item) if of_item else item for item, of_item in zip(value, parts, strict=True)
        ]
    return InterleavedText(parts_from_record(parts))


def images_in(record: Mapping[str, Any]) -> list[GeneratedImage]:
    """Return the pictures of a response's or a document's journal record."""
    found: list[GeneratedImage] = []
    for owner in (record, *record.get("answers", ())):
        _collect(owner.get("parts"), found)
        for message in owner.get("tool_messages", ()):
            found += [GeneratedImage(*part["picture"]) for part in message["content"] if "picture" in part]
    return found


def _collect(value: Any, found: list[GeneratedImage]) -> None:
    if isinstance(value, Mapping):
        found.append(_image(value))
    elif isinstance(value, list):
        for item in value:
            _collect(item, found)


def _has_hash(path: Path, sha256: str) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


def failure(doing: str, error: BaseException) -> str:
    """Return the message of an ``LmmsEvalError``, else ``DOING raised TYPE: MESSAGE``; logs the traceback at DEBUG."""
    from lmms_eval.utils.user_code import user_place

    logger.opt(exception=error).debug("{} failed", doing)
    if isinstance(error, LmmsEvalError):
        return str(error)
    return f"{doing} raised {error_text(error)}{user_place(error)}"


def not_sent(request_id: str, doing: str, error: Exception) -> Response:
    """Return the response to a request whose preparation raised."""
    cause = error.__cause__ if isinstance(error, FunctionError) else error
    kind: ErrorKind = "internal"
    if isinstance(cause, ItemError):
        kind = "document"
    elif isinstance(cause, MediaError | OSError):
        kind = "media"
    return Response.failure(request_id, kind, failure(doing, error))


NOTHING = Spending()


class RunSpending(Struct, frozen=True):
    """Spending of a run over all its starts."""

    model: Spending = NOTHING
    judge: Spending = NOTHING


def media_spent(media: Sequence[SentMedia]) -> Spending:
    """Count pictures (including video frames), seconds of sound, and media of unknown size.

    Media that the task gave to a model which does not report what it sends are not counted.
    """
    media = [one for one in media if not one.origin]
    sounds = [one.seconds for one in media if one.type == "audio"]
    videos = [len(one.frames) for one in media if one.type == "video"]
    return Spending(
        pictures=sum(videos) + sum(one.type == "image" for one in media),
        audio_seconds=sum(seconds or 0.0 for seconds in sounds),
        unmeasured=sounds.count(None) + videos.count(0),
    )


def spent_in(record: Mapping[str, Any]) -> Spending:
    """Return the spending for the response of a journal record; nothing for a response from the cache."""
    if record.get("cached") or "id" not in record:
        return NOTHING
    usage = Usage(*record.get("usage", ())[:3])
    read, written, thought = usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0
    untold = not usage.is_known and "error" not in record
    return Spending(read, written, thought, untold=int(untold)) + media_spent(media_from_record(record))


def spending_from(sums: Mapping[str, Any]) -> Spending:
    """Reverse ``dataclasses.asdict``; an empty mapping means that nothing was spent."""
    return Spending(**sums)


def well_typed(response: Response) -> Response:
    """Return a response whose values have the types of its record, since a plugin may have set others.

    A name becomes a text and an unusable number ``None``. A text or thought of another type is a ``malformed`` error.
    """
    names = {"finish_reason": response.finish_reason, "model": response.model, "ended_by": response.ended_by}
    changes: dict[str, Any] = {
        name: str(value) for name, value in names.items() if value is not None and not isinstance(value, str)
    }
    seconds: dict[str, Any] = {"latency": response.latency}
    if response.ttft is not None:
        seconds |= {"ttft": response.ttft, "tokens_per_second": response.tokens_per_second}
    changes |= {
        name: float(value) if isinstance(value, Real) else None
        for name, value in seconds.items()
        if value is not None and type(value) is not float
    }
    attempts: Any = response.attempts
    if type(attempts) is not int:
        changes["attempts"] = int(attempts) if isinstance(attempts, Integral) else 1
    if not all(isinstance(one, str) for one in response.batch):
        changes["batch"] = tuple(map(str, response.batch))
    thoughts = response.thoughts
    texts: list[Any] = [] if thoughts is None else [thoughts.text, thoughts.opening, thoughts.closing]
    for value in [*texts, "" if response.text is None else response.text]:
        if not isinstance(value, str):
            message = f"the model returned {type(value).__name__} where a text belongs"
            return Response.failure(response.request_id, "malformed", message)
    return structs.replace(response, **changes) if changes else response


_counts_of = attrgetter("input_tokens", "output_tokens", "reasoning_tokens")


def response_record(response: Response, prompt: str) -> dict[str, Any]:
    """Return the record of a response without empty values; ``prompt`` is the fingerprint of the rendered request.

    Exactly one of the kinds of outcome is written: ``error``, ``rounds``, ``loglikelihood`` or ``text``.
    """
    error = response.error
    record: dict[str, Any] = {"id": response.request_id}
    if error is not None:
        record["error"] = {"kind": error.kind, "message": redact_text(error.message), "attempts": error.attempts}
    elif response.rounds is not None:
        record["rounds"] = list(response.rounds)
    elif response.loglikelihood is not None:
        record["loglikelihood"] = [response.loglikelihood, response.is_greedy, response.is_loss]
    else:
        record["text"] = response.text
        if response.parts:
            record["parts"] = parts_record(response.parts)
    details = {
        "usage": None if response.usage is None else list(_counts_of(response.usage)),
        "thoughts": None if response.thoughts is None else _thoughts_record(response.thoughts),
        "stops": list(response.stops) or None,
        "finish_reason": response.finish_reason,
        "ended_by": response.ended_by,
        "latency": response.latency,
        "ttft": response.ttft,
        "tokens_per_second": response.tokens_per_second,
        "model": response.model,
        "attempts": response.attempts if response.attempts > 1 else None,
        "batch": list(response.batch) or None,
        "media": [medium.to_dict() for medium in response.media] or None,
        "messages": [message.to_dict() for message in response.messages] or None,
        "tool_messages": [message.to_dict() for message in response.tool_messages] or None,
        "cached": response.is_cached or None,
        "prompt": prompt or None,
    }
    return record | {name: value for name, value in details.items() if value is not None}


def response_from_record(record: Mapping[str, Any]) -> Response:
    """Reverse ``response_record``. Raises ``msgspec.ValidationError`` if the record is not one of a response."""
    convert(record, ResponseLine)
    greedy, error, rounds = record.get("loglikelihood"), record.get("error"), record.get("rounds")
    usage, thoughts = record.get("usage"), record.get("thoughts")
    return Response(
        request_id=record["id"],
        text=record.get("text"),
        parts=parts_from_record(record.get("parts", ())),
        rounds=None if rounds is None else tuple(rounds),
        loglikelihood=greedy[0] if greedy else None,
        is_greedy=greedy[1] if greedy else None,
        is_loss=greedy[2] if greedy else False,
        error=ResponseError(cast(ErrorKind, error["kind"]), error["message"], error["attempts"]) if error else None,
        finish_reason=record.get("finish_reason"),
        usage=None if usage is None else Usage(*usage[:3]),
        latency=record.get("latency"),
        ttft=record.get("ttft"),
        tokens_per_second=record.get("tokens_per_second"),
        attempts=record.get("attempts", 1),
        batch=tuple(record.get("batch", ())),
        model=record.get("model"),
        media=media_from_record(record),
        messages=tuple(SentMessage.from_dict(message) for message in record.get("messages", ())),
        tool_messages=tuple(SentMessage.from_dict(message) for message in record.get("tool_messages", ())),
        thoughts=_thoughts_from_record(thoughts) if thoughts else None,
        stops=tuple(record.get("stops", ())),
        ended_by=record.get("ended_by"),
        is_cached=record.get("cached", False),
    )


def _thoughts_record(thoughts: Thoughts) -> dict[str, Any]:
    record: dict[str, Any] = {"text": thoughts.text}
    if thoughts.opening:
        record["opening"] = thoughts.opening
    if thoughts.closing:
        record["closing"] = thoughts.closing
    return record if thoughts.is_finished else {**record, "finished": False}


def _thoughts_from_record(record: Mapping[str, Any]) -> Thoughts:
    return Thoughts(
        record["text"], record.get("opening", ""), record.get("closing", ""), record.get("finished") is not False
    )


def is_blank(record: Mapping[str, Any]) -> bool:
    """Return whether a response or answer record is a generation without a visible character or picture."""
    value = record["value"] if "value" in record else record.get("rounds", record.get("text"))
    if any(key in record for key in ("error", "loglikelihood", "parts")):
        return False
    texts = value if isinstance(value, list | tuple) else [value]
    return all(text is None or (isinstance(text, str) and is_invisible(text)) for text in texts)


def blank_reason(record: Mapping[str, Any]) -> str:
    """Return the reason why the answer of a record is blank; empty if it is not blank.

    ``truncated in thought``: the token limit ended an unfinished thought; ``unclosed thought``: something else did;
    ``only thoughts``: the model closed its thought and wrote nothing more; ``blank``: it wrote nothing.
    """
    if not is_blank(record):
        return ""
    thoughts = last_thoughts(record)
    if thoughts is None:
        return "blank"
    if record.get("finish_reason") == "length":
        return "truncated in thought"
    return "only thoughts" if thoughts.get("finished", True) else "unclosed thought"


def last_thoughts(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the thoughts of a response's record, or of the last response of an answer's record."""
    found = record.get("thoughts")
    last: Mapping[str, Any] | None = found[-1] if isinstance(found, list | tuple) and found else found or None
    return last


def written(record: Mapping[str, Any]) -> Any:
    """Return the value of an answer's record as the model wrote it, with the thoughts in tags."""
    value, found = record["value"], record.get("thoughts")
    if not found or "parts" in record:
        return value
    convert(found, list[ThoughtsRecord | None])
    thoughts = [each and _thoughts_from_record(each) for each in found]
    if isinstance(value, str) and len(thoughts) == 1:
        return value if thoughts[0] is None else thoughts[0].before(value)
    if isinstance(value, list | tuple) and len(value) == len(thoughts):
        pairs = zip(value, thoughts, strict=True)
        return [text if one is None or not isinstance(text, str) else one.before(text) for text, one in pairs]
    return value


def written_response(record: Mapping[str, Any]) -> Any:
    """Return the output of the model in a response's record: text with thoughts, rounds or a log probability."""
    if record.get("thoughts") and isinstance(record.get("text"), str):
        return written({**record, "value": record["text"], "thoughts": [record["thoughts"]]})
    return record.get("text", record.get("rounds", record.get("loglikelihood")))


def is_filtered(record: Mapping[str, Any]) -> bool:
    """Return whether a content filter or a refusal ended the response or answer of a record."""
    return record.get("finish_reason") == "content_filter"


def is_cut(record: Mapping[str, Any]) -> bool:
    """Return whether the token limit ended the response or answer of a record."""
    return record.get("finish_reason") == "length"


def answer_record(answer: Answer, with_paths: bool = False) -> dict[str, Any]:
    """Return the record of an answer; ``with_paths`` adds the paths of pictures for another process."""
    usage = [None if each is None else list(_counts_of(each)) for each in answer.usage]
    record = {
        "value": answer.value,
        "input": answer.input,
        "parts": None if type(answer.value) is str else value_parts(answer.value, with_paths),
        "usage": usage if any(usage) else None,
        "thoughts": [None if each is None else _thoughts_record(each) for each in answer.thoughts] or None,
        "stops": list(answer.stops) or None,
        "ended_by": list(answer.ended_by) or None,
        "finish_reason": answer.finish_reason,
        "latency": answer.latency,
        "model": answer.model,
        "error": None if answer.error is None else redact_text(answer.error),
        "is_loss": None if answer.is_loss else False,
        "media": [medium.to_dict() for medium in answer.media] or None,
        "messages": [message.to_dict() for message in answer.messages] or None,
        "attempts": answer.attempts if answer.attempts > 1 else None,
    }
    return {name: value for name, value in record.items() if value is not None or name == "value"}


def answer_from_record(record: Mapping[str, Any]) -> Answer:
    """Reverse ``answer_record``. Raises ``msgspec.ValidationError`` if the record is not one of an answer."""
    convert(record, AnswerRecord)
    value, parts = record["value"], record.get("parts")
    return Answer(
        value=value if parts is None else value_with_parts(value, parts),
        usage=tuple(Usage(*usage[:3]) if usage else None for usage in record.get("usage", ())),
        thoughts=tuple(_thoughts_from_record(each) if each else None for each in record.get("thoughts", ())),
        stops=tuple(record.get("stops", ())),
        ended_by=tuple(record.get("ended_by", ())),
        finish_reason=record.get("finish_reason"),
        latency=record.get("latency"),
        error=record.get("error"),
        input=record["input"],
        is_loss=record.get("is_loss") is not False,
        model=record.get("model"),
        media=media_from_record(record),
        messages=tuple(SentMessage.from_dict(message) for message in record.get("messages", ())),
        attempts=record.get("attempts", 1),
    )


def without_cut_thought(answer: Answer) -> Answer:
    """Turn the text of a truncated answer without tags into an unfinished thought that the chat template opened."""
    if answer.finish_reason != "length" or not isinstance(answer.value, str) or any(answer.thoughts):
        return answer
    return structs.replace(answer, value="", thoughts=(Thoughts(answer.value, is_finished=False),))


def media_from_record(record: Mapping[str, Any]) -> tuple[SentMedia, ...]:
    """Return the media of a response's or an answer's record."""
    return tuple(SentMedia.from_dict(medium) for medium in record.get("media", ()))


def listed(value: Any) -> Any:
    """Return a value as in the samples file: tuples become lists, which JSON has and journals need no tag for."""
    return [listed(item) for item in value] if isinstance(value, list | tuple) else value


def scored_part(scored: ScoredDoc) -> dict[str, Any]:
    """Return the part of a document's record after its answers: all that the samples and the aggregation need."""
    scores = []
    for score in scored.scores:
        record = {"filter": score.filter, "filtered": listed(score.filtered), "metrics": dict(score.metrics)}
        if score.status != "scored":
            record |= {"status": score.status, "reason": score.reason}
        if score.per_answer:
            record["per_answer"] = [dict(metrics) for metrics in score.per_answer]
        if score.per_verdict:
            record["per_verdict"] = [[dict(metrics) for metrics in answer] for answer in score.per_verdict]
        if score.drew:
            record["drew"] = True
        if score.reading.rule:
            record["reading"] = {"rule": score.reading.rule, "extracted": list(score.reading.found)}
        scores.append(record)
    return {
        "target": scored.target, "doc": dict(scored.doc), "doc_hash": scored.doc_hash, "media": list(scored.media),
        "scores": scores,
    }  # fmt: skip
