"""Stop strings of requests to a server: which are sent, which are applied here, and which one ended an answer.

A server looks for stop strings in the thoughts too, but they hold for the answer behind them. They are sent until one
ends an answer within its thoughts. From then on they are applied here alone, which gives the same answers.

Source: engine rules, section 16.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson
from loguru import logger

from lmms_eval.models.remote.generation import stop_strings
from lmms_eval.models.thoughts import Reading

if TYPE_CHECKING:
    from lmms_eval.api.request import Request
    from lmms_eval.models.remote.reply import Reply

NOTE = "stops_are_not_sent"
"""File in the model's folder; it says why."""
LOOK_EVERY_S = 1.0
"""Between two looks for a note of another process."""
FIELDS = ("stop", "stop_sequences")
"""Names of the stop strings in bodies and arguments of calls."""
WITHIN = ("config", "body")
"""Names of what holds them in a payload: the options of a call, the body in a line of a batch."""


@dataclass(frozen=True, slots=True)
class Stops:
    """Stop strings of one request."""

    active: tuple[str, ...]
    here: tuple[str, ...]
    """Those of them that are not sent to the server."""

    @property
    def are_told(self) -> bool:
        """Some of them are sent to the server."""
        return len(self.here) < len(self.active)

    def told_nothing(self) -> Stops:
        return Stops(self.active, self.active)


NONE = Stops((), ())


class StopSending:
    """Decides for one model whether stop strings are sent; safe from several threads.

    Args:
        untold: gives the stop strings of a request that the server cannot be told.
        has_template: requests are conversations, not plain text.
    """

    def __init__(self, untold: Callable[[Request], list[str]] = lambda _: [], has_template: bool = True) -> None:
        self._untold, self._has_template = untold, has_template
        self._lock = threading.Lock()
        self._note: Path | None = None
        self._is_off = False
        self._looked = 0.0

    def attach_folder(self, folder: Path) -> None:
        """Keep the decision in this folder, where further processes and starts find it."""
        self._note = folder / NOTE
        self._is_off = self._is_off or self._note.exists()

    @property
    def is_off(self) -> bool:
        """Stop strings are no longer sent."""
        if not self._is_off and self._note is not None and monotonic() - self._looked > LOOK_EVERY_S:
            self._looked = monotonic()
            self._is_off = self._note.exists()
        return self._is_off

    def of(self, request: Request, is_told: bool | None = None) -> Stops:
        """Return the stop strings of a request.

        ``is_told``: the server got those that it can be told; ``None``: the request is about to be asked.
        """
        if request.kind == "loglikelihood":
            return NONE
        active = tuple(stop_strings(request.generation_after(self._has_template)))
        if not active:
            return NONE
        if is_told is None:
            is_told = not self.is_off
        return Stops(active, tuple(self._untold(request)) if is_told else active)

    def switch_off(self, request: Request, stops: Stops) -> None:
        """Send no stop strings from now on: one has ended the answer to a request within its thoughts."""
        with self._lock:
            if self._is_off:
                return
            self._is_off = True
        shown = ", ".join(map(repr, stops.active))
        reason = (
            f"{request.id}: the server ended an answer within its thoughts, at one of the stop strings {shown}: they "
            "are no longer sent, and answers are cut behind their thoughts here"
        )
        logger.warning("{}", reason)
        if self._note is not None:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            self._note.write_text(reason + "\n", encoding="utf-8")


def ended_in_thoughts(request: Request, reply: Reply, stops: Stops) -> bool:
    """Return whether a stop string may have ended a reply in its thoughts, or in the white space right behind them."""
    if not stops.are_told or reply.finish_reason != "stop" or reply.ended_by == "" or reply.parts:
        return False
    if reply.reasoning.strip():
        return not reply.text.strip()
    written = Reading.of(request, "").read(reply.text)
    return bool(written.reasoning) and not written.answer.strip()


def without_stops(payload: Any) -> Any:
    """Return a request's payload without its stop strings: a body or a line of a batch as JSON, arguments of a call."""
    if isinstance(payload, bytes):
        if not any(f'"{name}"'.encode() in payload for name in FIELDS):
            return payload
        body = orjson.loads(payload)
        return orjson.dumps(without_stops(body)) + payload[len(payload.rstrip(b"\n")) :]
    if isinstance(payload, Mapping):
        return {
            name: without_stops(value) if name in WITHIN else value
            for name, value in payload.items()
            if name not in FIELDS
        }
    return payload
