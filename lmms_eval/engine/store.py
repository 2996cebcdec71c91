"""The responses and scored documents in the journals of a run, by id.

Memory holds only the positions of records, which are read when they are needed.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from lmms_eval.api.judging import Verdict, has_unread
from lmms_eval.api.records import ResponseLine, ScoreRecord
from lmms_eval.api.request import Response, task_of
from lmms_eval.api.task import is_retry
from lmms_eval.config.rules import is_asked_again
from lmms_eval.engine.records import (
    FOLDER,
    NOTHING,
    ImageFolder,
    images_in,
    is_blank,
    is_cut,
    is_filtered,
    last_thoughts,
    response_from_record,
    response_record,
    spent_in,
)
from lmms_eval.errors import MediaError
from lmms_eval.media.reference import MediaRef, digest
from lmms_eval.storage import codec
from lmms_eval.storage.lines import DocumentPlaces, JournalSet, JournalWriter, RecordPlace, sealed

T = TypeVar("T")


def counts_now(is_failed: bool, was_failed: bool | None) -> bool:
    """Return whether a record replaces an earlier one of the same document: a failure never replaces a score.

    ``was_failed``: whether the earlier record is a failure; ``None`` if there is no earlier one.
    """
    return not is_failed or was_failed is not False


class RunStore:
    """The journals of one run.

    Args:
        folder: the run's folder.
        scoring_key: key of the scoring settings; recorded scores with another key are stale.
        rank: rank of this process, which writes its own journals.
        images: the pictures of the run; a record whose picture is gone does not count.
        began: time of the run's first start (seconds since 1970), to detect media files that changed since.
    """

    def __init__(
        self, folder: Path, scoring_key: str, rank: int = 0, images: ImageFolder | None = None,
        began: float | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.scoring_key = folder, scoring_key
        self.images = images or ImageFolder(folder / FOLDER)
        self._lock = threading.Lock()
        self._journals = JournalSet()
        self._responses: dict[str, RecordPlace] = {}
        self._scores: defaultdict[str, DocumentPlaces] = defaultdict(DocumentPlaces)
        self._volatile: dict[tuple[str, int], dict[str, Any]] = {}
        self._failures: dict[str, dict[int, str]] = {}
        self._blank: set[str] = set()
        """Ids of blank or filtered responses."""
        self._unread: dict[str, set[int]] = {}
        """Documents of earlier starts with a question that got no parsable reply of the judge, by task."""
        self._truncated: set[tuple[str, int]] = set()
        """Scored documents of earlier starts with a truncated answer (task and number)."""
        self._closing: set[str] = set()
        """Tasks with an answer that closes a thought that it did not open."""
        self._plain: set[str] = set()
        """Tasks with a completed answer that has no thought. Nothing more is noted about these."""
        self._untagged: dict[str, set[int]] = {}
        """Scored documents with a truncated answer without tags of thoughts, by task."""
        self.judged_again: set[tuple[str, int]] = set()
        """Documents that are judged again (task and number; ``forget_unread``)."""
        self._began = began
        self._newer_media: set[str] = set()
        """Ids of responses with a media file that changed since it was sent."""
        self._prompts = 0
        self.spent = NOTHING
        """Spending of earlier starts, including answers that were asked again."""
        # Opened before anything is read: that closes a torn line, and moves a journal without checksums aside.
        self._response_writer = JournalWriter(folder / f"responses-{rank}.jsonl")
        self._score_writer = JournalWriter(folder / f"scores-{rank}.jsonl")
        for path in sorted(self.folder.glob("responses-*.jsonl")):
            self._load_responses(path, is_earlier=True)
        for path in sorted(self.folder.glob("scores-*.jsonl")):
            for place, record in self._journals.load(path, kind=ScoreRecord):
                if record.get("key") == self.scoring_key and "judge" in record:
                    unread = self._unread.setdefault(record["task"], set())
                    verdicts = [Verdict.from_record(verdict) for verdict in record["judge"]]
                    _mark(unread, record["doc_id"], has_unread(verdicts))
                if _is_valid(record, self.scoring_key) and self._has_images(record):
                    self._scores[record["task"]][record["doc_id"]] = place
                    is_truncated = any(is_cut(answer) for answer in record["answers"])
                    _mark(self._truncated, (record["task"], record["doc_id"]), is_truncated)
                    self._note_thoughts(record)
        self._score_file = self._journals.add(self._score_writer.path)

    @property
    def resumed_responses(self) -> int:
        """Number of responses that the journals held at the start."""
        return len(self._responses)

    def forget_blank(self) -> None:
        """Forget the answers of tasks whose recorded answers are all blank or filtered, so that they are asked again.

        Must be called before anything is asked. The old records stay in the journal.
        """
        if not self._blank:
            return
        ids: dict[str, list[str]] = {}
        for request_id in self._responses:
            ids.setdefault(task_of(request_id), []).append(request_id)
        for task, asked in ids.items():
            if self._blank.issuperset(asked):
                self._scores.pop(task, None)
                self._forget(asked)

    def forget(self, task: str, doc_ids: Sequence[int]) -> None:
        """Forget all rounds of documents, so that they are asked again; must be called before anything is asked."""
        documents = {f"{task}/{doc_id}" for doc_id in doc_ids}
        self._forget([one for one in self._responses if one.rsplit("/", 3)[0] in documents])
        for doc_id in doc_ids:
            self._scores[task].pop(doc_id, None)

    def _forget(self, request_ids: Sequence[str]) -> None:
        for request_id in request_ids:
            record = self._journals.at(self._responses.pop(request_id))
            if not is_retry(request_id):
                self._add_prompt(request_id, record.get("prompt", ""), -1)

    def answered(self) -> dict[str, list[str]]:
        """Return the ids of the answered first requests of documents, by task in the order of the documents."""
        found: dict[str, list[tuple[int, int, str]]] = {}
        for request_id in self._responses:
            task, *numbers = request_id.rsplit("/", 4)
            if numbers[2:] == ["0", "0"] and all(number.isdecimal() for number in numbers):
                found.setdefault(task, []).append((int(numbers[0]), int(numbers[1]), request_id))
        return {task: [request_id for *_, request_id in sorted(ids)] for task, ids in found.items()}

    def record(self, request_id: str) -> dict[str, Any]:
        """Return the record of a response that the journals held at the start. Raises ``KeyError``."""
        return self._journals.at(self._responses[request_id])

    def with_newer_media(self) -> dict[str, list[str]]:
        """Return by task the ids of responses whose media files changed since the run began."""
        found: dict[str, list[str]] = {}
        for request_id in sorted(self._newer_media.intersection(self._responses)):
            found.setdefault(task_of(request_id), []).append(request_id)
        return found

    def forget_unread(self, task: str, allowed: float) -> None:
        """Judge documents of a task again if more than ``allowed`` of them lack a parsable reply of the judge.

        Must be called before anything is asked. The answers of the model are kept.
        """
        unread = self._unread.get(task, set())
        if len(unread) > allowed:
            self.judged_again |= {(task, doc_id) for doc_id in unread}
            for doc_id in unread:
                self._scores[task].pop(doc_id, None)

    def forget_truncated(self) -> None:
        """Forget the scores, but not the answers, of documents with a truncated answer, so that these are retried.

        Must be called before anything is asked.
        """
        for task, doc_id in self._truncated:
            self._scores[task].pop(doc_id, None)

    def cut_thoughts(self, task: str) -> list[int]:
        """Return in ascending order the scored documents of a task whose truncated answers are unfinished thoughts.

        These answers have no tags. But if every completed answer of the task closes a thought that it did not open, the
        chat template opens all thoughts, and a truncated answer without a closing tag is still inside its thought. If a
        completed answer has no thought, the template does not open them, and the result is empty.
        """
        opens_all = task in self._closing and task not in self._plain
        return sorted(self._untagged.get(task, ())) if opens_all else []

    def _note_thoughts(self, record: dict[str, Any]) -> None:
        """Update the facts about thoughts; the caller holds the lock or is the only thread."""
        task = record["task"]
        untagged = self._untagged.setdefault(task, set())
        untagged.discard(record["doc_id"])
        if "failed" in record:
            return
        for answer in record["answers"]:
            thoughts = last_thoughts(answer)
            if thoughts is not None:
                if "closing" in thoughts and "opening" not in thoughts:
                    self._closing.add(task)
            elif is_blank(answer) or not isinstance(answer["value"], str):
                continue
            elif is_cut(answer):
                untagged.add(record["doc_id"])
            else:
                self._plain.add(task)

    def response(self, request_id: str) -> Response | None:
        """Return a response that the journal held at the start; failed ones do not count, so they are asked again."""
        place = self._responses.get(request_id)
        if place is None:
            return None
        response = response_from_record(self._journals.at(place))
        return replace(response, parts=self.images.located(response.parts))

    recall = None
    """``response`` finds recorded responses by id, before anything is rendered."""

    def keep(self, response: Response, prompt: str) -> Response:
        """Write a response, after its pictures. Raises ``JournalError`` if that fails."""
        kept = self.images.take_in(response)
        self._response_writer.append(response_record(kept, prompt))
        if kept.error is None and not is_retry(kept.request_id):
            with self._lock:
                self._add_prompt(kept.request_id, prompt)
        return kept

    def add_score(self, record: dict[str, Any], line: bytes = b"") -> None:
        """Write a scored or failed document; thread-safe.

        ``line``: the record's line in the journal of another process, which is written as it is.
        """
        task, doc_id = record["task"], record["doc_id"]
        if record.get("key") != self.scoring_key:
            record["key"], line = self.scoring_key, b""
        try:
            line = line or sealed(codec.dumps(record))
            place = RecordPlace(self._score_file, self._score_writer.append_line(line))
        except codec.VolatileValue:
            with self._lock:
                self._volatile[task, doc_id] = record
            return
        with self._lock:
            self._scores[task][doc_id] = place
            if task not in self._plain:
                self._note_thoughts(record)
            if "failed" in record:
                self._failures.setdefault(task, {})[doc_id] = record["failed"]

    def done(self) -> dict[str, set[int]]:
        """Return the documents with a valid score, by task."""
        return {
            task: {doc for doc in places if doc not in self._failures.get(task, ())}
            for task, places in self._scores.items()
        }

    def score(self, task: str, doc_id: int) -> dict[str, Any] | None:
        """Return the record of a document; ``None`` if it was never finished."""
        if (task, doc_id) in self._volatile:
            return self._volatile[task, doc_id]
        places = self._scores.get(task)
        place = None if places is None else places.get(doc_id)
        return None if place is None else self._journals.at(place)

    def failures(self, task: str) -> dict[int, str]:
        return dict(self._failures.get(task, {}))

    def prompt_fingerprint(self) -> str:
        """Return the fingerprint of all prompts, which does not depend on the order of the answers."""
        return f"{self._prompts:064x}"

    def scores(self, task: str, doc_ids: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the records of the finished ones of these documents."""
        for doc_id in doc_ids:
            record = self.score(task, doc_id)
            if record is not None:
                yield record

    def adopt(self) -> None:
        """Read what the other processes of the launch wrote to this folder since the start."""
        own = {self._response_writer.path, self._score_writer.path}
        for path in sorted(set(self.folder.glob("responses-*.jsonl")) - own):
            self._load_responses(path)
        for path in sorted(set(self.folder.glob("scores-*.jsonl")) - own):
            for place, record in self._journals.load(path, kind=ScoreRecord):
                if record.get("key") == self.scoring_key:
                    self._adopt_score(record, place)

    def _adopt_score(self, record: dict[str, Any], place: RecordPlace) -> None:
        task, doc_id = record["task"], record["doc_id"]
        known, failures = self._scores[task], self._failures.setdefault(task, {})
        was_failed = doc_id in failures if doc_id in known else None
        is_own = was_failed is False and known[doc_id].file == self._score_file
        if is_own or not counts_now("failed" in record, was_failed):
            return
        known[doc_id] = place
        if "failed" in record:
            failures[doc_id] = record["failed"]
        else:
            self._note_thoughts(record)
            failures.pop(doc_id, None)

    def lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Yield the journal's lines of all finished documents that this process knows, with their records."""
        for task, places in self._scores.items():
            for doc_id, place in places.items():
                if (task, doc_id) in self._volatile:
                    record = self._volatile[task, doc_id]
                    yield sealed(codec.dumps(record)), record
                else:
                    yield self._journals.line_at(place)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of all finished documents that this process knows, scored or failed."""
        for task, places in self._scores.items():
            yield from self.scores(task, [*places])

    def add_prompts(self, fingerprint: str) -> None:
        """Add another process's prompts to the fingerprint."""
        self._prompts = (self._prompts + int(fingerprint, 16)) % (1 << 256)

    def sync(self) -> None:
        self._response_writer.sync()
        self._score_writer.sync()

    def close(self) -> None:
        self._response_writer.close()
        self._score_writer.close()
        self._journals.close()

    def _load_responses(self, path: Path, is_earlier: bool = False) -> None:
        for place, record in self._journals.load(path, kind=ResponseLine):
            request_id = record.get("id")
            if is_earlier:
                self.spent += spent_in(record)
            if request_id is None or "error" in record or not self._has_images(record):
                continue
            if request_id not in self._responses and not is_retry(request_id):  # a retry has the same prompt once more
                self._add_prompt(request_id, record.get("prompt", ""))
            self._responses[request_id] = place
            if is_earlier and self._began is not None and "media" in record:
                is_newer = any(_is_changed(medium, self._began) for medium in record["media"])
                _mark(self._newer_media, request_id, is_newer)
            _mark(self._blank, request_id, is_blank(record) or is_filtered(record))

    def _has_images(self, record: dict[str, Any]) -> bool:
        return all(self.images.holds(image) for image in images_in(record))

    def _add_prompt(self, request_id: str, prompt: str, times: int = 1) -> None:
        if is_asked_again(task_of(request_id)):  # the same prompts a second time
            return
        number = int.from_bytes(hashlib.sha256(f"{request_id}\0{prompt}".encode()).digest(), "big")
        self._prompts = (self._prompts + times * number) % (1 << 256)


def _mark(group: set[T], item: T, is_member: bool) -> None:
    """Add an item to a set or remove it: the last record of an item counts."""
    if is_member:
        group.add(item)
    else:
        group.discard(item)


def _is_changed(medium: dict[str, Any], began: float) -> bool:
    """Return whether a media file differs from the one that was sent; only files newer than the run are read."""
    path, sha256 = medium.get("path"), medium.get("sha256")
    if not path or not sha256:
        return False
    try:
        stat = os.stat(path)
        return max(stat.st_mtime, stat.st_ctime) >= began and digest(MediaRef("path", path=Path(path))) != sha256
    except (OSError, MediaError):  # the file is gone or unreadable, which does not show that it changed
        return False


def _is_valid(record: dict[str, Any], scoring_key: str) -> bool:
    """Return whether a score of an earlier start is still valid; failed and unscored documents are tried again."""
    if record.get("key") != scoring_key or "failed" in record:
        return False
    scores = record.get("scores")
    return scores is not None and all(score.get("status", "scored") == "scored" for score in scores)
