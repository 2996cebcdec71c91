"""The running job from the server's side: its keeper is started, watched and told to end the run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from lmms_eval.errors import LmmsEvalError
from lmms_eval.server.command import Additions, command_line, environment, run_options, write_config
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.gpus import Room
from lmms_eval.server.job import Job
from lmms_eval.storage.atomic import write_atomically


@dataclass(slots=True)
class Worker:
    """A running job. It may have been started by an earlier server, whose keeper lives on.

    Args:
        job: the job, as it was when it was claimed or found.
        additions: part of every run of this server.
        room: what this server gives to runs.
        grace_s: seconds in which a run that is told to end may finish what is in flight; then it is killed.
    """

    job: Job
    additions: Additions
    room: Room
    grace_s: float
    deaths: int = 0
    """Times that its processes were killed from outside since this server watches."""
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    @property
    def folder(self) -> JobFolder:
        return JobFolder(Path(self.job.folder))

    @property
    def is_alive(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True  # perhaps on its way to the lock
        self._process = None
        return self.folder.has_keeper

    def start(self) -> None:
        """Start the job's keeper. Raises ``LmmsEvalError`` where its folder does not take what it needs."""
        folder, request = self.folder, self.job.request
        was_begun = folder.start_file.exists()
        try:
            folder.suspend_file.unlink(missing_ok=True)
            folder.path.mkdir(parents=True, exist_ok=True)
            write_config(self.additions.join(run_options(request, folder, self.job.gpus)), folder)
            words = command_line(request, folder, continues=was_begun)
            folder.write(folder.start_file, {"command": words, "grace_s": self.grace_s, "gpus": self.job.gpus})
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lmms_eval.server.keeper", str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(os.environ, self.room.visible(self.job.gpus)),
                cwd=folder.path,
                start_new_session=True,  # it outlives the server, and no signal of a terminal reaches it
            )
        except OSError as error:
            raise LmmsEvalError(f"job {self.job.job_id} cannot be started: {error.strerror or error}") from error

    def cancel(self) -> None:
        """Have the run ended for good. Raises ``JournalError`` where the disk does not take the note."""
        write_atomically(self.folder.cancel_file, b"")

    def suspend(self) -> None:
        """Have the run ended, to go on when a server starts it again. Raises ``JournalError``."""
        write_atomically(self.folder.suspend_file, b"")
