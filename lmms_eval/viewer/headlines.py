"""The numbers by which a run of a benchmark is known: those over several tasks, from its report in the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval.results.run_reader.document import part_of
from lmms_eval.results.run_reader.sample import finite

Plain = dict[str, Any]
"""An object of JSON."""
LEVELS = (2, 3, 4, 5)
"""Of General-Level."""


def headlines(document: Mapping[str, Any]) -> list[Plain]:
    """List the benchmarks' own numbers of a run, in the form of a row of results; the first ones come first."""
    return [*_megabench(document), *_milebench(document), *_mmie(document), *_general_bench(document)]


def _part(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        document = part_of(document, key)
    return document


def _count(part: Mapping[str, Any], key: str) -> int:
    value = part.get(key)
    return value if isinstance(value, int) else 0


def _row(task: str, metric: str, value: Any, ends: Any, n: Any, reason: Any = "") -> Plain:
    low, high = ends if isinstance(ends, list) and len(ends) == 2 else (None, None)
    return {
        "task": task,
        "metric": metric,
        "filter": "",
        "value": finite(value),
        "low": finite(low),
        "high": finite(high),
        "method": str(reason or ""),
        "n": n if isinstance(n, int) else 0,
        "higher": True,
    }


def _megabench(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "megabench_breakdown"):
        parts = _part(document, "megabench_breakdown", name, "intervals", "model_summary")
        sides = {side: part for side in ("core", "open") if (part := part_of(parts, side))}
        tasks = sum(_count(part, "num_eval_tasks") for part in sides.values())
        shown = {"overall": part_of(parts, "overall"), **(sides if len(sides) > 1 else {})}
        for metric, part in shown.items():
            task = f"MEGA-Bench, {name.replace('_', ' ')} set"
            n = part.get("num_eval_tasks", tasks)
            yield _row(task, metric, part.get("score"), part.get("ci95"), n, part.get("no_interval"))


def _milebench(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "milebench_report"):
        overall = _part(document, "milebench_report", name, "overall")
        for metric in overall:
            figure = part_of(overall, metric)
            whole, partial = part_of(figure, "official"), _part(figure, "partial", "official")
            found = whole or partial
            ends = [found.get("low"), found.get("high")]
            label = metric if whole else f"{metric}, partial"
            yield _row(f"MileBench, {name}", label, found.get("score"), ends, figure.get("samples"))


def _mmie(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "mmie_report"):
        average = _part(document, "mmie_report", name, "categories", "AVG")
        yield _row(f"MMIE, {name}", "AVG", average.get("mean"), average.get("interval"), average.get("scored"))


def _general_bench(document: Mapping[str, Any]) -> Iterator[Plain]:
    for name in part_of(document, "general_bench_report"):
        found = _part(document, "general_bench_report", name, "general_level")
        modalities = part_of(found, "modalities")
        tasks = sum(_count(part_of(modalities, one), "supported") for one in modalities)
        language = _count(part_of(found, "language"), "supported")
        for level in LEVELS:
            value = part_of(found, "levels").get(f"level{level}")
            if value is not None:
                sensitivity = _part(found, "sensitivity", f"level{level}")
                n = tasks + (language if level == LEVELS[-1] else 0)
                reason = sensitivity.get("no_interval")
                yield _row(name, f"level {level}", value, sensitivity.get("interval"), n, reason)
