"""``lmms-eval tui`` and ``--tui``: shows running evaluations in the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.cli.processes import forwarding
from lmms_eval.errors import UsageError
from lmms_eval.processes import module_command

FLAG = "--tui"
LOG_LINES, LOG_BYTES = 6, 4096
"""Amount of the run's log that is shown."""
POLL_S = 0.1


def run(arguments: Sequence[str]) -> int:
    """Show the runs of a folder. With ``--tui`` among the flags of an evaluation, start and show that one.

    Raises ``UsageError`` if there is no terminal, or textual is missing.
    """
    if FLAG in arguments:
        return _evaluate([word for word in arguments if word != FLAG])
    parser = command_parser("tui")
    parser.add_argument("folder", metavar="DIR", help="output folder of runs: running, ended, or not yet started")
    given = parser.read(arguments)
    _check_terminal()
    from lmms_eval.viewer.live.screen import RunsScreen
    from lmms_eval.viewer.live.watch import Watch
    from lmms_eval.viewer.page import ReportOptions

    _quiet()
    with Watch(Path(given.folder).expanduser(), ReportOptions(media="none")) as watch:
        RunsScreen(watch).run()
    return 0


def _evaluate(arguments: Sequence[str]) -> int:
    """Start an evaluation in another process and show it until it ends or the user leaves the screen.

    Its output is printed after the screen has closed. Returns its exit code.
    """
    from lmms_eval.config import check_config, load_configs, parse_flags

    words = [*arguments[1:]] if arguments[:1] in (["eval"], ["tui"]) else [*arguments]
    configs = load_configs(parse_flags(words)).configs
    folders = {check_config(config).output_path for config in configs}
    if len(folders) != 1 or not (folder := folders.pop()):
        raise UsageError("--tui shows the runs of one folder: say which with --output_path DIR")
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise UsageError("--tui: a launcher has started several processes; leave it out, and watch with lmms-eval tui")
    _check_terminal()
    _quiet()
    Path(folder).mkdir(parents=True, exist_ok=True)
    children: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as scratch, forwarding(children):
        printed, log = Path(scratch, "printed"), Path(scratch, "log")
        with printed.open("wb") as output, log.open("wb") as errors:
            child = subprocess.Popen(
                [*module_command("lmms_eval"), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # signals of the terminal go to the screen only
            )
        children.append(child)
        try:
            with log.open("rb") as lines:
                _show(Path(folder), child, lines)
                _relay(child, lines)
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
        emit(printed.read_text("utf-8", "replace").rstrip("\n"))
    return 128 - child.returncode if child.returncode < 0 else child.returncode


def _show(folder: Path, child: subprocess.Popen[bytes], log: BinaryIO) -> None:
    from lmms_eval.viewer.live.screen import RunsScreen
    from lmms_eval.viewer.live.watch import Watch
    from lmms_eval.viewer.page import ReportOptions

    def last_lines() -> list[str]:
        size = log.seek(0, 2)
        log.seek(max(0, size - LOG_BYTES))
        return log.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:]

    def interrupt() -> None:
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)

    with Watch(folder, ReportOptions(media="none")) as watch:
        RunsScreen(watch, last_lines, lambda: child.poll() is not None, interrupt).run()


def _relay(child: subprocess.Popen[bytes], log: BinaryIO) -> None:
    """Print the run's log from its beginning until the run ends."""
    printed = 0
    is_over = False
    while not is_over:
        is_over = child.poll() is not None
        log.seek(printed)
        if text := log.read():
            printed += len(text)
            complain(text.decode("utf-8", "replace").rstrip("\n"))
        if not is_over:
            time.sleep(POLL_S)


def _check_terminal() -> None:
    from lmms_eval.utils.installed import package_version

    if package_version("textual") is None:
        raise UsageError("the terminal display needs the package textual: pip install 'lmms_eval[tui]'")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal to draw on: leave --tui out, or watch with lmms-eval view DIR")


def _quiet() -> None:
    """Keep log lines off the screen."""
    from lmms_eval.utils.logging import configure_logging

    configure_logging("ERROR")
