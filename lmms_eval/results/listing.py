"""The runs of a folder as a table: model, tasks, headline score, state and date of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.config import argument_text
from lmms_eval.errors import DataError
from lmms_eval.results.facts import aggregation_of, is_count, model_of, part_of, read_document, selected
from lmms_eval.results.files import FoundRun, find_runs, read_state, state_of
from lmms_eval.results.run import record_name
from lmms_eval.results.sample import finite
from lmms_eval.results.tables import interval_text, number_text, pairs_in
from lmms_eval.storage.run_folder import has_live_owner
from lmms_eval.utils import model_name_from_args
from lmms_eval.utils.terminal import named_table, printable

MAX_CELL = 48
"""Characters shown of a name."""
MAX_TASKS = 3


class ListedRun(Struct, frozen=True):
    """One run of a folder."""

    path: Path
    """Its results file, or its record if it has no results."""
    model: str
    tasks: tuple[str, ...]
    """The tasks and groups that were selected."""
    state: str
    date: str
    task: str = ""
    """The task or group of the headline score."""
    metric: str = ""
    score: float | None = None
    """The headline score: of the first task or group that has one, by its first metric; ``None`` without any."""
    low: float | None = None
    high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the run with plain values for JSON."""
        return {
            "path": str(self.path), "model": self.model, "tasks": list(self.tasks), "state": self.state,
            "date": self.date, "task": self.task, "metric": self.metric, "score": self.score, "low": self.low,
            "high": self.high,
        }  # fmt: skip


def listed_runs(folder: Path) -> list[ListedRun]:
    """Return the runs in a folder and one folder below, by date.

    Raises:
        DataError: a results file cannot be read.
    """
    return sorted(map(_listed, find_runs(folder)), key=lambda run: run.date)


def _listed(found: FoundRun) -> ListedRun:
    if found.path.is_dir():
        state = read_state(found.path)
        tasks = tuple(name for name in part_of(state, "tasks") if "@" not in name)
        return ListedRun(
            found.path, record_name(found.path, state), tasks, state_of(state, has_live_owner(found.path)),
            str(state.get("date", "")),
        )  # fmt: skip
    document = read_document(found.path)
    if not isinstance(document, Mapping):
        raise DataError(f"{found.path}: not a results file (JSON with results and configs)")
    tasks = tuple(name for name in selected(document) if "@" not in name)
    run = ListedRun(
        found.path, _model(document) or found.path.stem, tasks, str(document.get("state", "unknown")),
        str(document.get("date", "")),
    )  # fmt: skip
    return next(_headlines(document, run), run)


def _model(document: Mapping[str, Any]) -> str:
    """Return the name of the model; of a model without a name, its back end and arguments."""
    arguments = part_of(document, "config").get("model_args")
    text = argument_text(arguments) if isinstance(arguments, str | Mapping) else ""
    return model_of(document) + (f" ({text})" if text and not model_name_from_args(text) else "")


def _headlines(document: Mapping[str, Any], run: ListedRun) -> Iterator[ListedRun]:
    """Yield the run with each score of its tasks, then of the tasks below them; of a task its first metric first."""
    below = selected(document)
    for name in dict.fromkeys((*run.tasks, *(each for top in run.tasks for each in below[top]))):
        entry = part_of(document, "results", name)
        stated = part_of(document, "configs", name).get("metric_list")
        listed = [one.get("metric") for one in stated if isinstance(one, Mapping)] if isinstance(stated, list) else []
        pairs = sorted(pairs_in(entry), key=lambda pair: listed.index(pair[0]) if pair[0] in listed else len(listed))
        for metric, pipeline in pairs:
            key = f"{metric},{pipeline}"
            score = finite(entry.get(key))
            if score is None or is_count(metric, entry.get(key), aggregation_of(document, name, metric)):
                continue
            around = part_of(part_of(document, "intervals", name), key)
            low, high = finite(around.get("low")), finite(around.get("high"))
            yield replace(run, task=name, metric=metric, score=score, low=low, high=high)


def runs_table(runs: Iterable[ListedRun], folder: Path) -> str:
    """Format runs as a table. ``folder`` is the one that the paths are relative to."""
    rows = [_row(run, folder) for run in runs]
    return named_table({name: [row[name] for row in rows] for name in rows[0]} if rows else {}, ("Score",))


def _row(run: ListedRun, folder: Path) -> dict[str, str]:
    several = f" and {len(run.tasks) - MAX_TASKS} more" if len(run.tasks) > MAX_TASKS else ""
    return {
        "Model": _cell(run.model),
        "Tasks": ", ".join(map(_cell, run.tasks[:MAX_TASKS])) + several,
        "Score": "" if run.score is None else number_text(run.score),
        "CI95": interval_text(run.low, run.high),
        "Metric": _cell(run.metric if run.tasks == (run.task,) or not run.task else f"{run.task}: {run.metric}"),
        "State": _cell(run.state),
        "Date": _cell(run.date[:16].replace("T", " ")),
        "Run": printable(str(run.path.relative_to(folder) if run.path.is_relative_to(folder) else run.path)),
    }


def _cell(text: str) -> str:
    name = printable(" ".join(text.split()))
    return name if len(name) <= MAX_CELL else f"{name[: MAX_CELL - 1]}…"
