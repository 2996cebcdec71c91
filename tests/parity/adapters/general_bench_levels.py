"""General-Level: mappings, formulas, whole tables, filled templates. Predictions and metrics have no adapter."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.cli.main import main
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.tasks.general_bench.levels import formulas, reference
from lmms_eval.tasks.general_bench.levels import formulas as normalise
from lmms_eval.tasks.general_bench.levels.registering import LevelResult, register
from lmms_eval.tasks.general_bench.levels.report import Ranked, Support
from lmms_eval.tasks.general_bench.levels.tables import (
    SPECIALIST_COLUMN,
    LevelRow,
    Sheet,
    Table,
    column,
    read_workbook,
    template,
    write_workbook,
)
from tests.parity.compare import agree
from tests.parity.vectors import DATA_DIR, PASSED, Vector, Verdict, failed, line_adapter

DATA = DATA_DIR / "general_bench"
SPECIALISTS = "sota_result.xlsx"


def decoded(value: Any) -> Any:
    """``"Infinity"`` and its like as numbers, at any depth."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: decoded(item) for key, item in value.items()}
    return float(value) if value in ("Infinity", "-Infinity", "NaN") else value


def verdict(expected: Any, compute: Callable[[], Any]) -> Verdict:
    """Compare a value, or a refusal where the reference raised."""
    refuses = isinstance(expected, Mapping) and "error" in expected
    try:
        found = compute()
    except LmmsEvalError as error:
        return PASSED if refuses else failed(f"raised {error}")
    if refuses:
        return failed(f"{found!r} instead of {expected['error']}")
    wanted = decoded(expected["value"] if isinstance(expected, Mapping) and "value" in expected else expected)
    return PASSED if agree(wanted, found) else failed(f"{found!r} instead of {wanted!r}")


HELPERS: Mapping[str, Callable[[float], float]] = {
    "sigmoid": normalise.sigmoid,
    "tanh": math.tanh,
    "two_sigmoid_minus_one": normalise.two_sigmoid_minus_one,
    "level5_rmse_adjust": normalise.adjusted_rmse,
}


@line_adapter("general_bench/normalize.jsonl")
def check_mapping(vector: Vector) -> Verdict:
    record = vector.record
    if "helper" in record:
        return verdict(record["expected"], lambda: HELPERS[record["helper"]](decoded(record["x"])))
    score = record["score"]
    bare = verdict(record["map_function"], lambda: normalise.map_score(record["metric"], float(decoded(score))))
    if bare != PASSED:
        return bare
    wrapped = lambda: normalise.ranker_score(record["metric"], reference.reference_number(decoded(score)))  # noqa: E731
    return verdict(record["ranker_normalize"], wrapped)


@line_adapter("general_bench/level_functions.jsonl")
def check_function(vector: Vector) -> Verdict:
    record = vector.record
    return verdict(record["expected"], lambda: FUNCTIONS[record["fn"]](decoded(record)))


def group_of(sota: Sequence[float], model: Sequence[float]) -> formulas.GroupMeans:
    return formulas.GroupMeans(formulas.mean_of_rows(model), formulas.winning_mean(sota, model))


def modality(record: Mapping[str, Any]) -> dict[str, float]:
    groups = [group_of(record[f"{part}_sota"], record[f"{part}_model"]) for part in ("comp", "gen")]
    levels = formulas.modality_levels(groups, formulas.REFERENCE_EPSILON)
    return {f"level{number}": level for number, level in levels.items()}


def level5(record: Mapping[str, Any]) -> float:
    cells = [[reference.reference_number(cell) for cell in record[key]] for key in ("sota", "model")]
    return formulas.level5(record["level4"], formulas.reference_language(record["metrics"], *cells))


def process_sheet(record: Mapping[str, Any]) -> dict[str, list[float]]:
    def rows(key: str) -> list[LevelRow]:
        return [LevelRow("", metric, cell) for metric, cell in zip(record["metrics"], record[key], strict=True)]

    pairs = reference.pair("Image-Generation", rows("sota"), rows("model"))
    return {"sota": list(pairs.specialists), "model": list(pairs.scores)}


FUNCTIONS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "level2_group": lambda record: formulas.mean_of_rows(record["scores"]),
    "level3_group": lambda record: formulas.winning_mean(record["sota"], record["model"]),
    "modality": modality,
    "level5": level5,
    "process_sheet": process_sheet,
}


def counts(support: Support) -> dict[str, int]:
    return {"supported": support.supported, "total": support.total, "wins": support.wins}


def plain(ranked: Ranked) -> dict[str, Any]:
    assert ranked.language is not None
    return {
        "final": {f"level{level}": score for level, score in ranked.levels.items()},
        "modalities": {
            name: {f"level{number}": level for number, level in part.levels.items()}
            for name, part in ranked.modalities.items()
        },
        "support": {name: counts(part.support) for name, part in ranked.modalities.items()}
        | {"NLP": counts(ranked.language.support)},
    }


def ranked_verdict(expected: Mapping[str, Any], compute: Callable[[], Ranked]) -> Verdict:
    if "error" in expected:
        return verdict(expected, compute)

    def chosen() -> dict[str, Any]:
        found = plain(compute())
        return {
            part: {key: found[part][key] for key in wanted} if part == "final" else found[part]
            for part, wanted in expected.items()
        }

    return verdict(expected, chosen)


@functools.cache
def specialists_table() -> Table:
    return read_workbook(DATA / SPECIALISTS)


def model_table(record: Mapping[str, Any], name: str) -> Table:
    """The table of a line: its scores (row names too where the line has them), or the specialists' with its changes."""
    if record.get("scores") is None:
        return patched_table(record, name)
    sheets = {}
    for sheet, content in template().sheets.items():
        names = record["task_names"][sheet] if record.get("task_names") else [row[1] for row in content.rows]
        cells = record["scores"][sheet]
        rows = zip(content.rows, names, cells, strict=True)
        sheets[sheet] = Sheet((*content.columns, name), tuple((r[0], n, r[2], r[3], cell) for r, n, cell in rows))
    return Table("vector", sheets)


def patched_table(record: Mapping[str, Any], name: str) -> Table:
    sheets: dict[str, Sheet] = {}
    for sheet, content in specialists_table().sheets.items():
        rows = [list(row) for row in content.rows]
        for _, row, value in (patch for patch in record["patch"] if patch[0] == sheet):
            rows[row][-1] = value
        assert content.columns[-1] == SPECIALIST_COLUMN
        sheets[sheet] = Sheet((*content.columns[:-1], name), tuple(map(tuple, rows)))
    for added in record["add_sheets"]:
        copied = sheets[added["copy_of"]] if "copy_of" in added else Sheet(tuple(added["columns"]), ())
        sheets[added["name"]] = copy.copy(copied)
    return Table("vector", {key: sheet for key, sheet in sheets.items() if key not in record["drop_sheets"]})


def refused_verdict(model: str, table: Path | Table, *options: str) -> Verdict:
    """The command refuses a ranking: an exit code that tells so, no table on the screen, no files."""
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "levels", table
        if isinstance(table, Table):
            path = Path(name) / "result.xlsx"
            write_workbook(table, path)
        words = ["general-bench", "rank", "--profile", "reference", "-p", str(path), "-m", model, "-o", str(folder)]
        printed, complaints = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            code = main([*words, *options])
        is_refused = code == DataError.exit_code and not printed.getvalue() and not folder.exists()
    return PASSED if is_refused else failed(f"was not refused: {code}, {printed.getvalue()} {complaints.getvalue()}")


@line_adapter("general_bench/ranker_full.jsonl")
def check_ranking(vector: Vector) -> Verdict:
    """With the shipped specialists, and with the specialists' workbook."""
    record = vector.record
    table = model_table(record, record["column"])
    if "error" in record["expected"]:
        refused = refused_verdict(record["model_name"], table)
        given = ("-s", str(DATA / SPECIALISTS))
        return refused if refused != PASSED else refused_verdict(record["model_name"], table, *given)
    shipped = ranked_verdict(record["expected"], lambda: reference.rank_reference(record["model_name"], table))
    if shipped != PASSED:
        return shipped
    given = specialists_table()
    return ranked_verdict(record["expected"], lambda: reference.rank_reference(record["model_name"], table, given))


@line_adapter("general_bench/ranker_corrected_sota.jsonl")
def check_corrected(vector: Vector) -> Verdict:
    table = model_table(vector.record, "model")
    corrected = reference.specialists(corrected=True)
    return ranked_verdict(vector.record["expected"], lambda: reference.rank_reference("model", table, corrected))


@line_adapter("general_bench/outcome_files.jsonl")
def check_outcome(vector: Vector) -> Verdict:
    record = vector.record
    path = DATA / Path(record["file"]).name
    if "error" in record["expected"]:
        return refused_verdict(record["model_name"], path)
    table = read_workbook(path)
    return ranked_verdict(record["expected"], lambda: reference.rank_reference(record["model_name"], table))


@line_adapter("general_bench/register_fill.jsonl")
def check_filling(vector: Vector) -> Verdict:
    record, expected = vector.record, vector.record["expected"]
    results = [LevelResult(**result) for result in record["results"]]
    filled = register(record["model_name"], results, read_workbook(DATA / "template_result.xlsx"), "reference")
    cells = {
        name: [[row, content.cell] for row, content in enumerate(column(sheet, name, record["model_name"]))
               if content.cell is not None]
        for name, sheet in filled.table.sheets.items()
    }  # fmt: skip
    found = {
        "file_name": f"{filled.model}_result.xlsx",
        "sheets": list(filled.table.sheets),
        "filled_cells": {name: rows for name, rows in cells.items() if rows},
        "sheets_reported_updated": list(filled.updated),
    }
    return verdict(expected, lambda: found)
