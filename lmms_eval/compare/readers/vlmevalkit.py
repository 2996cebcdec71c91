"""Evaluated tables of VLMEvalKit (xlsx, tsv, csv): a row for each question, with prediction and score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.building import NO_FILTER, Lookups, TaskBuilder
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.readers.tables import WORKBOOK, Table, TableRow, number_of, open_table
from lmms_eval.compare.runs import Answer, RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.sample import finite

KIND = "vlmevalkit"
_SCORES = ("hit", "score", "acc", "accuracy", "correct", "match", "eval_score", "eval_match")
_TEXTS = frozenset({"index", "question", "prediction", "answer", "image", "image_path", "log", "res", "hint", *_SCORES})
"""Columns that divide no documents."""
_NO_ANSWER = "Failed to obtain answer via API."
"""The prediction that stands where a model's server gave none."""


def fits(columns: Sequence[str]) -> bool:
    return {"index", "prediction"} <= set(columns) and any(name in columns for name in _SCORES)


def is_table(looked: Looked) -> bool:
    return _open(looked) is not None


def _open(looked: Looked) -> Table | None:
    is_workbook = WORKBOOK in looked.members
    return None if looked.members and not is_workbook else open_table(looked.path, is_workbook, fits)


def read_table(path: Path) -> RunRows:
    """Read a table; model and task come from its name (``MODEL_DATASET.xlsx``).

    Raises:
        DataError: the table cannot be read, or a row has no index.
    """
    table = _open(Looked(path))
    if table is None:
        raise DataError(f"{path}: no columns index, prediction and hit (or {', '.join(_SCORES[1:])})")
    model, task = names(path)
    builder = TaskBuilder(task)
    builder.states_filter = False
    metrics = [name for name in _SCORES if name in table.columns]
    for row in table.rows():
        index = row.values.get("index", "")
        if not index:
            raise DataError(f"{path}, line {row.line}: no index")
        number = builder.row(index)
        if builder.is_new(number):
            builder.end(number, _add(builder, number, row, metrics))
        else:
            builder.pass_over("further rows of documents that were there already: the first counts")
    rows = builder.rows(_lookups(table, builder))
    return RunRows(model, str(path), KIND, {task: rows}, notes=builder.notes)


def names(path: Path) -> tuple[str, str]:
    """Take model and dataset out of a file's name, which may end with the judge that was asked.

    The model is the name of a folder above, where the file's name begins with it; else what stands before the first
    underline.
    """
    stem = path.stem.removesuffix("_result").removesuffix("_score")
    above = [folder.name for folder in path.absolute().parents][:3]
    model = next((name for name in above if name and stem.startswith(f"{name}_")), stem.partition("_")[0])
    dataset = stem[len(model) + 1 :].removesuffix("_exact_matching")
    before, _, last = dataset.rpartition("_")
    if before and last[:1].islower():  # datasets are written in capitals, judges (gpt-4o-mini) are not
        dataset = before
    return (model, dataset) if dataset else (path.stem, path.stem)


def _add(builder: TaskBuilder, number: int, row: TableRow, metrics: Sequence[str]) -> Status:
    is_answered = _NO_ANSWER not in row.values.get("prediction", "")
    status: Status = "unscored" if is_answered else "failed"
    for metric in metrics:
        score = finite(number_of(row.values.get(metric, ""))) if is_answered else None
        builder.score(number, metric, NO_FILTER, score)
        if score is not None:
            status = "scored"
        elif is_answered:
            builder.pass_over(f"values of {metric} that are no finite number: unscored")
    if not is_answered:
        builder.pass_over("questions to which the model's server gave no answer: failed")
    return status


def _lookups(table: Table, builder: TaskBuilder) -> Lookups:
    @cache
    def answers() -> dict[int, Answer]:
        found: dict[int, Answer] = {}
        for row in table.rows():
            values = row.values
            answer = Answer(values.get("prediction", ""), values.get("answer", ""), values.get("question", ""))
            found.setdefault(builder.row(values["index"]), answer)
        return found

    def fields() -> Iterator[tuple[int, Mapping[str, str]]]:
        for row in table.rows():
            yield builder.row(row.values["index"]), {k: v for k, v in row.values.items() if k not in _TEXTS}

    return Lookups(cache(lambda: metadata_of(len(builder.ids), fields())), lambda row: answers().get(row))


TABLES = Format(
    "an evaluated table of VLMEvalKit (xlsx, tsv, csv with index, prediction, and hit or score)", is_table, read_table
)
