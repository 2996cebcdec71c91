"""``lmms-eval megabench``: the benchmark's stand-alone scripts (evaluator, breakdown, single-image results)."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.cli.arguments import CommandParser, command_parser, run_action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import DataError, UsageError

if TYPE_CHECKING:
    from lmms_eval.tasks.megabench.breakdown.statistics import ModelBreakdown
    from lmms_eval.tasks.megabench.standalone import EvaluatorOutput, JudgePanel
    from lmms_eval.tasks.megabench.summary import TaskTotals

OK, HAS_ERRORS, WITHHELD = 0, 2, 3
SAVE_EVERY_S = 5.0
SUBSETS = {
    "megabench_core": "core",
    "megabench_open": "open",
    "megabench_core_si": "core_single_image",
    "megabench_open_si": "open_single_image",
    "megabench_demo": "demo",
}
"""Configuration of the data set for each task; the package contains the data of the demo."""


def run(arguments: Sequence[str]) -> int:
    return run_action("megabench", _ACTIONS, arguments, logless=("breakdown", "single-image"))


def _evaluate(words: Sequence[str]) -> int:
    parser = command_parser("megabench evaluate", "score a submission file")
    parser.add_argument(
        "--subset_name", "--subset-name", required=True, help=f"part of the benchmark: {', '.join(SUBSETS.values())}"
    )
    parser.add_argument(
        "--submission_file",
        "--submission-file",
        required=True,
        type=Path,
        metavar="FILE",
        help="file with the answers to score",
    )
    parser.add_argument(
        "--output_file", "--output-file", required=True, type=Path, metavar="FILE", help="file to write the scores to"
    )
    add_scoring_flags(parser)
    given = parser.parse_args(list(words))
    return score_submission(given.subset_name, given)


def score_task_submission(words: Sequence[str]) -> int:
    """Run ``lmms-eval score --tasks TASK --submission FILE``: ``evaluate`` with the names of tasks."""
    parser = command_parser("score", "score a submission file of a benchmark")
    parser.add_argument("--tasks", required=True, choices=tuple(SUBSETS), metavar="TASK", help=", ".join(SUBSETS))
    parser.add_argument("--submission", required=True, type=Path, metavar="FILE", dest="submission_file")
    parser.add_argument(
        "--output_file", "--output-file", type=Path, metavar="FILE", help="default: in the submission's folder"
    )
    add_scoring_flags(parser)
    given = parser.parse_args(list(words))
    if given.output_file is None:
        given.output_file = given.submission_file.absolute().with_name(f"{given.tasks}_data_with_scores.json")
    return score_submission(SUBSETS[given.tasks], given)


def add_scoring_flags(parser: CommandParser) -> None:
    """Add the flags that ``evaluate`` and ``lmms-eval score`` share."""
    parser.add_argument("--data_root", "--data-root", metavar="DIR", help="folder with a local copy of the data set")
    parser.add_argument(
        "--dataset_name",
        "--dataset-name",
        metavar="NAME",
        help="name of the data set on the hub, or a folder as for --data_root",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="score tasks without a judge again, even if the output file has their scores",
    )
    parser.add_argument(
        "--workers", type=int, default=min(4, os.cpu_count() or 1), metavar="N", help="number of scoring processes"
    )
    parser.add_argument(
        "--nltk_data", "--nltk-data", metavar="DIR", help="folder with NLTK's data, which lmms-eval fetch nltk installs"
    )
    parser.add_argument(
        "--geocode_table", "--geocode-table", metavar="FILE", help="JSON file with the coordinates of places"
    )
    parser.add_argument(
        "--geocoder",
        metavar="URL",
        help="server for the coordinates of places: nominatim, or the URL of a compatible one",
    )
    parser.add_argument(
        "--allow_unsafe_code", "--allow-unsafe-code", action="store_true",
        help="run programs that a model wrote even if no sandbox can confine them",
    )  # fmt: skip
    parser.add_argument(
        "--judge_model", "--judge-model", metavar="NAME", help="model that judges answers: NAME or PROVIDER:NAME"
    )
    parser.add_argument("--judge_base_url", "--judge-base-url", metavar="URL", help="address of the judge's server")
    parser.add_argument(
        "--judge_retries", "--judge-retries", type=int, default=0, metavar="N",
        help="how often a reply of the judge that cannot be read is asked again; default: %(default)s",
    )  # fmt: skip


def score_submission(subset: str, given: argparse.Namespace) -> int:
    """Score the submission that the flags name and return the exit code.

    Raises ``UsageError`` if the data set, the submission or the output file cannot be used.
    """
    from lmms_eval.config.options import environment_defaults
    from lmms_eval.tasks.megabench.data import DEMO, REPOSITORY
    from lmms_eval.tasks.megabench.metrics.values import OutsideData
    from lmms_eval.tasks.megabench.reference import load_reference
    from lmms_eval.tasks.megabench.scoring.pool import ScorePool
    from lmms_eval.tasks.megabench.standalone import evaluate
    from lmms_eval.tasks.megabench.submission import read_submission

    submission = read_submission(given.submission_file)
    root = given.data_root
    if given.dataset_name not in (None, REPOSITORY):
        root = given.dataset_name
        if not Path(root).is_dir():
            raise UsageError(f"--dataset_name {root}: neither {REPOSITORY} nor a folder")
    if subset == SUBSETS["megabench_demo"]:
        subset, root = "core", str(DEMO)
    display = _Display(given.output_file)
    stated = {name: found.text for name, found in environment_defaults(os.environ).items()}
    names = ("geocode_table", "geocoder", "nltk_data")
    outside = OutsideData(**{name: text for name in names if (text := getattr(given, name) or stated.get(name))})
    pool = ScorePool(given.workers, given.allow_unsafe_code, outside, expected=len(submission))
    try:
        reference = load_reference(subset, root)
        _check_subset(submission, reference, subset)
        previous = _previous(given.output_file, given.force)
        with _panel(given, root) as panel:
            evaluation = evaluate(submission, reference, previous, pool, panel, display)
    finally:
        pool.close()
    display.save(evaluation)
    return _report(evaluation, given.output_file)


@contextlib.contextmanager
def _panel(given: argparse.Namespace, data_root: str | None) -> Iterator[JudgePanel | None]:
    """Open the judge that the flags or the environment name; yields ``None`` without a judge."""
    from lmms_eval.judges.options import JudgeOptions

    options = JudgeOptions(given.judge_model, given.judge_base_url)
    if not options.is_given:
        options = JudgeOptions.from_environment(os.environ)
    if not options.is_given:
        yield None
        return
    from lmms_eval.judges import ask, open_judge
    from lmms_eval.tasks.megabench.data import media_root
    from lmms_eval.tasks.megabench.standalone import JudgePanel

    judge = open_judge(options)
    try:
        yield JudgePanel(
            ask=lambda questions: ask(judge, questions, given.judge_retries),
            find=lambda name: (media_root(data_root) / name).absolute(),
        )
    finally:
        judge.close()


def _check_subset(submission: Sequence[Mapping[str, Any]], reference: Mapping[str, Any], subset: str) -> None:
    """Raise ``UsageError`` if the subset has no task of the submission, since every number would be missing."""
    from lmms_eval.tasks.megabench.facts import tasks

    names = [entry["task_name"] for entry in submission]
    if not names or any(name in reference for name in names):
        return
    others = sorted({tasks()[name].subset for name in names if name in tasks()} - {subset})
    hint = f"; they belong to {' and '.join(others)}" if others else ""
    raise UsageError(f"subset {subset!r} has no task of the {len(names)} in the submission{hint}")


def _previous(path: Path, is_forced: bool) -> dict[str, Mapping[str, Any]]:
    """Return the entries of an earlier output; with ``--force`` only those of tasks with a judge."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_bytes())["data"]
        entries = {str(entry["task_name"]): entry for entry in reversed(data)}
    except OSError as error:
        raise DataError(f"output file {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"output file {path} exists, but is not an evaluator's output ({error}); give another name, or remove it"
        ) from error
    return {name: entry for name, entry in entries.items() if not is_forced or entry.get("eval_type") == "llm"}


class _Display:
    """Prints a line for each task, and saves the state every ``SAVE_EVERY_S`` seconds."""

    def __init__(self, output: Path) -> None:
        self._output, self._saved = output, time.monotonic()

    def task(self, score: TaskTotals, is_reused: bool) -> None:
        result = "not evaluated" if score.mean is None else f"{score.mean:.4f}"
        note = " (using cached results)" if is_reused else ""
        emit(f"{score.name}: {result} over {score.num_query} queries{note}")

    def block(self, so_far: EvaluatorOutput) -> None:
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            content = so_far.as_dict()
            summary = content.pop("summary")
            self._write({**content, "temp_summary": {key: summary[key] for key in ("num_tasks", "num_queries")}})
            self._saved = time.monotonic()

    def save(self, evaluation: EvaluatorOutput) -> None:
        self._write(evaluation.as_dict())

    def _write(self, content: Mapping[str, Any]) -> None:
        from lmms_eval.tasks._task_utils.submissions import indented_json, write_whole

        write_whole(self._output, indented_json(content, ensure_ascii=False), "output file ")


def _report(evaluation: EvaluatorOutput, path: Path) -> int:
    summary = evaluation.as_dict()["summary"]
    emit(json.dumps(summary, indent=4, ensure_ascii=False))
    for problem in evaluation.problems:
        complain(f"error: task {problem.task_name}: {problem.error}")
    emit(f"scores: {path}")
    if evaluation.problems:
        complain(f"{len(evaluation.problems)} problems: the tasks named above are not in the summary")
        return HAS_ERRORS
    if summary["macro_mean_score"] is None:
        complain(f"{len(summary['not_evaluated'])} tasks are not evaluated (see scores.info in {path}): no mean")
        return WITHHELD
    return OK


def _breakdown(words: Sequence[str]) -> int:
    from lmms_eval.tasks.megabench.breakdown.output import ANALYSIS, derive

    parser = command_parser("megabench breakdown", "core, open, overall and keyword scores from the evaluator's output")
    parser.add_argument(
        "--input_dir",
        "--input-dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder with the output files of evaluate",
    )
    _add_plot_flag(parser)
    given = parser.parse_args(list(words))
    found = derive(given.input_dir)
    _show(found, given.input_dir / ANALYSIS, given.input_dir.absolute().name, given.no_plot)
    return OK


def _single_image(words: Sequence[str]) -> int:
    from lmms_eval.tasks.megabench.breakdown.output import derive_single_image

    parser = command_parser("megabench single-image", "single-image results from a finished full breakdown")
    parser.add_argument(
        "--input_dir",
        "--input-dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder with the output files of evaluate",
    )
    parser.add_argument(
        "--output_dir",
        "--output-dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder to write the files of single-image tasks to",
    )
    _add_plot_flag(parser)
    given = parser.parse_args(list(words))
    found = derive_single_image(given.input_dir, given.output_dir)
    _show(found, given.output_dir, given.output_dir.absolute().name, given.no_plot)
    return OK


def _add_plot_flag(parser: CommandParser) -> None:
    parser.add_argument("--no_plot", "--no-plot", action="store_true", help="write no pictures")


def _show(found: ModelBreakdown, folder: Path, title: str, no_plot: bool) -> None:
    from lmms_eval.tasks.megabench.breakdown.output import plot, table

    emit(table(found))
    for warning in found.warnings():
        complain(f"warning: {warning}")
    emit(f"files: {folder}")
    if no_plot:
        return
    from lmms_eval.plots.figure import PlotUnavailable

    try:
        emit(f"plot: {', '.join(str(path) for path in plot(found, folder, title))}")
    except PlotUnavailable as absent:
        complain(f"notice: {absent}")


_ACTIONS: dict[str, Callable[[Sequence[str]], int]] = {
    "evaluate": _evaluate,
    "breakdown": _breakdown,
    "single-image": _single_image,
}
