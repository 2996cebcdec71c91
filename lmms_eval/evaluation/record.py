"""The record of a run: opens its folder, and decides whether the run begins, continues or begins anew. And the report
that the command shows."""

from __future__ import annotations

import os
import shutil
import socket
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import orjson
from loguru import logger
from msgspec import Struct

from lmms_eval.api.task import Task
from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.engine.records import FOLDER, ImageFolder
from lmms_eval.engine.team import Place, Team
from lmms_eval.errors import JournalError, LmmsEvalError, UsageError
from lmms_eval.evaluation.inputs import Collected
from lmms_eval.results.files import RUNS, ResultFiles, model_folder, reserve, run_folder, start_stamp
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.lines import read_sealed, sealed
from lmms_eval.storage.run_folder import TRACEBACK, DamagedRecord, RunFolder, RunState
from lmms_eval.utils.installed import error_text
from lmms_eval.utils.redaction import mask_known, redact

if TYPE_CHECKING:
    from lmms_eval.media.keeper import MediaKeeper

REPORT = "shown.json"
LAUNCH_MARK = "launch"
"""File that shows the processes of a launch whether they see the same folder."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The text that the command line prints, and its exit code."""

    exit_code: int
    table: str
    lines: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    """The results document (``results.json``)."""
    end: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """Must be called when the caller has received the report. From then on, the next start of a completed run begins
    anew; before, it only shows the report again."""

    def as_json(self) -> bytes:
        """Return everything except ``end`` as JSON, which ``shown_again`` reads after a kill."""
        from lmms_eval.results.samples_file import json_text

        shown = {"exit_code": self.exit_code, "table": self.table, "lines": self.lines, "results": self.results}
        return json_text(shown).encode("utf-8", "replace")

    def shown_again(self, date: str) -> RunReport:
        """Return the report of a completed run whose command was killed before it had shown its results."""
        line = f"This run, of {date}, is complete: its results are shown again, and nothing was asked or scored."
        return replace(self, lines=[*self.lines, line])


class RunRecord(Struct, frozen=True):
    """The folder of the journals and the names of the result files. As a context manager, it releases the folder."""

    folder: RunFolder
    key: str
    scoring_key: str
    files: ResultFiles | None
    """``None`` without ``--output_path``."""
    date: str
    content: Mapping[str, Any]
    """Content of ``run.json`` during the run."""
    is_kept: bool
    """True if another start can find the folder again."""
    images: ImageFolder
    """Pictures that the model makes: next to the samples, or in the folder of the journals."""
    shares_files: bool = True
    """True if this process writes into the folder of the launch's first process."""
    media: MediaKeeper | None = None
    """Keeps media that have no file of their own; ``None`` if the options want none to be kept."""
    report: Mapping[str, Any] | None = None
    """The report of the completed run, if an earlier start of the same command was killed before it had shown it."""

    def __enter__(self) -> RunRecord:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the folder, or keep that of a completed run until ``end``. Remove a folder that no start can find."""
        path = self.folder.path
        if self.media is not None:
            self.media.close()
        if error is not None or path.absolute() not in _held:
            self.end()
        if not self.is_kept:
            shutil.rmtree(path, ignore_errors=True)

    @property
    def early_stops(self) -> Mapping[str, Mapping[str, Any]]:
        """The tasks of an earlier start that ended early, by name, with their rule and number of documents."""
        stops: Mapping[str, Mapping[str, Any]] = self.content.get("early_stops", {})
        return stops

    def finish(
        self,
        state: RunState,
        command: str = "",
        report: bytes = b"",
        early_stops: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Record how the run has ended, and hold the folder of a completed one.

        ``command`` asks for the missing answers, ``report`` is JSON. Raises ``JournalError`` if the record cannot be
        written, or the folder has been deleted or moved meanwhile.
        """
        if not self.folder.state_file.exists():
            raise JournalError(
                f"{self.folder.path} was deleted or moved while the run wrote to it: its journals are lost unless "
                "they are put back; start the same command again"
            )
        if report and state == "complete":
            write_atomically(self.folder.path / REPORT, sealed(report))
        ended = {"state": state, "command": command, "early_stops": early_stops or {}}
        self.folder.write({**self.content, **ended})
        if self.files is not None:
            self.files.free_stamp()
        if state == "complete" and self.is_kept:
            self.hold()

    def fail(self, error: BaseException, command: str) -> None:
        """Record that an error has ended the run, and keep its traceback in the folder. Does not raise.

        Only the launch's first process may call it: its record is that of the run. ``command`` continues the run.
        """
        trace = mask_known("".join(traceback.format_exception(error)))
        ended = {"state": "failed", "error": mask_known(error_text(error)), "command": command}
        if not self.folder.state_file.exists():  # it was deleted or moved meanwhile
            return
        with suppress(OSError, JournalError):  # the disk may be the reason
            write_atomically(self.folder.path / TRACEBACK, trace.encode(errors="backslashreplace"))
            self.folder.write({**self.content, **ended})
        if self.is_kept and not isinstance(error, LmmsEvalError):
            logger.warning(
                "what was finished is kept in {}: the same command continues from there; {} there has the traceback",
                self.folder.path,
                TRACEBACK,
            )

    def hold(self) -> None:
        """Own the folder until ``end``, or until this process opens the run again (in a batch)."""
        _held[self.folder.path.absolute()] = self.folder

    def end(self) -> None:
        """End a completed run after its results have been received, so that the next start begins it anew.

        Only the owner file records this. If a kill has left that file, the next start assumes that nobody has seen the
        results. Removing it is one quick system call, which may be the last one of the process.
        """
        _held.pop(self.folder.path.absolute(), None)
        self.folder.release()


_held: dict[Path, RunFolder] = {}
"""Folders of completed runs of this process, while the command continues."""


def open_record(config: RunConfig, collected: Collected, team: Team | None = None) -> RunRecord:
    """Open the run's folder: continue an interrupted or withheld run, begin a completed one anew.

    In a launch, the first process does this and the others join it.

    Raises:
        RunLockedError: another live process owns the folder.
        UsageError: ``--resume DIR`` names a run of another configuration.
        TeamError: the first process has failed.
    """
    out = Path(config.output_path) if config.output_path else None
    base = _base(out, config, collected) if out else None
    if team is not None and not team.is_first:
        return _join(config, collected, base, team)
    folder = RunFolder(_folder_path(config, base, collected.key))
    if (held := _held.pop(folder.path.absolute(), None)) is not None:
        held.release()
    folder.acquire()
    with ExitStack() as unless_begun:
        unless_begun.callback(folder.release)
        record = _begin(config, collected, folder, base, Place() if team is None else team.place)
        if team is not None:
            mark = uuid.uuid4().hex
            write_atomically(folder.path / LAUNCH_MARK, mark.encode())
            keys = {"key": collected.key, "scoring_key": collected.scoring_key, "common_key": collected.common_key}
            team.publish("record", {**keys, "mark": mark, "date": record.date})
        unless_begun.pop_all()
    return record


def _base(out: Path, config: RunConfig, collected: Collected) -> Path:
    arguments = argument_text(config.model_args)
    if isinstance(config.resume, str):
        return model_folder(out, arguments)
    return run_folder(out, config.model, arguments, (collected.key,))


def _join(config: RunConfig, collected: Collected, base: Path | None, team: Team) -> RunRecord:
    """Use the first process's folder if this process sees it too, else a folder of its own."""
    first = team.receive("record", 0)
    if first["common_key"] != collected.common_key:
        raise UsageError(
            f"process {team.place.rank} sees another run than process 0: the options, the tasks, their functions or "
            "the number of documents differ between the machines; make them the same"
        )
    folder = RunFolder(_folder_path(config, base, first["key"]))
    mark = folder.path / LAUNCH_MARK
    shares = mark.is_file() and mark.read_bytes() == first["mark"].encode()
    content = {"key": first["key"], "state": "running", "date": first["date"]}
    if not shares:
        folder.acquire()
        folder.write(content)
    return RunRecord(
        folder, first["key"], first["scoring_key"], None, first["date"], content,
        collected.is_resumable or base is not None, _images(folder, base), shares,
        _media(config, folder, base, team.place),
    )  # fmt: skip


def _begin(config: RunConfig, collected: Collected, folder: RunFolder, base: Path | None, place: Place) -> RunRecord:
    earlier = _earlier(folder, collected.key)
    if earlier and earlier.get("key") != collected.key:
        raise UsageError(
            f"{folder.path} holds a run of another configuration (key {earlier.get('key')}, this command's is "
            f"{collected.key}): model, arguments, prompts, data or generation options differ; leave --resume "
            "out to begin a run of its own"
        )
    # If a process dies after its work, the launcher starts all of them again; the run is still the same.
    is_same = place.attempt > 0 and earlier.get("launcher") == _launcher()
    if earlier.get("state") == "complete" and not config.resume and not config.retry_truncated and not is_same:
        if not folder.was_abandoned:
            folder.clear()
            earlier = {}
        elif place.size == 1 and (shown := _shown_again(config, collected, folder, base, earlier)) is not None:
            shown.hold()
            return shown
    date = start_stamp(config.timezone)
    stamp = earlier.get("stamp")
    files = None if base is None else ResultFiles(base, stamp) if stamp else reserve(base, date)
    if earlier:
        logger.info("continuing the run of {} in {}", str(earlier.get("date", "an unknown date"))[:19], folder.path)
    record = {
        "key": collected.key,
        "state": "running",
        "stamp": files.stamp if files else earlier.get("stamp"),
        "date": earlier.get("date") or date.isoformat(),
        "starts": int(earlier.get("starts", 1 if earlier else 0)) + 1,
        "arguments": _arguments(config),
        # With this, `lmms-eval score` finds the run's key without building the model.
        "model": {
            "backend": collected.choice.backend,
            "model_id": collected.choice.model_id,
            "chat": collected.choice.chat,
            "legacy": collected.choice.legacy,
            "ignored_arguments": sorted(collected.choice.ignored_arguments),
            "identity": redact(dict(collected.model.identity())),
        },
        "launcher": _launcher(),
        # With this, numbers can be computed from the journals of a run without results.
        "tasks": {plan.task.name: _number_facts(plan.task) for plan in collected.plans},
        # `lmms-eval score` scores a task that ended early as far as it was asked.
        "early_stops": {} if collected.asks else earlier.get("early_stops", {}),
    }
    folder.write(record)
    with suppress(OSError):
        (folder.path / TRACEBACK).unlink(missing_ok=True)
    return RunRecord(
        folder, collected.key, collected.scoring_key, files, str(record["date"]), record,
        collected.is_resumable or base is not None, _images(folder, base),
        media=_media(config, folder, base, place) if collected.is_resumable or base is not None else None,
    )  # fmt: skip


def _number_facts(task: Task) -> dict[str, Any]:
    described = task.describe()
    facts: dict[str, Any] = {"higher_is_better": {metric.name: metric.higher_is_better for metric in task.metrics}}
    facts["num_fewshot"] = task.num_fewshot
    for key in ("metric_list", "score_key", "cluster_key"):
        if key in described:
            facts[key] = described[key]
    return facts


def _earlier(folder: RunFolder, key: str) -> Mapping[str, Any]:
    """Read ``run.json`` of an earlier start. If it is damaged, the name of the folder identifies the run.

    Raises ``UsageError`` if it is damaged, and the folder has another name (``--resume DIR``).
    """
    try:
        return folder.read()
    except DamagedRecord as error:
        if folder.path.name != key:
            raise UsageError(f"{error}: it is not known which run that is; leave --resume out") from error
        logger.warning("{}: the run continues from the journals next to it, under a new date stamp", error)
        return {"key": key}


def _arguments(config: RunConfig) -> Any:
    """Return the options in the form of ``run.json``."""
    return orjson.loads(orjson.dumps(resolved_cli_args(config), default=str))


def _shown_again(
    config: RunConfig, collected: Collected, folder: RunFolder, base: Path | None, earlier: Mapping[str, Any]
) -> RunRecord | None:
    """Return the record of a completed run that only has to be shown, or ``None`` if the options have changed.

    The record stays unchanged until the command has ended. Otherwise, a second kill would make the run begin anew.
    """
    report = read_sealed(folder.path / REPORT)
    if report is None or earlier.get("arguments") != _arguments(config):
        return None
    files = None if base is None else ResultFiles(base, str(earlier["stamp"]))
    return RunRecord(
        folder, collected.key, collected.scoring_key, files, str(earlier["date"]), earlier,
        collected.is_resumable or base is not None, _images(folder, base), report=report,
    )  # fmt: skip


def _launcher() -> str:
    """Identify the process that has started this one, which is the same in all attempts of an elastic launcher."""
    return f"{socket.gethostname()} {os.getppid()} {os.environ.get('MASTER_PORT', '')}"


def _images(folder: RunFolder, base: Path | None) -> ImageFolder:
    """Choose the folder of pictures. A run continued by its folder (``--resume DIR``) may have others elsewhere."""
    path, others = _places(folder, base, FOLDER)
    return ImageFolder(path, others)


def _places(folder: RunFolder, base: Path | None, name: str) -> tuple[Path, list[Path]]:
    """Return the folder of this name for the run's files, and those that an earlier start may have used."""
    own = folder.path / name
    path = own if base is None else base / name
    others = {own, *([folder.path.parent.parent / name] if folder.path.parent.name == RUNS else [])}
    return path, sorted(others - {path})


def _media(config: RunConfig, folder: RunFolder, base: Path | None, place: Place) -> MediaKeeper | None:
    """Open the folder of media that the run keeps; ``None`` if the options want none."""
    if not config.keeps_media:
        return None
    from lmms_eval.media.keeper import FOLDER as MEDIA
    from lmms_eval.media.keeper import KeepLimits, MediaKeeper

    path, others = _places(folder, base, MEDIA)
    limits = KeepLimits(int(config.log_media_mb * 2**20), int(config.log_media_item_mb * 2**20))
    keeper = MediaKeeper(path, folder.path, limits, place.rank, is_alone=place.size == 1)
    keeper.take_over(others)
    return keeper


def _folder_path(config: RunConfig, base: Path | None, key: str) -> Path:
    if isinstance(config.resume, str):
        path = Path(config.resume)
        if not (path / "run.json").is_file():
            raise UsageError(f"--resume {path}: no run is recorded there (run.json is missing)")
        return path
    if base is not None:
        return base / RUNS / key
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "lmms_eval" / "runs" / key
