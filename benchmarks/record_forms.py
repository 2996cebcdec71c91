"""Compare the time to store an answer as a line of the journal and as a committed row of SQLite, one by one.

python -m benchmarks.record_forms     # JSON on standard output: microseconds a record, medians of rounds
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval.storage import codec
from lmms_eval.storage.lines import JournalWriter

RECORDS = 1_000
RECORD = {"id": "mme/17/0/0/0", "text": "The picture shows a bridge. " * 8, "usage": [412, 60, 0], "latency": 0.812}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    forms: dict[str, Callable[[Path], float]] = {
        "journal": _journal,
        "sqlite, write-ahead log": lambda folder: _sqlite(folder, "WAL", "NORMAL"),
        "sqlite, default": lambda folder: _sqlite(folder, "DELETE", "FULL"),
    }
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds):
        for name, measure in forms.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name].append(measure(Path(folder)))
    print(json.dumps({name: round(statistics.median(times), 1) for name, times in found.items()}, indent=2))
    return 0


def _journal(folder: Path) -> float:
    writer = JournalWriter(folder / "responses-0.jsonl")
    taken = _each(writer.append)
    writer.close()
    return taken


def _sqlite(folder: Path, journal: str, synchronous: str) -> float:
    database = sqlite3.connect(folder / "run.sqlite", isolation_level=None)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("CREATE TABLE responses (id TEXT, record BLOB)")
    taken = _each(
        lambda record: database.execute("INSERT INTO responses VALUES (?, ?)", (record["id"], codec.dumps(record)))
    )
    database.close()
    return taken


def _each(keep: Callable[[dict[str, Any]], object]) -> float:
    """Store the records and return the microseconds for each."""
    started = time.perf_counter()
    for _ in range(RECORDS):
        keep(RECORD)
    return (time.perf_counter() - started) / RECORDS * 1e6


if __name__ == "__main__":
    sys.exit(main())
