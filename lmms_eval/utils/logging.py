"""Logging of the command line. Importing the package changes no log handlers; ``configure_logging`` does."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.utils.terminal import encodable, printable, shown, takes_colours

if TYPE_CHECKING:
    from types import FrameType

_FORMAT = "<dim>{time:HH:mm:ss}</dim> <level>{level: <8}</level> "
_OWN_LOGGER = "lmms_eval"


class _ToLoguru(logging.Handler):
    """Forwards records of the standard library's loggers to loguru, with their original place."""

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
    """Return the rank of this process in a launch of several processes; 0 for a single process."""
    rank, size = environ.get("RANK", ""), environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else 0


def configure_logging(verbosity: str = "INFO", process: int = 0) -> None:
    """Log to standard error from ``verbosity`` on, in colours if the terminal supports them.

    Secrets are masked and control characters are escaped, also in tracebacks. A ``process`` other than rank 0 names
    itself in each line and logs only from WARNING on, unless ``verbosity`` asks for more than INFO.

    This replaces loguru's handlers and the handler of the package's own standard logger. Calling it again changes the
    level.
    """
    from loguru import logger

    if process and logger.level("DEBUG").no < logger.level(verbosity).no < logger.level("WARNING").no:
        verbosity = "WARNING"
    is_colourful = takes_colours(sys.stderr, os.environ)
    logger.remove()
    logger.add(_write, level=verbosity, format=_line(process), colorize=is_colourful, diagnose=False)
    own = logging.getLogger(_OWN_LOGGER)
    own.handlers = [handler for handler in own.handlers if not isinstance(handler, _ToLoguru)] + [_ToLoguru()]
    own.setLevel(min(logger.level(verbosity).no, logging.CRITICAL))
    own.propagate = False


def log_lines(lines: Iterable[str]) -> None:
    """Log each line at INFO, unchanged: its secrets are already masked."""
    from loguru import logger

    for line in lines:
        logger.bind(is_masked=True).info("{}", line)


def _line(process: int) -> Callable[[Any], str]:
    """Return the function that formats records: colours come from this package, the message is escaped."""
    template = f"{_FORMAT}process {process}: {{extra[shown]}}\n" if process else f"{_FORMAT}{{extra[shown]}}\n"

    def of_record(record: Any) -> str:
        text, error = record["message"], record["exception"]
        if error is not None:
            text += "\n" + "".join(traceback.format_exception(*error)).rstrip()
        record["extra"]["shown"] = printable(text) if record["extra"].get("is_masked") else shown(text)
        return template

    return of_record


def _write(message: Any) -> None:
    sys.stderr.write(encodable(str(message), sys.stderr))
