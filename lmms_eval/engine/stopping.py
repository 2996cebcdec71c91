"""The most that a run may spend, in tokens or money: over all its starts, its processes and its judge."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from loguru import logger

from lmms_eval.api.request import Response, Usage
from lmms_eval.engine.records import NOTHING, RunSpending, media_spent
from lmms_eval.utils.prices import Spending, Tariffs


class TaskEnds:
    """Reasons that end the asking of tasks before their documents do; safe from several threads.

    ``HopelessTasks`` finds tasks whose code fails on every document, ``Looks`` those whose score is certain enough.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._common: dict[str, str] = {}

    def end(self, task: str, reason: str, in_all: bool = False) -> bool:
        """Ask no further document of a task. Of several reasons the first one stays; ``False`` for later ones.

        ``in_all``: the reason holds in every process of the launch, not for the documents of this one alone.
        """
        with self._lock:
            if in_all:
                self._common.setdefault(task, reason)
            return self._reasons.setdefault(task, reason) is reason

    def reason(self, task: str) -> str:
        """Tell why a task is not asked any further; empty if it is."""
        return self._reasons.get(task, "")

    def common_reason(self, task: str) -> str:
        """The same, of reasons that hold in every process."""
        return self._common.get(task, "")

    def common(self) -> dict[str, str]:
        """All reasons that hold in every process, by task."""
        with self._lock:
            return dict(self._common)


DOCUMENTS = 16
"""Documents of a task that must all have failed in the same way."""
_DIFFERS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""Parts of a message in which one error differs from document to document."""


class HopelessTasks:
    """Watches the scores of a run, and ends the tasks that it finds; safe from several threads.

    A task counts as hopeless when each of its first ``DOCUMENTS`` documents was answered and could not be scored, for
    one reason: an answer that is asked for then costs money and scores nothing.
    """

    def __init__(self, ends: TaskEnds) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self._failures: dict[str, tuple[str, int]] = {}
        """Form of the failures of a task, and their number."""
        self._sound: set[str] = set()

    def note(self, record: Mapping[str, Any]) -> None:
        """Look at the record of a document that is finished."""
        task = record["task"]
        if task in self._sound:
            return
        failed = record.get("failed")
        if failed is not None and any("error" in answer for answer in record["answers"]):
            return  # the model's failure says nothing of the task
        form = None if failed is None else _DIFFERS.sub("", failed)
        with self._lock:
            known, count = self._failures.get(task, (form, 0))
            if form is None or form != known:
                self._sound.add(task)
            else:
                self._failures[task] = form, count + 1
                if count + 1 == DOCUMENTS:
                    reason = f"none of its first {DOCUMENTS} documents could be scored: {failed}"
                    if self._ends.end(task, reason):
                        logger.warning("task {}: not asked any further: {}", task, reason)


UNIT = 1000
"""Seconds of sound are exchanged as whole numbers of this fraction."""
SHARE = 64
"""A process tells the others when it has spent this part of what is left, rather than once a second."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; ``None``: not given. A cost needs prices."""

    tokens: int | None = None
    cost: float | None = None
    tariffs: Tariffs | None = None


class Budget:
    """Adds up what is spent and calls for an end once a limit is reached; safe from several threads.

    Without limits it counts nothing. ``earlier``: what the journals here hold. ``tells_earlier``: no other process
    tells the same.
    """

    def __init__(self, limits: Limits | None, earlier: RunSpending, tells_earlier: bool = True) -> None:
        self._limits, self._earlier, self._tells_earlier = limits or Limits(), earlier, tells_earlier
        self._is_bounded = limits is not None
        self._lock = threading.Lock()
        self._model = self._judge = NOTHING
        self._others = RunSpending()
        self._others_earlier = RunSpending()
        self._published = 0.0
        self._stops: list[Callable[[str], None]] = []
        self._exchange: Callable[[], None] = lambda: None
        self.reason = ""
        """Reason for which nothing more is to be asked; empty while there is none."""

    def watch(self, stop: Callable[[str], None]) -> None:
        """Call ``stop`` with the reason once nothing more is to be asked, at once where it is so already."""
        self._stops.append(stop)
        if self.reason:
            stop(self.reason)

    def begin(self, exchange: Callable[[], None] = lambda: None) -> None:
        """Look at what is spent already. ``exchange``: tells the other processes, and hears of them."""
        self._exchange = exchange
        self._check()

    def note_model(self, response: Response) -> None:
        """Count a response of the model under test."""
        self._note(response, "the model")

    def note_judge(self, response: Response) -> None:
        """Count a response of the judge."""
        self._note(response, "the judge")

    def counts(self) -> dict[str, int]:
        """Whole numbers for the other processes, which only grow."""
        if not self._is_bounded:
            return {}
        with self._lock:
            parts = {"model": self._model, "judge": self._judge}
            if self._tells_earlier:
                parts |= {"earlier_model": self._earlier.model, "earlier_judge": self._earlier.judge}
        return {f"{part}_{name}": number for part, spent in parts.items() for name, number in _whole(spent).items()}

    def add_others(self, counts: Mapping[str, int]) -> None:
        """Take the sums over all other processes."""
        with self._lock:
            self._others = RunSpending(_read(counts, "model"), _read(counts, "judge"))
            self._others_earlier = RunSpending(_read(counts, "earlier_model"), _read(counts, "earlier_judge"))
        self._check()

    def _note(self, response: Response, who: str) -> None:
        if not self._is_bounded:
            return
        usage = response.usage or Usage()
        if response.error is None and not usage.is_known:
            self._end(
                f"{who} tells no count of tokens, so that nobody could say when the budget is spent: leave "
                "--max_tokens and --max_cost out"
            )
            return
        spent = Spending(usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0)
        spent += media_spent(response.media)
        if not self._has_cost(who, spent):
            self._end(
                f"{who} was sent a sound of unknown length or a whole video, so that nobody could say when the budget "
                "is spent: leave --max_cost out"
            )
            return
        with self._lock:
            if who == "the judge":
                self._judge += spent
            else:
                self._model += spent
        self._check()
        self._tell()

    def _has_cost(self, who: str, spent: Spending) -> bool:
        """Tell whether the cost of what was sent is known, where a limit needs it."""
        tariffs = self._limits.tariffs
        if tariffs is None or self._limits.cost is None:
            return True
        tariff = tariffs.judge if who == "the judge" else tariffs.model
        return tariff is None or tariff.price.knows(spent)

    def _tell(self) -> None:
        """Exchange counts where this process has spent much since the last time."""
        with self._lock:
            own = self._used(RunSpending(self._model, self._judge))
            left = max(0.0, 1.0 - self._used(self._total()))
            is_due = own - self._published > left / SHARE
            if is_due:
                self._published = own
        if is_due:
            self._exchange()

    def _total(self) -> RunSpending:
        seen, others = self._earlier, self._others_earlier
        # Those that read one folder have the same earlier spending before them, which one of them tells.
        model = seen.model + others.model if self._tells_earlier else max(seen.model, others.model, key=_size)
        judge = seen.judge + others.judge if self._tells_earlier else max(seen.judge, others.judge, key=_size)
        return RunSpending(model + self._model + self._others.model, judge + self._judge + self._others.judge)

    def _used(self, spent: RunSpending) -> float:
        """Share of the budget; 1 where it is spent."""
        limits, used = self._limits, 0.0
        if limits.tokens is not None:
            used = (spent.model.tokens + spent.judge.tokens) / limits.tokens
        if limits.cost is not None:
            used = max(used, self._cost(spent) / limits.cost if limits.cost > 0 else 1.0)
        return used

    def _cost(self, spent: RunSpending) -> float:
        tariffs = self._limits.tariffs
        assert tariffs is not None
        return tariffs.model.cost(spent.model) + (0.0 if tariffs.judge is None else tariffs.judge.cost(spent.judge))

    def _check(self) -> None:
        with self._lock:
            total = self._total()
            is_spent = self._used(total) >= 1.0
        if not is_spent:
            return
        limits, tokens = self._limits, total.model.tokens + total.judge.tokens
        if limits.tokens is not None and tokens >= limits.tokens:
            self._end(f"the budget of {limits.tokens:,} tokens is spent")
        elif limits.tariffs is not None and limits.cost is not None:
            self._end(f"the budget of {limits.tariffs.model.shown(limits.cost)} is spent")

    def _end(self, reason: str) -> None:
        with self._lock:
            is_first, self.reason = not self.reason, self.reason or reason
        if is_first:
            for stop in self._stops:
                stop(reason)


def _size(spent: Spending) -> int:
    return spent.tokens


def _whole(spent: Spending) -> dict[str, int]:
    return {one.name: round(getattr(spent, one.name) * _factor(one.name)) for one in fields(Spending)}


def _read(counts: Mapping[str, int], part: str) -> Spending:
    found = {one.name: counts.get(f"{part}_{one.name}", 0) for one in fields(Spending)}
    return replace(Spending(**found), audio_seconds=found["audio_seconds"] / UNIT)


def _factor(name: str) -> int:
    return UNIT if name == "audio_seconds" else 1
