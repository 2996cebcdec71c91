"""What the evaluator needs of the data set: how each task is scored, and the evaluation context of each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.tasks.megabench.data import load_rows


@dataclass(frozen=True, slots=True)
class ReferenceTask:
    """One task of a configuration."""

    name: str
    metric_info: str
    """Of its first row; the same in all."""
    contexts: list[str] = field(default_factory=list)
    """``eval_context`` of each row, in order."""
    positions: dict[str, int] = field(default_factory=dict)
    """``id`` -> number of the row within the task."""

    def context(self, query: Mapping[str, Any]) -> str | None:
        """The context of a submitted query: by its ``query_idx`` if it has one, else by ``global_idx``.

        ``None`` where the data set has no such query. Both may be numbers or texts.
        """
        position: Any = query.get("query_idx")
        if position is None:
            position = self.positions.get(str(query.get("global_idx")))
        try:
            number = int(position)
        except (TypeError, ValueError):
            return None
        return self.contexts[number] if 0 <= number < len(self.contexts) else None


def load_reference(configuration: str, data_root: str | Path | None = None) -> Mapping[str, ReferenceTask]:
    """The tasks of a configuration by name. Raises ``DataError`` as ``load_rows`` does."""
    tasks: dict[str, ReferenceTask] = {}
    for row in load_rows(configuration, data_root):
        name = str(row["task_name"])
        task = tasks.setdefault(name, ReferenceTask(name, str(row["metric_info"])))
        task.positions[str(row["id"])] = len(task.contexts)
        task.contexts.append(row["eval_context"])
    return tasks
