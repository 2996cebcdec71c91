"""Measure the processor time that ``--until`` adds to a run.

    python -m benchmarks.until [--documents 6500] [--repeats 5] [--only pictures]

A stub server on loopback, in another process, answers at once. The rule never holds before the last document, so the
runs with and without it ask the same requests. ``pictures``: one task with a picture of 120 kB for each question;
``texts``: one task of short texts, whose own cost is the least there is; ``tasks``: ten of them with a rule each. Runs
take turns, and the ratio is that of the medians of the whole processes' time. The bar is for pictures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.overhead import CONCURRENCY, evaluate
from benchmarks.workload import picture_task, text_task
from tests.servers.stub import StubServer

BAR = 1.03
RULE = "halfwidth<=0.00001"
WAYS = {"without": ("--order", "random"), "with": ("--until", RULE)}
"""Options of the runs that are compared."""


def compared(work: Path, tasks: str, documents: int, repeats: int) -> dict[str, float]:
    """Measure both ways in turn."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way, options in WAYS.items():
            with StubServer() as server:
                seconds[way].append(evaluate(work, tasks, server, None, CONCURRENCY, *options)[0].cpu_s)
    medians = {way: statistics.median(times) for way, times in seconds.items()}
    found = {f"{way}_ms_per_document": round(1000 * median / documents, 4) for way, median in medians.items()}
    added = (medians["with"] - medians["without"]) / documents
    return {**found, "added_us_per_document": round(1e6 * added, 1), "ratio": medians["with"] / medians["without"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=6_500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("pictures", "texts", "tasks"), action="append")
    args = parser.parse_args()
    found = {}
    for name, make, count in (("pictures", picture_task, 1), ("texts", text_task, 1), ("tasks", text_task, 10)):
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            work, each = Path(temporary), args.documents // count
            tasks = ",".join(make(work / "tasks", each, name=f"bench_{number}") for number in range(count))
            found[name] = compared(work, tasks, each * count, args.repeats)
    print(json.dumps(found, indent=2))
    return 0 if found.get("pictures", {"ratio": 0.0})["ratio"] <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
