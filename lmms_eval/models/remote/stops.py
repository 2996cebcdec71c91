"""Stop strings of requests to a server: those that are sent, and those that are applied locally.

A server applies stop strings to the thoughts too, but they are meant for the answer after them. They are sent until one
ends an answer in its thoughts. From then on they are only applied locally, which gives the same answers.

Source: engine rules, section 16.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson
from loguru import logger
from msgspec import Struct

from lmms_eval.models.remote.generation import stop_strings
from lmms_eval.models.thoughts import ReadingRules

if TYPE_CHECKING:
    from lmms_eval.api.request import Request
    from lmms_eval.models.remote.reply import Reply

NOTE = "stops_are_not_sent"
"""The file in the model's folder that records the decision and its reason."""
LOOK_EVERY_S = 1.0
"""The interval of checks for the file of another process."""
FIELDS = ("stop", "stop_sequences", "stopSequences")
"""Names of the stop strings in bodies and call arguments."""
WITHIN = ("config", "generationConfig", "body", "params", "request")
"""Names of the objects that contain them: the options of a call, or the body in a line of a batch."""


class Stops(Struct, frozen=True):
    """The stop strings of one request."""

    active: tuple[str, ...]
    here: tuple[str, ...]
    """Those that are not sent to the server."""

    @property
    def any_sent(self) -> bool:
        """Whether some of them are sent to the server."""
        return len(self.here) < len(self.active)

    def unsent(self) -> Stops:
        """Return the same stop strings if the server gets none."""
        return Stops(self.active, self.active)


NONE = Stops((), ())


class StopSending:
    """Decides for one model whether stop strings are sent, except those that are ``unsendable``. Thread-safe."""

    def __init__(self, unsendable: Callable[[Request], list[str]] = lambda _: [], has_template: bool = True) -> None:
        self._unsendable, self._has_template = unsendable, has_template
        self._lock = threading.Lock()
        self._note: Path | None = None
        self._is_off = False
        self._looked = 0.0

    def attach_folder(self, folder: Path) -> None:
        """Record the decision in this folder, for other processes and later starts."""
        self._note = folder / NOTE
        self._is_off = self._is_off or self._note.exists()

    @property
    def is_off(self) -> bool:
        """Whether stop strings are no longer sent."""
        if not self._is_off and self._note is not None and monotonic() - self._looked > LOOK_EVERY_S:
            self._looked = monotonic()
            self._is_off = self._note.exists()
        return self._is_off

    def of(self, request: Request, were_sent: bool | None = None) -> Stops:
        """Return the stop strings of a request.

        ``were_sent`` states whether the server got those that can be sent; ``None`` if the request is not sent yet.
        """
        if request.is_likelihood:
            return NONE
        active = tuple(stop_strings(request.generation_after(self._has_template)))
        if not active:
            return NONE
        if were_sent is None:
            were_sent = not self.is_off
        return Stops(active, tuple(self._unsendable(request)) if were_sent else active)

    def switch_off(self, request: Request, stops: Stops) -> None:
        """Stop sending stop strings, as one has ended the answer to a request in its thoughts."""
        with self._lock:
            if self._is_off:
                return
            self._is_off = True
        shown = ", ".join(map(repr, stops.active))
        reason = (
            f"{request.id}: the server ended an answer within its thoughts, at one of the stop strings {shown}: they "
            "are no longer sent, and are applied to the answers after the thoughts instead"
        )
        logger.warning("{}", reason)
        if self._note is not None:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            self._note.write_text(reason + "\n", encoding="utf-8")


def ended_in_thoughts(request: Request, reply: Reply, stops: Stops) -> bool:
    """Return whether a stop string may have ended a reply in its thoughts, or in the white space right after them."""
    if not stops.any_sent or reply.finish_reason != "stop" or reply.ended_by == "" or reply.parts:
        return False
    if reply.reasoning.strip():
        return not reply.text.strip()
    written = ReadingRules.of(request, "").read(reply.text)
    return bool(written.reasoning) and not written.answer.strip()


def without_stops(payload: Any) -> Any:
    """Return a payload without its stop strings: a JSON body, a line of a batch, or arguments of a call."""
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
