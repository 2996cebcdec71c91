"""The protocol between clients and an evaluation server, without I/O: calls, and the events of a job."""

from __future__ import annotations

import os
import random
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx2
import msgspec
import orjson
from loguru import logger
from msgspec import Struct, field

from lmms_eval.errors import DataError, EvaluationServerError, JobFailedError, JobTimeoutError
from lmms_eval.models.remote.errors import retry_after
from lmms_eval.server.settings import TOKEN_VARIABLE
from lmms_eval.server.store import FINAL
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.terminal import printable

if TYPE_CHECKING:
    from lmms_eval.results.follow import Snapshot


_T = TypeVar("_T")
IDEMPOTENCY_HEADER = "idempotency-key"
"""A server that has seen the key before answers with the job of that submission and starts no second one."""
_RETRIED = frozenset({429, 502, 503, 504})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0
Job = dict[str, Any]
"""A job as the server describes it: ``job_id, status, created_at, started_at, completed_at, request, result, error,
position_in_queue``."""
PATIENCE_S = 60.0
CONNECT_S = 10.0


class TaskNumber(Struct, frozen=True):
    """One number of a task or group.

    Args:
        model: name of the folder that holds the run.
        filter: the filter pipeline, ``none`` if there is one without a name.
        value: ``None`` if the number is withheld.
        low: lower end of the 95 % interval; ``None`` if there is no interval.
        method: how the interval was computed, or why it is missing.
        n: documents.
    """

    model: str
    task: str
    metric: str
    filter: str
    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    n: int
    higher_is_better: bool


class JobResults(Struct, frozen=True):
    """The scores of a job.

    Args:
        status: state of the job. A job whose scores are withheld is ``failed``, but still has results.
        states: state of the run of each model: ``complete``, ``stopped early`` (``--until``), ``withheld``,
            ``interrupted``.
        content: the server's whole answer. Each model also has ``results``, ``groups``, ``n_samples``, ``outcomes``.
    """

    job_id: str
    status: str
    states: Mapping[str, str]
    scores: tuple[TaskNumber, ...]
    content: Mapping[str, Any]

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read the answer of ``/jobs/{job_id}/results``. Raises ``EvaluationServerError`` if it has another form."""
        names = ("task", "metric", "filter", "value", "stderr", "low", "high", "method", "n")
        try:
            models = content["models"]
            found = tuple(
                TaskNumber(model, **{name: row[name] for name in names}, higher_is_better=row["higher"])
                for model, run in models.items()
                for row in run["scores"]
            )
            states = {model: str(run["state"]) for model, run in models.items()}
            return cls(content["job_id"], str(content["status"]), states, found, content)
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluationServerError(f"the scores of a job have an unexpected form: {error!r}") from error

    def score(self, task: str, metric: str) -> float | None:
        """Return a value by task and metric; ``None`` if it is withheld.

        Args:
            metric: its name, or ``NAME,FILTER`` (such as ``exact_match,none``) if the task has several filters.

        Raises:
            DataError: no value or more than one value matches.
        """
        found = [
            one for one in self.scores if one.task == task and metric in (one.metric, f"{one.metric},{one.filter}")
        ]
        if len(found) != 1:
            known = ", ".join(sorted({f"{one.task}: {one.metric},{one.filter}" for one in self.scores}))
            raise DataError(f"job {self.job_id} has {len(found)} numbers {metric} of {task}; it has {known or 'none'}")
        return found[0].value


class ArchiveDownload:
    """Context manager that receives an archive and unpacks it into a folder. Raises ``DataError`` if it cannot."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed at the end of the block that this opens
        except OSError as error:
            raise _unwritten(folder, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begin(self) -> None:
        """Discard the data of an earlier connection."""
        self._file.seek(0)
        self._file.truncate()

    def add(self, data: bytes) -> None:
        """Store the next piece. Raises ``DataError`` if the disk refuses it."""
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritten(self._folder, error) from error

    def unpack(self) -> list[Path]:
        """Write the files and return their paths. Existing files of the same names are replaced.

        Raises:
            EvaluationServerError: the archive is damaged, or it holds links or paths that lead out of the folder. In
                the second case nothing is written.
            DataError: the disk cannot be written.
        """
        try:
            with zipfile.ZipFile(self._file) as archive:
                entries = [one for one in archive.infolist() if not one.is_dir()]
                targets = [self._target(one) for one in entries]
                for entry, target in zip(entries, targets, strict=True):
                    with archive.open(entry) as source, replacing(target, survives_power_loss=False) as file:
                        copyfileobj(source, file)
                return targets
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise EvaluationServerError(f"the archive of the job's files is damaged: {error}") from error
        except OSError as error:
            raise _unwritten(self._folder, error) from error

    def _target(self, entry: zipfile.ZipInfo) -> Path:
        name = PurePosixPath(entry.filename)
        mode = entry.external_attr >> 16
        is_file = stat.S_IFMT(mode) in (0, stat.S_IFREG)
        is_plain = not name.is_absolute() and ".." not in name.parts
        target = self._folder.joinpath(*name.parts)
        if not (is_file and is_plain and target.parent.resolve().is_relative_to(self._folder.resolve())):
            place = f"is a link or lies outside of {self._folder}"
            raise EvaluationServerError(f"{entry.filename!r} of the job's files {place}: nothing was written")
        return target


def _unwritten(folder: Path, error: OSError) -> DataError:
    return DataError(f"{folder}: the job's files cannot be written: {error.strerror or error}")


class HttpCall(Struct, frozen=True):
    """One request.

    Args:
        body: sent as JSON; entries of ``None`` are left out.
        target: receives the content of the answer.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    target: ArchiveDownload | None = None

    @property
    def content(self) -> bytes | None:
        if self.body is None:
            return None
        return orjson.dumps({name: value for name, value in self.body.items() if value is not None})


CallReply = httpx2.Response | httpx2.TransportError
"""Answer to a call, whose body has been read, or the reason why it was lost."""
Exchange = Generator[HttpCall | float, CallReply | None, _T]
"""Generator that yields calls, and receives the reply to each, and pauses in seconds."""


class RetryPauses(Struct):
    """Pauses between the attempts of one call, with jitter. Retries end ``seconds`` after the first failure."""

    seconds: float
    _pause: float = _FIRST_PAUSE_S
    _end: float | None = None

    def pause(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait, at least those that the server ``asked`` for; ``None`` if no time is left."""
        if self._end is None:
            self._end = time.monotonic() + self.seconds
        wait = max(self._pause * random.uniform(0.5, 1.0), asked or 0.0)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)
        return wait if time.monotonic() + wait < self._end else None


def evaluation(
    model: str, tasks: Sequence[str], options: Mapping[str, Any], idempotency_key: str | None = None
) -> HttpCall:
    """Submit an evaluation. A call that is sent several times with the same key is one submission."""
    body = {"model": model, "tasks": list(tasks), **options}
    return HttpCall("POST", "/evaluate", body, headers={IDEMPOTENCY_HEADER: idempotency_key or str(uuid4())})


def job(job_id: str, what: str = "") -> HttpCall:
    """Ask for a job, or for one of its parts (``/results``, ``/events``, …)."""
    return HttpCall("GET", f"/jobs/{quote(job_id, safe='')}{what}")


def cancellation(job_id: str) -> HttpCall:
    return HttpCall("DELETE", f"/jobs/{quote(job_id, safe='')}")


def samples(job_id: str, task: str | None, offset: int, limit: int, where: str | None) -> HttpCall:
    query = {"task": task, "offset": str(offset), "limit": str(limit), "where": where}
    stated = {name: value for name, value in query.items() if value is not None}
    return HttpCall("GET", job(job_id, "/samples").path, query=stated)


def merging(checkpoint_path: str, output_path: str | None, checkpoint_type: str) -> HttpCall:
    body = {"checkpoint_path": checkpoint_path, "output_path": output_path, "checkpoint_type": checkpoint_type}
    return HttpCall("POST", "/merge", body)


def asked(call: HttpCall, patience: float) -> Exchange[dict[str, Any]]:
    """Make a call, and retry it for ``patience`` seconds while the server cannot be reached or is busy.

    Raises:
        EvaluationServerError: the server refuses, cannot be reached, or does not answer with JSON.
    """
    waiting = RetryPauses(patience)
    while True:
        reply = yield call
        assert reply is not None
        if isinstance(reply, httpx2.Response) and reply.status_code < 400:
            value = _json(reply.content)
            if not isinstance(value, dict):
                text = "the answer is not a JSON object; is this the address of an evaluation server?"
                raise EvaluationServerError(f"{call.method} {call.path}: {text}", reply.status_code)
            return value
        yield pause_before(call, reply, waiting)


def downloaded(job_id: str, download: ArchiveDownload, patience: float) -> Exchange[None]:
    """Receive the archive of a job, and retry as ``asked`` does. Raises ``EvaluationServerError``."""
    call, waiting = HttpCall("GET", job(job_id, "/files").path, target=download), RetryPauses(patience)
    while (reply := (yield call)) is not None and getattr(reply, "status_code", 0) != 200:
        yield pause_before(call, reply, waiting)


def pause_before(call: HttpCall, reply: CallReply, waiting: RetryPauses) -> float:
    """Return the seconds to wait before a retry. Raises ``EvaluationServerError`` if the call cannot be retried."""
    if isinstance(reply, httpx2.TransportError):
        pause = waiting.pause()
        error = EvaluationServerError(f"{call.method} {call.path}: no answer: {str(reply) or type(reply).__name__}")
    else:
        status = reply.status_code
        pause = waiting.pause(retry_after(reply.headers)) if status in _RETRIED else None
        text = f"{call.method} {call.path}: {printable(_reason(reply.content))} (status {status})"
        error = EvaluationServerError(text, status)
    if pause is None:
        raise error
    return pause


def awaited(job_id: str, patience: float, poll_interval: float, timeout: float | None, verbose: bool) -> Exchange[Job]:
    """Poll a job until it is completed.

    Raises:
        JobFailedError: the job failed or was cancelled.
        JobTimeoutError: the job is still queued or running after ``timeout`` seconds.
    """
    begin, seen = time.monotonic(), None
    while (found := (yield from asked(job(job_id), patience))).get("status") != "completed":
        if found.get("status") == "failed":
            raise JobFailedError(printable(f"job {found.get('job_id')} failed: {found.get('error')}"))
        if found.get("status") == "cancelled":
            raise JobFailedError(printable(f"job {found.get('job_id')} was cancelled"))
        state = (printable(str(found.get("status"))), found.get("position_in_queue"))
        if verbose and state != seen:
            logger.info(f"job {job_id}: {state[0]}" + (f", {state[1]} before it" if state[0] == "queued" else ""))
        seen = state
        pause = poll_interval
        if timeout is not None:
            pause = min(pause, begin + timeout - time.monotonic())
            if pause <= 0:
                left = f"job {job_id} is {state[0]} after {timeout:g} s; it continues: wait again, or cancel it"
                raise JobTimeoutError(left)
        yield pause
    return found


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _reason(content: bytes) -> str:
    """Read the text of a refusal, or the fields of the request that are wrong."""
    value = _json(content)
    detail = value.get("detail") if isinstance(value, dict) else None
    if isinstance(detail, str):
        return detail
    if isinstance(detail, list):
        wrong = [one if isinstance(one, dict) else {"msg": one} for one in detail]
        places = (".".join(str(part) for part in one.get("loc", ()) if part != "body") for one in wrong)
        return "; ".join(_placed(place, str(one.get("msg"))) for place, one in zip(places, wrong, strict=True))
    return content[:300].decode("utf-8", "replace").strip() or "no reason given"


def _placed(place: str, text: str) -> str:
    """Put the name of the field before a message that does not begin with it."""
    return text if not place or text.startswith((f"{place}: ", f"--{place}: ")) else f"{place}: {text}"


def limits(timeout: float | None) -> httpx2.Timeout:
    """Return the time limits of one call. ``timeout``: seconds to wait for the server; ``None`` means no limit."""
    return httpx2.Timeout(timeout, connect=CONNECT_S if timeout is None else min(CONNECT_S, timeout))


def headers(token: str | None) -> dict[str, str]:
    """Return the headers of all calls. The default token comes from ``LMMS_EVAL_SERVER_TOKEN``."""
    token = os.environ.get(TOKEN_VARIABLE) if token is None else token
    return {"authorization": f"Bearer {token}"} if token else {}


def request(http: httpx2.Client | httpx2.AsyncClient, call: HttpCall, silence: float | None = None) -> httpx2.Request:
    """Build a request. After ``silence`` seconds without a byte its connection counts as lost."""
    headers = dict(call.headers) if call.body is None else {**call.headers, "content-type": "application/json"}
    allowed = http.timeout if silence is None else limits(silence)
    return http.build_request(
        call.method, call.path, content=call.content, params=call.query, headers=headers, timeout=allowed
    )


SILENCE_S = 60.0
"""A server sends something more often than this. A connection that is silent for longer counts as lost."""
ENDED_EARLY = httpx2.ReadError("the connection has ended before the job")


class StateEvent(Struct, frozen=True):
    """Change of a job's state or of its position in the queue."""

    event_id: str
    """Position in the events: give it to ``events`` to resume after this one."""
    status: str
    position_in_queue: int


class ProgressEvent(Struct, frozen=True):
    """Progress of a job's run, with the numbers that ``lmms-eval view`` shows."""

    event_id: str
    snapshot: Snapshot
    """Progress without the processes of the run."""
    tasks_left_out: int
    """Number of tasks that the snapshot leaves out."""


class LogEvent(Struct, frozen=True):
    """New lines of the log."""

    event_id: str
    text: str
    left_out: int
    """Bytes before the text that the server no longer keeps."""


JobEvent = StateEvent | ProgressEvent | LogEvent


class Following(Struct):
    """Position in the events of a job, kept over lost connections, which are retried for ``patience`` seconds."""

    job_id: str
    place: str
    patience: float
    has_ended: bool = False
    _last: dict[str, bytes] = field(default_factory=dict)
    """Data of the last event of each kind: a new connection sends them again."""
    _waiting: RetryPauses | None = None

    @property
    def call(self) -> HttpCall:
        headers = {"accept": "text/event-stream"} | ({"last-event-id": self.place} if self.place else {})
        return HttpCall("GET", job(self.job_id, "/events").path, headers=headers)

    def read(self, kind: str, event_id: str, data: str) -> JobEvent | None:
        """Read an event; ``None`` for a repetition or an unknown kind. Raises ``EvaluationServerError``."""
        self._waiting = None
        self.place = event_id or self.place
        content = data.encode("utf-8", "replace")
        if kind != "log" and self._last.get(kind) == content:
            return None
        self._last[kind] = content
        found: JobEvent | None = None
        try:
            value = orjson.loads(content)
            if kind == "state":
                found = StateEvent(self.place, str(value["status"]), int(value["position_in_queue"]))
            elif kind == "log":
                found = LogEvent(self.place, str(value["text"]), int(value["left_out"]))
            elif kind == "progress":
                from lmms_eval.results.follow import Snapshot

                snapshot = msgspec.convert({**value, "processes": ()}, Snapshot)
                found = ProgressEvent(self.place, snapshot, int(value["tasks_left_out"]))
        except (orjson.JSONDecodeError, msgspec.ValidationError, KeyError, TypeError, AttributeError) as error:
            text = f"an event {kind!r} of job {self.job_id} has an unexpected form: {error!r}"
            raise EvaluationServerError(text) from error
        self.has_ended = isinstance(found, StateEvent) and found.status in FINAL
        return found

    def pause(self, reply: CallReply) -> float:
        """Return the seconds to wait before reconnecting. Raises ``EvaluationServerError`` if no time is left."""
        self._waiting = self._waiting or RetryPauses(self.patience)
        return pause_before(self.call, reply, self._waiting)
