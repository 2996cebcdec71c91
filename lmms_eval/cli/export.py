"""``lmms-eval export``: writes the samples of a run to one file, or its results in a form that others read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import CommandParser, add_choice_flags, choice_of, command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from lmms_eval.results.run import Run

_OF_RUN = "that of the run"
_TABLES = ("parquet", "csv", "jsonl", "xlsx")
EEE, HUB = "eee", "hub-eval-results"
_RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_ONLY_FOR = {
    **dict.fromkeys(("ids", "where"), _TABLES),
    **dict.fromkeys(("organization", "relationship", "developer"), (EEE,)),
    **dict.fromkeys(("push", "task_id", "source_url"), (HUB,)),
}
"""Forms that take an option; all others refuse it."""


def run(arguments: Sequence[str]) -> int:
    given = _parser().read(arguments)
    for option, forms in _ONLY_FOR.items():
        if getattr(given, option) and given.to not in forms:
            raise UsageError(f"--{option}: only with --to {', '.join(forms)}")
    from lmms_eval.results.run import load

    found = load(given.run)
    writers = {EEE: _records, HUB: _hub_results}
    return writers.get(given.to, _table)(given, found)


def _parser() -> CommandParser:
    parser = command_parser("export")
    parser.add_argument(
        "run",
        metavar="RUN",
        help="run to export: output folder, results file, FOLDER/STAMP, samples file, or .runs/KEY",
    )
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="task whose samples to write; default: all")
    parser.add_argument(
        "--to",
        required=True,
        choices=(*_TABLES, EEE, HUB),
        help=f"form to write; {EEE}: records of Every Eval Ever; {HUB}: results for the hub",
    )
    parser.add_argument(
        "--out",
        metavar="FILE|FOLDER",
        help="file or folder to write; default, in the current folder: MODEL_STAMP.FORM, or the folder FORM",
    )
    add_choice_flags(parser)
    parser.add_argument(
        "--organization", metavar="NAME", help=f"{EEE}: organization that provides the records; default: unknown"
    )
    parser.add_argument(
        "--relationship",
        choices=_RELATIONSHIPS,
        help=f"{EEE}: relationship of the evaluator to the model; default: other",
    )
    parser.add_argument(
        "--developer", metavar="NAME", help=f"{EEE}: developer of the model, if the model's name does not state it"
    )
    parser.add_argument(
        "--task_id",
        action="append",
        default=[],
        metavar="TASK=ID",
        help=f"{HUB}: the name that the data set itself gives a task; repeatable",
    )
    parser.add_argument("--source_url", metavar="URL", help=f"{HUB}: address of a page about the results")
    parser.add_argument(
        "--push", nargs="?", const=_OF_RUN, metavar="OWNER/MODEL",
        help=f"{HUB}: propose the results to this repository; without a name, to that of the run's model",
    )  # fmt: skip
    return parser


def _table(given: Namespace, found: Run) -> int:
    from lmms_eval.results.export import export

    tasks = [found.task(given.task)] if given.task else list(found.tasks.values())
    chosen = choice_of(given, found)
    path = _path(given, found)
    written = export(lambda: (sample for task in tasks for sample in task.samples(chosen)), given.to, path)
    for note in (*found.notes, *written.notes):
        complain(note)
    emit(f"{path}: {written.rows} rows, {written.columns} columns, of {found.source}")
    return 0


def _records(given: Namespace, found: Run) -> int:
    from lmms_eval.exchange.every_eval_ever import Source, export_records

    source = Source(given.organization or "unknown", given.relationship or "other", given.developer or "")
    written = export_records(found, _folder(given, EEE), source, [given.task] if given.task else [])
    for note in (*found.notes, *written.notes):
        complain(note)
    for one in written.records:
        emit(f"{one.record}: numbers {one.results}, lines of samples {one.rows}")
    if not written.records:
        complain(f"error: nothing is written: {found.source} has no number that may leave")
    return 0 if written.records else 2


def _hub_results(given: Namespace, found: Run) -> int:
    from lmms_eval.exchange.hub_results import hub_results, push_results, write_results

    if given.task:
        raise UsageError(f"--to {HUB} writes all tasks of the run: leave {given.task} out")
    repository = _repository(given, found) if given.push else ""
    task_ids = dict(_task_id(word) for word in given.task_id)
    results = hub_results(found, task_ids, given.source_url or "")
    for note in results.notes:
        complain(note)
    if not results.entries:
        complain(f"error: nothing is written: {found.source} has no number that the hub's files can hold")
        return 2
    emit([str(path) for path in write_results(results, _folder(given, HUB))])
    if repository:
        emit(f"pull request: {push_results(results, repository)}")
    return 0


def _repository(given: Namespace, found: Run) -> str:
    """Return the repository to push to. Raises ``UsageError`` if it is not named, and the model's name is not one."""
    from lmms_eval.exchange.origins import ModelFacts

    if given.push != _OF_RUN:
        return str(given.push)
    model = ModelFacts.of(found.document)
    if not model.developer or model.platform:
        raise UsageError(f"--push: {model.name} is not the name of a repository; give --push OWNER/MODEL")
    return model.id


def _task_id(word: str) -> tuple[str, str]:
    task, equals, name = word.partition("=")
    if not (task and equals and name):
        raise UsageError(f"--task_id {word}: write TASK=ID")
    return task, name


def _folder(given: Namespace, default: str) -> Path:
    """Return the folder to write into. Raises ``UsageError`` if it is a file."""
    folder = Path(given.out).expanduser() if given.out else Path(default)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: that is a file; --to {given.to} writes into a folder")
    return folder


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
