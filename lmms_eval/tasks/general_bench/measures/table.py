"""The table of metrics: for each of the 63 its implementation, its requirements, and the evidence for it."""

from __future__ import annotations

from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.facts.metrics import metrics
from lmms_eval.tasks.general_bench.measures.registry import lines

HEADINGS = ("metric", "tasks", "unit", "better", "measure", "module", "needs", "checked against")


def metric_rows() -> list[tuple[str, ...]]:
    """A row for each measure, in the order of the workbook's metrics; cells as ``HEADINGS``."""
    rows: list[tuple[str, ...]] = []
    for metric in metrics().values():
        own = [line for line in lines() if line.metric == metric.key]
        count = sum(task.metric == metric.key for task in tasks())
        for place, line in enumerate(own):
            measure = line.load()
            first = place == 0
            rows.append(
                (
                    metric.title if first else "",
                    str(count) if first else "",
                    metric.unit if first else "",
                    ("higher" if metric.higher_is_better else "lower") if first else "",
                    f"`{measure.name}`",
                    f"`{line.module}`",
                    measure.needs or "nothing",
                    measure.checked,
                )
            )
    return rows


def markdown() -> str:
    """The table as Markdown."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *metric_rows()]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
