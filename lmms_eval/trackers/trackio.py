"""Trackio: one run in a local database, or in a Space of the hub."""

from __future__ import annotations

from typing import Any

from lmms_eval.trackers.content import log_file, log_samples_file, package_table
from lmms_eval.trackers.contract import Beginning, FinalResults, LiveNumbers, RunEnding, TaskSamples, TrackerPlace

PROJECT = "lmms-eval"


def new() -> Trackio:
    """Make the tracker."""
    return Trackio()


class Trackio:
    """A run of Trackio."""

    def __init__(self) -> None:
        self._run: Any = None

    def start(self, beginning: Beginning) -> TrackerPlace:
        import trackio

        # The package finds a run by its name alone, and another run may have the same name.
        arguments = {
            "project": PROJECT,
            "name": beginning.name,
            "resume": "allow" if beginning.is_continued else "never",
            "embed": False,
            **beginning.arguments,
        }
        self._run = trackio.init(config=dict(beginning.config), **arguments)
        return self._place()

    def step(self, step: LiveNumbers) -> None:
        self._run.log(dict(step.values))

    def results(self, results: FinalResults) -> None:
        import trackio

        tables = {name: package_table(trackio, table) for name, table in results.tables.items()}
        self._run.log({**results.scalars, **results.texts, **tables})
        log_file(trackio, self._run, ("results", "eval_results"), results.file, "results.json")

    def samples(self, samples: TaskSamples) -> None:
        import trackio

        rows: list[list[Any]] = [list(row) for row in samples.rows]
        columns = list(samples.columns)
        if samples.pictures:
            columns.append("pictures")
            for row, paths in zip(rows, samples.pictures, strict=True):
                row.append([trackio.Image(path) for path in paths] or None)
        self._run.log({f"samples/{samples.task}": trackio.Table(columns=columns, data=rows)})
        log_samples_file(trackio, self._run, samples)

    def finish(self, ending: RunEnding) -> TrackerPlace:
        place = self._place()
        if self._run is not None:
            self._run.log({"state": ending.state})
            self._run.finish()
        return place

    def _place(self) -> TrackerPlace:
        import trackio

        if self._run is None:
            return TrackerPlace()
        if self._run.url:
            return TrackerPlace(url=str(self._run.url))
        return TrackerPlace(
            folder=str(trackio.TRACKIO_DIR), hint=f"look at it with: trackio show --project {self._run.project}"
        )
