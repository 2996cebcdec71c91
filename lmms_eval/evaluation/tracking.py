"""Trackers and hub upload of a run: begun before the first request, told of its results when they are written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.config.tracking import DESTINATIONS, HUB, Destination, destination_arguments
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.evaluate import RunResult
from lmms_eval.engine.progress import Progress
from lmms_eval.engine.store import RunStore
from lmms_eval.evaluation.record import RunRecord
from lmms_eval.evaluation.writing import Written
from lmms_eval.results.samples import json_text, sample_rows
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.trackers.content import results_of, run_name
from lmms_eval.trackers.contract import Beginning, Ending, TaskSamples
from lmms_eval.trackers.samples import Bounds, TaskRows, task_samples
from lmms_eval.trackers.session import Session, report_lines, report_part, run_id
from lmms_eval.utils import model_name_from_args, sanitize_model_name
from lmms_eval.viewer.media import MediaStore

FOLDER = "trackers"
"""In the run's folder, while trackers are told: the results document and small pictures."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """The trackers of a run."""

    session: Session
    config: RunConfig
    record: RunRecord
    is_first: bool = True

    def follow(self, progress: Progress) -> None:
        """Tell live numbers; the other processes only count them."""
        if self.is_first:
            self.session.follow(progress)

    @property
    def folder(self) -> Path:
        return self.record.folder.path / FOLDER

    def told(self, written: Written, result: RunResult, store: RunStore, grace_s: float) -> Written:
        """Tell the trackers what was written and wait for them, within bounds; the results then say what became of
        them.

        Args:
            written: the results.
            result: what they are made of.
            store: the run's journals.
            grace_s: seconds that the trackers have once a signal has come.

        Raises:
            JournalError: the results file cannot be written anew.
        """
        documents = sum(len(task.doc_ids) - task.outcome.not_asked for task in result.tasks)
        self.session.stop()
        names = {one.name for one in wanted(self.config)}
        try:
            self.folder.mkdir(exist_ok=True)
            results = results_of(written.document, documents, str(self._results_file(written)))
            self.session.tell(results, names)
            self._tell_files(result.tasks, documents)
            with_samples = {one.name for one in wanted(self.config) if _takes_samples(self.config, one)}
            if with_samples:
                self._tell_samples(with_samples, result.tasks, store, documents)
        except Exception as error:  # noqa: BLE001 - the results are written, whatever a task's samples hold
            self.session.fail(f"{type(error).__name__}: {error}", names)
        ending = Ending(result.state, has_succeeded=result.state in ("complete", "stopped early"))
        reports = self.session.end(ending, grace_s, result.asking.interrupted)
        shutil.rmtree(self.folder, ignore_errors=True)
        document = {**written.document, "trackers": report_part(reports)}
        if self.record.files is not None:
            write_atomically(self.record.files.results, json_text(document, indent=2).encode("utf-8", "replace"))
        return replace(written, document=document, lines=[*written.lines, *report_lines(reports)])

    def _results_file(self, written: Written) -> Path:
        if self.record.files is not None:
            return self.record.files.results.absolute()
        file = self.folder / "results.json"
        file.write_bytes(json_text(written.document, indent=2).encode("utf-8", "replace"))
        return file.absolute()

    def _tell_files(self, tasks: Sequence[TaskResult], documents: int) -> None:
        """Name the samples files to the hub, which takes them whole."""
        if not destination_arguments(HUB, self.config.hf_hub_log_args).get("push_samples_to_hub"):
            return
        for task in tasks:
            if file := self._samples_file(task.task.name):
                self.session.tell(TaskSamples(task.task.name, documents, (), (), file=file), {HUB.name})

    def _samples_file(self, task: str) -> str:
        """Return the path of a task's samples file; empty where none was written."""
        files = self.record.files
        path = None if files is None or not self.config.log_samples else files.samples(task).absolute()
        return str(path) if path is not None and path.is_file() else ""

    def _tell_samples(self, names: set[str], tasks: Sequence[TaskResult], store: RunStore, documents: int) -> None:
        files = self.record.files
        folders = [self.folder.parent, *([] if files is None else [files.results.parent])]
        media = MediaStore(self.folder / "media", "thumbnails")
        try:
            for task in tasks:
                found = TaskRows(
                    task.task.name,
                    task.doc_ids,
                    tuple(metric.name for metric in task.task.metrics),
                    lambda doc_ids, task=task: sample_rows(task, store, doc_ids),
                    self._samples_file(task.task.name),
                )
                self.session.tell(task_samples(found, documents, media, folders, Bounds.of(len(tasks))), names)
        finally:
            media.close()


def _takes_samples(config: RunConfig, destination: Destination) -> bool:
    return bool(destination.samples_option and getattr(config, destination.samples_option))


def wanted(config: RunConfig) -> Iterator[Destination]:
    """List the trackers that the options name, and the hub where it is one."""
    return (one for one in DESTINATIONS if getattr(config, one.option))


def begin_tracking(config: RunConfig, record: RunRecord, opened: ExitStack, is_first: bool) -> Tracked:
    """Start the trackers that the options name. ``is_first``: of the processes of a launch, that which tells them."""
    session = Session()
    opened.callback(session.close)
    if is_first and destination_arguments(HUB, config.hf_hub_log_args).get("hub_repo_name"):
        logger.warning("--hf_hub_log_args: hub_repo_name is deprecated: give details_repo_name and results_repo_name")
    for one in wanted(config) if is_first else ():
        session.begin(one, _beginning(config, one, record))
    return Tracked(session, config, record, is_first)


def _beginning(config: RunConfig, destination: Destination, record: RunRecord) -> Beginning:
    arguments: Mapping[str, Any] = destination_arguments(destination, getattr(config, destination.option))
    return Beginning(
        arguments=arguments,
        run_id=run_id(record.key, record.date),
        name=run_name(
            config.model, argument_text(config.model_args), str(record.content.get("stamp") or record.date[:19])
        ),
        config={"cli_configs": resolved_cli_args(config), "run_key": record.key},
        is_continued=int(record.content.get("starts", 1)) > 1,
        model=sanitize_model_name(model_name_from_args(argument_text(config.model_args))),
    )
