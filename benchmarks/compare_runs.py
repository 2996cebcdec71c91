"""Measure time and memory of ``lmms-eval compare`` over two runs of many documents. Prints JSON.

    python benchmarks/compare_runs.py [--documents 100000] [--metrics 3] [--draws 10000] [--folder DIR]

The runs are samples files as a run writes them, with a right-or-wrong metric and graded ones. The comparison runs in a
separate process, as a user starts it: it reads both files, computes all intervals and tests, and writes all files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path


def write_run(path: Path, documents: int, metrics: int, seed: int) -> None:
    """Write a samples file; the documents do not depend on the seed of the scores."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            scores = {"acc": float(rng.random() < 0.6 + 0.02 * seed)}
            scores |= {f"graded_{one}": round(rng.betavariate(2, 1), 4) for one in range(1, metrics)}
            line = {
                "doc_id": number,
                "target": f"answer {number % 7}",
                "filtered_resps": f"an answer of some length to question {number}, as models give them",
                "doc_hash": hashlib.sha256(str(number).encode()).hexdigest(),
                **scores,
                "input": f"question {number}: " + "what is to be seen in this picture? " * 5,
                "filter": "none",
                "status": "scored",
                "doc": {"application": f"application {number % 10}"},
            }
            file.write(json.dumps(line) + "\n")


def measure(words: list[str]) -> dict[str, float]:
    """Run a command, discard its output, and return its time, processor time, peak memory and exit code."""
    begin = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        process = os.posix_spawn(
            words[0], words, dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        )
        _, status, usage = os.wait4(process, 0)
    return {
        "seconds": round(time.perf_counter() - begin, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "megabytes": round(usage.ru_maxrss / 1024),
        "exit_code": os.waitstatus_to_exitcode(status),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--metrics", type=int, default=3)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = given.folder or Path(temporary)
        runs = []
        for seed, name in enumerate(("first", "second")):
            (folder / name).mkdir(parents=True, exist_ok=True)
            runs.append(str(folder / name / "20250101_000000_samples_many.jsonl"))
            write_run(Path(runs[-1]), given.documents, given.metrics, seed)
        compare = [sys.executable, "-m", "lmms_eval", "compare", *runs, "--draws", str(given.draws)]
        files = [f"--{option}={folder / option}" for option in ("json", "csv", "markdown")]
        found = {}
        for name, more in (
            ("table", []),
            ("files", files),
            ("flips", [f"--flips={folder / 'flips'}"]),
            ("by application", ["--by", "application"]),
        ):
            found[name] = measure([*compare, *more])
        facts = {"documents": given.documents, "metrics": given.metrics, "draws": given.draws}
        print(json.dumps({**facts, "commands": found}, indent=2))


if __name__ == "__main__":
    main()
