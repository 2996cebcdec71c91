"""Responses and scored documents as journal records, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.request import Response, ResponseError, SentMedia, SentMessage, Thoughts, Usage
from lmms_eval.api.response import is_invisible
from lmms_eval.api.task import Answer, PipelineScore, ScoredDoc
from lmms_eval.engine.images import parts_from_record, parts_record, value_parts, value_with_parts
from lmms_eval.storage.shapes import NEEDS
from lmms_eval.utils.redaction import redact_text

_MEDIUM = {
    NEEDS: ("type",), **dict.fromkeys(("type", "path", "url", "name", "sha256"), str),
    **dict.fromkeys(("bytes", "width", "height", "seconds"), float), "frames": [int], "times": [float],
}  # fmt: skip
_TOOL_MESSAGES = [{NEEDS: ("content",), "content": [{}]}]
RESPONSE: Mapping[str, Any] = {
    "id": str, "prompt": str, "key": str, "usage": [int], "media": [_MEDIUM], "tool_messages": _TOOL_MESSAGES,
    "batch": [str], "messages": [{}],
}  # fmt: skip
"""Shape of the records of responses and judgements."""
SCORE: Mapping[str, Any] = {
    NEEDS: ("task", "doc_id", "answers"),
    "task": str, "doc_id": int, "key": str, "failed": str,
    "answers": [{"tool_messages": _TOOL_MESSAGES, "media": [_MEDIUM]}],
    "scores": [{}], "judge": [{}],
}  # fmt: skip
"""Shape of the records of finished documents."""


def response_record(response: Response, prompt: str) -> dict[str, Any]:
    """``prompt`` is the fingerprint of the request as rendered; keys with empty values are left out."""
    record: dict[str, Any] = {"id": response.request_id, **_content(response)}
    if response.usage is not None:
        usage = response.usage
        record["usage"] = [usage.input_tokens, usage.output_tokens, usage.reasoning_tokens]
    if response.thoughts is not None:
        record["thoughts"] = _thoughts_record(response.thoughts)
    if response.stops:
        record["stops"] = list(response.stops)
    record |= _stated(response, ("finish_reason", "ended_by", "latency", "model"))
    if response.attempts > 1:
        record["attempts"] = response.attempts
    if response.batch:
        record["batch"] = list(response.batch)
    record |= {"media": _media_record(response.media)} if response.media else {}
    for key, messages in (("messages", response.messages), ("tool_messages", response.tool_messages)):
        if messages:
            record[key] = _messages_record(messages)
    if response.is_cached:
        record["cached"] = True
    if prompt:
        record["prompt"] = prompt
    return record


def _stated(item: Response | Answer, names: Sequence[str]) -> dict[str, Any]:
    """Return the fields of these names that are not ``None``."""
    return {name: value for name in names if (value := getattr(item, name)) is not None}


def _content(response: Response) -> dict[str, Any]:
    if response.error is not None:
        error = response.error
        return {"error": {"kind": error.kind, "message": redact_text(error.message), "attempts": error.attempts}}
    if response.rounds is not None:
        return {"rounds": list(response.rounds)}
    if response.loglikelihood is not None:
        return {"loglikelihood": [response.loglikelihood, response.is_greedy, response.is_loss]}
    if response.parts:
        return {"text": response.text, "parts": parts_record(response.parts)}
    return {"text": response.text}


def response_from_record(record: Mapping[str, Any]) -> Response:
    likelihood = record.get("loglikelihood") or (None, None, False)
    error = record.get("error")
    return Response(
        request_id=record["id"],
        text=record.get("text"),
        parts=parts_from_record(record.get("parts", ())),
        rounds=tuple(record["rounds"]) if "rounds" in record else None,
        loglikelihood=likelihood[0],
        is_greedy=likelihood[1],
        is_loss=likelihood[2],
        error=ResponseError(error["kind"], error["message"], error["attempts"]) if error else None,
        finish_reason=record.get("finish_reason"),
        usage=Usage(*record["usage"][:3]) if "usage" in record else None,
        latency=record.get("latency"),
        attempts=record.get("attempts", 1),
        batch=tuple(record.get("batch", ())),
        model=record.get("model"),
        media=_media_from_record(record),
        messages=_messages_from_record(record),
        tool_messages=_messages_from_record(record, "tool_messages"),
        thoughts=_thoughts_from_record(record.get("thoughts")),
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
    if not thoughts.is_finished:
        record["finished"] = False
    return record


def _thoughts_from_record(record: Mapping[str, Any] | None) -> Thoughts | None:
    if record is None:
        return None
    return Thoughts(record["text"], record.get("opening", ""), record.get("closing", ""), record.get("finished", True))


def is_blank(record: Mapping[str, Any]) -> bool:
    """Tell whether the record of a response or an answer is a generation without visible character or picture."""
    value = record["value"] if "value" in record else record.get("rounds", record.get("text"))
    if any(key in record for key in ("error", "loglikelihood", "parts")):
        return False
    texts = value if isinstance(value, list | tuple) else [value]
    return all(text is None or (isinstance(text, str) and is_invisible(text)) for text in texts)


def blank_reason(record: Mapping[str, Any]) -> str:
    """Return why the answer of this record is blank; empty if it is not.

    ``truncated in thought`` and ``unclosed thought``: the model wrote thoughts alone, and the limit of length ended
    them or something else did; ``only thoughts``: it closed them and wrote nothing more; ``blank``: it wrote nothing.
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
    """Return the thoughts of a response's record, of an answer's those of its last response."""
    found = record.get("thoughts")
    last: Mapping[str, Any] | None = found[-1] if isinstance(found, list | tuple) and found else found or None
    return last


def written(record: Mapping[str, Any]) -> Any:
    """Return the value of an answer's record as the model wrote it: with the thoughts that stood in the text."""
    value, found = record["value"], record.get("thoughts")
    if not found or "parts" in record:
        return value
    thoughts = [_thoughts_from_record(each) for each in found]
    if isinstance(value, str) and len(thoughts) == 1:
        return value if thoughts[0] is None else thoughts[0].before(value)
    if isinstance(value, list | tuple) and len(value) == len(thoughts):
        pairs = zip(value, thoughts, strict=True)
        return [text if one is None or not isinstance(text, str) else one.before(text) for text, one in pairs]
    return value


def written_response(record: Mapping[str, Any]) -> Any:
    """Return what the model wrote by the record of a response: text with its thoughts, rounds or a likelihood."""
    if record.get("thoughts") and isinstance(record.get("text"), str):
        return written({**record, "value": record["text"], "thoughts": [record["thoughts"]]})
    return record.get("text", record.get("rounds", record.get("loglikelihood")))


def is_filtered(record: Mapping[str, Any]) -> bool:
    """Tell whether a content filter or the model's refusal ended the response or answer of this record."""
    return record.get("finish_reason") == "content_filter"


def is_cut(record: Mapping[str, Any]) -> bool:
    """Return whether the limit of tokens ended the response or answer of this record."""
    return record.get("finish_reason") == "length"


def answer_record(answer: Answer, with_paths: bool = False) -> dict[str, Any]:
    """``with_paths``: say where pictures lie, for a process that is to look at them."""
    record: dict[str, Any] = {"value": answer.value, "input": answer.input}
    parts = value_parts(answer.value, with_paths)
    if parts is not None:
        record["parts"] = parts
    if any(usage is not None for usage in answer.usage):
        record["usage"] = [
            usage and [usage.input_tokens, usage.output_tokens, usage.reasoning_tokens] for usage in answer.usage
        ]
    if answer.thoughts:
        record["thoughts"] = [thoughts and _thoughts_record(thoughts) for thoughts in answer.thoughts]
    record |= {name: list(values) for name in ("stops", "ended_by") if (values := getattr(answer, name))}
    record |= _stated(answer, ("finish_reason", "latency", "model"))
    if answer.error is not None:
        record["error"] = redact_text(answer.error)
    if not answer.is_loss:
        record["is_loss"] = False
    if answer.media:
        record["media"] = _media_record(answer.media)
    if answer.messages:
        record["messages"] = _messages_record(answer.messages)
    if answer.attempts > 1:
        record["attempts"] = answer.attempts
    return record


def answer_from_record(record: Mapping[str, Any]) -> Answer:
    return Answer(
        value=value_with_parts(record["value"], record["parts"]) if "parts" in record else record["value"],
        usage=tuple(Usage(*usage[:3]) if usage else None for usage in record.get("usage", ())),
        thoughts=tuple(_thoughts_from_record(thoughts) for thoughts in record.get("thoughts", ())),
        stops=tuple(record.get("stops", ())),
        ended_by=tuple(record.get("ended_by", ())),
        finish_reason=record.get("finish_reason"),
        latency=record.get("latency"),
        error=record.get("error"),
        input=record["input"],
        is_loss=record.get("is_loss", True),
        model=record.get("model"),
        media=_media_from_record(record),
        messages=_messages_from_record(record),
        attempts=record.get("attempts", 1),
    )


def without_cut_thought(answer: Answer) -> Answer:
    """Take the text of a truncated answer without any tag for an unfinished thought that the chat template opened."""
    if answer.finish_reason != "length" or not isinstance(answer.value, str) or any(answer.thoughts):
        return answer
    return replace(answer, value="", thoughts=(Thoughts(answer.value, is_finished=False),))


def _media_record(media: Sequence[SentMedia]) -> list[dict[str, Any]]:
    return [medium.to_dict() for medium in media]


def _media_from_record(record: Mapping[str, Any]) -> tuple[SentMedia, ...]:
    return tuple(SentMedia.from_dict(medium) for medium in record.get("media", ()))


def _messages_record(messages: Sequence[SentMessage]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


def _messages_from_record(record: Mapping[str, Any], key: str = "messages") -> tuple[SentMessage, ...]:
    return tuple(SentMessage.from_dict(message) for message in record.get(key, ()))


def score_record(task: str, doc_id: int, answers: Sequence[Answer], scored: ScoredDoc) -> dict[str, Any]:
    """A document's answers and scores: all that the samples file and the aggregation need."""
    return {
        "task": task,
        "doc_id": doc_id,
        "answers": [answer_record(answer) for answer in answers],
        "target": scored.target,
        "doc": dict(scored.doc),
        "doc_hash": scored.doc_hash,
        "media": list(scored.media),
        "scores": [_pipeline_record(score) for score in scored.scores],
    }


def failure_record(task: str, doc_id: int, answers: Sequence[Answer], reason: str) -> dict[str, Any]:
    """A document whose request was given up, or whose scoring raised."""
    return {
        "task": task,
        "doc_id": doc_id,
        "answers": [answer_record(answer) for answer in answers],
        "failed": redact_text(reason),
    }


def _pipeline_record(score: PipelineScore) -> dict[str, Any]:
    record: dict[str, Any] = {"filter": score.filter, "filtered": score.filtered, "metrics": dict(score.metrics)}
    if score.status != "scored":
        record["status"] = score.status
        record["reason"] = score.reason
    if score.per_answer:
        record["per_answer"] = [dict(metrics) for metrics in score.per_answer]
    if score.drew:
        record["drew"] = True
    if score.reading.rule:
        record["reading"] = {"rule": score.reading.rule, "extracted": list(score.reading.found)}
    return record
