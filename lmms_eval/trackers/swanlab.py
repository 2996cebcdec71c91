"""SwanLab: one experiment with live numbers, tables and a preview of samples."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any

from lmms_eval.trackers.content import evenly
from lmms_eval.trackers.contract import (
    Beginning,
    FinalResults,
    LiveNumbers,
    RunEnding,
    TaskSamples,
    TrackerPlace,
    TrackerTable,
)

PROJECT = "lmms-eval"
PREVIEW = 10
"""Most samples of a task."""
_STATES = {"complete": "success", "stopped early": "success", "interrupted": "aborted"}


def new() -> Swanlab:
    """Make the tracker."""
    take_host(os.environ)
    return Swanlab()


def take_host(environment: MutableMapping[str, str]) -> None:
    """Set the package's variable for its server from the family's variable."""
    if "SWANLAB_HOST" in environment:
        environment.setdefault("SWANLAB_API_HOST", environment["SWANLAB_HOST"])


class Swanlab:
    """An experiment of SwanLab, or a folder of one in offline mode."""

    def __init__(self) -> None:
        self._run: Any = None

    def start(self, beginning: Beginning) -> TrackerPlace:
        import swanlab

        arguments = {"id": beginning.run_id, "resume": "allow", "name": beginning.name, **beginning.arguments}
        if not os.environ.get("SWANLAB_PROJECT"):
            arguments.setdefault("project", PROJECT)
        self._run = swanlab.init(config=dict(beginning.config), **arguments)
        return self._place()

    def step(self, step: LiveNumbers) -> None:
        self._run.log(dict(step.values), step=step.documents)

    def results(self, results: FinalResults) -> None:
        self._run.config.update({**results.config, "results": dict(results.texts)})
        self._run.log({**results.scalars, **{name: _table(one) for name, one in results.tables.items()}})

    def samples(self, samples: TaskSamples) -> None:
        import swanlab

        chosen = evenly(range(len(samples.rows)), PREVIEW)
        texts = [swanlab.Text(_text(samples, number), caption=_caption(samples, number)) for number in chosen]
        shown: dict[str, Any] = {f"samples/{samples.task}": texts} if texts else {}
        pictures = [
            swanlab.Image(path, mode="RGB", caption=_caption(samples, number), file_type="jpg")
            for number in chosen
            if samples.pictures
            for path in samples.pictures[number]
        ]
        if pictures:
            shown[f"pictures/{samples.task}"] = pictures
        if shown:
            self._run.log(shown)

    def finish(self, ending: RunEnding) -> TrackerPlace:
        place = self._place()
        if self._run is not None:
            self._run.config.update({"state": ending.state})
            state = _STATES.get(ending.state, "crashed")
            self._run.finish(state=state, error=None if state == "success" else ending.state)
        return place

    def _place(self) -> TrackerPlace:
        if self._run is None or self._run.mode == "disabled":
            return TrackerPlace()
        if self._run.mode == "online":
            return TrackerPlace(url=str(self._run.url or ""))
        folder = str(self._run.dir)
        return TrackerPlace(folder=folder, hint=f"send it with: swanlab sync {folder}")


def _table(table: TrackerTable) -> Any:
    import swanlab

    cells = [["" if cell is None else cell for cell in row] for row in table.rows]
    return swanlab.echarts.Table().add(list(table.columns), cells)


def _text(samples: TaskSamples, number: int) -> str:
    """Format a sample as lines of its columns."""
    row = zip(samples.columns, samples.rows[number], strict=True)
    return "\n".join(f"{name}: {cell}" for name, cell in row if cell not in (None, ""))


def _caption(samples: TaskSamples, number: int) -> str:
    return f"{samples.task} {samples.rows[number][0]}"
