"""Samples of a run, of all its tasks one after the other, as many as fit into an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.server.tools.answers import RunSample
from lmms_eval.server.tools.arguments import GetRunResult
from lmms_eval.server.tools.bounds import MOST_BYTES, cut, size
from lmms_eval.server.tools.jobs import Jobs

_AT_ONCE = 50


@dataclass(slots=True)
class Page:
    """Samples of one answer."""

    samples: list[RunSample]
    next_offset: int | None = None
    note: str = ""


async def read_samples(jobs: Jobs, asked: GetRunResult, tasks: Sequence[str | None]) -> Page:
    """Read on from an offset that counts through the tasks; long texts are cut, and the whole is bounded.

    Args:
        tasks: their names; ``None`` for the only one of a run that tells no names.

    Raises:
        LmmsEvalError: they cannot be read.
    """
    page, taken, passed = Page([]), 0, 0
    for task in tasks:
        within = max(asked.sample_offset - passed, 0)
        while True:
            found = await jobs.samples(asked.run_id, task, within, min(_AT_ONCE, asked.sample_limit))
            for record in found["samples"]:
                sample = RunSample(task=found["task"], content=cut(record))
                taken += size(sample.content)
                is_full = len(page.samples) == asked.sample_limit
                if is_full or (page.samples and taken > MOST_BYTES):
                    page.next_offset = asked.sample_offset + len(page.samples)
                    page.note = "" if is_full else f"an answer holds {MOST_BYTES} bytes of samples: ask for the others"
                    return page
                page.samples.append(sample)
            within += len(found["samples"])
            if not found["samples"] or within >= found["total"]:
                break
        passed += found["total"]
    if not page.samples and asked.sample_offset >= passed > 0:
        page.note = f"there are {passed} samples"
    return page
