"""Lines of ``{uuid}_samples.jsonl`` (Every Eval Ever): a sample of a run for each number that it is part of."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, field

from lmms_eval.exchange.numbers import ReportedNumber
from lmms_eval.results.sample import Conversation, Piece, Sample, SampleMessage, finite, json_cell, plain_text
from lmms_eval.utils.numbers import ScoreRange

SCHEMA_VERSION = "0.3.0"
"""Version of the schemas of Every Eval Ever that records follow."""
LONGEST_METADATA = 500
"""Most characters of a document's field that is copied as metadata."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_SLACK = 1e-6


class BestScore(Struct, frozen=True):
    """Meaning of a document's number of a metric: the best one counts as correct."""

    best: float | None
    """``None`` if no number is known to be the best."""

    @classmethod
    def of(cls, within: ScoreRange | None, higher_is_better: bool | None, scores: Sequence[float]) -> BestScore:
        """Find the best number: an end of the range, or 1 if there are only 0 and 1."""
        if within is not None:
            best = within.low if higher_is_better is False else within.high
            if math.isfinite(best):
                return cls(best)
        is_binary = bool(scores) and set(scores) <= {0.0, 1.0}
        return cls((0.0 if higher_is_better is False else 1.0) if is_binary else None)

    def is_correct(self, score: float) -> bool:
        return self.best is not None and math.isclose(score, self.best, rel_tol=_SLACK, abs_tol=_SLACK)


class Result(Struct, frozen=True):
    """A number of the record that samples refer to."""

    number: ReportedNumber
    id: str
    scale: BestScore
    choices: str = ""
    """Column of the document with the choices; empty if it is not known."""


class Lines(Struct):
    """The lines of one record, and counts of what they cannot hold."""

    evaluation_id: str
    model_id: str
    left_out: Counter[str] = field(default_factory=Counter)
    """Numbers of samples by the reason why they have no line."""
    reasoned: set[str] = field(default_factory=set)
    """Tasks with thoughts of the model."""

    def of(self, sample: Sample, results: Sequence[Result]) -> Iterator[bytes]:
        """Yield the lines of a sample: one for each result that it has a score of."""
        if sample.thoughts:
            self.reasoned.add(sample.task)
        if sample.status == "failed":
            self.left_out[f"{sample.task}: failed requests"] += 1
            return
        shared: dict[str, Any] | None = None
        for result in results:
            score = sample.number(result.number.metric)
            if score is None:
                self.left_out[f"{sample.task} {result.number.name}: without a score"] += 1
                continue
            if shared is None:
                shared = _shared(sample, result.choices)
            turns = len([one for one in shared.get("messages") or () if one["role"] == "assistant"])
            evaluation: dict[str, Any] = {"score": score, "is_correct": result.scale.is_correct(score)}
            if turns:
                calls = sum(len(one.get("tool_calls", ())) for one in shared["messages"])
                evaluation |= {"num_turns": turns, "tool_calls_count": calls}
            line = {
                "schema_version": SCHEMA_VERSION,
                "evaluation_id": self.evaluation_id,
                "model_id": self.model_id,
                "evaluation_name": sample.task,
                "evaluation_result_id": result.id,
                **shared,
                "evaluation": evaluation,
            }
            yield encoded(line) + b"\n"


def encoded(value: Any) -> bytes:
    """Encode a value as JSON. Lone surrogates, which UTF-8 does not have, become the replacement character."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(_clean(value), ensure_ascii=False, allow_nan=False).encode("utf-8")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value


def _shared(sample: Sample, choices: str) -> dict[str, Any]:
    """Return what the lines of one sample have in common."""
    conversation = sample.messages
    kind = _kind(conversation)
    reference = _texts(sample.record.get("target"))
    asked: dict[str, Any] = {"raw": sample.prompt, "reference": reference}
    if kind == "single_turn" and (formatted := _formatted(conversation, sample.prompt)):
        asked["formatted"] = formatted
    listed = sample.doc.get(choices) if choices else None
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        asked["choices"] = listed
    found: dict[str, Any] = {
        "sample_id": sample.doc_id,
        "sample_hash": _hash(sample.prompt, reference),
        "interaction_type": kind,
        "input": asked,
    }
    answers = _answers(sample)
    if kind == "single_turn":
        found["output"] = {"raw": answers}
        if any(thoughts := _thoughts(sample, len(answers))):
            found["output"]["reasoning_trace"] = thoughts
    else:
        found["messages"] = _messages(conversation, sample.record.get("thoughts"))
    found["answer_attribution"] = _attribution(sample, kind, found, answers)
    tokens = sample.tokens
    if tokens.input is not None and tokens.output is not None and min(tokens.input, tokens.output) >= 0:
        total = tokens.input + tokens.output
        used = {"input_tokens": tokens.input, "output_tokens": tokens.output, "total_tokens": total}
        found["token_usage"] = used | ({} if tokens.reasoning is None else {"reasoning_tokens": tokens.reasoning})
    if sample.elapsed is not None and sample.elapsed >= 0:
        found["performance"] = {"latency_ms": sample.elapsed * 1000}
    if sample.reason:
        found["error"] = sample.reason
    found["metadata"] = dict(_metadata(sample))
    return found


def _hash(prompt: str, reference: Sequence[str]) -> str:
    content = prompt + "".join(reference)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def _kind(conversation: Conversation) -> str:
    if any(
        message.role == "tool" or any(piece.kind == "call" for piece in message.content) for message in conversation
    ):
        return "agentic"
    return "multi_turn" if any(message.round for message in conversation) else "single_turn"


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [plain_text(one) for one in value]
    return [] if value is None else [plain_text(value)]


def _answers(sample: Sample) -> list[str]:
    """Return the raw answers: one, or one for each repeat."""
    repeats = sample.repeats
    return [plain_text(one.answer) for one in repeats] if repeats else [sample.raw]


def _thoughts(sample: Sample, answers: int) -> list[str]:
    """Return the thoughts of each answer, with an empty text for an answer without any."""
    if answers == 1:
        return [sample.thoughts]
    return [plain_text(one.thoughts) for one in sample.repeats]


def _extracted(sample: Sample, answers: int) -> list[str]:
    found = sample.record.get("filtered_resps", sample.record.get("raw_resps"))
    if answers > 1 and isinstance(found, list) and len(found) == answers:
        return [plain_text(one) for one in found]
    return [plain_text(found)]


def _attribution(sample: Sample, kind: str, found: Mapping[str, Any], answers: Sequence[str]) -> list[dict[str, Any]]:
    """Return how the answers that were scored came from the output."""
    reading = sample.record.get("answer_reading")
    rule = str(reading.get("rule") or "") if isinstance(reading, Mapping) else ""
    method = rule or ("none" if sample.filter in ("none", "") else f"filter {sample.filter}")
    values = _extracted(sample, len(answers))
    if isinstance(reading, Mapping) and isinstance(reading.get("extracted"), str):
        values = [reading["extracted"]]
    turn, source = 0, "output.raw"
    if kind != "single_turn":
        said = [one["turn_idx"] for one in found["messages"] if one["role"] == "assistant"]
        turn, source = (said[-1] if said else 0), "messages[turn_idx].content"
    return [
        {
            "turn_idx": turn,
            "source": source,
            "extracted_value": value,
            "extraction_method": method,
            "is_terminal": True,
        }
        for value in values
    ]


def _piece(piece: Piece) -> str:
    return piece.text if piece.kind == "text" else "" if piece.kind == "call" else f"<{piece.kind}>"


def _text(message: SampleMessage) -> str:
    return "".join(map(_piece, message.content))


def _formatted(conversation: Conversation, prompt: str) -> str:
    """Return what the model got, with marks for media: a text, or JSON of several messages; empty for the prompt."""
    if len(conversation) == 1 and conversation[0].role == "user":
        text = _text(conversation[0])
        return "" if text == prompt else text
    return json_cell([{"role": one.role, "content": _text(one)} for one in conversation])


def _messages(conversation: Conversation, thoughts: Any) -> list[dict[str, Any]]:
    rounds = _thoughts_of_rounds(thoughts)
    found: list[dict[str, Any]] = []
    for index, message in enumerate(conversation):
        entry: dict[str, Any] = {"turn_idx": index, "role": message.role, "content": _text(message) or None}
        if message.role == "assistant" and rounds and (trace := rounds.pop(0)):
            entry["reasoning_trace"] = trace
        if calls := [_call(piece) for piece in message.content if piece.kind == "call"]:
            entry["tool_calls"] = calls
        if message.call:
            entry["tool_call_id"] = [message.call]
        found.append(entry)
    return found


def _thoughts_of_rounds(thoughts: Any) -> list[str]:
    """Return the thoughts of each round of the first answer."""
    found = thoughts[0] if isinstance(thoughts, list) and thoughts and isinstance(thoughts[0], list) else thoughts
    return [plain_text(one) for one in found] if isinstance(found, list) else [plain_text(found)] if found else []


def _call(piece: Piece) -> dict[str, Any]:
    name, _, text = piece.text.partition(" ")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = {"arguments": text} if text.strip() else {}
    named = given if isinstance(given, dict) else {"arguments": given}
    return {"id": piece.call or name, "name": name, "arguments": {str(k): plain_text(v) for k, v in named.items()}}


def _metadata(sample: Sample) -> Iterator[tuple[str, str]]:
    record = sample.record
    for name in ("doc_hash", "filter", "finish_reason", "blank", "drew", "attempts", "status"):
        if (value := record.get(name)) not in (None, "", []):
            yield name, value if isinstance(value, str) else json_cell(value)
    if (cluster := sample.cluster) is not None:  # it may be the path of a picture
        yield "cluster", hashlib.sha256(cluster.encode("utf-8", "replace")).hexdigest()[:16]
    media = [one for one in record.get("sent_media") or () if isinstance(one, Mapping)]
    if media:
        yield (
            "sent_media",
            json_cell([{k: v for k, v in one.items() if k not in ("path", "name", "stored")} for one in media]),
        )
    verdicts = sample.judge
    for verdict in verdicts if isinstance(verdicts, list) else ():
        if isinstance(verdict, Mapping):
            name = f"judge.{verdict.get('name', '')}"
            yield name, plain_text(verdict.get("text"))
            yield f"{name}.accepted", plain_text(verdict.get("accepted"))
            yield f"{name}.model", plain_text(verdict.get("model"))
    for name, value in sample.doc.items():
        if isinstance(value, str | int | float) and (isinstance(value, str) or finite(value) is not None):
            text = plain_text(value)
            if len(text) <= LONGEST_METADATA:
                yield f"doc.{name}", text
