"""The process of one tracker: reads messages as lines, passes them to the tracker, and replies to each with a line."""

from __future__ import annotations

import importlib

from lmms_eval.processes import Parent
from lmms_eval.trackers.contract import (
    Beginning,
    FinalResults,
    LiveNumbers,
    Message,
    RunEnding,
    Tracker,
    TrackerError,
    TrackerPlace,
    read_line,
    reply_of,
)

MOST_TEXT = 2_000
"""Most characters of an error."""


def main() -> None:
    """Serve until the run or standard input ends."""
    parent = Parent()
    tracker: Tracker | None = None
    message: Message | None = None
    for line in parent:
        found = read_line(line)
        message = found["message"]
        place, error = None, ""
        try:
            if tracker is None:
                tracker = importlib.import_module(found["module"]).new()
            place = _pass_on(tracker, message)
        except TrackerError as raised:
            error = str(raised)[:MOST_TEXT]
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - a package may raise anything, which is replied
            error = f"{type(raised).__name__}: {raised}"[:MOST_TEXT]
        parent.send(reply_of(place, error))
    if tracker is not None and not isinstance(message, RunEnding):
        tracker.finish(RunEnding("killed", has_succeeded=False))


def _pass_on(tracker: Tracker, message: Message) -> TrackerPlace | None:
    """Call the tracker's method for a message. Returns the place of the run if the method does."""
    if isinstance(message, Beginning):
        return tracker.start(message)
    if isinstance(message, RunEnding):
        return tracker.finish(message)
    if isinstance(message, LiveNumbers):
        tracker.step(message)
    elif isinstance(message, FinalResults):
        tracker.results(message)
    else:
        tracker.samples(message)
    return None


if __name__ == "__main__":
    main()
