"""The settings of a server."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmms_eval.errors import ConfigError

log = logging.getLogger(__name__)

TOKEN_VARIABLE = "LMMS_EVAL_SERVER_TOKEN"
PORT_VARIABLE = "LMMS_SERVER_PORT"
LEAST_TOKEN = 16
"""Characters that a token has at least."""
_GPU = re.compile(r"\d{1,4}|(?:GPU|MIG)-[0-9A-Za-z/-]{1,100}")


def is_token(text: str) -> bool:
    """Return whether a text can be a token: too long to be guessed, and valid in a header."""
    return len(text) >= LEAST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def stated_token(file: str | None, environ: Mapping[str, str]) -> str:
    """Read a server's token from a file or the environment; may be empty. Raises ``ConfigError`` for a bad file."""
    if file is None:
        return environ.get(TOKEN_VARIABLE, "").strip()
    path = Path(file).expanduser()
    try:
        token, mode = path.read_text(encoding="utf-8").strip(), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token_file {file}: {getattr(error, 'strerror', None) or error}") from error
    if not token:
        raise ConfigError(f"--token_file {file}: it is empty")
    if mode & 0o077:
        log.warning("--token_file %s: other users of this machine may read it: chmod 600", file)
    return token


def stated_port(environ: Mapping[str, str]) -> int:
    """Read the page's port from the environment; 0 (any free port) by default. Raises ``ConfigError``."""
    text = environ.get(PORT_VARIABLE, "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
        raise ConfigError(
            f"{PORT_VARIABLE}: give a number from 1 to 65535, or 0 for any that is free; got {text[:40]!r}"
        )
    return int(text)


def default_folder() -> Path:
    """Return the default folder of a server, below ``XDG_DATA_HOME``."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "lmms_eval" / "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of a server, as ``lmms-eval serve`` takes them. Raises ``ConfigError`` if one is out of its bounds."""

    host: str = "127.0.0.1"
    port: int = 8000
    folder: Path = field(default_factory=default_folder)
    """Folder with the list of jobs and the files of each job."""
    gpus: tuple[str, ...] = ()
    parallel: int | None = None
    """Number of parallel runs; by default one for each GPU in ``gpus``, or one without GPUs."""
    max_completed_jobs: int = 100
    delete_files: bool = False
    prefix: str = ""
    """Prefix of the names of the jobs' folders."""
    allow_paths: tuple[str, ...] = ()
    """Folders and addresses that requests may use."""
    allow_code: bool = False
    include_paths: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    data_root: str | None = None
    allow_uploads: bool = False
    """Requests may upload results to other services, with the keys of this server's environment."""
    allow_hosts: tuple[str, ...] = ()
    """Further host names that clients use for the server."""
    token: str = field(default="", repr=False)
    """Token that clients must send. If it is empty, the server answers this machine only."""
    submissions_per_minute: int = 240
    """Submissions that one client may make per minute on average, and as a burst."""
    max_queued_jobs: int = 10_000
    grace: float = 30.0
    """Seconds that a stopped run has to finish its requests in flight; then it is killed."""
    leave_running: bool = False
    """Runs continue when the server stops."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port: give a number from 1 to 65535, or 0 for any that is free; got {self.port}")
        if self.max_completed_jobs < 1:
            raise ConfigError(f"max_completed_jobs: give a count from 1 on; got {self.max_completed_jobs}")
        if self.parallel is not None and self.parallel < 1:
            raise ConfigError(f"parallel: give a count from 1 on; got {self.parallel}")
        if not 0 <= self.grace < 3600:
            raise ConfigError(f"grace: give seconds from 0 to an hour; got {self.grace:g}")
        if len(set(self.gpus)) != len(self.gpus):
            raise ConfigError(f"gpus: name each GPU once; got {','.join(self.gpus)}")
        if wrong := [gpu for gpu in self.gpus if not _GPU.fullmatch(gpu)]:
            raise ConfigError(f"gpus: give numbers such as 0,1, or names as nvidia-smi -L has them; got {wrong[0]}")
        if self.submissions_per_minute < 1 or self.max_queued_jobs < 1:
            raise ConfigError("submissions_per_minute, max_queued_jobs: give counts from 1 on")
        if self.token and not is_token(self.token):
            raise ConfigError(
                f"token: give at least {LEAST_TOKEN} printable ASCII characters without spaces, such as the output of "
                "`openssl rand -hex 32`"
            )
        if "/" in self.prefix or self.prefix.startswith("."):
            raise ConfigError(
                f"the prefix of the jobs' folders must have no slash and no dot at its beginning; got {self.prefix!r}"
            )
