"""``lmms-eval general-bench``: predictions to result workbooks (``register``), workbooks to levels (``rank``).

``run`` does all three steps of the benchmark's script, ``tasks`` lists what a data set's folder holds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import CommandParser, command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.utils.arguments import simple_parse_args_string

if TYPE_CHECKING:
    from lmms_eval.tasks.general_bench.levels.report import Ranked
    from lmms_eval.tasks.general_bench.levels.results import Gathered, TaskResult
    from lmms_eval.tasks.general_bench.levels.sensitivity import LevelSensitivity
    from lmms_eval.tasks.general_bench.levels.tables import Table
    from lmms_eval.tasks.general_bench.standalone import Asker
    from lmms_eval.tasks.general_bench.summary import TaskScore

OK, HAS_ERRORS, WITHHELD = 0, 2, 3


def run(arguments: Sequence[str]) -> int:
    return run_action("general-bench", ACTIONS, arguments)


def register(words: Sequence[str]) -> int:
    """Score predictions, and enter the scores of tasks into a result workbook."""
    parser = command_parser(
        "general-bench register", "score predictions and enter the scores into a result workbook (also CSV, JSON)"
    )
    parser.add_argument(
        "-d", "--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR",
        help="data set's folder with predictions or result files, or one result file (General-Bench-Openset)",
    )  # fmt: skip
    parser.add_argument("-p", "--prediction", default="prediction.json", metavar="NAME", help="name of those files")
    parser.add_argument(
        "-t", "--template", type=Path, metavar="FILE", help="workbook to fill (the benchmark's empty one)"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("outcome"), metavar="DIR", help="(outcome)")
    parser.add_argument(
        "--task_kwargs", "--task-kwargs", default="", metavar="K=V,...",
        help="options of the tasks: weights=DIR, download=true, ratings=FILE, field_maps=FILE, subset=closed, ...",
    )  # fmt: skip
    add = parser.add_argument
    add("--judge_model", "--judge-model", metavar="NAME", help="judge of the one judged metric: NAME or PROVIDER:NAME")
    add("--judge_base_url", "--judge-base-url", metavar="URL", help="the judge's server")
    add("--judge_args", "--judge-args", default="", metavar="K=V,...", help="further arguments of its back end")
    _add_shared(parser, "test")
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.levels import files, registering, results, tables
    from lmms_eval.utils.names import sanitize_model_name

    name = sanitize_model_name(given.model, full_path=True)
    gathered = results.gather(results.files_of(given.dataset, given.prediction))
    scored = _scored(given, gathered, name) if gathered.predictions else Scored()
    _load_openpyxl()
    template = files.read_workbook(given.template) if given.template else tables.template()
    found = (*gathered.results, *scored.results)
    filled = registering.register(given.model, found, template, given.profile)
    stem = given.output / f"{name}_result"
    workbook = stem.with_name(f"{stem.name}.xlsx")
    files.write_workbook(filled.table, workbook)
    further = files.write_rows(filled.table, given.model, stem)
    entered = sum(map(len, filled.cells.values()))
    emit(f"{entered} of {len(found)} results entered; sheets: {', '.join(filled.updated) or 'none'}")
    emit(f"files: {', '.join(str(path) for path in (workbook, *further, *scored.files))}")
    told = " ".join(scored.problems)
    unreadable = [problem for problem in gathered.problems if problem.partition(": ")[0] not in told]
    problems = (*unreadable, *scored.problems, *filled.problems)
    return _remarks(problems, (*filled.warnings, *scored.warnings), scored.withheld)


@dataclass(frozen=True, slots=True)
class Scored:
    """Results of scoring the predictions of a data set's folder."""

    results: tuple[TaskResult, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def _scored(given: argparse.Namespace, gathered: Gathered, name: str) -> Scored:
    if given.profile == "reference":
        return _scored_as_reference(given, gathered.predictions)
    from lmms_eval.errors import UsageError
    from lmms_eval.judges import JudgeOptions, ask, open_judge
    from lmms_eval.tasks.general_bench.levels.files import write_bytes
    from lmms_eval.tasks.general_bench.report import score_table
    from lmms_eval.tasks.general_bench.settings import Settings
    from lmms_eval.tasks.general_bench.standalone import FolderJob, score_folders

    if given.dataset.is_file():
        raise UsageError(f"{given.dataset} holds predictions: give the data set's folder, which has the answers (-d)")
    settings = Settings.of({**simple_parse_args_string(given.task_kwargs), "data_root": str(given.dataset)})
    others = frozenset(Path(result.source).resolve() for result in gathered.results)
    judge = JudgeOptions(given.judge_model, given.judge_base_url, simple_parse_args_string(given.judge_args))
    # The judge is opened when a task needs it.
    asker: Asker | None = (lambda questions: ask(open_judge(judge), questions)) if judge.is_given else None
    shown = f"{given.judge_model} {given.judge_base_url} {given.judge_args}"
    job = FolderJob(settings, given.prediction, given.output / ".scores" / name, asker, shown, others)
    found = score_folders(job, progress=lambda score: complain(f"{score.task}: {score.status}"))
    emit(score_table(found.scores))
    target = given.output / f"{name}_scores.json"
    content = json.dumps([score.as_dict() for score in found.scores], ensure_ascii=False, indent=1)
    write_bytes(target, content.encode("utf-8", "surrogatepass"))
    failed = tuple(f"{score.facts.name}: {score.withheld}" for score in found.scores if score.status == "failed")
    held = [f"{score.facts.name}: {score.withheld}" for score in found.scores if score.status == "not evaluated"]
    held += [_unanswered(score) for score in found.scores if score.absent]
    partial = [
        _unanswered(score)
        for score in found.scores
        if score.status in ("partially answered", "unanswered") and not score.absent
    ]
    results = tuple(result for score in found.scores if (result := score.result()) is not None)
    return Scored(results, (*found.problems, *failed), tuple(partial), tuple(held), (target,))


def _unanswered(score: TaskScore) -> str:
    why = f"; {score.notes[0]}" if score.notes else ""
    return f"{score.facts.name}: {score.answered} of {score.expected} items answered, the others count as wrong{why}"


def _scored_as_reference(given: argparse.Namespace, predictions: Sequence[Path]) -> Scored:
    """Language tasks only: the reference scores no others."""
    from lmms_eval.tasks.general_bench.nlp.scored import score_language

    found = score_language(given.dataset, given.prediction)
    others = len(predictions) - found.files
    warnings = [f"BLEU counts the words of the tokenizer {found.tokenizer}"]
    if others:
        warnings.append(f"profile reference scores language tasks only: {others} files of predictions are left out")
    return Scored(found.results, found.problems, tuple(warnings))


def rank(words: Sequence[str]) -> int:
    """The levels of a model, from its result workbook."""
    parser = command_parser("general-bench rank", "General-Level scores from a result workbook (or CSV, JSON)")
    parser.add_argument(
        "-p", "--path", type=Path, default=Path("outcome/emu2_result.xlsx"), metavar="FILE",
        help="what register wrote (outcome/emu2_result.xlsx)",
    )  # fmt: skip
    parser.add_argument("-s", "--sota", type=Path, metavar="FILE", help="specialists' workbook (the published one)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="for log, JSON and CSV (beside FILE)")
    _add_shared(parser, "Emu2-32B")
    parser.add_argument("--scope", default="A", help="A, B:Image, B:Image+Video, C:Image-Generation, D:I-C-3 (A)")
    parser.add_argument(
        "--wer_unit", "--wer-unit", choices=("fraction", "percent"), default="fraction",
        help="of the word error rates in FILE (fraction)",
    )  # fmt: skip
    parser.add_argument(
        "--draws", type=int, default=300, metavar="N", help="resamplings of the tasks for intervals; 0: none (300)"
    )
    parser.add_argument(
        "--picture", action="store_true", help="also draw NAME_levels.png and .svg: modalities and levels (matplotlib)"
    )
    given = parser.parse_args(list(words))

    from lmms_eval.errors import UsageError
    from lmms_eval.tasks.general_bench.levels import files, paper, reference, scopes, sensitivity

    scope = scopes.find_scope(given.scope)
    if given.profile == "reference" and (scope.name != "A" or given.wer_unit != "fraction"):
        raise UsageError("profile reference has neither scopes nor units; leave out --scope and --wer_unit")
    _load_openpyxl()
    table = files.read_result_table(given.path, given.model)
    specialists: Table | None = files.read_workbook(given.sota) if given.sota else None
    if given.profile == "reference":
        ranked = reference.rank_reference(given.model, table, specialists)
    else:
        units = paper.Units(wer_in_percent=given.wer_unit == "percent")
        ranked = paper.rank_paper(given.model, table, scope, specialists, units)
    folder = given.output or given.path.parent
    return _show(ranked, sensitivity.sensitivity(ranked, given.draws), folder, given.picture)


def _add_shared(parser: CommandParser, model: str) -> None:
    parser.add_argument("-m", "--model", default=model, metavar="NAME", help=f"column of the workbook ({model})")
    parser.add_argument(
        "--profile", choices=("paper", "reference"), default="paper",
        help="paper: as it is described; reference: as the authors' scripts compute, defects included",
    )  # fmt: skip


def _show(ranked: Ranked, found: Mapping[int, LevelSensitivity], folder: Path, with_picture: bool) -> int:
    from lmms_eval.tasks.general_bench.levels import files, text
    from lmms_eval.utils.names import sanitize_model_name

    name = sanitize_model_name(ranked.model, full_path=True)
    emit(text.summary(ranked, found))
    log = folder / f"score_calculation_{name.lower()}.log"
    contents = {
        log: text.log(ranked, found),
        folder / f"{name}_levels.json": text.as_json(ranked, found),
        folder / f"{name}_levels.csv": text.as_csv(ranked),
    }
    for path, content in contents.items():
        files.write_bytes(path, content.encode())
    emit(f"files: {', '.join(map(str, contents))}")
    code = _remarks(ranked.problems, ranked.warnings, ())
    if with_picture:
        from lmms_eval.plots.figure import PlotUnavailable
        from lmms_eval.tasks.general_bench.levels import picture

        try:
            emit(f"picture: {', '.join(map(str, picture.draw(ranked, folder / f'{name}_levels.png')))}")
        except PlotUnavailable as error:
            complain(str(error))
    return code


def _remarks(problems: Sequence[str], warnings: Sequence[str], not_evaluated: Sequence[str]) -> int:
    for warning in warnings:
        complain(f"warning: {warning}")
    for problem in problems:
        complain(f"error: {problem}")
    for part in not_evaluated:
        complain(part)
    if problems:
        return HAS_ERRORS
    return WITHHELD if not_evaluated else OK


def _load_openpyxl() -> None:
    """Import openpyxl without numpy and PIL, which it knows only for cells of their types and for pictures.

    They take as long to import as everything else together, and this command writes texts and Python's numbers.
    """
    if "openpyxl" in sys.modules:
        return
    hidden = [name for name in ("numpy", "PIL") if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # how an import is made to fail
    try:
        importlib.import_module("openpyxl")
    except ImportError:
        return  # reading or writing a workbook says what to install; CSV and JSON need nothing
    finally:
        for name in hidden:
            del sys.modules[name]


def steps(words: Sequence[str]) -> int:
    """All steps of the benchmark's script."""
    from lmms_eval.cli.general_bench_steps import run_steps

    return run_steps(words, register, rank)


def tasks(words: Sequence[str]) -> int:
    """List what a data set's folder holds."""
    from lmms_eval.cli.general_bench_steps import list_tasks

    return list_tasks(words)


def metrics(words: Sequence[str]) -> int:
    """List the metrics, with the part that computes each."""
    from lmms_eval.cli.general_bench_steps import list_metrics

    return list_metrics(words)


ACTIONS: Mapping[str, Action] = {
    "register": register, "rank": rank, "run": steps, "tasks": tasks, "metrics": metrics,
}  # fmt: skip
