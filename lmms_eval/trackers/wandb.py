"""Weights & Biases: one run with live numbers, tables and artifacts."""

from __future__ import annotations

from typing import Any

from lmms_eval.trackers.content import LIVE, log_file, log_samples_file, package_table
from lmms_eval.trackers.contract import Beginning, FinalResults, LiveNumbers, RunEnding, TaskSamples, TrackerPlace


def new() -> Wandb:
    """Make the tracker."""
    return Wandb()


class Wandb:
    """A run of Weights & Biases, or a folder of one in offline mode."""

    def __init__(self) -> None:
        self._run: Any = None

    def start(self, beginning: Beginning) -> TrackerPlace:
        import wandb

        settings = wandb.Settings(console="off", silent=True, disable_code=True, disable_git=True)
        arguments = {"id": beginning.run_id, "resume": "allow", "name": beginning.name, **beginning.arguments}
        self._run = wandb.init(config=dict(beginning.config), settings=settings, **arguments)
        self._run.define_metric(f"{LIVE}/documents", hidden=True)
        self._run.define_metric(f"{LIVE}/*", step_metric=f"{LIVE}/documents")
        return self._place()

    def step(self, step: LiveNumbers) -> None:
        self._run.log(dict(step.values))

    def results(self, results: FinalResults) -> None:
        import wandb

        self._run.config.update(dict(results.config), allow_val_change=True)
        self._run.log(
            {**results.scalars, **{name: package_table(wandb, table) for name, table in results.tables.items()}}
        )
        self._run.summary.update(dict(results.texts))
        log_file(wandb, self._run, ("results", "eval_results"), results.file, "results.json")

    def samples(self, samples: TaskSamples) -> None:
        import wandb

        columns = list(samples.columns)
        rows: list[list[Any]] = [list(row) for row in samples.rows]
        # The tracker shows no lists of pictures, so each cell has one picture.
        for place in range(max(map(len, samples.pictures), default=0)):
            columns.append(f"picture_{place + 1}")
            for row, paths in zip(rows, samples.pictures, strict=True):
                row.append(wandb.Image(_opened(paths[place]), file_type="jpg") if place < len(paths) else None)
        table = wandb.Table(columns=columns, data=rows)
        self._run.log({f"samples/{samples.task}": table})
        log_samples_file(wandb, self._run, samples)

    def finish(self, ending: RunEnding) -> TrackerPlace:
        place = self._place()
        if self._run is not None:
            self._run.summary["state"] = ending.state
            self._run.finish(exit_code=0 if ending.has_succeeded else 1)
        return place

    def _place(self) -> TrackerPlace:
        if self._run is None or self._run.disabled:
            return TrackerPlace()
        if self._run.offline:
            folder = self._run.settings.sync_dir
            return TrackerPlace(folder=folder, hint=f"send it with: wandb sync {folder}")
        return TrackerPlace(url=str(self._run.url or ""))


def _opened(path: str) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return image.convert("RGB")
