"""The process of one tracker: takes messages as lines, tells its tracker, replies to each with one line."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from lmms_eval.trackers.contract import (
    Beginning,
    Ending,
    Message,
    Place,
    Results,
    Step,
    TaskSamples,
    Tracker,
    TrackerError,
    read_line,
    reply_of,
)
from lmms_eval.utils.line_process import own_pipes

MOST_TEXT = 2_000
"""Characters of an error."""


def main() -> None:
    """Serve until the run has ended, or standard input does."""
    lines, replies = own_pipes()
    first = lines.get()
    if not first:
        return
    found = read_line(first)
    tracker: Tracker | None = None
    message: Message = found["message"]
    with contextlib.suppress(BrokenPipeError):  # the run is gone
        while True:
            place, error = None, ""
            try:
                if tracker is None:
                    tracker = importlib.import_module(found["module"]).new()
                place = _told(tracker, message)
            except TrackerError as raised:
                error = str(raised)[:MOST_TEXT]
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - what a package raises is told, whatever it is
                error = f"{type(raised).__name__}: {raised}"[:MOST_TEXT]
            replies.write(reply_of(place, error) + b"\n")
            replies.flush()
            line = lines.get()
            if not line:
                break
            message = read_line(line)["message"]
    if tracker is not None and not isinstance(message, Ending):
        tracker.finish(Ending("killed", has_succeeded=False))


def _told(tracker: Any, message: Message) -> Place | None:
    """Tell a tracker; returns its place where it has one to tell."""
    found: Place | None = None
    if isinstance(message, Beginning):
        found = tracker.start(message)
    elif isinstance(message, Step):
        tracker.step(message)
    elif isinstance(message, Results):
        tracker.results(message)
    elif isinstance(message, TaskSamples):
        tracker.samples(message)
    else:
        found = tracker.finish(message)
    return found


if __name__ == "__main__":
    main()
