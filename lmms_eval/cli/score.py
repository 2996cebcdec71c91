"""``lmms-eval score``: scores and judges a recorded run again from its own answers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.output import at_end, emit
from lmms_eval.errors import UsageError

USAGE = (
    "usage: lmms-eval score RUN [--judge_model NAME] [--judge_base_url URL] [--judge_args K=V,...] [flags]",
    "       (--launcher_args K=V,... serves the judge on this machine for that time)",
    "",
    "RUN: the results file of a run, the folder of its record (OUT/MODEL/.runs/KEY), or a folder that holds one run.",
    "The model is not asked. Unscored samples are judged, and the results and samples files are rewritten.",
    "",
    "       lmms-eval score --tasks TASK --submission FILE [--output_file FILE] [flags]",
    "",
    "FILE: a submission of a benchmark, as its stand-alone evaluator reads it (megabench_core, megabench_open, ...).",
)


def run(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if any(word in ("--help", "-h") for word in words):
        from lmms_eval.evaluation.rescore import GIVEN

        emit([*USAGE, "", f"Flags: {', '.join(f'--{name}' for name in GIVEN)} (lmms-eval eval --help explains them)"])
        return 0
    if any(word.partition("=")[0] == "--submission" for word in words):
        from lmms_eval.cli.megabench import score_task_submission

        return score_task_submission(words)
    if not words or words[0].startswith("-"):
        raise UsageError("score: name the run: lmms-eval score RUN [flags]; see lmms-eval score --help")
    from lmms_eval.config import parse_flags
    from lmms_eval.evaluation.rescore import rescore
    from lmms_eval.utils.logging import configure_logging

    given = parse_flags(words[1:])
    configure_logging(str(given.get("verbosity", "INFO")).upper())
    report = rescore(Path(words[0]), given, shlex.join(["lmms-eval", "score", *words]), ends=False)
    emit([part for part in (report.table, *report.lines) if part])
    at_end(report.end)
    return report.exit_code
