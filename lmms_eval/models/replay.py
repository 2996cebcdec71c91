"""Answers from an earlier run, for scoring again: samples files, or MEGA-Bench submission files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Task
from lmms_eval.errors import ModelError
from lmms_eval.models.replay_files import AnswerBook, SamplesBook, SubmissionBook, read_submission

TAKE = 64
SAMPLES_NAME = re.compile(r"^(?:(?P<stamp>\d{8}_\d{6})_)?samples_(?P<task>.+)\.jsonl$")
SUBMISSION_SUFFIX = "_all_query_responses.json"


class Replay(Model):
    """``--model replay --model_args path=OUT/MODEL``: the answers of an earlier run instead of a model's.

    Args:
        path: a samples file (``..._samples_TASK.jsonl``), a MEGA-Bench submission file, or a folder of such files.
            In a folder the newest samples file of a task counts. A single samples file whose name tells no task is
            taken for every task.
    """

    kinds: frozenset[RequestKind] = frozenset(
        {"generate_until", "loglikelihood", "generate_until_multi_round", "generate_visual_cot"}
    )
    concurrency = TAKE
    reads_documents = True

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise ModelError(f"replay: {self.path} does not exist (--model_args path=FILE or FOLDER)")
        folder = self.path.is_dir()
        files = sorted(self.path.iterdir()) if folder else [self.path]
        self._samples = {} if folder else {"": self.path}
        self._submissions = [file for file in files if file.suffix == ".json" and _is_submission(file, folder)]
        for file in files:  # in order of their stamps, so that the newest remains
            match = SAMPLES_NAME.match(file.name)
            if match:
                self._samples.pop("", None)
                self._samples[match["task"]] = file
        if self._submissions and not folder:
            self._samples = {}
        if not self._samples and not self._submissions:
            raise ModelError(f"replay: {self.path} holds neither *_samples_TASK.jsonl nor *{SUBMISSION_SUFFIX}")
        self._books: dict[str, AnswerBook] = {}

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Answers are there already."""
        return False

    def prepare(self, request: Request) -> Request:
        """Nothing is sent anywhere, so no media is opened."""
        return request

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        """Read the files of all tasks, so that a missing or damaged one ends the run before it begins."""
        for task in tasks:
            self._book(task)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                yield self._book(request.task).response(request)

    def sent_with(self, request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        """Nothing: answers are there already."""
        return {}

    def identity(self) -> Mapping[str, Any]:
        files = [*self._samples.values(), *self._submissions]
        stats = [(file.name, file.stat()) for file in files]
        return {"files": sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)}

    def _book(self, task: Task) -> AnswerBook:
        book = self._books.get(task.name)
        if book is not None:
            return book
        file = self._samples.get(task.name) or self._samples.get("")
        if file is not None:
            book = SamplesBook(file)
        elif self._submissions:
            own = [path for path in self._submissions if path.name == f"{task.name}{SUBMISSION_SUFFIX}"]
            book = SubmissionBook(own or self._submissions)
        else:
            held = ", ".join(sorted(self._samples))
            raise ModelError(f"replay: {self.path} holds no samples of task {task.name!r} (it holds {held})")
        self._books[task.name] = book
        return book


def _is_submission(file: Path, in_folder: bool) -> bool:
    """Tell submissions in a folder by their names, so as to pass results over; a file given by name must be one."""
    if in_folder:
        return file.name.endswith(SUBMISSION_SUFFIX)
    read_submission(file)
    return True
