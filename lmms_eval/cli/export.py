"""``lmms-eval export``: writes the samples of a run to one file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import add_choice_flags, choice_of, command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from lmms_eval.results.run import Run


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("export")
    parser.add_argument(
        "run", metavar="RUN", help="output folder, results file (or FOLDER/STAMP), samples file, .runs/KEY"
    )
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="only this one")
    parser.add_argument("--to", required=True, choices=("parquet", "csv", "jsonl", "xlsx"))
    parser.add_argument("--out", metavar="FILE", help="default: MODEL_STAMP.FORM in the current folder")
    add_choice_flags(parser)
    given = parser.read(arguments)
    from lmms_eval.results.export import export
    from lmms_eval.results.run import load

    found = load(given.run)
    tasks = [found.task(given.task)] if given.task else list(found.tasks.values())
    chosen = choice_of(given, found)
    path = _path(given, found)
    written = export(lambda: (sample for task in tasks for sample in task.samples(chosen)), given.to, path)
    for note in (*found.notes, *written.notes):
        complain(note)
    emit(f"{path}: {written.rows} rows, {written.columns} columns, of {found.source}")
    return 0


def _path(given: Namespace, found: Run) -> Path:
    """Return the file to write. Raises ``UsageError`` if it is a folder or a file of the run."""
    from lmms_eval.utils import sanitize_model_name

    stem = found.source.name.removesuffix(".json").removesuffix(".jsonl").removesuffix("_results")
    named = [sanitize_model_name(found.name), stem, *([given.task.replace("/", "_")] if given.task else [])]
    path = Path(given.out).expanduser() if given.out else Path(f"{'_'.join(named)}.{given.to}")
    own = {found.source.resolve(), *(Path(s.where).resolve() for task in found.tasks.values() for s in task.sources)}
    if path.is_dir() or path.resolve() in own:
        raise UsageError(f"--out {path}: that is {'a folder' if path.is_dir() else 'a file of the run'}")
    return path
