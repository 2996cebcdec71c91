"""``lmms-eval general-bench``: result workbooks (``register``) and the General-Level scores of a model (``rank``)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import Action, CommandParser, command_parser, run_action
from lmms_eval.cli.output import complain, emit

if TYPE_CHECKING:
    from lmms_eval.tasks.general_bench.levels.report import Ranked
    from lmms_eval.tasks.general_bench.levels.sensitivity import LevelSensitivity
    from lmms_eval.tasks.general_bench.levels.tables import Table

OK, HAS_ERRORS, WITHHELD = 0, 2, 3


def run(arguments: Sequence[str]) -> int:
    return run_action("general-bench", "General-Bench result workbooks and General-Level scores", ACTIONS, arguments)


def register(words: Sequence[str]) -> int:
    """Enter the scores of tasks into a result workbook."""
    parser = command_parser("general-bench register", "enter scores of tasks into a result workbook (also CSV, JSON)")
    parser.add_argument(
        "-d", "--dataset", type=Path, default=Path("General-Bench-Openset"), metavar="DIR",
        help="data set's folder, whose result files are read, or one result file (General-Bench-Openset)",
    )  # fmt: skip
    parser.add_argument("-p", "--prediction", default="prediction.json", metavar="NAME", help="name of those files")
    parser.add_argument(
        "-t", "--template", type=Path, metavar="FILE", help="workbook to fill (the benchmark's empty one)"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("outcome"), metavar="DIR", help="(outcome)")
    _add_shared(parser, "test")
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.general_bench.levels import files, registering, results, tables
    from lmms_eval.utils.names import sanitize_model_name

    gathered = results.gather(results.files_of(given.dataset, given.prediction))
    _load_openpyxl()
    template = files.read_workbook(given.template) if given.template else tables.template()
    filled = registering.register(given.model, gathered.results, template, given.profile)
    stem = given.output / f"{sanitize_model_name(given.model, full_path=True)}_result"
    workbook = stem.with_name(f"{stem.name}.xlsx")
    files.write_workbook(filled.table, workbook)
    further = files.write_rows(filled.table, given.model, stem)
    entered = sum(map(len, filled.cells.values()))
    emit(f"{entered} of {len(gathered.results)} results entered; sheets: {', '.join(filled.updated) or 'none'}")
    emit(f"files: {', '.join(str(path) for path in (workbook, *further))}")
    return _remarks((*gathered.problems, *filled.problems), filled.warnings, gathered.not_evaluated)


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
    return _show(ranked, sensitivity.sensitivity(ranked, given.draws), given.output or given.path.parent)


def _add_shared(parser: CommandParser, model: str) -> None:
    parser.add_argument("-m", "--model", default=model, metavar="NAME", help=f"column of the workbook ({model})")
    parser.add_argument(
        "--profile", choices=("paper", "reference"), default="paper",
        help="paper: as it is described; reference: as the authors' scripts compute, defects included",
    )  # fmt: skip


def _show(ranked: Ranked, found: Mapping[int, LevelSensitivity], folder: Path) -> int:
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
    return _remarks(ranked.problems, ranked.warnings, ())


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


ACTIONS: Mapping[str, Action] = {"register": register, "rank": rank}
