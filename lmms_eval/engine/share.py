"""One process's share of a launch: distribution of the documents, and gathering of the results at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import GeneratedImage
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.plan import Order, TaskPlan, costliest_first, windows
from lmms_eval.engine.records import images_in, parts_record
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.team import Team, TeamError
from lmms_eval.errors import UsageError
from lmms_eval.storage.lines import lines_in
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.media.keeper import MediaKeeper

RECORDS_AT_ONCE = 200
PATIENCE_S = 5.0
"""Seconds that an interrupted run waits for the other processes."""


class Share:
    """The part of this process in a launch.

    ``shared_files``: it shares the run's folder with the first process; else results are sent through the store, with
    the media that ``keeper`` keeps.
    """

    def __init__(self, team: Team, shared_files: bool, keeper: MediaKeeper | None = None) -> None:
        self.team, self.shared_files, self.keeper = team, shared_files, keeper

    def done(self, mine: dict[str, set[int]]) -> dict[str, set[int]]:
        """Return the finished documents of all processes. Raises ``TeamError`` if another process fails meanwhile."""
        team = self.team
        # The first process knows the shared folder: only a process with its own files adds documents.
        news = mine if team.is_first or not self.shared_files else {}
        team.publish(f"done/{team.place.rank}", {task: sorted(ids) for task, ids in news.items()})
        merged: dict[str, set[int]] = {}  # only from messages, so that it is the same in all processes
        for rank in range(team.place.size):
            for task, ids in team.receive(f"done/{rank}", rank).items():
                merged.setdefault(task, set()).update(ids)
        return merged

    def common_order(self, plans: Sequence[TaskPlan]) -> Order:
        """Return the order of the first process for all processes: estimates differ if the files differ.

        The order raises ``TeamError`` if the first process fails, and ``UsageError`` if a task's estimate raises.
        """
        if self.team.is_first:
            threading.Thread(target=self._publish_order, args=(plans,), name="order", daemon=True).start()
        return self._receive_order

    def _publish_order(self, plans: Sequence[TaskPlan]) -> None:
        for number, window in enumerate(windows(plans)):
            try:
                found: dict[str, Any] = {"doc_ids": costliest_first(window)}
            except Exception as error:  # noqa: BLE001 - a task's code may raise anything; all processes report it
                found = {"error": f"estimating the work of task {window.task.name!r}: {type(error).__name__}: {error}"}
            try:
                self.team.publish(f"order/{number}", found)
            except TeamError:  # the launch has ended with its store
                return

    def _receive_order(self, number: int) -> Sequence[int]:
        found = self.team.receive(f"order/{number}", 0)
        if "error" in found:
            raise UsageError(found["error"])
        doc_ids: list[int] = found["doc_ids"]
        return doc_ids

    def gather(self, store: RunStore, report: AskReport) -> bool:
        """Collect the results of all processes in the first one, and add their counts to its ``report``.

        Returns:
            Whether this is the first process.

        Raises:
            TeamError: another process failed or vanished; finished documents are kept in the journals.
        """
        team = self.team
        if team.failure:
            raise TeamError(f"{team.failure}; finished answers are kept: start the same command again to continue")
        if not team.is_first:
            self._send(store, report)
            return False
        deadline: float | None = None
        for rank in range(1, team.place.size):
            if report.interrupted is not None and deadline is None:  # from now on for all processes together
                deadline = time.monotonic() + PATIENCE_S
            try:
                self._receive(store, report, rank, deadline)
            except TeamError:
                if report.interrupted is None:
                    raise
        team.exchange_counts()
        return True

    def _send(self, store: RunStore, report: AskReport) -> None:
        rank, pieces = self.team.place.rank, 0
        images: dict[str, GeneratedImage] = {}
        media: set[str] = set()
        if not self.shared_files:
            unsent = store.lines()
            while lines := list(islice(unsent, RECORDS_AT_ONCE)):
                records = [record for _, record in lines]
                images |= self._send_images(store, records, images)
                media |= self._send_media(records, media)
                self.team.publish_bytes(f"records/{rank}/{pieces}", b"".join(line for line, _ in lines))
                pieces += 1
        finished = {
            "report": to_dict(report),
            "shared_files": self.shared_files,
            "pieces": pieces,
            "images": parts_record(images.values()),
            "media": sorted(media),
            "prompts": store.prompt_fingerprint(),
        }
        self.team.exchange_counts()  # the first process shows the total after the next message
        self.team.publish(f"finished/{rank}", finished)

    def _send_images(
        self, store: RunStore, records: list[dict[str, Any]], sent: Mapping[str, GeneratedImage]
    ) -> dict[str, GeneratedImage]:
        """Send the pictures of these records that were not sent before; returns them by file name."""
        found = {image.file_name: image for record in records for image in images_in(record)}
        news = {name: image for name, image in found.items() if name not in sent}
        for name, image in news.items():
            self.team.publish_bytes(f"images/{self.team.place.rank}/{name}", store.images.read(image))
        return news

    def _send_media(self, records: list[dict[str, Any]], sent: set[str]) -> set[str]:
        """Send the kept media of these records that were not sent before; returns their names."""
        if self.keeper is None:
            return set()
        found = {name for record in records for answer in record.get("answers", ()) for name in _stored(answer)}
        news = {name: self.keeper.read(name) for name in found - sent}
        for name, data in news.items():
            if data is not None:
                self.team.publish_bytes(f"kept/{self.team.place.rank}/{name}", data)
        return {name for name, data in news.items() if data is not None}

    def _receive(self, store: RunStore, report: AskReport, rank: int, deadline: float | None) -> None:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        finished = self.team.receive(f"finished/{rank}", rank, patience)
        _add_report(report, finished["report"])
        if finished["shared_files"]:
            store.adopt()
            return
        store.add_prompts(finished["prompts"])
        for image in images_in({"parts": finished["images"]}):
            name = f"images/{rank}/{image.file_name}"
            store.images.keep(image, self.team.receive_bytes(name, rank))
            self.team.delete(name)
        if self.keeper is not None:
            for name in finished["media"]:
                self.keeper.receive(name, self.team.receive_bytes(f"kept/{rank}/{name}", rank))
                self.team.delete(f"kept/{rank}/{name}")
        for piece in range(finished["pieces"]):
            lines = self.team.receive_bytes(f"records/{rank}/{piece}", rank)
            for line, record in lines_in(lines, f"records of process {rank}"):
                store.add_score(record, line)


def _stored(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that the run keeps of an answer's media."""
    for medium in answer.get("media", ()):
        yield from medium.get("stored", ())


def _add_report(report: AskReport, other: dict[str, Any]) -> None:
    added = (
        "answered", "failed", "input_tokens", "output_tokens", "reasoning_tokens", "pictures", "audio_seconds",
        "untold", "unmeasured", "timed", "latency", "judge_asked",
    )  # fmt: skip
    for name in added:
        setattr(report, name, getattr(report, name) + other[name])
    for part in ("cache", "judge_cache", "judge_spent"):
        counts = getattr(report, part)
        for name, number in other[part].items():
            counts[name] = counts.get(name, 0) + number
    for task, lists in other["streams"].items():
        for own, further in zip(report.streams.setdefault(task, ([], [])), lists, strict=True):
            own += further
    report.judge_give_up = report.judge_give_up or other["judge_give_up"]
    report.seconds = max(report.seconds, other["seconds"])
    if not report.give_up:
        report.give_up, report.give_up_kind = other["give_up"], other["give_up_kind"]
    report.interrupted = report.interrupted if report.interrupted is not None else other["interrupted"]
