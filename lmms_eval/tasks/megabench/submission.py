"""The submission file: the answers of a model, written by a run and read by the stand-alone evaluator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import indented_json, write_whole
from lmms_eval.tasks.megabench.data import QueryRow
from lmms_eval.utils.files import read_plain

_QUERY_KEYS = ("response", "correct_answer", "global_idx", "images", "query_text")


def record(row: QueryRow, context: Mapping[str, Any], response: str | None) -> dict[str, Any]:
    """Return the submission's record of one query with its evaluation context. No response is an empty text."""
    return {
        "task_name": row.task_name,
        "global_idx": row.id,
        "eval_context": dict(context),
        "images": list(row.query.media),
        "query_text": row.query.text,
        "global_images": list(row.description.media),
        "global_description": row.description.text,
        "example_info": {"image_paths": list(row.example.media), "example_text": row.example.text},
        "correct_answer": dict(row.answer),
        "response": response or "",
    }


def group(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group records by task, in order of their first record, which also gives the shared values of the task."""
    tasks: dict[str, dict[str, Any]] = {}
    for item in records:
        task = tasks.setdefault(
            item["task_name"],
            {
                "task_name": item["task_name"],
                "global_images": item["global_images"],
                "global_description": item["global_description"],
                "example_info": item["example_info"],
                "query_response": [],
            },
        )
        task["query_response"].append({key: item[key] for key in _QUERY_KEYS})
    return list(tasks.values())


def dumps(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of the submission file: a list of tasks, four-space indent, non-ASCII escaped."""
    return indented_json(group(in_dataset_order(records)))


def in_dataset_order(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort records by their running number, the order of rows in a configuration; unchanged if one lacks it."""
    found = list(records)
    if all(str(item["global_idx"]).isdecimal() for item in found):
        return sorted(found, key=lambda item: int(item["global_idx"]))
    return found


def file_name(task: str) -> str:
    """Name of the submission file of a task of the harness (``megabench_core``, ...)."""
    return f"{task}_all_query_responses.json"


def write(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the submission file so that at any instant the old or the new one is there, complete.

    Raises ``DataError`` if the folder cannot be made or the file cannot be written.
    """
    write_whole(path, dumps(records), "submission file ")


def read_submission(path: Path) -> list[Mapping[str, Any]]:
    """Read the entries of a submission file.

    Raises ``DataError`` if it cannot be read, is cut short, or is not a list of tasks.
    """
    try:
        content = json.loads(read_plain(path))
    except OSError as error:
        raise DataError(f"submission {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"submission {path} is no complete JSON file: {error}; was the run that wrote it interrupted?"
        ) from error
    if not isinstance(content, list):
        raise DataError(f"submission {path} must hold a list of tasks, not {type(content).__name__}")
    for position, entry in enumerate(content):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("task_name"), str):
            raise DataError(f"submission {path}: entry {position} is no object with a task_name")
    return content
