"""Weights & Biases, SwanLab and Trackio: packages that show a run with its numbers, tables and samples."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from lmms_eval.trackers.content import LIVE, evenly, name_of_file
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
"""Most samples of a task that SwanLab shows."""
_STATES = {"complete": "success", "stopped early": "success", "interrupted": "aborted"}
"""SwanLab's names of states."""


class PackageTracker:
    """A run of a package, or a folder of one in offline mode."""

    name: str

    def __init__(self) -> None:
        self._run: Any = None

    @property
    def _package(self) -> Any:
        return importlib.import_module(self.name)

    def step(self, step: LiveNumbers) -> None:
        self._run.log(dict(step.values))

    def finish(self, ending: RunEnding) -> TrackerPlace:
        place = self._place()
        if self._run is not None:
            self._end(ending)
        return place

    def _end(self, ending: RunEnding) -> None:
        raise NotImplementedError

    def _place(self) -> TrackerPlace:
        raise NotImplementedError

    def _tables(self, tables: Mapping[str, TrackerTable]) -> dict[str, Any]:
        table = self._package.Table
        return {
            name: table(columns=list(one.columns), data=[list(row) for row in one.rows]) for name, one in tables.items()
        }

    def _log_file(self, artifact: str, kind: str, path: str, name: str) -> None:
        """Log a file under a name in an artifact."""
        made = self._package.Artifact(name_of_file(artifact), type=kind)
        made.add_file(path, name=name)
        self._run.log_artifact(made)

    def _log_samples(self, samples: TaskSamples, columns: list[str], rows: list[list[Any]]) -> None:
        """Log the samples of a task as a table, and its samples file, if there is one, as an artifact."""
        self._run.log({f"samples/{samples.task}": self._package.Table(columns=columns, data=rows)})
        if samples.file:
            self._log_file(f"samples_{samples.task}", "samples", samples.file, Path(samples.file).name)


class Wandb(PackageTracker):
    """A run of Weights & Biases."""

    name = "wandb"

    def start(self, beginning: Beginning) -> TrackerPlace:
        settings = self._package.Settings(console="off", silent=True, disable_code=True, disable_git=True)
        arguments = {"id": beginning.run_id, "resume": "allow", "name": beginning.name, **beginning.arguments}
        self._run = self._package.init(config=dict(beginning.config), settings=settings, **arguments)
        self._run.define_metric(f"{LIVE}/documents", hidden=True)
        self._run.define_metric(f"{LIVE}/*", step_metric=f"{LIVE}/documents")
        return self._place()

    def results(self, results: FinalResults) -> None:
        self._run.config.update(dict(results.config), allow_val_change=True)
        self._run.log({**results.scalars, **self._tables(results.tables)})
        self._run.summary.update(dict(results.texts))
        self._log_file("results", "eval_results", results.file, "results.json")

    def samples(self, samples: TaskSamples) -> None:
        from PIL import Image

        def picture(path: str) -> Any:
            with Image.open(path) as opened:
                return self._package.Image(opened.convert("RGB"), file_type="jpg")

        columns, rows = list(samples.columns), [list[Any](row) for row in samples.rows]
        # The tracker shows no lists of pictures, so each cell has one picture.
        for place in range(max(map(len, samples.pictures), default=0)):
            columns.append(f"picture_{place + 1}")
            for row, paths in zip(rows, samples.pictures, strict=True):
                row.append(picture(paths[place]) if place < len(paths) else None)
        self._log_samples(samples, columns, rows)

    def _end(self, ending: RunEnding) -> None:
        self._run.summary["state"] = ending.state
        self._run.finish(exit_code=0 if ending.has_succeeded else 1)

    def _place(self) -> TrackerPlace:
        if self._run is None or self._run.disabled:
            return TrackerPlace()
        if self._run.offline:
            folder = self._run.settings.sync_dir
            return TrackerPlace(folder=folder, hint=f"send it with: wandb sync {folder}")
        return TrackerPlace(url=str(self._run.url or ""))


class Trackio(PackageTracker):
    """A run of Trackio in a local database, or in a Space of the hub."""

    name = "trackio"

    def start(self, beginning: Beginning) -> TrackerPlace:
        # The package finds a run by its name alone, and another run may have the same name.
        arguments = {
            "project": PROJECT,
            "name": beginning.name,
            "resume": "allow" if beginning.is_continued else "never",
            "embed": False,
            **beginning.arguments,
        }
        self._run = self._package.init(config=dict(beginning.config), **arguments)
        return self._place()

    def results(self, results: FinalResults) -> None:
        self._run.log({**results.scalars, **results.texts, **self._tables(results.tables)})
        self._log_file("results", "eval_results", results.file, "results.json")

    def samples(self, samples: TaskSamples) -> None:
        columns, rows = list(samples.columns), [list[Any](row) for row in samples.rows]
        if samples.pictures:
            columns.append("pictures")
            for row, paths in zip(rows, samples.pictures, strict=True):
                row.append([self._package.Image(path) for path in paths] or None)
        self._log_samples(samples, columns, rows)

    def _end(self, ending: RunEnding) -> None:
        self._run.log({"state": ending.state})
        self._run.finish()

    def _place(self) -> TrackerPlace:
        if self._run is None:
            return TrackerPlace()
        if self._run.url:
            return TrackerPlace(url=str(self._run.url))
        hint = f"look at it with: trackio show --project {self._run.project}"
        return TrackerPlace(folder=str(self._package.TRACKIO_DIR), hint=hint)


def take_host(environment: MutableMapping[str, str]) -> None:
    """Set SwanLab's variable for its server from the family's variable."""
    if "SWANLAB_HOST" in environment:
        environment.setdefault("SWANLAB_API_HOST", environment["SWANLAB_HOST"])


class Swanlab(PackageTracker):
    """An experiment of SwanLab."""

    name = "swanlab"

    def __init__(self) -> None:
        super().__init__()
        take_host(os.environ)

    def start(self, beginning: Beginning) -> TrackerPlace:
        arguments = {"id": beginning.run_id, "resume": "allow", "name": beginning.name, **beginning.arguments}
        if not os.environ.get("SWANLAB_PROJECT"):
            arguments.setdefault("project", PROJECT)
        self._run = self._package.init(config=dict(beginning.config), **arguments)
        return self._place()

    def step(self, step: LiveNumbers) -> None:
        self._run.log(dict(step.values), step=step.documents)

    def results(self, results: FinalResults) -> None:
        tables = {}
        for name, one in results.tables.items():
            cells = [["" if cell is None else cell for cell in row] for row in one.rows]
            tables[name] = self._package.echarts.Table().add(list(one.columns), cells)
        self._run.config.update({**results.config, "results": dict(results.texts)})
        self._run.log({**results.scalars, **tables})

    def samples(self, samples: TaskSamples) -> None:
        texts, pictures = [], []
        for number in evenly(range(len(samples.rows)), PREVIEW):
            row = zip(samples.columns, samples.rows[number], strict=True)
            lines = "\n".join(f"{name}: {cell}" for name, cell in row if cell not in (None, ""))
            caption = f"{samples.task} {samples.rows[number][0]}"
            texts.append(self._package.Text(lines, caption=caption))
            for path in samples.pictures[number] if samples.pictures else ():
                pictures.append(self._package.Image(path, mode="RGB", caption=caption, file_type="jpg"))
        shown = {f"samples/{samples.task}": texts, f"pictures/{samples.task}": pictures}
        if any(shown.values()):
            self._run.log({name: items for name, items in shown.items() if items})

    def _end(self, ending: RunEnding) -> None:
        self._run.config.update({"state": ending.state})
        state = _STATES.get(ending.state, "crashed")
        self._run.finish(state=state, error=None if state == "success" else ending.state)

    def _place(self) -> TrackerPlace:
        if self._run is None or self._run.mode == "disabled":
            return TrackerPlace()
        if self._run.mode == "online":
            return TrackerPlace(url=str(self._run.url or ""))
        folder = str(self._run.dir)
        return TrackerPlace(folder=folder, hint=f"send it with: swanlab sync {folder}")
