"""Counts of an asking, and the rule by which it is given up."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from lmms_eval.api.request import ErrorKind, Response
from lmms_eval.engine.spending import media_spent
from lmms_eval.utils.prices import Spending

GIVE_UP_AT_LEAST = 16


@dataclass(slots=True)
class AskReport:
    """End of an asking, with counts of this start alone."""

    answered: int = 0
    failed: int = 0
    unsent: int = 0
    """Failures of documents and their media, before anything was sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    pictures: int = 0
    """Pictures and frames that went out with requests."""
    audio_seconds: float = 0.0
    untold: int = 0
    """Answers for which the back end did not report how many tokens they took."""
    unmeasured: int = 0
    """Sounds of unknown length, and videos that went out as a whole."""
    timed: int = 0
    """Answers whose latency the back end told."""
    latency: float = 0.0
    """Sum of those latencies in seconds."""
    give_up: str = ""
    """Reason for which the asking was given up early; empty if it was not."""
    give_up_kind: ErrorKind = "internal"
    """Kind of the error that decided it."""
    interrupted: int | None = None
    """Number of the signal that ended it."""
    cut_short: bool = False
    """A second signal, or the end of the grace time, ended it with requests in flight."""
    seconds: float = 0.0
    """From the first request taken to the last response."""
    cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache, where one is used; its hits are not among ``answered`` and the tokens."""
    judge_asked: int = 0
    """Requests to the judge."""
    judge_give_up: str = ""
    """Reason for which the judging was given up early."""
    judge_cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache for the judge."""
    judge_spent: dict[str, float] = field(default_factory=dict)
    """Fields of ``Spending``, of the judge."""

    @property
    def sent(self) -> int:
        """Requests that reached the model."""
        return self.answered + self.failed - self.unsent

    @property
    def spent(self) -> Spending:
        """Sums of this start, the judge apart."""
        return Spending(*(getattr(self, one.name) for one in fields(Spending)))

    def count(self, response: Response, concurrency: int) -> None:
        """Count a response, and set ``give_up`` if nothing more is to be asked.

        ``concurrency``: requests that the model holds open at most.
        """
        if response.usage is not None:
            self.input_tokens += response.usage.input_tokens or 0
            self.output_tokens += response.usage.output_tokens or 0
            self.reasoning_tokens += response.usage.reasoning_tokens or 0
        if response.media:
            sent = media_spent(response.media)
            self.pictures += sent.pictures
            self.audio_seconds += sent.audio_seconds
            self.unmeasured += sent.unmeasured
        error = response.error
        if error is None:
            self.answered += 1
            self.untold += response.usage is None or not response.usage.is_known
            if response.latency is not None:
                self.timed += 1
                self.latency += response.latency
            return
        self.failed += 1
        self.unsent += error.kind in ("media", "document")  # says nothing about the model
        if self.give_up:
            return
        if error.kind == "auth":
            self.give_up, self.give_up_kind = error.message, error.kind
        elif self.answered == 0 and (refused := self.failed - self.unsent) >= max(GIVE_UP_AT_LEAST, 2 * concurrency):
            self.give_up = f"the first {refused} requests all failed, the last with {error.kind}: {error.message}"
            self.give_up_kind = error.kind
