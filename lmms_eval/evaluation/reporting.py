"""The report of a run (``--report``): processes of its own write it, whose failures are told and change nothing."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
from loguru import logger

from lmms_eval.config import RunConfig
from lmms_eval.engine.evaluate import RunResult
from lmms_eval.evaluation.record import RunRecord
from lmms_eval.results.naming import ResultFiles
from lmms_eval.utils.line_process import LineProcess, ProcessEnded
from lmms_eval.utils.line_server import ENDING_S
from lmms_eval.utils.redaction import known_secrets
from lmms_eval.viewer.renewing import FIRST_S

WRITER = "lmms_eval.viewer.renewing"
PATIENCE_S, PER_DOCUMENT_S = 120.0, 0.1
"""Seconds that the report of a finished run may take, as a whole and for each document."""


class RunReporter:
    """The report of a run: as a context it has it written while the run goes on."""

    def __init__(self, record: RunRecord, files: ResultFiles) -> None:
        self._files = files
        self._live: LineProcess | None = None
        try:
            self._live = self._writer(record.folder.path, goes_on=True)
        except (OSError, ProcessEnded) as error:  # the one at the end is tried all the same
            logger.debug("no report while the run goes on: {}", error)

    def __enter__(self) -> RunReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_live()

    def finish(self, patience_s: float) -> str:
        """Have the results written; returns the line that tells of it."""
        self._end_live()
        logger.info("writing the report {}", self._files.report)
        try:
            writer = self._writer(self._files.results, goes_on=False)
        except (OSError, ProcessEnded) as error:
            return self._failed(str(error))
        try:
            answer: dict[str, Any] = orjson.loads(writer.receive(patience_s))
        except (ProcessEnded, orjson.JSONDecodeError) as error:
            writer.kill()
            return self._failed(f"{error}; `lmms-eval report {self._files.results} --out {self._files.report}` does it")
        finally:
            writer.close()
        if "problem" in answer:
            return self._failed(answer["problem"])
        return f"report: {self._files.report / 'index.html'}"

    def _failed(self, problem: str) -> str:
        return f"the report {self._files.report} could not be written: {problem}"

    def _writer(self, run: Path, goes_on: bool) -> LineProcess:
        process = LineProcess(WRITER, quiet=True)
        job = {
            "run": str(run.absolute()),
            "out": str(self._files.report.absolute()),
            "goes_on": goes_on,
            "first_s": FIRST_S,
            "secrets": known_secrets(),
        }
        process.send(orjson.dumps(job))
        return process

    def _end_live(self) -> None:
        if self._live is not None:
            self._live.close(patience_s=2 * ENDING_S)
        self._live = None


def open_reporter(config: RunConfig, record: RunRecord, rank: int, opened: ExitStack) -> RunReporter | None:
    """Begin with ``--report``: of several processes the first one does."""
    if not config.report or rank > 0 or record.files is None:
        return None
    return opened.enter_context(RunReporter(record, record.files))


def report_lines(reporter: RunReporter | None, result: RunResult, grace_s: float) -> list[str]:
    """Write the report of a run that has ended; returns the lines that tell of it.

    ``grace_s``: seconds that it may take where the run was interrupted.
    """
    if reporter is None:
        return []
    patience_s = PATIENCE_S + PER_DOCUMENT_S * sum(task.plan.requested for task in result.tasks)
    return [reporter.finish(patience_s if result.asking.interrupted is None else grace_s)]
