"""Earlier runs of the same model in the output folder: how long answers were and how long they took."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.config import RunConfig, resolved_cli_args
from lmms_eval.evaluation.collect import RunKeys
from lmms_eval.results.naming import RUNS
from lmms_eval.storage.lines import read_lines
from lmms_eval.storage.run_folder import DamagedRecord, RunFolder

MOST_RUNS = 20
"""The newest results files that are read."""
MAX_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Earlier:
    """Means over earlier runs of the model; ``None`` where they tell nothing."""

    runs: int = 0
    input_tokens: float | None = None
    """Of one request, its media included."""
    output_tokens: float | None = None
    """Of one answer."""
    seconds: float | None = None
    """From one answer to the next, with as many open at a time as there were."""


def earlier_runs(folder: Path | None, config: RunConfig) -> Earlier:
    """Read the newest results of this model; those that cannot be read say nothing."""
    if folder is None:
        return Earlier()
    files = sorted(folder.glob("*_results.json"))[-MOST_RUNS:]
    found = [content for path in files if (content := _read(path)) is not None and _is_same(content, config)]
    calls = inputs = outputs = asked = 0.0
    seconds = 0.0
    for content in found:
        usage = _part(content, "usage", "by_source", "model")
        if _number(usage, "total_tokens"):
            calls += _number(usage, "n_api_calls")
            inputs += _number(usage, "input_tokens")
            outputs += _number(usage, "output_tokens")
        timing = _part(content, "timing")
        if _number(timing, "asked") > 1:
            asked += _number(timing, "asked")
            seconds += _number(timing, "first_request_to_last_response")
    return Earlier(
        len(found),
        inputs / calls if calls else None,
        outputs / calls if calls else None,
        seconds / asked if asked and seconds else None,
    )


def held_requests(folder: Path | None, config: RunConfig, keys: RunKeys) -> set[str]:
    """Find the requests that the journal of this very run answers already; only read, never locked.

    The recorded identity of the model stands for that of the model that is not built here.
    """
    held: set[str] = set()
    runs = [] if folder is None else sorted((folder / RUNS).glob("*/run.json"))
    for path in runs:
        try:
            record = RunFolder(path.parent).read()
        except DamagedRecord:
            continue
        identity = _part(record, "model").get("identity")
        if record.get("key") != keys.of(identity) or (record.get("state") == "complete" and not config.resume):
            continue  # another run, or one that begins anew
        for journal in path.parent.glob("responses-*.jsonl"):
            held |= {
                entry.record["id"]
                for entry in read_lines(journal, quietly=True)
                if "id" in entry.record and "error" not in entry.record
            }
    return held


def _is_same(content: Mapping[str, Any], config: RunConfig) -> bool:
    recorded, arguments = _part(content, "config"), resolved_cli_args(config)["model_args"]
    return recorded.get("model") == config.model and recorded.get("model_args") == arguments


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes()) if path.stat().st_size < MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _part(content: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else {}


def _number(content: Mapping[str, Any], name: str) -> float:
    value = content.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value is not None and math.isfinite(value) else 0.0
