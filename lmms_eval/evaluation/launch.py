"""The launch that this process belongs to: joined once, however many runs it makes."""

from __future__ import annotations

import atexit
import functools
import itertools
import os

from lmms_eval.engine.team import Team, join

_runs = itertools.count()


@functools.cache
def _joined() -> Team | None:
    team = join(os.environ)
    if team is not None:
        atexit.register(team.close)
    return team


def this_team() -> Team | None:
    """The team, ready for the next run; ``None`` where this process is alone."""
    team = _joined()
    if team is not None:
        team.begin(next(_runs))
    return team
