"""Reasons to end tasks or a run early: tasks that cannot be scored, and budgets of tokens or money."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from loguru import logger
from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.request import Response, Usage
from lmms_eval.engine.records import NOTHING, RunSpending, media_spent
from lmms_eval.utils.prices import Spending, Tariffs


class TaskEnds:
    """Tasks that are not asked to their end, with the reasons; thread-safe.

    ``HopelessTasks`` finds tasks whose code fails on every document, ``Looks`` tasks whose score is certain enough.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._common: dict[str, str] = {}

    def end(self, task: str, reason: str, in_all: bool = False) -> bool:
        """Ask no further document of a task, and return whether this is the first reason, which is kept.

        ``in_all``: the reason holds in every process of the launch, not only for the documents of this one.
        """
        with self._lock:
            if in_all:
                self._common.setdefault(task, reason)
            return self._reasons.setdefault(task, reason) is reason

    def reason(self, task: str) -> str:
        """Return the reason why a task is not asked any further; empty if it is asked."""
        return self._reasons.get(task, "")

    def common_reason(self, task: str) -> str:
        """Return the reason that holds in every process; empty if no reason does."""
        return self._common.get(task, "")

    def common(self) -> dict[str, str]:
        """Return the reasons that hold in every process, by task."""
        with self._lock:
            return dict(self._common)


DOCUMENTS = 16
"""Number of documents that must fail in the same way for a task to be ended."""
_DIFFERS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""Parts of an error message that differ between documents."""


class HopelessTasks:
    """Ends tasks that cannot be scored; thread-safe.

    A task is hopeless if each of its first ``DOCUMENTS`` documents was answered but could not be scored, for the same
    reason: further answers would cost money without a score.
    """

    def __init__(self, ends: TaskEnds) -> None:
        self._ends, self._lock = ends, threading.Lock()
        self._failures: dict[str, tuple[str, int]] = {}
        """Form and number of the failures, by task."""
        self.sound: set[str] = set()
        """Tasks that are known not to be hopeless."""

    def note(self, record: Mapping[str, Any]) -> None:
        """Examine the record of a finished document."""
        task = record["task"]
        if task in self.sound:
            return
        failed = record.get("failed")
        if failed is not None and any("error" in answer for answer in record["answers"]):
            return  # a failure of the model, not of the task
        form = None if failed is None else _DIFFERS.sub("", failed)
        with self._lock:
            known, count = self._failures.get(task, (form, 0))
            if form is None or form != known:
                self.sound.add(task)
            else:
                self._failures[task] = form, count + 1
                if count + 1 == DOCUMENTS:
                    reason = f"not one of its first {DOCUMENTS} documents could be scored: {failed}"
                    if self._ends.end(task, reason):
                        logger.warning("task {}: not asked any further: {}", task, reason)


UNIT = 1000
"""Processes exchange seconds of sound as whole numbers, multiplied by this."""
SHARE = 64
"""A process publishes its spending early if it has since spent more than the remaining budget divided by this."""


class Limits(Struct, frozen=True):
    """Budget of a run; ``None``: no limit. A limit on the cost needs tariffs."""

    tokens: int | None = None
    cost: float | None = None
    tariffs: Tariffs | None = None


class Budget:
    """Adds up the spending of a run, and stops it when a limit is reached; thread-safe.

    ``earlier`` is the spending of earlier starts by the journals of this process. Only one process per folder includes
    it in the counts for other processes (``counts_earlier``).
    """

    def __init__(self, limits: Limits, earlier: RunSpending, counts_earlier: bool = True) -> None:
        self._limits, self._earlier, self._counts_earlier = limits, earlier, counts_earlier
        self._lock = threading.Lock()
        self._model = self._judge = NOTHING
        self._others = RunSpending()
        self._others_earlier = RunSpending()
        self._published = 0.0
        self._stops: list[Callable[[str], None]] = []
        self._exchange: Callable[[], None] = lambda: None
        self.reason = ""
        """Reason why nothing more is asked; empty while the budget lasts."""

    def watch(self, stop: Callable[[str], None]) -> None:
        """Call ``stop`` with the reason when the budget is spent; at once if it already is."""
        self._stops.append(stop)
        if self.reason:
            stop(self.reason)

    def begin(self, exchange: Callable[[], None] = lambda: None) -> None:
        """Check the earlier spending; ``exchange`` publishes the counts and receives those of other processes."""
        self._exchange = exchange
        self._check()

    def note_model(self, response: Response) -> None:
        """Count a response of the model under test."""
        self._note(response, "the model")

    def note_judge(self, response: Response) -> None:
        """Count a response of the judge."""
        self._note(response, "the judge")

    def counts(self) -> dict[str, int]:
        """Return increasing whole numbers for the other processes."""
        with self._lock:
            parts = {"model": self._model, "judge": self._judge}
            if self._counts_earlier:
                parts |= {"earlier_model": self._earlier.model, "earlier_judge": self._earlier.judge}
        return {f"{part}_{name}": number for part, spent in parts.items() for name, number in _whole(spent).items()}

    def add_others(self, counts: Mapping[str, int]) -> None:
        """Receive the sums over all other processes."""
        with self._lock:
            self._others = RunSpending(_read(counts, "model"), _read(counts, "judge"))
            self._others_earlier = RunSpending(_read(counts, "earlier_model"), _read(counts, "earlier_judge"))
        self._check()

    def _note(self, response: Response, who: str) -> None:
        usage = response.usage or Usage()
        if response.error is None and not usage.is_known:
            self._end(
                f"{who} does not report token counts, so it is unknown when the budget is spent: leave --max_tokens "
                "and --max_cost out"
            )
            return
        spent = Spending(usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0)
        spent += media_spent(response.media)
        if not self._has_cost(who, spent):
            self._end(
                f"{who} was sent a sound of unknown length or a whole video, so it is unknown when the budget is "
                "spent: leave --max_cost out"
            )
            return
        with self._lock:
            if who == "the judge":
                self._judge += spent
            else:
                self._model += spent
        self._check()
        with self._lock:
            own = self._used(RunSpending(self._model, self._judge))
            left = max(0.0, 1.0 - self._used(self._total()))
            is_due = own - self._published > left / SHARE
            if is_due:
                self._published = own
        if is_due:
            self._exchange()

    def _has_cost(self, who: str, spent: Spending) -> bool:
        """Return whether the cost of a request is known, or not needed for the limits."""
        tariffs = self._limits.tariffs
        if tariffs is None or self._limits.cost is None:
            return True
        tariff = tariffs.judge if who == "the judge" else tariffs.model
        return tariff is None or tariff.price.knows(spent)

    def _total(self) -> RunSpending:
        seen, others = self._earlier, self._others_earlier

        def joined(own: Spending, its: Spending) -> Spending:
            # Processes that share a folder know the same earlier spending, and only one of them publishes it.
            return own + its if self._counts_earlier else max(own, its, key=attrgetter("tokens"))

        model, judge = joined(seen.model, others.model), joined(seen.judge, others.judge)
        return RunSpending(model + self._model + self._others.model, judge + self._judge + self._others.judge)

    def _used(self, spent: RunSpending) -> float:
        """Return the spent share of the budget; 1 if it is spent."""
        limits, used = self._limits, 0.0
        if limits.tokens is not None:
            used = (spent.model.tokens + spent.judge.tokens) / limits.tokens
        if limits.cost is None:
            return used
        if limits.cost <= 0:
            return max(used, 1.0)
        tariffs = limits.tariffs
        assert tariffs is not None
        judge_cost = 0.0 if tariffs.judge is None else tariffs.judge.cost(spent.judge)
        return max(used, (tariffs.model.cost(spent.model) + judge_cost) / limits.cost)

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


def _whole(spent: Spending) -> dict[str, int]:
    scaled = replace(spent, audio_seconds=spent.audio_seconds * UNIT)
    return {name: round(getattr(scaled, name)) for name in Spending.__struct_fields__}


def _read(counts: Mapping[str, int], part: str) -> Spending:
    found = {name: counts.get(f"{part}_{name}", 0) for name in Spending.__struct_fields__}
    return replace(Spending(**found), audio_seconds=found["audio_seconds"] / UNIT)
