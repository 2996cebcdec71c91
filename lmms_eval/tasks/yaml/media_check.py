"""Files that the documents of a run name, looked up before anything is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.errors import AbsentDataError, LmmsEvalError, MediaError
from lmms_eval.tasks._task_utils.media_files import ADDRESSES

NO_FILES = "files not here"
"""Kind of absence by which tasks that are left out are counted."""


def check_files(name: str, size: str, doc_ids: Sequence[int], visuals: Callable[[int], Sequence[Any]]) -> None:
    """Look up the files of documents, each path once.

    Args:
        name: of the task.
        size: of the archives that hold the files, as the task's YAML says it.
        doc_ids: the documents that are planned.
        visuals: media of a document, paths among them; raises ``MediaError`` where a file is missing. What else it
            raises is the document's own fault: it fails when it is asked.

    Raises:
        AbsentDataError: files are missing.
    """
    known: dict[str, bool] = {}
    first, missing = "", 0
    for doc_id in doc_ids:
        try:
            lacks = _lacks(visuals(doc_id), known)
        except MediaError as error:
            lacks = str(error)
        except LmmsEvalError:
            continue
        if lacks:
            missing += 1
            first = first or f"document {doc_id}: {lacks}"
    if missing:
        raise AbsentDataError(
            f"task {name!r}: the files of {missing:,} of {len(doc_ids):,} documents are missing; "
            f"the first, of {first}; `lmms-eval fetch {name}` gets them ({size})",
            NO_FILES,
        )


def _lacks(visuals: Sequence[Any], known: dict[str, bool]) -> str:
    """Tell the first path that is no file, or nothing."""
    for visual in visuals:
        if not isinstance(visual, str | os.PathLike) or os.fspath(visual).startswith(ADDRESSES):
            continue
        path = os.fspath(visual)
        if path not in known:
            known[path] = os.path.isfile(path)
        if not known[path]:
            return f"{path} is not there"
    return ""
