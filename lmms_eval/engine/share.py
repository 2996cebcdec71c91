"""One process's share of a launch: what is already finished anywhere, and how everything comes together at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lmms_eval.engine import codec
from lmms_eval.engine.asking import AskReport
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.team import Team, TeamError

RECORDS_AT_ONCE = 200
PATIENCE_S = 5.0
"""How long an interrupted run waits for each of the other processes."""


class Share:
    """``shared_files``: this process sees the run's folder of the first process; else results go through the store."""

    def __init__(self, team: Team, shared_files: bool) -> None:
        self.team, self.shared_files = team, shared_files

    def done(self, mine: dict[str, set[int]]) -> dict[str, set[int]]:
        """Documents that any process holds finished. Raises ``TeamError`` when another process fails meanwhile."""
        team = self.team
        # What lies in the shared folder is known there: only a process with files of its own has news.
        news = mine if team.is_first or not self.shared_files else {}
        team.tell(f"done/{team.place.rank}", {task: sorted(ids) for task, ids in news.items()})
        merged = {task: set(ids) for task, ids in mine.items()}
        for rank in range(team.place.size):
            for task, ids in team.hear(f"done/{rank}", rank).items():
                merged.setdefault(task, set()).update(ids)
        return merged

    def gather(self, store: RunStore, report: AskReport) -> bool:
        """Bring all processes' results to the first one, whose ``report`` then counts for all; ``True`` there.

        Raises:
            TeamError: another process has failed or vanished; what was finished is kept in the journals.
        """
        team = self.team
        if team.failure:
            raise TeamError(f"{team.failure}; what was finished is kept, the same command goes on from there")
        if not team.is_first:
            self._send(store, report)
            return False
        for rank in range(1, team.place.size):
            try:
                self._receive(store, report, rank)
            except TeamError:
                if report.interrupted is None:
                    raise
        return True

    def _send(self, store: RunStore, report: AskReport) -> None:
        rank, pieces = self.team.place.rank, 0
        if not self.shared_files:
            for pieces, records in enumerate(_batches(store), start=1):
                self.team.tell(f"records/{rank}/{pieces - 1}", codec.encode(records))
        finished = {
            "report": asdict(report),
            "shared_files": self.shared_files,
            "pieces": pieces,
            "prompts": store.prompt_fingerprint(),
        }
        self.team.tell(f"finished/{rank}", finished)

    def _receive(self, store: RunStore, report: AskReport, rank: int) -> None:
        patience = PATIENCE_S if report.interrupted is not None else None
        finished = self.team.hear(f"finished/{rank}", rank, patience)
        _add_report(report, finished["report"])
        if finished["shared_files"]:
            store.adopt()
            return
        store.add_prompts(finished["prompts"])
        for piece in range(finished["pieces"]):
            for record in codec.decode(self.team.hear(f"records/{rank}/{piece}", rank)):
                store.add_score(record)


def _batches(store: RunStore) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for record in store.records():
        batch.append(record)
        if len(batch) == RECORDS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _add_report(report: AskReport, other: dict[str, Any]) -> None:
    for name in ("answered", "failed", "input_tokens", "output_tokens", "reasoning_tokens"):
        setattr(report, name, getattr(report, name) + other[name])
    for name, number in other["cache"].items():
        report.cache[name] = report.cache.get(name, 0) + number
    report.seconds = max(report.seconds, other["seconds"])
    report.give_up = report.give_up or other["give_up"]
    report.interrupted = report.interrupted if report.interrupted is not None else other["interrupted"]
