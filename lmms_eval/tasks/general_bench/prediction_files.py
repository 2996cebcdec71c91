"""Where a run leaves its predictions: ``prediction.json`` beside each annotation, or below the run's output folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.tasks._task_utils.file_utils import model_folder
from lmms_eval.tasks.general_bench import submission
from lmms_eval.tasks.general_bench.data.annotations import read_head
from lmms_eval.tasks.general_bench.data.documents import folder_of
from lmms_eval.tasks.general_bench.facts import skills, tasks_by_id
from lmms_eval.tasks.general_bench.settings import Settings

FOLDER = "general_bench"
"""Below the run's output folder."""


def write(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Path | None:
    """Write a task's predictions in the order of the annotation; ``None`` where there is no place for them.

    Raises:
        DataError: the file cannot be written.
    """
    facts = tasks_by_id()[task.describe()["dataset_name"]]
    settings = Settings.of(task.prompts.kwargs)
    folder = folder_of(facts, settings)
    if settings.predictions == "beside":
        path = folder.path / settings.prediction_name
    elif output := getattr(args, "output_path", None):
        below = model_folder(output, args, (), FOLDER) / folder.modality / folder.paradigm / folder.path.name
        path = below / settings.prediction_name
    else:
        return None
    ordered = [record["record"] for record in sorted(records, key=lambda record: int(record["place"]))]
    kind = facts.paradigm or str(read_head(folder.annotation).get("type", ""))
    submission.write(path, ordered, settings.prediction_form, folder.task, skills()[facts.skill], kind)
    return path.resolve()
