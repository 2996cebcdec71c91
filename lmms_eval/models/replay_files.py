"""Reading recorded answers: samples files (this package's and the family's) and MEGA-Bench submission files."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Part, Request, Response, Thoughts
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.task_access import document_hash_of, document_of
from lmms_eval.utils.plain_files import read_plain, read_plain_text

RAW_KEYS = ("raw_resps", "resps", "filtered_resps")
"""Columns of a samples row that may hold the answers, the rawest first."""
NO_HASH = frozenset({"", hashlib.sha256(b"null").hexdigest()})
"""Values of ``doc_hash`` that identify nothing: the family's samples have the hash of no document in every row."""
ROUND_TASKS = ("generate_until_multi_round", "generate_until_agentic")


class AnswerBook(abc.ABC):
    """Recorded answers of one task."""

    @abc.abstractmethod
    def response(self, request: Request) -> Response:
        """The recorded answer, or a failure of kind ``bad_request`` where there is none."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Answers of a document, as a samples row holds them."""

    answers: list[Any]
    parts: list[Any]
    finish_reason: Any
    """How generation ended; of several answers a list."""
    doc_hash: str
    thoughts: Any
    """What the model thought before; of several answers a list."""


class SamplesBook(AnswerBook):
    """A samples JSONL file: one row for each document and filter pipeline.

    An answer to another document than the one that is asked (``doc_hash``) is none: the data set was reordered or
    changed since. How an answer ended (``finish_reason``) comes with it.

    Raises:
        ModelError: the file cannot be read or a line is no samples row.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[int, _Row] = {}
        for number, line in enumerate(_read_text(path).split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                    doc_id = int(row["doc_id"])
                except (ValueError, KeyError, TypeError) as error:
                    raise ModelError(f"replay: {self._path} line {number} is no samples row: {error!r}") from error
                key = next((key for key in RAW_KEYS if row.get(key) is not None), None)
                if key is not None and not row.get("error"):
                    self._rows.setdefault(doc_id, _row(row, row[key]))

    def response(self, request: Request) -> Response:
        row = self._rows.get(request.doc_id)
        if row is None:
            return _missing(request, self._path)
        now = "" if row.doc_hash in NO_HASH else document_hash_of(request.task, request.doc_id)
        if now and now != row.doc_hash:
            return Response.failure(
                request.id,
                "bad_request",
                f"{self._path.name} answers another document {request.doc_id} of task {request.task.name} (doc_hash "
                f"{row.doc_hash[:12]}, here {now[:12]}): the data set was reordered or changed",
            )
        if request.kind == "loglikelihood":
            return _likelihood(request, row.answers, self._path)
        parts = _parts_of(request, row.parts)
        if parts is not None:
            return _interleaved(request, parts, self._path, row)
        if request.task.output_type in ROUND_TASKS:
            return self._round(request, row)
        if request.repeat >= len(row.answers) or row.answers[request.repeat] is None:
            return _missing(request, self._path)
        text = str(row.answers[request.repeat])
        thoughts = _thoughts_apart(request, row, text)
        return Response(request.id, text=text, finish_reason=_ending(request, row), thoughts=thoughts)

    def _round(self, request: Request, row: _Row) -> Response:
        rounds = _rounds_of(request, row.answers)
        if request.kind == "generate_until_multi_round" and rounds:
            return Response(request.id, rounds=tuple(rounds), finish_reason=_ending(request, row))
        if request.round >= len(rounds):
            return _missing(request, self._path)
        is_last = request.round == len(rounds) - 1
        ending = _ending(request, row) if is_last else "stop"  # the row tells that of the last one alone
        return Response(request.id, text=rounds[request.round], finish_reason=ending)


def _thoughts_apart(request: Request, row: _Row, text: str) -> Thoughts | None:
    """Return the thoughts that a server had returned apart from the answer; others are part of its text."""
    said = row.thoughts
    if isinstance(said, list):
        said = said[request.repeat] if request.repeat < len(said) else None
    if not isinstance(said, str) or said in text:
        return None
    return Thoughts(said, is_finished=bool(text.strip()))


def _row(row: Mapping[str, Any], value: Any) -> _Row:
    parts = row.get("parts")
    doc_hash = row.get("doc_hash")
    return _Row(
        value if isinstance(value, list) else [value],
        parts if isinstance(parts, list) else [],
        row.get("finish_reason"),
        doc_hash if isinstance(doc_hash, str) else "",
        row.get("thoughts"),
    )


def _ending(request: Request, row: _Row) -> str:
    """Return how the recorded answer ended; ``stop`` if the row does not say."""
    told = row.finish_reason
    if isinstance(told, list):
        told = told[request.repeat] if request.repeat < len(told) else None
    return told if isinstance(told, str) and told else "stop"


class SubmissionBook(AnswerBook):
    """MEGA-Bench submission files: answers by task name and global index.

    Raises:
        ModelError: a file cannot be read, or two files answer the same question differently.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._answers: dict[tuple[str, str], str] = {}
        for path in paths:
            for key, text in read_submission(path).items():
                if self._answers.setdefault(key, text) != text:
                    raise ModelError(f"replay: two answers to {key[0]} / {key[1]} ({path}); give one file by its path")

    def response(self, request: Request) -> Response:
        document = document_of(request.task, request.doc_id)
        text = self._answers.get((str(document.get("task_name")), str(document.get("id"))))
        if text is None:
            return _missing(request, *self._paths)
        return Response(request.id, text=text, finish_reason="stop")


def read_submission(path: Path) -> dict[tuple[str, str], str]:
    """Answers by (task name, global index) of a submission file, scored or not.

    Raises:
        ModelError: it cannot be read, or is no submission file.
    """
    try:
        payload = json.loads(_read_text(path))
        tasks = payload["data"] if isinstance(payload, Mapping) else payload
        return {
            (str(task["task_name"]), str(query["global_idx"])): str(query["response"])
            for task in tasks
            for query in task["query_response"]
            if query.get("response") is not None
        }
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"replay: {path} is neither a samples file (.jsonl) nor a submission file: {error!r}"
        ) from error


def _read_text(path: Path) -> str:
    try:
        return read_plain_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"replay: cannot read {path}: {error}") from error


def _likelihood(request: Request, held: Sequence[Any], path: Path) -> Response:
    """One pair ``(loss, is_greedy)`` for each choice; with repeats one list after the other, or nested."""
    pairs = held
    if held and isinstance(held[0], list) and held[0] and isinstance(held[0][0], list):
        pairs = held[request.repeat] if request.repeat < len(held) else []
        position = request.index
    else:
        position = request.repeat * (len(held) // max(request.task.repeats, 1)) + request.index
    try:
        value, greedy = pairs[position]
        loss = float(value)
    except (IndexError, ValueError, TypeError):
        return _missing(request, path)
    return Response(request.id, loglikelihood=loss, is_greedy=str(greedy) == "True", is_loss=True)


def _rounds_of(request: Request, held: Sequence[Any]) -> list[str]:
    """All rounds of one answer: a list, the trace in the payload of an agentic task, or the row itself."""
    if request.task.output_type == "generate_until_agentic":
        return _trace(held[request.repeat]) if request.repeat < len(held) else []
    if any(isinstance(item, list) for item in held):
        rounds = held[request.repeat] if request.repeat < len(held) else []
        return [str(item) for item in rounds]
    return [str(item) for item in held] if request.repeat == 0 and request.task.repeats <= 1 else []


def _parts_of(request: Request, parts: list[Any]) -> list[Any] | None:
    """Texts and pictures of the answer to this request; ``None`` if none are listed."""
    if request.task.output_type == "generate_visual_cot" and request.round:
        return None  # the pictures were drawn in the round before
    places = [request.repeat] if request.task.repeats > 1 else []
    if request.task.output_type == "generate_until_multi_round":
        places.append(request.round)
    for place in places:
        if place >= len(parts) or not isinstance(parts[place], list):
            return None
        parts = parts[place]
    return parts if parts and all(isinstance(part, Mapping) for part in parts) else None


def _interleaved(request: Request, parts: Sequence[Mapping[str, Any]], path: Path, row: _Row) -> Response:
    """The answer with its pictures, which lie beside the samples file."""
    pieces: list[Part] = []
    for part in parts:
        if part.get("type") == "text":
            pieces.append(str(part.get("text", "")))
            continue
        file = path.parent / str(part.get("path"))
        try:
            image = generated_image(read_plain(file))
        except (OSError, ValueError, MediaError) as error:
            return Response.failure(
                request.id, "malformed", f"a picture of {path.name} cannot be read: {file}: {error}"
            )
        if image.sha256 != part.get("sha256"):
            return Response.failure(request.id, "malformed", f"{file} is not the picture of {path.name}: another hash")
        pieces.append(image)
    return Response.interleaved(request.id, pieces, finish_reason=_ending(request, row))


def _trace(answer: Any) -> list[str]:
    """The model's outputs in the JSON answer of an agentic task (``trace`` or ``agentic_rounds``)."""
    try:
        payload = json.loads(answer) if isinstance(answer, str) else answer
    except ValueError:
        return [str(answer)]
    if not isinstance(payload, Mapping):
        return [str(answer)]
    if isinstance(payload.get("agentic_rounds"), list):
        return [str(entry.get("model_output", "")) for entry in payload["agentic_rounds"]]
    trace = payload.get("trace")
    return [str(item) for item in trace] if isinstance(trace, list) else [str(answer)]


def _missing(request: Request, *paths: Path) -> Response:
    asked = f"document {request.doc_id} of task {request.task.name}"
    if request.repeat or request.round or request.index:
        asked += f" (repeat {request.repeat}, round {request.round}, choice {request.index})"
    names = ", ".join(path.name for path in paths)
    return Response.failure(request.id, "bad_request", f"no answer for {asked} in {names}")
