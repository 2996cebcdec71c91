"""The benchmark's report of one model, from the files that ``evaluate`` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.storage.json_files import read_json
from lmms_eval.tasks.milebench.collection import staleness
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.reference import PREDICTIONS
from lmms_eval.tasks.milebench.standalone import FIXED, SUMMARY
from lmms_eval.tasks.milebench.summary.dataset import KEY


def report_of(folder: Path, output: Path | None = None) -> BenchmarkReport:
    """Groups, overall figures and scores by number of pictures of the model whose folder this is.

    Args:
        output: folder for the report's files, which go to ``OUTPUT/MODEL_milebench``; ``None`` → none are written.

    Raises:
        DataError: no data set of the benchmark was evaluated, one has predictions that were not, or a file cannot be
            used or written.
    """
    from lmms_eval.tasks.milebench.report import report

    tasks: dict[str, TaskNumbers] = {}
    for name, facts in datasets().items():
        summary = _summary(folder / name)
        if summary is not None:
            tasks[f"milebench_{facts.task}"] = TaskNumbers({KEY: summary})
    found = report(tasks, None if output is None else output / folder.absolute().name) if tasks else None
    if found is None:
        raise DataError(f"no data set was evaluated in {folder}; lmms-eval milebench evaluate comes first")
    return found


def _summary(folder: Path) -> Mapping[str, Any] | None:
    """The summary of a data set; ``None`` if it has neither scores nor predictions."""
    path = folder / FIXED
    if not path.is_file():
        if (folder / PREDICTIONS).is_file():
            raise DataError(f"{folder / PREDICTIONS} was not evaluated; lmms-eval milebench evaluate comes first")
        return None
    content = read_json(path)
    summary = content.get(SUMMARY) if isinstance(content, Mapping) else None
    if not isinstance(summary, Mapping) or summary.get("dataset") != folder.name:
        raise DataError(f"{path} holds no summary of {folder.name}: evaluate again")
    stale = staleness(folder)
    if stale:
        raise DataError(f"{path} {stale}")
    return summary
