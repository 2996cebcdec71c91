"""``lmms-eval general-bench``: result workbooks from predictions (``register``), levels from workbooks (``rank``).

``run`` runs the three steps of the benchmark's script, ``tasks`` lists the tasks in a data set's folder, ``metrics``
lists the metrics.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.cli import evaluate
from lmms_eval.cli.arguments import CommandParser, command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.arguments import simple_parse_args_string
from lmms_eval.utils.names import model_name_from_args, sanitize_model_name

if TYPE_CHECKING:
    from lmms_eval.tasks.general_bench.levels.registering import LevelResult
    from lmms_eval.tasks.general_bench.levels.report import Ranked
    from lmms_eval.tasks.general_bench.levels.sensitivity import LevelSensitivity
    from lmms_eval.tasks.general_bench.levels.tables import Table
    from lmms_eval.tasks.general_bench.standalone import Asker
    from lmms_eval.tasks.general_bench.summary import TaskScore


OK, HAS_ERRORS, USAGE, WITHHELD = 0, 2, 2, 3
STEPS = "123"
Step = Callable[[Sequence[str]], int]


def run(arguments: Sequence[str]) -> int:
    return run_action("general-bench", ACTIONS, arguments)


def run_steps(words: Sequence[str], register: Step, rank: Step) -> int:
    """Run the steps that ``--step`` names and return the first exit code that is not 0.

    A step with failed or unevaluated samples is followed by the next one. A wrong command line or an interruption ends
    the steps. Raises ``UsageError`` if a step does not exist, or step 1 has no model.
    """
    parser = command_parser(
        "general-bench run",
        "1: ask a model and write prediction.json next to each annotation; 2: score (register); 3: levels (rank)",
    )
    add = parser.add_argument
    add(
        "--step",
        default=STEPS,
        metavar="N",
        help="digits of the steps to run, such as 1, 12 or 23; default: %(default)s",
    )
    add("--model", metavar="NAME", help="model that answers in step 1, as for lmms-eval --model")
    add("--model_args", "--model-args", default="", metavar="K=V,...", help="arguments of the model")
    add(
        "--dataset",
        type=Path,
        default=Path("General-Bench-Openset"),
        metavar="DIR",
        help="folder of the data set; default: %(default)s",
    )
    add("--tasks", default="general_bench", metavar="NAMES", help="tasks to ask in step 1; default: %(default)s")
    add("--name", metavar="NAME", help="name of the workbook's column and of the files; default: the model's name")
    add(
        "-p",
        "--prediction",
        default="prediction.json",
        metavar="FILE",
        help="file name of the predictions; default: %(default)s",
    )
    add("--output", type=Path, default=Path("outcome"), metavar="DIR", help="folder to write to; default: %(default)s")
    add(
        "--profile",
        choices=("paper", "reference"),
        default="paper",
        help="rules of steps 2 and 3: the paper's, or those of the authors' scripts; default: %(default)s",
    )
    add(
        "--task_kwargs",
        "--task-kwargs",
        default="",
        metavar="K=V,...",
        help="settings of the tasks, for steps 1 and 2, such as weights=DIR",
    )
    add(
        "--judge_model",
        "--judge-model",
        metavar="NAME",
        help="judge of the metric that needs one, for steps 1 and 2: NAME or PROVIDER:NAME",
    )
    add("--judge_base_url", "--judge-base-url", metavar="URL", help="address of the judge's server")
    add("--judge_args", "--judge-args", metavar="K=V,...", help="further arguments of the judge's back end")
    given, further = parser.parse_known_args(list(words))
    if not given.step or set(given.step) - set(STEPS):
        raise UsageError(f"--step {given.step}: give digits of steps: 1 (predictions), 2 (scores), 3 (levels)")
    if "1" not in given.step and further:
        raise UsageError(f"{' '.join(further)}: further options go to step 1 (lmms-eval eval), which is not run")
    if "1" in given.step and not given.model:
        raise UsageError("step 1 needs a model: --model NAME --model_args K=V,...; or leave it out: --step 23")
    name = given.name or model_name_from_args(given.model_args) or given.model
    if not name:
        raise UsageError("give the model's name with --name NAME: it names the column and the files")
    steps: dict[str, Callable[[], int]] = {
        "1": lambda: evaluate.run([*_evaluate_words(given), *further]),
        "2": lambda: register(_register_words(given, name)),
        "3": lambda: rank(_rank_words(given, name)),
    }
    codes = []
    for digit in STEPS:
        if digit in given.step:
            complain(f"step {digit}")
            codes.append(steps[digit]())
            if codes[-1] in evaluate.STOPPED:
                break
    return next((code for code in codes if code), 0)


def _evaluate_words(given: argparse.Namespace) -> list[str]:
    options = ",".join(filter(None, [f"predictions=beside,prediction_name={given.prediction}", given.task_kwargs]))
    words = ["--model", given.model, "--tasks", given.tasks, "--data_root", str(given.dataset)]
    words += ["--task_kwargs", options, "--output_path", str(given.output / "runs")]
    if given.model_args:
        words += ["--model_args", given.model_args]
    return [*words, *_judge_words(given)]


def _judge_words(given: argparse.Namespace) -> list[str]:
    stated = ("--judge_model", given.judge_model), ("--judge_base_url", given.judge_base_url)
    return [word for pair in (*stated, ("--judge_args", given.judge_args)) if pair[1] for word in pair]


def _register_words(given: argparse.Namespace, name: str) -> list[str]:
    words = ["-d", str(given.dataset), "-o", str(given.output), "-m", name, "--profile", given.profile]
    words += ["-p", given.prediction]
    if given.task_kwargs:
        words += ["--task_kwargs", given.task_kwargs]
    return [*words, *_judge_words(given)]


def _rank_words(given: argparse.Namespace, name: str) -> list[str]:
    workbook = given.output / f"{sanitize_model_name(name, full_path=True)}_result.xlsx"
    return ["-p", str(workbook), "-m", name, "--profile", given.profile, "--picture"]


def list_tasks(words: Sequence[str]) -> int:
    """List the tasks in a data set's folder with their metrics, then the folders that match no task."""
    parser = command_parser("general-bench tasks", "what a data set's folder holds")
    parser.add_argument(
        "-d", "--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR",
        help="folder of the data set; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--subset", choices=("open", "closed"), help="which set, if the folder has both; default: open")
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.data.scanning import match, scan
    from lmms_eval.tasks.general_bench.levels.text import table

    found, faults = scan(given.dataset)
    folders, problems = match(found, given.subset)
    rows = [
        (f"general_bench_{facts.id}", folder.path.relative_to(given.dataset).as_posix(), facts.spelling, facts.needs)
        for facts, folder in sorted(folders.items(), key=lambda pair: pair[0].id)
    ]
    if rows:
        headings = ("task", "folder", "metric", "needs")
        emit(table(headings, rows))
    for problem in (*faults, *problems):
        complain(f"error: {problem}")
    return USAGE if faults or problems or not rows else 0


def list_metrics(words: Sequence[str]) -> int:
    """Print the table of metrics as Markdown."""
    command_parser("general-bench metrics", "what computes each metric, and what that needs").parse_args(list(words))

    from lmms_eval.tasks.general_bench.measures.registry import markdown

    emit(markdown().rstrip("\n"))
    return 0


def register(words: Sequence[str]) -> int:
    """Score predictions and enter the scores of the tasks into a result workbook."""
    parser = command_parser(
        "general-bench register", "score predictions and enter the scores into a result workbook (also CSV, JSON)"
    )
    parser.add_argument(
        "-d", "--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR",
        help="folder of the data set with predictions or result files, or one result file; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "-p",
        "--prediction",
        default="prediction.json",
        metavar="NAME",
        help="file name of the predictions or results; default: %(default)s",
    )
    parser.add_argument(
        "-t", "--template", type=Path, metavar="FILE", help="workbook to fill; default: the benchmark's empty one"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("outcome"),
        metavar="DIR",
        help="folder to write to; default: %(default)s",
    )
    parser.add_argument(
        "--task_kwargs", "--task-kwargs", default="", metavar="K=V,...",
        help="settings of the tasks: weights=DIR, download=true, ratings=FILE, field_maps=FILE, subset=closed, ...",
    )  # fmt: skip
    add = parser.add_argument
    add(
        "--judge_model",
        "--judge-model",
        metavar="NAME",
        help="judge of the metric that needs one: NAME or PROVIDER:NAME",
    )
    add("--judge_base_url", "--judge-base-url", metavar="URL", help="address of the judge's server")
    add("--judge_args", "--judge-args", default="", metavar="K=V,...", help="further arguments of the judge's back end")
    _add_shared(parser, "test")
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.levels import registering, tables

    name = sanitize_model_name(given.model, full_path=True)
    given_results, predictions, faults = registering.gather(registering.files_of(given.dataset, given.prediction))
    scored = _scored(given, predictions, given_results, name) if predictions else ScoredFolder()
    _load_openpyxl()
    template = tables.read_workbook(given.template) if given.template else tables.template()
    found = (*given_results, *scored.results)
    filled = registering.register(given.model, found, template, given.profile)
    stem = given.output / f"{name}_result"
    workbook = stem.with_name(f"{stem.name}.xlsx")
    tables.write_workbook(filled.table, workbook)
    further = tables.write_rows(filled.table, given.model, stem)
    entered = sum(map(len, filled.cells.values()))
    emit(f"{entered} of {len(found)} results entered; sheets: {', '.join(filled.updated) or 'none'}")
    emit(f"files: {', '.join(str(path) for path in (workbook, *further, *scored.files))}")
    reported = " ".join(scored.problems)
    unreadable = [problem for problem in faults if problem.partition(": ")[0] not in reported]
    problems = (*unreadable, *scored.problems, *filled.problems)
    return _remarks(problems, (*filled.warnings, *scored.warnings), scored.withheld)


class ScoredFolder(Struct, frozen=True):
    """Scores of the predictions in a data set's folder."""

    results: tuple[LevelResult, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def _scored(
    given: argparse.Namespace, predictions: Sequence[Path], others: Sequence[LevelResult], name: str
) -> ScoredFolder:
    """Score the files of predictions. ``others`` are the results in the files of the same name."""
    if given.profile == "reference":
        from lmms_eval.tasks.general_bench.nlp.processor import score_language

        return ScoredFolder(*score_language(given.dataset, given.prediction, len(predictions)))
    from lmms_eval.judges import JudgeOptions, ask, open_judge
    from lmms_eval.tasks._task_utils.submissions import write_whole
    from lmms_eval.tasks.general_bench.report import score_table
    from lmms_eval.tasks.general_bench.settings import Settings
    from lmms_eval.tasks.general_bench.standalone import FolderJob, score_folders

    if given.dataset.is_file():
        raise UsageError(f"{given.dataset} holds predictions: give the data set's folder, which has the answers (-d)")
    settings = Settings.of({**simple_parse_args_string(given.task_kwargs), "data_root": str(given.dataset)})
    judge = JudgeOptions(given.judge_model, given.judge_base_url, simple_parse_args_string(given.judge_args))
    # The judge is opened only when a task needs it.
    asker: Asker | None = (lambda questions: ask(open_judge(judge), questions)) if judge.is_given else None
    shown = f"{given.judge_model} {given.judge_base_url} {given.judge_args}"
    job = FolderJob(
        settings,
        given.prediction,
        given.output / ".scores" / name,
        asker,
        shown,
        frozenset(Path(one.source).resolve() for one in others),
    )
    found = score_folders(job, progress=lambda score: complain(f"{score.task}: {score.status}"))
    emit(score_table(found.scores))
    target = given.output / f"{name}_scores.json"
    content = json.dumps([score.as_dict() for score in found.scores], ensure_ascii=False, indent=1)
    write_whole(target, content, survives_power_loss=False)
    failed = tuple(f"{score.facts.name}: {score.withheld}" for score in found.scores if score.status == "failed")
    held = [f"{score.facts.name}: {score.withheld}" for score in found.scores if score.status == "not evaluated"]
    held += [_unanswered(score) for score in found.scores if score.absent]
    partial = [
        _unanswered(score)
        for score in found.scores
        if score.status in ("partially answered", "unanswered") and not score.absent
    ]
    results = tuple(result for score in found.scores if (result := score.result()) is not None)
    return ScoredFolder(results, (*found.problems, *failed), tuple(partial), tuple(held), (target,))


def _unanswered(score: TaskScore) -> str:
    why = f"; {score.notes[0]}" if score.notes else ""
    return f"{score.facts.name}: {score.answered} of {score.expected} items answered, the others count as wrong{why}"


def rank(words: Sequence[str]) -> int:
    """Compute the levels of a model from its result workbook."""
    parser = command_parser("general-bench rank", "General-Level scores from a result workbook (or CSV, JSON)")
    parser.add_argument(
        "-p", "--path", type=Path, default=Path("outcome/emu2_result.xlsx"), metavar="FILE",
        help="workbook that register wrote; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "-s",
        "--sota",
        type=Path,
        metavar="FILE",
        help="workbook with the specialists' scores; default: the published one",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder for log, JSON and CSV; default: that of --path"
    )
    _add_shared(parser, "Emu2-32B")
    parser.add_argument(
        "--scope",
        default="A",
        help="part of the leaderboard: A, B:Image, B:Image+Video, C:Image-Generation, D:I-C-3; default: %(default)s",
    )
    parser.add_argument(
        "--wer_unit", "--wer-unit", choices=("fraction", "percent"), default="fraction",
        help="unit of the word error rates in the workbook; default: fraction",
    )  # fmt: skip
    parser.add_argument(
        "--draws",
        type=int,
        default=300,
        metavar="N",
        help="resamplings of the tasks for intervals; 0: no intervals; default: %(default)s",
    )
    parser.add_argument(
        "--picture", action="store_true", help="also draw NAME_levels.png and .svg: modalities and levels (matplotlib)"
    )
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.levels import paper, reference, sensitivity, tables

    scope = paper.find_scope(given.scope)
    if given.profile == "reference" and (scope.name != "A" or given.wer_unit != "fraction"):
        raise UsageError("profile reference has neither scopes nor units; leave out --scope and --wer_unit")
    if given.sota or given.path.suffix.lower() == ".xlsx":
        _load_openpyxl()
    table = tables.read_result_table(given.path, given.model)
    specialists: Table | None = tables.read_workbook(given.sota) if given.sota else None
    if given.profile == "reference":
        ranked = reference.rank_reference(given.model, table, specialists)
    else:
        ranked = paper.rank_paper(given.model, table, scope, specialists, given.wer_unit == "percent")
    folder = given.output or given.path.parent
    return _show(ranked, sensitivity.sensitivity(ranked, given.draws), folder, given.picture)


def _add_shared(parser: CommandParser, model: str) -> None:
    parser.add_argument(
        "-m", "--model", default=model, metavar="NAME", help=f"column of the workbook; default: {model}"
    )
    parser.add_argument(
        "--profile", choices=("paper", "reference"), default="paper",
        help="paper: as the paper describes it; reference: as the authors' scripts compute it, defects included",
    )  # fmt: skip


def _show(ranked: Ranked, found: Mapping[int, LevelSensitivity], folder: Path, with_picture: bool) -> int:
    from lmms_eval.tasks.general_bench.levels import text

    emit(text.summary(ranked, found))
    emit(f"files: {', '.join(map(str, text.write(ranked, found, folder)))}")
    code = _remarks(ranked.problems, ranked.warnings, ())
    if with_picture:
        from lmms_eval.plots.figure import PlotUnavailable
        from lmms_eval.tasks.general_bench.levels import picture

        try:
            name = sanitize_model_name(ranked.model, full_path=True)
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
    """Import openpyxl without numpy and PIL, which it needs only for cells of their types and for pictures.

    They take as long to import as everything else together, and this command writes only texts and Python numbers.
    """
    if "openpyxl" in sys.modules:
        return
    hidden = [name for name in ("numpy", "PIL") if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # makes the import fail
    try:
        importlib.import_module("openpyxl")
    except ImportError:
        return  # reading or writing a workbook reports what to install; CSV and JSON do not need it
    finally:
        for name in hidden:
            del sys.modules[name]


ACTIONS: Mapping[str, Action] = {
    "register": register,
    "rank": rank,
    "run": lambda words: run_steps(words, register, rank),
    "tasks": list_tasks,
    "metrics": list_metrics,
}
