"""The samples file: one JSON line per document and filter pipeline, in document order, streamed from the journal.

Journal records become lines here, for the file of a finished run and for readers of unfinished runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.request import GeneratedImage
from lmms_eval.api.task import Task
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.records import FOLDER, blank_reason, listed, parts_from_record, written
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import JournalError
from lmms_eval.storage.atomic import replacing
from lmms_eval.storage.codec import plain_json
from lmms_eval.utils.redaction import mask_known


def with_samples(path: Path, store: RunStore, task: Task, doc_ids: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the records of finished documents, and meanwhile write the samples file, which is replaced at the end.

    Records are read again for each further pipeline. Without any row, the file is removed. Raises ``JournalError`` if
    the file cannot be written; an earlier file is unchanged.
    """
    try:
        with replacing(path) as file:
            for number in range(len(task.pipelines)):
                for record in store.scores(task.name, doc_ids):
                    if (row := _row_through(task, number, record)) is not None:
                        file.write((mask_known(json_text(row)) + "\n").encode("utf-8", "replace"))
                    if number == 0:
                        yield record
            is_empty = file.tell() == 0
        if is_empty:
            path.unlink()
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}; the journal keeps every answer") from error


def returned_samples(
    results: Sequence[TaskResult], store: RunStore, file_of: Callable[[str], Path] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the samples files by task.

    ``file_of`` returns a task's file if the run has written the files; otherwise the rows are made from the journals.
    Raises ``JournalError`` if a file cannot be read.
    """
    if file_of is not None:
        return {result.task.name: _read(file_of(result.task.name)) for result in results}
    return {
        result.task.name: [
            json.loads(mask_known(json_text(row))) for row in sample_rows(result.task, store, result.doc_ids)
        ]
        for result in results
    }


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:  # a file without any row is removed
        return []
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror or error}; the journal keeps every answer") from error


def json_text(value: Any, indent: int | None = None) -> str:
    """Format a task's values as JSON: sets as sorted lists, bytes as their hash, other unknown types as text."""
    plain = None if indent else plain_json(value)
    if plain is not None:
        return plain.decode("utf-8")
    dumps = partial(
        json.dumps, ensure_ascii=False, default=_plain, indent=indent, separators=None if indent else (",", ":")
    )
    try:
        return dumps(value)
    except TypeError:  # a key that is not a text, such as a tuple
        return dumps(_with_text_keys(value))


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = (str, int, float, bool, type(None))
        return {key if isinstance(key, plain) else str(key): _with_text_keys(item) for key, item in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list | tuple) else value


_LIKELIHOODS = ("loglikelihood", "loglikelihood_rolling", "multiple_choice")


def sample_rows(task: Task, store: RunStore, doc_ids: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a samples file for these documents (``docs/results.md``), one block per pipeline."""
    for number in range(len(task.pipelines)):
        for record in store.scores(task.name, doc_ids):
            if (row := _row_through(task, number, record)) is not None:
                yield row


def _row_through(task: Task, number: int, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a document's row for the pipeline with this number; only the first one has a row if it failed."""
    if "failed" in record:
        return None if number else _failed_row(record)
    score = next((item for item in record["scores"] if item["filter"] == task.pipelines[number]), None)
    return None if score is None else _row(record, score, task.output_type in _LIKELIHOODS)


def record_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a document's journal record, one per pipeline, as in the samples file.

    The journal does not name the kind of the task's requests, so likelihoods are recognised by their form. Raises
    ``KeyError``, ``TypeError``, ``AttributeError`` or ``IndexError`` if the record is not one of a document.
    """
    if "failed" in record:
        yield _failed_row(record)
        return
    value = record["answers"][0]["value"]
    is_likelihood = isinstance(value, list | tuple) and all(isinstance(item, list | tuple) for item in value)
    for score in record["scores"]:
        yield _row(record, score, is_likelihood)


def _row(record: Mapping[str, Any], score: Mapping[str, Any], is_likelihood: bool) -> dict[str, Any]:
    answers = record["answers"]
    first = answers[0]
    value = listed(written(first))
    # One entry per request of the document; a single entry is written without its list.
    resps = _unwrapped(value) if is_likelihood else value
    filtered = _unwrapped(listed(score["filtered"]))
    row: dict[str, Any] = {"doc_id": record["doc_id"], "target": record["target"]}
    if resps != filtered:
        row["resps"] = resps
    row["filtered_resps"] = filtered
    row |= _interleaved(answers)
    row["token_counts"] = _usage(first)
    row["doc_hash"] = record["doc_hash"]
    if record["media"]:
        row["input_media"] = record["media"]
    row |= _conversation(answers)
    row |= score["metrics"]
    row["input"] = first["input"]
    row["filter"] = score["filter"]
    if len(answers) > 1 or resps != filtered:
        row["raw_resps"] = [listed(written(answer)) for answer in answers]
    if len(answers) > 1:
        alone = score.get("per_answer") or [None] * len(answers)
        row["repeats"] = [
            {"token_counts": _usage(answer), **({} if metrics is None else {"metrics": metrics})}
            for answer, metrics in zip(answers, alone, strict=True)
        ]
    row["status"] = score.get("status", "scored")
    if score.get("reason"):
        row["reason"] = score["reason"]
    if score.get("drew"):
        row["drew"] = True
    if score.get("reading"):
        row["answer_reading"] = score["reading"]
    return row | _answer_facts(record)


def _usage(answer: Mapping[str, Any]) -> list[Any]:
    return [token_counts(item) for item in answer.get("usage") or [None]]


def token_counts(usage: Sequence[int | None] | None) -> dict[str, Any] | None:
    """Name the token counts of one request; ``None`` without counts."""
    keys = ("input_tokens", "output_tokens", "reasoning_tokens")
    return dict(zip(keys, usage, strict=False)) if usage else None


def _failed_row(record: Mapping[str, Any]) -> dict[str, Any]:
    answers = record["answers"]
    row: dict[str, Any] = {
        "doc_id": record["doc_id"],
        "status": "failed",
        "error": record["failed"],
        "input": answers[0]["input"] if answers else "",
    }
    texts = [listed(written(answer)) for answer in answers if answer["value"] is not None]
    if texts:
        row["raw_resps"] = texts
    row |= _interleaved(answers) | _conversation(answers)
    return row | _answer_facts(record)


def _conversation(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``sent_media``, each medium once, and ``messages``, one list or one per answer if they differ."""
    numbers: dict[str, int] = {}
    media: list[Any] = []
    conversations: list[Any] = []
    for answer in answers:
        own: list[int] = []
        for medium in answer.get("media", ()):  # a single answer has each medium once
            place = len(media) if len(answers) == 1 else numbers.setdefault(json_text(medium), len(numbers))
            own.append(place)
            if place == len(media):
                media.append(medium)
        conversations.append(
            [
                {**message, "content": [_message_part(part, own) for part in message["content"]]}
                for message in answer.get("messages", ())
            ]
        )
    found: dict[str, Any] = {"sent_media": media} if media else {}
    if any(conversation != conversations[0] for conversation in conversations):
        return found | {"messages": conversations}
    return found | ({"messages": conversations[0]} if any(conversations) else {})


def _message_part(part: Mapping[str, Any], media: Sequence[int]) -> Mapping[str, Any]:
    """Return a part of a message with its medium numbered as in ``sent_media``."""
    if "media" in part:
        return {**part, "media": media[part["media"]]}
    return _picture(GeneratedImage(*part["picture"])) if "picture" in part else part


def _interleaved(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``parts`` of the answer, or of each answer; empty if all answers are plain texts."""
    if not any("parts" in answer for answer in answers):
        return {}
    of_each = [_parts(answer["value"], answer.get("parts")) for answer in answers]
    return {"parts": _unwrapped(of_each)}


def _parts(value: Any, parts: Any) -> list[Any]:
    """Return the texts and pictures of an answer in order, as a list per round if there are several."""
    if isinstance(value, list):
        return [_parts(item, of_item) for item, of_item in zip(value, parts or [None] * len(value), strict=True)]
    pieces = parts_from_record(parts or ([] if value is None else [value]))
    return [{"type": "text", "text": piece} if isinstance(piece, str) else _picture(piece) for piece in pieces]


def _picture(image: GeneratedImage) -> dict[str, Any]:
    return {"type": "image", "path": f"{FOLDER}/{image.file_name}", "sha256": image.sha256}


def _answer_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    answers = record["answers"]
    facts: dict[str, Any] = {"judge": record["judge"]} if record.get("judge") else {}
    facts |= endings_of(answers) | thoughts_of(answers)
    attempts = [answer.get("attempts", 1) for answer in answers]
    if any(number > 1 for number in attempts):
        facts["attempts"] = _unwrapped(attempts)
    if record.get("doc"):
        facts["doc"] = record["doc"]
    facts["request_id"] = f"{record['task']}/{record['doc_id']}"
    return facts


def endings_of(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``finish_reason`` and ``elapsed`` of answers, or of single responses."""
    facts: dict[str, Any] = {}
    for key, name in (("finish_reason", "finish_reason"), ("latency", "elapsed")):
        values = [answer.get(key) for answer in answers]
        if any(value is not None for value in values):
            facts[name] = _unwrapped(values)
    return facts


def thoughts_of(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``thoughts``, a text (or list of rounds) per answer, and ``blank``, why an answer is empty.

    The records are those of answers, or of single responses.
    """
    facts: dict[str, Any] = {}
    if any("thoughts" in answer for answer in answers):
        rounds = [answer.get("thoughts") for answer in answers]
        each_round = [found if isinstance(found, list | tuple) else [found] for found in rounds]
        texts = [
            _unwrapped([one["text"] if one and one["text"].strip() else None for one in found]) for found in each_round
        ]
        if any(any(text) if isinstance(text, list) else text for text in texts):
            facts["thoughts"] = _unwrapped(texts)
    blank = [blank_reason(answer) or None for answer in answers]
    if any(blank):
        facts["blank"] = _unwrapped(blank)
    return facts


def _unwrapped(values: Any) -> Any:
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, bytes):
        return f"sha256:{hashlib.sha256(value).hexdigest()}"
    return str(value)
