"""Where a run's record lives, and whether it is begun, continued or begun anew."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.engine.images import FOLDER, ImageFolder
from lmms_eval.engine.journal import write_atomically
from lmms_eval.engine.run_folder import RunFolder, RunState
from lmms_eval.engine.team import Team
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.collect import Collected
from lmms_eval.results.naming import ResultFiles, model_folder, reserve, start_stamp

RUNS = ".runs"
LAUNCH_MARK = "launch"
"""File by which the processes of a launch find out whether they see the same folder."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The folder of the journals and the names of the result files."""

    folder: RunFolder
    key: str
    scoring_key: str
    files: ResultFiles | None
    """``None`` without ``--output_path``."""
    date: str
    is_temporary: bool
    images: ImageFolder
    """Pictures that the model makes: beside the samples, or in the folder of the journals."""
    shares_files: bool = True
    """This process writes into the folder of the launch's first process."""

    def finish(self, state: RunState, command: str = "") -> None:
        """``command``: what asks for the answers that are missing."""
        known = self.folder.read()
        self.folder.write({**known, "state": state, "command": command or known.get("command", "")})


def open_record(config: RunConfig, collected: Collected, team: Team | None = None) -> RunRecord:
    """Take the run's folder: continue what was interrupted or withheld, begin anew what was complete.

    Of several processes the first one does, the others join it.

    Raises:
        RunLockedError: another live process owns the folder.
        UsageError: ``--resume DIR`` names a run of another configuration.
        TeamError: the first process has failed.
    """
    out = Path(config.output_path) if config.output_path else None
    base = model_folder(out, argument_text(config.model_args)) if out else None
    if team is not None and not team.is_first:
        return _join(config, collected, base, team)
    folder = RunFolder(_folder_path(config, base, collected.key))
    folder.acquire()
    try:
        record = _begin(config, collected, folder, base, is_restart=team is not None and team.place.attempt > 0)
        if team is not None:
            mark = uuid.uuid4().hex
            write_atomically(folder.path / LAUNCH_MARK, mark.encode())
            told = {"key": collected.key, "scoring_key": collected.scoring_key, "common_key": collected.common_key}
            team.tell("record", {**told, "mark": mark, "date": record.date})
    except BaseException:
        folder.release()
        raise
    return record


def _join(config: RunConfig, collected: Collected, base: Path | None, team: Team) -> RunRecord:
    """Write into the first process's folder if it can be seen from here, else into one of this process's own."""
    first = team.hear("record", 0)
    if first["common_key"] != collected.common_key:
        raise UsageError(
            f"process {team.place.rank} sees another run than process 0: the options, the tasks, their functions or "
            "the number of documents differ between the machines"
        )
    folder = RunFolder(_folder_path(config, base, first["key"]))
    mark = folder.path / LAUNCH_MARK
    shares = mark.is_file() and mark.read_text(encoding="utf-8") == first["mark"]
    if not shares:
        folder.acquire()
        folder.write({"key": first["key"], "state": "running", "date": first["date"]})
    return RunRecord(
        folder, first["key"], first["scoring_key"], None, first["date"], base is None, _images(folder, base), shares
    )


def _begin(
    config: RunConfig, collected: Collected, folder: RunFolder, base: Path | None, is_restart: bool = False
) -> RunRecord:
    earlier = folder.read()
    if earlier and earlier.get("key") != collected.key:
        raise UsageError(
            f"{folder.path} holds a run of another configuration (key {earlier.get('key')}, this command's is "
            f"{collected.key}): model, arguments, prompts, data or generation options differ; leave --resume "
            "out to begin a run of its own"
        )
    # A process that died after its work makes the launcher start all again: that is no new run.
    is_same = is_restart and earlier.get("launcher") == _launcher()
    if earlier.get("state") == "complete" and not config.resume and not is_same:
        folder.clear()
        earlier = {}
    date = start_stamp(config.timezone)
    files = None
    if base is not None:
        stamp = earlier.get("stamp")
        files = ResultFiles(base, stamp) if stamp else reserve(base, date)
    if earlier:
        logger.info("continuing the run of {} in {}", earlier.get("date"), folder.path)
    record = {
        "key": collected.key,
        "state": "running",
        "stamp": files.stamp if files else earlier.get("stamp"),
        "date": earlier.get("date") or date.isoformat(),
        "arguments": resolved_cli_args(config),
        "model": _model(collected),
        "launcher": _launcher(),
    }
    folder.write(record)
    return RunRecord(
        folder, collected.key, collected.scoring_key, files, str(record["date"]), base is None, _images(folder, base)
    )


def _launcher() -> str:
    """The process that has started this one, the same in all attempts of an elastic launcher."""
    return f"{socket.gethostname()} {os.getppid()} {os.environ.get('MASTER_PORT', '')}"


def _model(collected: Collected) -> dict[str, Any]:
    """What ``lmms-eval score`` needs to know of the model, to find the run's key without building it."""
    choice = collected.choice
    return {
        "backend": choice.backend,
        "model_id": choice.model_id,
        "chat": choice.chat,
        "legacy": choice.legacy,
        "identity": dict(collected.model.identity()),
    }


def _images(folder: RunFolder, base: Path | None) -> ImageFolder:
    """Where pictures go. A run that is continued by its folder (``--resume DIR``) may have kept them elsewhere."""
    own = folder.path / FOLDER
    path = own if base is None else base / FOLDER
    others = {own, *([folder.path.parent.parent / FOLDER] if folder.path.parent.name == RUNS else [])}
    return ImageFolder(path, sorted(others - {path}))


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
