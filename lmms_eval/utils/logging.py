"""Log set-up of the command line. Importing the package never touches anybody's handlers; this function does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from types import FrameType

_FORMAT = "<dim>{time:HH:mm:ss}</dim> <level>{level: <8}</level> {message}"
_OWN_LOGGER = "lmms_eval"


class _ToLoguru(logging.Handler):
    """Hands records of the standard library's loggers to loguru, with the place they were logged at."""

    def emit(self, record: logging.LogRecord) -> None:
        from loguru import logger

        try:
            level: str | int = logger.level(record.levelname).name
        except ValueError:
            level = record.levelno
        frame: FrameType | None = logging.currentframe()
        depth = 2
        while frame is not None and frame.f_code.co_filename == logging.__file__:
            frame, depth = frame.f_back, depth + 1
        logger.opt(depth=depth, exception=record.exc_info).log(level, "{}", record.getMessage())


def process_number(environ: Mapping[str, str]) -> int:
    """Number of this process in a launch of several; 0 for the first one, and for one that is alone."""
    rank, size = environ.get("RANK", ""), environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else 0


def configure_logging(verbosity: str = "INFO", process: int = 0) -> None:
    """Log to standard error from ``verbosity`` on, with secrets masked, also those inside tracebacks.

    A ``process`` other than the first one of a launch names itself in each line and logs at WARNING and above, unless
    ``verbosity`` asks for more than INFO.

    Replaces loguru's handlers and the handler of the package's own standard logger; calling it again changes the level.
    """
    from loguru import logger

    if process and logger.level("DEBUG").no < logger.level(verbosity).no < logger.level("WARNING").no:
        verbosity = "WARNING"
    line = _FORMAT.replace("{message}", f"process {process}: {{message}}") if process else _FORMAT
    logger.remove()
    logger.add(_write_masked, level=verbosity, format=line, colorize=sys.stderr.isatty(), diagnose=False)
    own = logging.getLogger(_OWN_LOGGER)
    own.handlers = [handler for handler in own.handlers if not isinstance(handler, _ToLoguru)] + [_ToLoguru()]
    own.setLevel(min(logger.level(verbosity).no, logging.CRITICAL))
    own.propagate = False


def log_lines(lines: Iterable[str]) -> None:
    """Log each line at INFO, as it is: its secrets are masked already."""
    from loguru import logger

    for line in lines:
        logger.bind(is_masked=True).info("{}", line)


def _write_masked(message: Any) -> None:
    sys.stderr.write(str(message) if message.record["extra"].get("is_masked") else redact(str(message)))
