"""Looks over all processes of a launch: numbers go to the first one, the ends of tasks come back."""

from __future__ import annotations

from collections import Counter

from lmms_eval.engine.ends import TaskEnds
from lmms_eval.engine.looks import Looks
from lmms_eval.engine.team import Team

EXCHANGE_S = 0.2
"""What is asked beyond a decision is what is asked within this time, and what is in flight."""


class LookExchange:
    """A process that is not the first sends from time to time what it has finished since, in one message."""

    def __init__(self, team: Team, looks: Looks, ends: TaskEnds) -> None:
        self._team, self._looks, self._ends = team, looks, ends
        self._heard: Counter[int] = Counter()
        """Messages from each process."""
        self._sent = 0
        self._told: set[str] = set()

    def begin(self) -> None:
        """Exchange what earlier starts have finished, so that no process asks what need not be asked any more.

        Raises:
            TeamError: another process has failed or vanished.
        """
        team = self._team
        if team.is_first:
            for rank in range(1, team.place.size):
                self._looks.take(team.hear(f"numbers/{rank}/0", rank))
                self._heard[rank] += 1
            self._looks.look()
            self._tell_ends()
        else:
            self._tell_numbers()
            self._take_ends(team.hear("ends/0", 0))
        team.each_beat(self.exchange, EXCHANGE_S)

    def exchange(self) -> None:
        """Send and take what there is. Raises ``TeamError``."""
        team = self._team
        if not team.is_first:
            self._tell_numbers()
            while (ends := team.heard(f"ends/{self._heard[0]}", 0)) is not None:
                self._take_ends(ends)
            return
        for rank in range(1, team.place.size):
            while (news := team.heard(f"numbers/{rank}/{self._heard[rank]}", rank)) is not None:
                self._looks.take(news)
                self._heard[rank] += 1
        self._looks.look()
        self._tell_ends()

    def _tell_numbers(self) -> None:
        news = self._looks.news()
        if news or not self._sent:
            self._team.tell(f"numbers/{self._team.place.rank}/{self._sent}", news)
            self._sent += 1

    def _tell_ends(self) -> None:
        news = {task: reason for task, reason in self._ends.common().items() if task not in self._told}
        if news or not self._sent:
            self._team.tell(f"ends/{self._sent}", news)
            self._sent += 1
            self._told.update(news)

    def _take_ends(self, ends: dict[str, str]) -> None:
        self._heard[0] += 1
        for task, reason in ends.items():
            self._ends.end(task, reason, in_all=True)
