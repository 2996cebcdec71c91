"""Documents from the tasks' folders, and items from documents."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import AbsentDataError, DataError, MissingDataError
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks.data.splits import Rows
from lmms_eval.tasks.general_bench.data.annotations import ANNOTATION, read_annotation
from lmms_eval.tasks.general_bench.data.forms import FieldMap, load_field_maps
from lmms_eval.tasks.general_bench.data.reading import Items, read_item, read_items
from lmms_eval.tasks.general_bench.data.scanning import TaskFolder, match, media_folder, scan
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts, tasks_by_id
from lmms_eval.tasks.general_bench.items import Annotation, Item
from lmms_eval.tasks.general_bench.prompts.forms import candidate_answers, needs_file
from lmms_eval.tasks.general_bench.settings import Settings

UNKNOWN_KEYS = "with items of unknown keys"


def documents(name: str, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> Rows:
    """Return the documents of a task (``dataset_path: !function data.documents.documents``). Its name is its row's id.

    An unreadable item or annotation becomes a document with a ``problem``, which fails when it is asked.

    Raises:
        AbsentDataError: the data root has no folder of the task, or its answers are files that are not requested.
        DataError: the folder for predictions is not writable.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    facts = tasks_by_id()[name]
    folder = folder_of(facts, settings)
    if settings.predictions == "beside" and not os.access(folder.path, os.W_OK):
        raise DataError(f"{folder.path} cannot be written: omit `predictions=beside`, or copy the data")
    try:
        annotation = open_annotation(folder, settings)
    except DataError as error:
        return Rows([_row(facts, _within(folder.path, settings), 0, None, str(error))], [folder.annotation])
    try:
        read = read_items(facts, annotation, folder.path, fields_of(facts, settings))
    except NotEvaluated as error:
        raise AbsentDataError(f"{facts.name!r}: {error.reason}", UNKNOWN_KEYS) from error
    if settings.media_answers == "files" and any(needs_file(item.form, facts) for item in read.items):
        message = f"{facts.name!r}: its answers are files, which nothing is asked for (media_answers=ask)"
        raise AbsentDataError(message, "answered by files")
    if read.items and all(lacks := [lacking(item) for item in read.items]):
        raise AbsentDataError(f"{facts.name!r}: {lacks[0]}", UNKNOWN_KEYS)
    files = [folder.annotation]
    candidates = candidate_answers(facts, read.items)
    if not candidates:
        opened, candidates = _of_open_set(folder, facts, settings)
        if opened is not None:
            files.append(opened.annotation)
    rows = list(_rows(facts, annotation, read, _within(annotation.folder, settings), candidates))
    if not rows:
        rows = [_row(facts, _within(folder.path, settings), 0, None, f"{folder.annotation}: no items in it")]
    return Rows(rows, files)


def _of_open_set(folder: TaskFolder, facts: TaskFacts, settings: Settings) -> tuple[TaskFolder | None, tuple[str, ...]]:
    """Return the open set's folder of a task of the closed set, and the answers that its questions choose from.

    Questions of the closed set use the same answers.
    """
    if folder.subset == "open" or settings.root is None:
        return None, ()
    opened = root(str(settings.root), "open")[0].get(facts)
    if opened is None:
        return None, ()
    try:
        read = read_items(facts, open_annotation(opened, settings), opened.path, fields_of(facts, settings))
    except (DataError, NotEvaluated) as error:
        logger.warning("General-Bench: no answers to choose from for {}: {}", facts.name, error)
        return opened, ()
    return opened, candidate_answers(facts, read.items)


def _rows(
    facts: TaskFacts, annotation: Annotation, read: Items, folder: str, candidates: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield a document for each entry of the annotation that the benchmark does not leave out."""
    common = {
        "head": json.dumps({**annotation.head, "type": annotation.type, "task": annotation.task}, ensure_ascii=False),
        "candidates": list(candidates),
        "measured_as": read.items[0].form if read.items else "",
    }
    problems = {problem.index: problem.message for problem in read.problems}
    left_out = {problem.index for problem in read.dropped}
    items = iter(read.items)
    for place, raw in enumerate(annotation.data):
        if place in problems:
            yield {**_row(facts, folder, place, raw, problems[place]), **common}
        elif place not in left_out:
            yield {**_row(facts, folder, place, raw, ""), **common, "form": next(items).form}


def open_annotation(folder: TaskFolder, settings: Settings) -> Annotation:
    """Read a folder's annotation. The media of a scoped closed set are those of the full set.

    Raises ``DataError`` if it cannot be read.
    """
    roots = () if settings.root is None else (settings.root,)
    return replace(read_annotation(folder.annotation), folder=media_folder(folder, roots))


def _within(folder: Path, settings: Settings) -> str:
    """Return a folder relative to the data root, so that moving the data does not change hashes of documents."""
    root = settings.root
    return str(folder if root is None or not folder.is_relative_to(root) else folder.relative_to(root))


def _row(facts: TaskFacts, folder: str, place: int, raw: Any, problem: str) -> dict[str, Any]:
    return {
        "task": facts.id,
        "folder": folder,
        "place": place,
        "item": json.dumps(raw, ensure_ascii=False),
        "problem": problem,
        "form": "",
        "measured_as": "",
        "head": "{}",
        "candidates": [],
    }


@once_per_document
def head_of(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the annotation's keys other than its items, as stored in the document."""
    head: dict[str, Any] = json.loads(doc["head"])
    return head


@once_per_document
def item_of(doc: Mapping[str, Any], settings: Settings) -> Item:
    """Read the item of a document. Raises ``DataError`` if it cannot be read. NotEvaluated: its keys are not known."""
    return item_in((settings.root or Path()) / doc["folder"], doc, settings)


def item_in(folder: Path, doc: Mapping[str, Any], settings: Settings) -> Item:
    """Read the item of a document from a task's folder that has moved.

    Raises:
        DataError: it cannot be read. NotEvaluated: its keys are not known.
    """
    if doc["problem"]:
        raise DataError(str(doc["problem"]))
    facts, head = tasks_by_id()[doc["task"]], head_of(doc)
    annotation = Annotation(folder, folder / ANNOTATION, str(head.get("task", "")), stated_type(doc), head, ())
    item = read_item(facts, annotation, json.loads(doc["item"]), folder, fields_of(facts, settings))
    return replace(item, form=doc["form"]) if doc["form"] else item


def stated_type(doc: Mapping[str, Any]) -> str:
    """Return the ``type`` of a document's annotation, which is the class of a language task, or an empty text."""
    return str(head_of(doc).get("type", ""))


def stated_name(doc: Mapping[str, Any], item: Item) -> str:
    """Return the name of a document's task in its annotation, else in the workbook."""
    return str(head_of(doc).get("task", "")) or item.facts.name


def lacking(item: Item) -> str:
    """Describe what an item lacks for a question, or return an empty text if it is complete.

    With unknown keys, a picture could be asked about without being shown, or without its question.
    """
    if item.facts.modality == LANGUAGE or item.facts.paradigm != "comprehension":
        return ""
    given = item.raw.get("input")
    keys = ", ".join(sorted(map(str, given))) if isinstance(given, Mapping) else "none"
    advice = f"(keys of its input: {keys[:200]}); give a field map that names them (field_maps=FILE)"
    if not item.media:
        return f"nothing to look at or listen to under any known key {advice}"
    texts = given.values() if isinstance(given, Mapping) else ()
    if not item.prompt.strip() and any(isinstance(text, str) and len(text.split()) > 2 for text in texts):
        return f"no question under any known key {advice}"
    return ""


def fields_of(facts: TaskFacts, settings: Settings) -> FieldMap:
    """Return what the keys of a task's items mean. Raises ``DataError`` if the user's own file cannot be read."""
    return load_field_maps(settings.field_maps)(facts)


@functools.lru_cache(maxsize=8)
def root(path: str, subset: str) -> tuple[Mapping[TaskFacts, TaskFolder], tuple[str, ...]]:
    """Return the folders of tasks in a data root by row of the workbook, and the problems with its folders.

    Raises ``DataError`` if there is no such folder.
    """
    found, faults = scan(Path(path))
    folders, problems = match(found, subset or None)
    return folders, (*faults, *problems)


@functools.lru_cache(maxsize=8)
def _root_of_run(path: str, subset: str) -> Mapping[TaskFacts, TaskFolder]:
    """Scan a data root, and warn once about each unusable folder."""
    folders, problems = root(path, subset)
    for problem in problems:
        logger.warning("General-Bench: {}", problem)
    return folders


def folder_of(facts: TaskFacts, settings: Settings) -> TaskFolder:
    """Find the folder of a task.

    Raises:
        AbsentDataError: it is missing, or another folder was requested.
        DataError: no data root was given, or it is not a folder.
    """
    place = settings.root
    if place is None:
        raise MissingDataError(
            "General-Bench: give the folder that holds General-Bench-Openset or -Closeset with --data_root DIR "
            "(data sets General-Level/General-Bench-Openset and -Closeset on the hub); general_bench_demo needs none"
        )
    found = _root_of_run(str(place), settings.subset).get(facts)
    if found is None:
        raise AbsentDataError(f"{place} has no folder whose annotation names the task {facts.name!r}")
    if settings.only and not f"/{found.path.as_posix()}".endswith(f"/{settings.only.strip('/')}"):
        raise AbsentDataError(f"{facts.name!r} is the task of {found.path}, not of {settings.only}", "of other folders")
    return found
