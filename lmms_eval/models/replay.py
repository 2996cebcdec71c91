"""Answers of an earlier run, to be scored again: samples files, or MEGA-Bench submission files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.generation import ALL_LIMITS
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Part, Request, RequestKind, Response, Thoughts
from lmms_eval.api.task import Task
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.task_access import document_hash_of, document_of
from lmms_eval.utils.files import read_plain, read_plain_text
from lmms_eval.utils.names import task_of_part

RAW_KEYS = ("raw_resps", "resps", "filtered_resps")
"""Columns of a samples row that may contain the answers, the least processed first."""
NO_HASH = frozenset({"", hashlib.sha256(b"null").hexdigest()})
"""Values of ``doc_hash`` that identify nothing. The family's samples have the hash of ``null`` in every row."""
ROUND_TASKS = ("generate_until_multi_round", "generate_until_agentic")
TAKE = 64
_PAIR = 2
SAMPLES_NAME = re.compile(r"^(?:(?P<stamp>\d{8}_\d{6})_)?samples_(?P<task>.+)\.jsonl$")
SUBMISSION_SUFFIX = "_all_query_responses.json"


class _Row(Struct, frozen=True):
    """The answers of a document in a samples row."""

    answers: list[Any]
    parts: list[Any]
    finish_reason: Any
    """The finish reason, or a list for several answers."""
    doc_hash: str
    thoughts: Any
    """The thoughts, or a list for several answers."""


class SamplesBook:
    """A samples JSONL file, with one row for each document and filter pipeline.

    An answer to another document than the requested one (by ``doc_hash``) is not used, as the data set was reordered or
    changed since. Answers keep their ``finish_reason``. Raises ``ModelError`` if the file cannot be read, or a line is
    not a samples row.
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
                    raise ModelError(f"replay: {self._path} line {number} is not a samples row: {error!r}") from error
                key = next((key for key in RAW_KEYS if row.get(key) is not None), None)
                if key is not None and not row.get("error"):
                    answers, parts, doc_hash = row[key], row.get("parts"), row.get("doc_hash")
                    self._rows.setdefault(
                        doc_id,
                        _Row(
                            answers if isinstance(answers, list) else [answers],
                            parts if isinstance(parts, list) else [],
                            row.get("finish_reason"),
                            doc_hash if isinstance(doc_hash, str) else "",
                            row.get("thoughts"),
                        ),
                    )

    def response(self, request: Request) -> Response:
        """Return the recorded answer, or a failure of kind ``bad_request`` without one."""
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
        if request.is_likelihood:
            return _likelihood(request, row.answers, self._path)
        parts = _parts_of(request, row.parts)
        if parts is not None:
            return _interleaved(request, parts, self._path, row)
        if request.task.output_type in ROUND_TASKS:
            rounds = _rounds_of(request, row.answers)
            if request.kind == "generate_until_multi_round" and rounds:
                return Response(request.id, rounds=tuple(rounds), finish_reason=_ending(request, row))
            if request.round >= len(rounds):
                return _missing(request, self._path)
            is_last = request.round == len(rounds) - 1
            ending = _ending(request, row) if is_last else "stop"  # the row has only that of the last round
            return Response(request.id, text=rounds[request.round], finish_reason=ending)
        if request.repeat >= len(row.answers) or row.answers[request.repeat] is None:
            return _missing(request, self._path)
        text = str(row.answers[request.repeat])
        thoughts = _thoughts_of(request, row, text)
        return Response(request.id, text=text, finish_reason=_ending(request, row), thoughts=thoughts)


def _thoughts_of(request: Request, row: _Row, text: str) -> Thoughts | None:
    """Return the thoughts that a server returned separately from the answer. Others are part of its text."""
    thoughts = row.thoughts
    if isinstance(thoughts, list):
        thoughts = thoughts[request.repeat] if request.repeat < len(thoughts) else None
    if not isinstance(thoughts, str) or thoughts in text:
        return None
    return Thoughts(thoughts, is_finished=bool(text.strip()))


def _ending(request: Request, row: _Row) -> str:
    """Return the finish reason of the recorded answer; ``stop`` if the row has none."""
    reason = row.finish_reason
    if isinstance(reason, list):
        reason = reason[request.repeat] if request.repeat < len(reason) else None
    return reason if isinstance(reason, str) and reason else "stop"


class SubmissionBook:
    """MEGA-Bench submission files. Raises ``ModelError`` if two of them answer a question differently."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._answers: dict[tuple[str, str], str] = {}
        for path in paths:
            for key, text in read_submission(path).items():
                if self._answers.setdefault(key, text) != text:
                    raise ModelError(f"replay: two answers to {key[0]} / {key[1]} ({path}); give one file by its path")

    def response(self, request: Request) -> Response:
        """Return the recorded answer, or a failure of kind ``bad_request`` without one."""
        document = document_of(request.task, request.doc_id)
        text = self._answers.get((str(document.get("task_name")), str(document.get("id"))))
        if text is None:
            return _missing(request, *self._paths)
        return Response(request.id, text=text, finish_reason="stop")


def read_submission(path: Path) -> dict[tuple[str, str], str]:
    """Read the answers by (task name, global index) from a submission file, scored or not. Raises ``ModelError``."""
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
    """Read the pair ``(loss, is_greedy)`` of a choice. With repeats, the lists are concatenated or nested.

    The pair of a single request is written without its list.
    """
    if len(held) == _PAIR and not isinstance(held[0], list):
        held = [held]
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
    """Return all rounds of one answer: a list, the trace in the payload of an agentic task, or the whole row."""
    if request.task.output_type == "generate_until_agentic":
        return _trace(held[request.repeat]) if request.repeat < len(held) else []
    if any(isinstance(item, list) for item in held):
        rounds = held[request.repeat] if request.repeat < len(held) else []
        return [str(item) for item in rounds]
    return [str(item) for item in held] if request.repeat == 0 and request.task.repeats <= 1 else []


def _parts_of(request: Request, parts: list[Any]) -> list[Any] | None:
    """Return the texts and pictures of the answer to this request; ``None`` if it has no list of parts."""
    if request.task.output_type == "generate_visual_cot" and request.round:
        return None  # the pictures were drawn in the previous round
    places = [request.repeat] if request.task.repeats > 1 else []
    if request.task.output_type == "generate_until_multi_round":
        places.append(request.round)
    for place in places:
        if place >= len(parts) or not isinstance(parts[place], list):
            return None
        parts = parts[place]
    return parts if parts and all(isinstance(part, Mapping) for part in parts) else None


def _interleaved(request: Request, parts: Sequence[Mapping[str, Any]], path: Path, row: _Row) -> Response:
    """Return the answer with its pictures. Their paths are relative to the folder of the samples file."""
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
    """Return the model's outputs from the JSON answer of an agentic task (``trace`` or ``agentic_rounds``)."""
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


class Replay(Model):
    """``--model replay --model_args path=OUT/MODEL``: the answers of an earlier run instead of a model's.

    Args:
        path: a samples file (``..._samples_TASK.jsonl``), a MEGA-Bench submission file, or a folder of such files.
            In a folder, the newest samples file of a task is used. A single samples file whose name does not contain a
            task is used for every task.
    """

    kinds: frozenset[RequestKind] = frozenset(
        {
            "generate_until",
            "loglikelihood",
            "loglikelihood_rolling",
            "generate_until_multi_round",
            "generate_visual_cot",
        }
    )
    concurrency = TAKE
    reads_documents = True

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise ModelError(f"replay: {self.path} does not exist (--model_args path=FILE or FOLDER)")
        folder = self.path.is_dir()
        files = sorted(self.path.iterdir()) if folder else [self.path]
        self._samples = {} if folder else {"": self.path}
        # In a folder, other files of the suffix are results. A file given by name must be a submission.
        self._submissions = [file for file in files if file.name.endswith(SUBMISSION_SUFFIX if folder else ".json")]
        for file in () if folder else self._submissions:
            read_submission(file)
        for file in files:  # in order of their time stamps, so that the newest remains
            match = SAMPLES_NAME.match(file.name)
            if match:
                self._samples.pop("", None)
                self._samples[task_of_part(match["task"])] = file
        if self._submissions and not folder:
            self._samples = {}
        if not self._samples and not self._submissions:
            raise ModelError(f"replay: {self.path} holds neither *_samples_TASK.jsonl nor *{SUBMISSION_SUFFIX}")
        self._books: dict[str, SamplesBook | SubmissionBook] = {}

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return false, as the answers exist already."""
        return False

    def prepare(self, request: Request) -> Request:
        """Return the request unchanged: nothing is sent, so no media are opened."""
        return request

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        """Read the files of all tasks, so that a missing or damaged file ends the run before it begins."""
        for task in tasks:
            self._book(task)

    @property
    def media_limits(self) -> frozenset[str]:
        """All: its answers depend on no medium."""
        return ALL_LIMITS

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                yield self._book(request.task).response(request)

    def sent_with(self, request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        """Return nothing, as the answers exist already."""
        return {}

    def identity(self) -> Mapping[str, Any]:
        files = [*self._samples.values(), *self._submissions]
        stats = [(file.name, file.stat()) for file in files]
        return {"files": sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)}

    def _book(self, task: Task) -> SamplesBook | SubmissionBook:
        if task.name not in self._books:
            if file := self._samples.get(task.name) or self._samples.get(""):
                self._books[task.name] = SamplesBook(file)
            elif self._submissions:
                own = [path for path in self._submissions if path.name == f"{task.name}{SUBMISSION_SUFFIX}"]
                self._books[task.name] = SubmissionBook(own or self._submissions)
            else:
                held = ", ".join(sorted(self._samples))
                raise ModelError(f"replay: {self.path} holds no samples of task {task.name!r} (it holds {held})")
        return self._books[task.name]
