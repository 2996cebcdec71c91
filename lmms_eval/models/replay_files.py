"""Reading recorded answers: samples files (this package's and the family's) and MEGA-Bench submission files."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Part, Request, Response
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.task_access import document_of
from lmms_eval.utils.plain_files import read_plain, read_plain_text

RAW_KEYS = ("raw_resps", "resps", "filtered_resps")
"""Columns of a samples row that may hold the answers, the rawest first."""
ROUND_TASKS = ("generate_until_multi_round", "generate_until_agentic")


class AnswerBook(abc.ABC):
    """Recorded answers of one task."""

    @abc.abstractmethod
    def response(self, request: Request) -> Response:
        """The recorded answer, or a failure of kind ``bad_request`` where there is none."""


class SamplesBook(AnswerBook):
    """A samples JSONL file: one row for each document and filter pipeline.

    Raises:
        ModelError: the file cannot be read or a line is no samples row.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[int, list[Any]] = {}
        self._parts: dict[int, list[Any]] = {}
        for number, line in enumerate(_read_text(path).split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                    doc_id = int(row["doc_id"])
                except (ValueError, KeyError, TypeError) as error:
                    raise ModelError(f"replay: {self._path} line {number} is no samples row: {error!r}") from error
                key = next((key for key in RAW_KEYS if row.get(key) is not None), None)
                if key is not None and not row.get("error"):
                    value = row[key]
                    self._answers.setdefault(doc_id, value if isinstance(value, list) else [value])
                    if isinstance(row.get("parts"), list):
                        self._parts.setdefault(doc_id, row["parts"])

    def response(self, request: Request) -> Response:
        held = self._answers.get(request.doc_id)
        if held is None:
            return _missing(request, self._path)
        if request.kind == "loglikelihood":
            return _likelihood(request, held, self._path)
        parts = _parts_of(request, self._parts.get(request.doc_id, []))
        if parts is not None:
            return _interleaved(request, parts, self._path)
        if request.task.output_type in ROUND_TASKS:
            rounds = _rounds_of(request, held)
            if request.kind == "generate_until_multi_round" and rounds:
                return Response(request.id, rounds=tuple(rounds))
            if request.round >= len(rounds):
                return _missing(request, self._path)
            return Response(request.id, text=rounds[request.round], finish_reason="stop")
        if request.repeat >= len(held) or held[request.repeat] is None:
            return _missing(request, self._path)
        return Response(request.id, text=str(held[request.repeat]), finish_reason="stop")


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


def _interleaved(request: Request, parts: Sequence[Mapping[str, Any]], path: Path) -> Response:
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
    return Response.interleaved(request.id, pieces, finish_reason="stop")


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
