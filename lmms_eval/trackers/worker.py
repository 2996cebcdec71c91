"""The process of one tracker: reads messages as lines, passes them to the tracker, and replies to each with a line."""

from __future__ import annotations

import pkgutil
from typing import Any

from lmms_eval.processes import Parent
from lmms_eval.trackers.contract import METHODS, Message, RunEnding, TrackerError, read_line, reply_of

MOST_TEXT = 2_000
"""Most characters of an error."""


def main() -> None:
    """Serve until the run or standard input ends."""
    parent = Parent()
    tracker: Any = None
    message: Message | None = None
    for line in parent:
        name, message = read_line(line)
        place, error = None, ""
        try:
            if tracker is None:
                tracker = pkgutil.resolve_name(name)()
            place = getattr(tracker, METHODS[type(message)])(message)
        except TrackerError as raised:
            error = str(raised)[:MOST_TEXT]
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - a package may raise anything, which is replied
            error = f"{type(raised).__name__}: {raised}"[:MOST_TEXT]
        parent.send(reply_of(place, error))
    if tracker is not None and not isinstance(message, RunEnding):
        tracker.finish(RunEnding("killed", has_succeeded=False))


if __name__ == "__main__":
    main()
