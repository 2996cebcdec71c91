"""The functions of the page, without HTTP: its endpoints call them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.types import ASGIApp

from lmms_eval.config.convert import argument_mapping, argument_text
from lmms_eval.config.options import RUNNING
from lmms_eval.errors import DataError, LmmsEvalError, RequestError, UsageError
from lmms_eval.http.guard import Guard
from lmms_eval.results.facts import part_of
from lmms_eval.results.follow import Snapshot
from lmms_eval.server.choices import OptionChoice, option_choices
from lmms_eval.server.command import environment
from lmms_eval.server.events import JobsProgress
from lmms_eval.server.job_log import JobLog
from lmms_eval.server.outcome import headline_rows, output_of, records, results_files, rows_of, short_reason
from lmms_eval.server.page.preview import (
    NOT_TAKEN,
    SERVER_DEFAULTS,
    Imported,
    Preview,
    Problem,
    as_request,
    preview,
    read_request,
)
from lmms_eval.server.service import Service
from lmms_eval.server.store import STATES, Job, now
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.yaml.settings import generation_mistake
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.names import model_name_from_args
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.redaction import redact, redact_text
from lmms_eval.viewer.live.app import live_app
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.numbers import counted, headlines
from lmms_eval.viewer.page import ReportOptions

PATIENCE_S = 180.0
LOG_BYTES = 256 << 10
"""Bytes of a log in one answer."""
_FILLED = {"log_samples": True, "predict_only": False, "num_gpus": 1}
"""Values that the server fills in if a request omits them."""
MOST_VIEWS = 4
IDLE_S = 120.0
"""A view that was not used for this long is closed when another one is opened."""
MOST_RUNS = 20
PAGE_PATIENCE_S = 1800.0
_REPORT, _MADE = "report", "made"
"""Folder of the pages, and the file that marks them as complete."""
_CODE = ("allow_unsafe_code", "include_path", "plugins", "trust_remote_code")
"""Options that the server accepts only with ``--allow_code``."""
_MOST_FORMS, _MOST_READ = 64, 512
MOST_HEADLINES = 3
"""Numbers of a run that the list of jobs shows."""
_PROGRESS = (
    *("is_read", "requested", "done", "scored", "unscored", "failed", "rate_overall", "seconds_left", "token_rate"),
    *("in_flight", "concurrency"),
)
_LISTED_PROGRESS = ("requested", "done", "failed", "seconds_left")
_OUTCOMES = ("requested", "scored", "unscored", "failed", "not_asked", "reasons")
_FIRST: Sequence[Mapping[str, Any]] = (
    {
        "text": "The model that this package ships (1 M parameters) answers 24 demonstration questions on the CPU. "
        "It takes less than a minute and downloads nothing.",
        "request": {
            "model": "hf",
            "model_args": {"pretrained": "embedded", "dtype": "float32", "batch_size": 8},
            "tasks": ["megabench_demo"],
            "limit": 24,
            "gen_kwargs": {"max_new_tokens": 96},
        },
    },
    {
        "text": "The reference answers are scored as if a model had given them: full marks show that everything works.",
        "request": {"model": "baseline", "model_args": {"strategy": "gold"}, "tasks": ["megabench_demo"]},
    },
)
"""First evaluations, for those who have chosen nothing yet. The first one whose packages are here is offered."""
_COMPARISON = re.compile(r"[0-9a-f]{20}")
_GPUS = OptionChoice(
    "num_gpus", RUNNING, "whole number", 1, (), "GPUs of the run; above 1 with a process on each", "N", is_usual=True
)


def entry(job: Job, position: int) -> dict[str, Any]:
    """Describe a job in a list."""
    tasks = job.request.get("tasks")
    arguments = redact_text(argument_text(job.request.get("model_args")))
    shown = (_from_results(job, headline_rows) if job.has_ended else None) or []
    return {
        "job_id": job.job_id,
        "state": job.state,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "completed_at": job.completed_at,
        "model": str(job.request.get("model")),
        "model_args": arguments,
        "name": model_name_from_args(arguments) or str(job.request.get("model")),
        "tasks": [str(name) for name in tasks] if isinstance(tasks, list) else [],
        "position": position,
        "is_stopping": job.is_cancelled and not job.has_ended,
        "reason": redact_text(short_reason(job.error or "")),
        "headlines": shown[:MOST_HEADLINES],
        "headlines_left_out": len(shown[MOST_HEADLINES:]),
    }


def progress(snapshot: Snapshot) -> dict[str, Any]:
    """Describe the progress of a job's run."""
    return {
        **{name: getattr(snapshot, name) for name in _PROGRESS},
        "rate": snapshot.rate or snapshot.rate_overall,
        "tokens": snapshot.tokens_in + snapshot.tokens_out,
        "score": None if snapshot.score is None else to_dict(snapshot.score),
        "reasons": [{"text": text, "count": count} for text, count in snapshot.reasons],
        "tasks": [to_dict(task) for task in snapshot.tasks],
    }


def as_draft(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as the user stated it, without the values that the server has filled in."""
    return {
        name: value for name, value in request.items() if value not in (None, "", {}) and _FILLED.get(name) != value
    }


def scores(job: Job) -> list[dict[str, Any]]:
    """List the scores of a job's newest results file; empty without a file, or if it cannot be read."""
    return [
        {
            "task": row["task"],
            "metric": row["metric"] if row["filter"] in ("none", "") else f"{row['metric']}, {row['filter']}",
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
            "documents": row["n"],
            "withheld": row.get("withheld", ""),
        }
        for row in _from_results(job, rows_of) or ()
    ]


def _from_results(job: Job, read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Read something from a job's newest results file; ``None`` without a file, or if it cannot be read."""
    with suppress(OSError, DataError):
        stated = [Path(files["results"]) for files in (job.result or {}).values()] or results_files(job)
        if file := max(stated, default=None, key=lambda path: path.name):
            found = file.stat()
            return _read_file(read, file, found.st_mtime_ns, found.st_size)
    return None


@lru_cache(_MOST_READ)
def _read_file(read: Callable[[Mapping[str, Any]], Any], file: Path, _changed_ns: int, _size: int) -> Any:
    """Read a results file. The last results are kept, since the list of jobs is asked for every two seconds."""
    document: Any = read_json(file)
    return read(document) if isinstance(document, dict) else None


def tables(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a job's page, in the form of a report's: the benchmarks' own numbers, scores, counts, and
    outcomes by task.
    """
    outcomes = part_of(document, "outcomes")
    asked = [name for name in outcomes if part_of(outcomes, name).get("requested")]
    return {
        "headlines": headlines(document),
        "rows": rows_of(document),
        "counts": counted(document),
        "outcomes": [{"task": name, **{key: part_of(outcomes, name).get(key) for key in _OUTCOMES}} for name in asked],
    }


class Views:
    """The open live views of jobs. A context manager, which closes them."""

    def __init__(self, guard: Guard, is_ending: Callable[[], bool]) -> None:
        self._guard, self._is_ending = guard, is_ending
        self._lock = threading.Lock()
        self._open: OrderedDict[Path, tuple[Watch, ASGIApp, float]] = OrderedDict()
        """Views by output folder, each with the time of its last use; the last used one is at the end."""

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1][0].__exit__()

    def app(self, output: Path) -> ASGIApp:
        """Return the view of an output folder, and close old views. Raises ``DataError`` if the folder has no run."""
        with self._lock:
            now = time.monotonic()
            if output in self._open:
                watch, app, _ = self._open.pop(output)
            else:
                watch = Watch(output, ReportOptions()).__enter__()
                app = live_app(watch, self._guard, self._is_ending)
            self._open[output] = watch, app, now
            for other, (watch, _, used_at) in [*self._open.items()]:
                if len(self._open) > MOST_VIEWS or now - used_at > IDLE_S:
                    del self._open[other]
                    watch.__exit__()
            return app


class Pages(Struct, frozen=True):
    """State of the pages of one run or of several compared."""

    name: str
    state: Literal["making", "ready", "failed"]
    error: str = ""


class PageMaker:
    """Makes pages in the background, one set at a time, by commands with the given environment variables."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._making: set[str] = set()
        self._errors: dict[str, str] = {}

    def make(self, name: str, folder: Path, outputs: Sequence[Path]) -> Pages:
        """Begin to make pages unless they exist or are in progress. An error is returned once; the next call retries.

        Args:
            name: name of the pages.
            folder: folder of the pages.
            outputs: output folders of the runs.

        Raises:
            UsageError: there are no runs, or too many.
        """
        if not 0 < len(outputs) <= MOST_RUNS:
            raise UsageError(f"choose from 1 to {MOST_RUNS} evaluations; got {len(outputs)}")
        with self._lock:
            if name in self._making:
                return Pages(name, "making")
            if error := self._errors.pop(name, ""):
                return Pages(name, "failed", error)
            if (folder / _MADE).exists():
                return Pages(name, "ready")
            self._making.add(name)
        threading.Thread(target=self._write, args=(name, folder, outputs), daemon=True).start()
        return Pages(name, "making")

    def _write(self, name: str, folder: Path, outputs: Sequence[Path]) -> None:
        words = [sys.executable, "-m", "lmms_eval", "report", "--out", str(folder / _REPORT), "--"]
        with self._turn:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                done = subprocess.run(
                    [*words, *map(str, outputs)],
                    env=self._environment, capture_output=True, text=True, errors="replace", timeout=PAGE_PATIENCE_S,
                )  # fmt: skip
                lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
                error = "" if done.returncode == 0 else (lines or [f"exit code {done.returncode}"])[-1]
                if not error:
                    (folder / _MADE).touch()
            except (OSError, subprocess.TimeoutExpired) as problem:
                error = f"the pages could not be made: {problem}"
        with self._lock:
            self._making.discard(name)
            if error:
                self._errors[name] = redact_text(error)


class Desk:
    """Contents and actions of the page."""

    def __init__(self, service: Service, guard: Guard, views: Views) -> None:
        self.service, self.guard, self._views = service, guard, views
        settings = service.settings
        self.models, self.tasks = service.models, service.tasks
        self._environment = environment(os.environ, None)
        self._pages = PageMaker(self._environment)
        self._compared = settings.folder.absolute() / "comparisons"
        self._progress = JobsProgress()
        self._machine: dict[str, Any] | None = None
        self._forms = lru_cache(_MOST_FORMS)(lambda job_id: preview(as_draft(service.job(job_id).request)))
        """The requests of jobs as commands and as files."""

    def offer(self) -> dict[str, Any]:
        """Return the models and options that can be chosen."""
        refused = {*NOT_TAKEN, *(() if self.service.settings.allow_code else _CODE)}
        gpus = self.service.settings.gpus
        options = option_choices(refused, SERVER_DEFAULTS)
        return {
            "version": package_version("lmms_eval") or "",
            "models": [to_dict(one) for one in self.models.all()],
            "options": [to_dict(one) for one in (_GPUS, *options)[0 if len(gpus) > 1 else 1 :]],
            "gpus": list(gpus),
            "first": next(one for one in _FIRST if not self.models.missing(one["request"]["model"])),
        }

    def preview(self, request: Mapping[str, Any]) -> Preview:
        """Show a request as a command and as a file, with its mistakes and what this server would refuse."""
        shown = preview(request, self._refused)
        return replace(shown, problems=shown.problems or (*self._unknown(request), *_mistaken(request)))

    def read_request(self, text: str) -> Imported:
        """Convert the text of a configuration file to a request, without what this server would refuse."""
        return read_request(text, self._refused)

    def _unknown(self, request: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield unknown names of models and tasks, and missing arguments of the model."""
        model = str(request.get("model"))
        try:
            arguments, fixed = self.models.details(model)
        except LmmsEvalError as error:
            yield Problem("model", str(error))
        else:
            given = argument_mapping(request.get("model_args"), "model_args")
            for one in arguments:
                names = {one.name, *one.other_names}
                if one.is_required and not any(given.get(name) or name in fixed for name in names):
                    yield Problem("model_args", f"model_args: {model} needs the argument {one.name}")
        for name in map(str, request.get("tasks") or ()):
            if self.tasks.catalogue.has(name):
                continue
            try:
                self.tasks.check([name])
            except LmmsEvalError as error:
                yield Problem("tasks", str(error))

    def _refused(self, request: Mapping[str, Any]) -> Iterator[Problem]:
        try:
            self.service.policy.check(as_request(request))
        except RequestError as error:
            yield Problem(re.split(r"[.:]", str(error), maxsplit=1)[0], str(error))

    def machine(self, is_fresh: bool = False) -> dict[str, Any]:
        """Return what ``lmms-eval doctor`` reports, as it was when it last ran unless it must be fresh.

        Raises ``LmmsEvalError``.
        """
        if is_fresh or self._machine is None:
            settings = self.service.settings
            found: dict[str, Any] = json.loads(self._output(["doctor", "--json"]))
            self._machine = {
                **found, "gpus": list(settings.gpus), "folder": str(settings.folder.absolute()), "checked_at": now(),
            }  # fmt: skip
        return self._machine

    def missing(self, task: str) -> list[str]:
        """List the missing data and packages of a task; nothing is downloaded. Raises ``LmmsEvalError``."""
        self.tasks.details(task)  # an unknown name fails here, without a process
        settings = self.service.settings
        places = ["--data_root", settings.data_root] if settings.data_root else []
        for path in settings.include_paths:
            places += ["--include-path", path]
        found = json.loads(self._output(["tasks", "describe", "--json", *places, "--", task]))
        return [str(text) for text in found.get("missing") or ()]

    def _output(self, words: Sequence[str]) -> str:
        """Return the output of ``lmms-eval WORDS``. Raises ``LmmsEvalError`` if it fails or takes too long."""
        command = [sys.executable, "-m", "lmms_eval", *words]
        try:
            done = subprocess.run(
                command, env=self._environment, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            raise LmmsEvalError(f"lmms-eval {words[0]} took longer than {PATIENCE_S:g} s and was ended") from None
        if done.returncode != 0:
            raise LmmsEvalError(f"lmms-eval {words[0]}: {redact_text(done.stderr.strip()[-2000:])}")
        return redact_text(done.stdout)

    def jobs(self) -> list[dict[str, Any]]:
        """List all jobs in the order of submission."""
        store = self.service.store
        return [self._listed(job, store.position(job)) for job in store.of_state(*STATES)]

    def _listed(self, job: Job, position: int) -> dict[str, Any]:
        snapshot = self._progress.look(job.job_id, records(job)).snapshot if job.state == "running" else None
        facts = None if snapshot is None else {name: getattr(snapshot, name) for name in _LISTED_PROGRESS}
        return {**entry(job, position), "progress": facts}

    def job(self, job_id: str) -> dict[str, Any]:
        """Describe a job with its request, its scores and the pages that it can have. Raises ``NoJobError``."""
        job = self.service.job(job_id)
        is_going, files = job.state == "running", results_files(job)
        snapshot = self._progress.look(job_id, records(job)).snapshot if is_going else None
        shown = self._forms(job_id)
        return {
            **entry(job, self.service.store.position(job)),
            "error": None if job.error is None else redact_text(job.error),
            "request": redact(as_draft(job.request)),
            "command": shown.command,
            "yaml": shown.yaml,
            "tables": _from_results(job, tables) if job.has_ended else None,
            "can_report": job.has_ended and bool(files),
            "progress": None if snapshot is None else progress(snapshot),
            "can_view": is_going and output_of(job).is_dir(),
        }

    def view(self, job_id: str) -> ASGIApp:
        """Return the live view of a job. Raises ``NoJobError``, ``DataError``."""
        return self._views.app(output_of(self.service.job(job_id)))

    def log(self, job_id: str, place: int) -> dict[str, Any]:
        """Read a job's log from a position on. Raises ``NoJobError``, ``RequestError``."""
        job = self.service.job(job_id)
        try:
            piece = JobLog(job.files.log).whole_lines(place, LOG_BYTES, job.has_ended)  # secrets are masked in lines
        except OSError as error:
            raise RequestError(f"the log cannot be read: {error.strerror or error}") from error
        return {"text": redact_text(piece.text()), "next": piece.next}

    def start(self, request: Mapping[str, Any], key: str | None, client: str) -> dict[str, Any]:
        """Submit a job. Raises ``LmmsEvalError`` if it is refused."""
        wanted = as_request(request)
        submission = self.service.submit(json.dumps(wanted).encode(), key, client)
        return {"job_id": submission.job.job_id, "command": preview(wanted).command}

    def make_pages(self, job_ids: Any) -> Pages:
        """Make the pages of ended jobs. Those of several are named by a hash that does not depend on their order.

        Raises:
            NoJobError: a job does not exist.
            RequestError: the ids are no list, or a job has not ended or has no results.
            UsageError: there are no jobs, or too many.
        """
        if not isinstance(job_ids, list) or not all(isinstance(one, str) for one in job_ids):
            raise RequestError("jobs: give a list of the names of jobs")
        jobs = [self.service.job(one) for one in dict.fromkeys(job_ids)]
        for job in jobs:
            if not job.has_ended or not results_files(job):
                raise RequestError(f"the evaluation {job.job_id} has no results: it is {job.state}")
        name = hashlib.sha256("\n".join(sorted(job.job_id for job in jobs)).encode()).hexdigest()[:20]
        name, folder = (jobs[0].job_id, _pages_of(jobs[0])) if len(jobs) == 1 else (name, self._compared / name)
        return self._pages.make(name, folder, [output_of(job) for job in jobs])

    def page_file(self, name: str, path: str) -> Path | None:
        """Find a file of the pages of a job, or of a comparison of several; ``None`` if it does not exist."""
        job = self.service.store.get(name)
        if job is None and not _COMPARISON.fullmatch(name):
            return None
        folder = self._compared / name if job is None else _pages_of(job)
        root = (folder / _REPORT).resolve()
        if not (folder / _MADE).exists():
            return None
        try:
            found = (root / path).resolve()
            return found if found.is_relative_to(root) and found.is_file() else None
        except (OSError, ValueError):
            return None

    def runs(self) -> list[dict[str, Any]]:
        """List the jobs of this server that have results."""
        jobs = self.service.store.of_state("completed", "failed", "cancelled")
        return [entry(job, 0) for job in jobs if results_files(job)]


def _mistaken(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the first mistake in the generation options."""
    if mistake := generation_mistake(argument_mapping(request.get("gen_kwargs"), "gen_kwargs")):
        yield Problem("gen_kwargs", f"gen_kwargs: {mistake}")


def _pages_of(job: Job) -> Path:
    return Path(job.folder) / "pages"
