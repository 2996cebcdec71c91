"""Builds the messages to trackers from a run's numbers and samples, under names that users of trackers know."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.results.sample import Sample, SampleKeys
from lmms_eval.trackers.contract import (
    Cell,
    FinalResults,
    LiveNumbers,
    ModelCall,
    Role,
    TaskSamples,
    TrackerTable,
)
from lmms_eval.utils.redaction import mask_known, redact
from lmms_eval.viewer.media import MediaFolders, MediaStore, made_in, media_of

if TYPE_CHECKING:
    from lmms_eval.api.request import Request, Response, SentMessage
    from lmms_eval.engine.live import MeanSoFar, ProgressLook


MOST_NAME = 40
"""Most characters of a run's name."""
LIVE = "live"
RESULTS_TABLE, GROUPS_TABLE = "evaluation/eval_results", "evaluation/group_eval_results"
_COLUMNS = ("Version", "Filter", "num_fewshot", "Metric", "Value", "Stderr")
_NO_FILTER = ",none"
_BLANK = " "
"""Key of a group without a number."""
_MOST_TEXT = 1_000
_NOT_IN_NAMES = re.compile(r"[^\w.-]", re.ASCII)
_MOST_FILE_NAME = 120


def run_name(model: str, model_args: str, stamp: str) -> str:
    """Name a run ``MODEL_MODELARGS_DATE``. A long name is cut in its middle part, so that the date stays."""
    head = "_".join(part for part in (model, str(redact(model_args))) if part)
    return f"{head[: max(0, MOST_NAME - len(stamp) - 1)]}_{stamp}"


def name_of_file(name: str) -> str:
    """Replace the characters that trackers do not accept in a file name: all but letters, digits, points and dashes."""
    return _NOT_IN_NAMES.sub("_", name)[:_MOST_FILE_NAME]


def live_step(look: ProgressLook, sent: Mapping[str, MeanSoFar]) -> LiveNumbers:
    """Return the live numbers, with those scores by task that differ from what was ``sent`` before."""
    values: dict[str, float] = {
        f"{LIVE}/documents": look.done,
        f"{LIVE}/failed": look.failed,
        f"{LIVE}/tokens": look.tokens,
        f"{LIVE}/documents_per_second": look.rate,
    }
    for task, score in look.scores.items():
        if sent.get(task) != score:
            values[f"{LIVE}/{task}/score"] = score.value
            values[f"{LIVE}/{task}/n"] = score.documents
    return LiveNumbers(look.done, values)


_SENT_OPTIONS = (
    "frequency_penalty", "max_new_tokens", "presence_penalty", "seed", "temperature", "top_k", "top_p", "until",
)  # fmt: skip


def call_of(role: Role, request: Request, response: Response, with_texts: bool) -> ModelCall:
    """Return the facts about a request that has just ended. ``with_texts``: include its texts, secrets masked."""
    usage, given = response.usage, request.generation
    return ModelCall(
        id=request.id,
        task=request.task.name,
        doc_id=request.doc_id,
        role=role,
        kind=request.kind,
        end=time.time(),
        seconds=response.latency,
        options={name: given[name] for name in _SENT_OPTIONS if given.get(name) is not None},
        model=response.model,
        usage=None if usage is None else (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens),
        finish_reason=response.finish_reason,
        error="" if response.error is None else response.error.kind,
        attempts=response.attempts,
        tools=sum(part.call is not None for message in response.tool_messages for part in message.content),
        prompt=_prompt(request.context, response.messages) if with_texts else (),
        answer=_text(response.text) if with_texts and response.text is not None else None,
    )


def _prompt(context: str, messages: Sequence[SentMessage]) -> tuple[tuple[str, str], ...]:
    if not messages:
        return (("user", _text(context)),)
    found = []
    for message in messages:
        texts = [context[slice(*part.span)] if part.span else part.text or "" for part in message.content]
        found.append((message.role, _text("\n".join(text for text in texts if text))))
    return tuple(found)


def results_of(document: Mapping[str, Any], documents: int, file: str) -> FinalResults:
    """Extract numbers and tables of a results document. ``documents`` counts the finished ones of the run."""
    scalars: dict[str, float] = {}
    texts: dict[str, str] = {}
    for task, entry in document["results"].items():
        for key, value in entry.items():
            name = f"{task}/{key.removesuffix(_NO_FILTER)}"
            if (number := _number(value)) is not None:
                scalars[name] = number
            elif isinstance(value, str) and key != _BLANK:
                texts[name] = value[:_MOST_TEXT]
    tables = {RESULTS_TABLE: _table(document, "results", "Tasks")}
    if document.get("groups"):
        tables[GROUPS_TABLE] = _table(document, "groups", "Groups")
    config = {"task_configs": document.get("configs", {}), "cli_configs": document.get("config", {})}
    return FinalResults(documents, scalars, texts, tables, config, file)


def evenly(numbers: Sequence[int], most: int) -> list[int]:
    """Choose at most ``most`` of the numbers, evenly spread."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place * len(numbers) // most] for place in range(most)]


def _table(document: Mapping[str, Any], part: str, heading: str) -> TrackerTable:
    rows = tuple(row for name in document[part] for row in _rows(document, part, name))
    return TrackerTable((heading, *_COLUMNS), rows)


def _rows(document: Mapping[str, Any], part: str, name: str) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each metric, with its standard error."""
    entry = document[part][name]
    version = str((document.get("versions") or {}).get(name, ""))
    shots = str((document.get("n-shot") or {}).get(name, ""))
    errors = {key for key in entry if "_stderr" in key}
    for key, value in entry.items():
        metric, comma, pipeline = key.rpartition(",")
        if not comma or key in errors or not (value is None or _number(value) is not None):
            continue
        stderr = _number(entry.get(f"{metric}_stderr,{pipeline}"))
        yield (str(entry.get("alias", name)), version, pipeline, shots, metric, _number(value), stderr)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


MOST_ROWS, MOST_OF_ALL = 1_000, 20_000
"""Most rows of a task, and of all tasks of a run."""
MOST_TEXT = 4_000
"""Most characters of a cell."""
MOST_PICTURES, MOST_PICTURES_OF_ALL = 200, 2_000
"""Most pictures of a task, and of all tasks."""
MOST_OF_SAMPLE = 2
"""Most pictures of a sample."""
MOST_FILE = 100 << 20
"""Most bytes of a samples file that is sent whole."""
_FIXED = ("doc_id", "filter", "status", "prompt", "answer", "prediction", "target", "reason")


class TrackedSamples(Struct, frozen=True):
    """The finished samples of one task."""

    task: str
    doc_ids: Sequence[int]
    metrics: tuple[str, ...]
    rows: Any
    """Function that returns the samples of documents."""
    file: str = ""
    """Path of the samples file, which is empty if it was not written."""


def limits_of(tasks: int) -> tuple[int, int]:
    """Return the most rows and pictures of each task, in a run with this number of tasks."""
    return min(MOST_ROWS, max(1, MOST_OF_ALL // tasks)), min(MOST_PICTURES, MOST_PICTURES_OF_ALL // tasks)


def task_samples(
    found: TrackedSamples, documents: int, media: MediaStore, folders: Sequence[Path], limits: tuple[int, int]
) -> TaskSamples:
    """Build the rows of a task, and write its pictures into the folder of ``media``.

    Args:
        found: the task's samples.
        documents: finished documents of the whole run.
        media: makes the thumbnails.
        folders: paths of pictures that the model made are relative to one of these.
        limits: most rows and pictures.
    """
    keys = SampleKeys(metrics=found.metrics)
    assert media.folder is not None  # a media store with files
    folder = media.folder.parent
    most, room = limits
    lines = list(found.rows(evenly(found.doc_ids, most)))
    waiting = []
    for line in lines[:room]:
        shown = [*media_of(line), *made_in({"parts": line.get("parts")}).values()]
        pictured = [one for one in shown[:MOST_OF_SAMPLE] if one.get("type", "image") != "audio"]
        waiting.append([media.add(one, MediaFolders(tuple(folders))) for one in pictured])
    cells = [_row(Sample(found.task, line, keys), found.metrics) for line in lines]
    # Trackers need columns of one type, so numbers become texts in columns that also hold texts.
    mixed = {place for row in cells for place, cell in enumerate(row) if isinstance(cell, str)}
    rows = tuple(
        tuple(str(cell) if place in mixed and cell is not None else cell for place, cell in enumerate(row))
        for row in cells
    )
    pictures: list[tuple[str, ...]] = []
    for futures in waiting:
        sources: list[Any] = []
        for item in (future.result() for future in futures):  # a picture, or the first frame of a video
            sources += [item.get("src"), *(frame["src"] for frame in item.get("frames", [])[:1])]
        found_here = [str(folder / source) for source in sources if isinstance(source, str)]
        paths = found_here[: min(MOST_OF_SAMPLE, room)]
        room -= len(paths)
        pictures.append(tuple(paths))
    pictures += [()] * (len(rows) - len(pictures))
    is_sent = found.file and Path(found.file).stat().st_size <= MOST_FILE
    return TaskSamples(
        found.task, documents, (*_FIXED, *found.metrics), rows, tuple(pictures) if any(pictures) else (),
        found.file if is_sent else "",
    )  # fmt: skip


def _row(sample: Sample, metrics: Sequence[str]) -> tuple[Cell, ...]:
    fixed = (
        sample.doc_id, sample.filter, sample.status, sample.prompt, sample.raw, sample.prediction, sample.target,
        sample.reason,
    )  # fmt: skip
    cells: list[Cell] = [_text(text) for text in fixed]
    for name in metrics:
        number, value = sample.number(name), sample.record.get(name)
        # A value that is not a number is shown as JSON.
        cells.append(number if number is not None or value is None else _text(json.dumps(value, default=str)))
    return tuple(cells)


def _text(text: str) -> str:
    shown = mask_known(text).encode("utf-8", "replace").decode("utf-8")
    return shown if len(shown) <= MOST_TEXT else f"{shown[:MOST_TEXT]}..."
