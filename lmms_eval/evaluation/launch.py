"""The launch that this process belongs to: joined once, however many runs it makes."""

from __future__ import annotations

import atexit
import functools
import itertools
import os

from loguru import logger

from lmms_eval.engine.team import Team, join
from lmms_eval.errors import UsageError
from lmms_eval.utils.launch import STORE_PORT, accelerate_started_one

_runs = itertools.count()


@functools.cache
def _joined() -> Team | None:
    team = join(os.environ)
    if team is not None:
        atexit.register(team.close)
    elif accelerate_started_one(os.environ):
        logger.warning(
            "accelerate has started one process, which does all the work: with --cpu, or without an accelerator, it "
            "starts one whatever --num_processes says; for N processes: torchrun --nproc_per_node N -m lmms_eval ..."
        )
    return team


def this_team(processes: int = 1) -> Team | None:
    """Make the team ready for the next run; ``None`` where this process is alone.

    Raises:
        UsageError: several ``processes`` are wanted, and this one was started in another way.
    """
    team = _joined()
    if processes > 1 and STORE_PORT not in os.environ:
        raise UsageError(
            f"processes={processes} starts the command `lmms-eval eval --processes {processes} ...` several times, "
            "which a call from Python, or a process of accelerate or torchrun, cannot do: leave it out, or use the "
            "command alone"
        )
    if team is not None:
        team.begin(next(_runs))
    return team
