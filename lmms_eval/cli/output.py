"""Output of commands to standard output and standard error, error reports, and the steps at a command's end."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from lmms_eval.errors import LmmsEvalError, MissingOptionalDependencyError
from lmms_eval.utils.terminal import coloured, encodable, printable, shown, takes_colours

_GONE = (errno.EPIPE, errno.EIO)
"""Errors if the reader or the terminal has gone away."""
_steps: list[Callable[[], None]] = []
INTERNAL_ERROR = 1
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a file system. They are not defects of this package, so a traceback would not help."""


def emit(lines: str | Iterable[str], masks: bool = True) -> None:
    """Print to standard output.

    Known secrets are masked, control characters are escaped, and characters that the encoding lacks are replaced. On a
    terminal with colours, the verdicts in tables are coloured (``NO_COLOR`` and ``FORCE_COLOR`` are respected). If
    the reader goes away (``| head``), the output ends but the command continues.

    Args:
        lines: a text, or its lines.
        masks: mask secrets. Only the address of a page that this command serves is printed with its token.

    Raises:
        LmmsEvalError: standard output is a file that cannot be written.
    """
    from lmms_eval.utils.redaction import mask_known

    text = lines if isinstance(lines, str) else "\n".join(lines)
    try:
        shown_text = printable(mask_known(text) if masks else text)
        if takes_colours(sys.stdout, os.environ):
            shown_text = coloured(shown_text)
        print(encodable(shown_text, sys.stdout), flush=True)
    except OSError as error:
        _discard(sys.stdout)
        if error.errno not in _GONE:
            raise LmmsEvalError(
                f"cannot write to standard output: {error.strerror or error}; files that were written before are kept"
            ) from error


def complain(text: str) -> None:
    """Print to standard error, secrets redacted and control characters escaped."""
    try:
        print(encodable(shown(text), sys.stderr), file=sys.stderr, flush=True)
    except OSError:  # the exit code still reports the failure
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)


def announce_page(what: str, address: str, port: int, no_browser: bool) -> None:
    """Print the address of a page, and open it in a browser if there is one.

    Args:
        what: name of the page.
        address: address with its token.
        port: port on this machine.
        no_browser: open no browser.
    """
    import socket  # these two take a tenth of the time of --help
    import webbrowser

    from lmms_eval.viewer.live.app import can_open_browser, ssh_hint

    emit(f"{what}: {address}", masks=False)
    if no_browser or not can_open_browser(os.environ):
        emit(f"from another machine: {ssh_hint(os.environ, port, socket.gethostname())}, then open the address there")
    else:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    emit("Ctrl-C ends it")


def at_end(step: Callable[[], None]) -> None:
    """Register a function to be called when the command ends. It may not raise."""
    _steps.append(step)


def end() -> None:
    """Call the registered functions, each once."""
    while _steps:
        _steps.pop(0)()


class LastStep:
    """Ends the process of a command. It is registered with ``atexit`` before all others, so it is called last.

    The steps of ``at_end`` record that the command has ended, so the process must not be killed after them. It
    therefore exits at once and skips the interpreter's cleanup, which takes 0.2 s once PyTorch is loaded. The process
    ends normally until ``code`` is set.
    """

    def __init__(self) -> None:
        self.code: int | None = None

    def __call__(self) -> None:
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # the reader has gone away, or the stream is closed
                stream.flush()
        end()
        os._exit(self.code)


def report_error(error: Exception, with_traceback: bool, place: str = "") -> int:
    """Print an error to standard error and return its exit code."""
    import traceback  # not needed by a command that succeeds

    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        place = f"process {os.environ.get('RANK', '?')}: {place}"
    if isinstance(error, LmmsEvalError):
        if with_traceback:
            complain("".join(traceback.format_exception(error)).rstrip())
        complain("\n".join([*_user_lines(error), f"error: {place}{error}{_pointer(error.section)}"]))
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _DISK:
        complain(
            f"error: {place}{error.filename or 'a file'} cannot be written: {error.strerror}; what was finished before "
            "is kept: make room and start the same command again"
        )
        return INTERNAL_ERROR
    lines = _user_lines(error)
    if with_traceback or not lines:
        complain("".join(traceback.format_exception(error)).rstrip())
    if lines:
        from lmms_eval.utils.installed import error_text  # not needed by a command that succeeds

        advice = "correct it and start the same command again (--verbosity DEBUG shows all frames)"
        complain("\n".join([*lines, f"error: {place}your code raised {error_text(error)}; {advice}"]))
        return INTERNAL_ERROR
    complain(f"error: {place}internal error: {type(error).__name__}: {error}{_pointer('the-run-ends-early')}")
    return INTERNAL_ERROR


def _user_lines(error: BaseException) -> list[str]:
    """Return the frames of the user's code in an error, outermost first; empty if a package is missing."""
    if isinstance(error, MissingOptionalDependencyError):
        return []
    from lmms_eval.utils.user_code import frame_lines, user_frames

    return frame_lines(user_frames(error))


def _pointer(section: str) -> str:
    return f" (see docs/troubleshooting.md#{section})" if section else ""


def shows_traceback(arguments: Sequence[str]) -> bool:
    """Return whether the command line or the environment sets ``--verbosity DEBUG`` or finer."""
    level = os.environ.get("VERBOSITY", "")
    for position, word in enumerate(arguments):
        if word == "--verbosity":
            level = arguments[position + 1] if position + 1 < len(arguments) else ""
        elif word.startswith("--verbosity="):
            level = word.partition("=")[2]
    return level.upper() in ("DEBUG", "TRACE")
