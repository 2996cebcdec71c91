"""``prediction.json``: a list of records ``{id, prediction}``, or an object that holds the list as ``data``.

A run writes it next to each annotation, or below its output folder. ``register`` reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.file_utils import model_folder
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.general_bench.data.annotations import read_head
from lmms_eval.tasks.general_bench.data.documents import folder_of
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.facts import skills, tasks_by_id
from lmms_eval.tasks.general_bench.settings import Settings

RUN_FOLDER = "general_bench"
"""Folder of the prediction files below a run's output folder."""
FileForm = Literal["list", "object"]
_VALUE_KEYS = ("prediction", "prediction_final")
"""The first key of a record counts. Word problems have the second, together with ``prediction_steps``."""
_RESULT_KEYS = frozenset({"model", "task", "metric", "score"})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 20


def read_predictions(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Read the predictions of a file in either form.

    Returns JSON values by ``id_key`` (of records with the same id, the last one counts), and the problems: records that
    were skipped, and ids that occur more than once, the first 20 of each kind. Raises ``DataError`` if it cannot be
    read, is cut short or damaged, is of neither form, or holds the results that the authors' audio scripts write under
    the same name.
    """
    content = read_json(file)
    records = content.get("data") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise DataError(f"{file}: a list of {{id, prediction}}, or an object with such a list as `data`, is expected")
    if records and all(isinstance(one, Mapping) and one.keys() >= _RESULT_KEYS and "id" not in one for one in records):
        raise DataError(
            f"{file} holds results ({{model, task, metric, score}}), which the authors' audio scripts write under this "
            "name, not predictions; give a list of {id, prediction}"
        )
    values: dict[str, Any] = {}
    repeated: dict[str, None] = {}
    problems: list[str] = []
    for number, record in enumerate(records):
        try:
            key, value = _record(record)
        except DataError as error:
            problems.append(f"{file}: record {number} is passed over: {error}")
            continue
        if key in values:
            repeated[key] = None
        values[key] = value
    warnings = [f"{file}: the id {key} occurs more than once: the last one counts" for key in repeated]
    shown: list[str] = []
    for messages in (problems, warnings):
        more = [f"... and {len(messages) - _SHOWN} more of them"] if len(messages) > _SHOWN else []
        shown += [*messages[:_SHOWN], *more]
    return values, shown


def _record(record: object) -> tuple[str, Any]:
    """Return key and value."""
    if not isinstance(record, Mapping):
        raise DataError(f"it is {record!r:.80}, no object with `id` and `prediction`")
    if record.get("id") is None:
        raise DataError("it has no `id`")
    key = id_key(record["id"])
    for name in _VALUE_KEYS:
        if name in record:
            return key, record[name]
    raise DataError(f"id {key:.80} has no `prediction`")


def dumps(
    records: Sequence[Mapping[str, Any]], form: FileForm = "list", task: str = "", skill: str = "", type: str = ""
) -> str:
    """Return the text of a prediction file, with unescaped UTF-8 characters and an indent of two.

    Args:
        records: ``{id, prediction}``, or with ``prediction_steps`` and ``prediction_final``.
        form: ``list`` is what the authors' scorer reads, ``object`` what submissions are documented as.
        task, skill, type: keys of the object form only.
    """
    content: Any = [dict(record) for record in records]
    if form == "object":
        content = {"task": task, "skill": skill, "type": type, "data": content}
    text = json.dumps(content, ensure_ascii=False, indent=2)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_task(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Path | None:
    """Write a task's predictions in a run, in the order of the annotation. Return ``None`` if there is no place for
    them.

    Raises ``DataError`` if the file cannot be written.
    """
    facts = tasks_by_id()[task.describe()["dataset_name"]]
    settings = Settings.of(task.prompts.kwargs)
    folder = folder_of(facts, settings)
    if settings.predictions == "beside":
        path = folder.path / settings.prediction_name
    elif output := getattr(args, "output_path", None):
        below = model_folder(output, args, (), RUN_FOLDER) / folder.modality / folder.paradigm / folder.path.name
        path = below / settings.prediction_name
    else:
        return None
    ordered = [record["record"] for record in sorted(records, key=lambda record: int(record["place"]))]
    kind = facts.paradigm or str(read_head(folder.annotation).get("type", ""))
    write_whole(path, dumps(ordered, settings.prediction_form, folder.task, skills()[facts.skill], kind))
    return path.resolve()
