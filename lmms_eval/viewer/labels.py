"""Writes the page on which people score judged answers: a plan of ``lmms-eval judge plan`` with its pictures."""

from __future__ import annotations

import csv
import hashlib
import io
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.results.human import LabelPlan, check_free, written_rows
from lmms_eval.results.run import Run
from lmms_eval.results.sample import Sample
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.chunks import PageChunks, write_file
from lmms_eval.viewer.media import Item, MediaFolders, MediaStore, made_in, media_of
from lmms_eval.viewer.page import Media, single_page
from lmms_eval.viewer.runs import media_places

MOST_CHOICES = 10
"""Most steps of a scale whose values have a button each."""
_ASKED = ("messages", "input", "input_media", "sent_media")
"""Keys of a sample that show what the model was asked."""
_QUESTION = ("name", "asked", "sent_media")
"""Keys of a verdict that show what the judge was asked, without what it replied."""
_SLACK = 1e-9


class WrittenPage(Struct, frozen=True):
    """A written page."""

    size: int
    """Bytes."""
    missing_media: int


def write_label_page(
    plan: LabelPlan, run: Run, path: Path, media: Media = "thumbnails", allowed: Sequence[Path] = ()
) -> WrittenPage:
    """Write a plan as one page that holds everything and opens from disk.

    Args:
        plan: the documents to score.
        run: the run that they come from.
        path: the file.
        media: the media that the page holds.
        allowed: more folders with media, for a run without its record.

    Raises:
        UsageError: the file exists.
        LmmsEvalError: the file cannot be written.
    """
    check_free(path)
    store = MediaStore(None, media)
    with closing(store):
        places = media_places(run, allowed)
        begun = [(sample.whole, _begun(sample.whole, store, places)) for sample in plan.samples]
        samples = [_entry(sample, line, *found) for sample, (line, found) in zip(plan.samples, begun, strict=True)]
    columns, *rows = _cells(plan)
    content: dict[str, Any] = {
        "task": plan.task,
        "columns": columns,
        "rows": rows,
        "low": plan.scale.low,
        "high": plan.scale.high,
        "choices": choices(plan.scale, [sample.score or 0.0 for sample in plan.samples]),
        "samples": samples,
        "file": f"labels_{plan.task.replace('/', '_')}.csv",
        "command": shlex.join(["lmms-eval", "score", str(run.source), "--human_scores"]),
    }
    chunks = PageChunks()
    chunks.write("labels", content)
    content["key"] = hashlib.sha256(chunks.texts["labels"].encode()).hexdigest()[:24]
    chunks.write("labels", content)
    data = single_page(chunks.texts, "lmms-eval labels").encode()
    write_file(path, data)
    return WrittenPage(len(data), store.missing)


def choices(scale: ScoreRange, scores: Sequence[float]) -> list[float]:
    """Return the values that have a button: the coarsest even steps that contain all scores of the judge.

    If all scores are whole numbers, the steps are 1, since the judge may not have used all values. Without such steps
    there are no buttons.
    """
    width = scale.high - scale.low
    if width <= 0:
        return [scale.low]
    is_whole = all(float(score).is_integer() for score in (scale.low, scale.high, *scores))
    steps = [round(width)] if is_whole else range(1, MOST_CHOICES + 1)
    for count in steps:
        places = [(score - scale.low) / width * count for score in scores]
        if count <= MOST_CHOICES and all(abs(place - round(place)) < _SLACK for place in places):
            return [round(scale.low + width * number / count, 9) for number in range(count + 1)]
    return []


def _cells(plan: LabelPlan) -> list[list[str]]:
    """Return the names of the columns and the rows of the table, as texts that the page writes unchanged."""
    rows = written_rows(plan)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return list(csv.reader(io.StringIO(text.getvalue(), newline="")))


_Begun = tuple[Sequence[Future[Item]], Mapping[str, Future[Item]]]


def _begun(line: Mapping[str, Any], store: MediaStore, places: MediaFolders) -> _Begun:
    """Begin to make the media of a sample: those sent to the model, and others by name."""
    sent = [store.add(one, places) for one in media_of(line)]
    return sent, {name: store.add(one, places) for name, one in made_in(line).items()}


def _entry(
    sample: Sample, line: Mapping[str, Any], sent: Sequence[Future[Item]], made: Mapping[str, Future[Item]]
) -> dict[str, Any]:
    """Return a sample in the form that the page reads, with the judge's opinion apart from everything else."""
    media = [future.result() for future in sent]
    answers = line.get("filtered_resps")
    has_rounds = isinstance(answers, list) and len(answers) > 1
    shown = {name: line[name] for name in _ASKED if name in line}
    shown["filtered_resps"] = answers if has_rounds else sample.answer
    if "parts" in line:
        shown["parts"] = line["parts"]
    verdicts = [one for one in line.get("judge") or () if isinstance(one, Mapping)]
    return {
        "id": sample.doc_id,
        "lines": [shown],
        "reference": sample.target,
        "media": media,
        "made": {name: _same(future.result(), media) for name, future in made.items()},
        "questions": [{name: one[name] for name in _QUESTION if name in one} for one in verdicts],
        "score": sample.score,
        "verdicts": [{name: value for name, value in one.items() if name not in _QUESTION[1:]} for one in verdicts],
    }


def _same(item: Item, media: Sequence[Item]) -> Item | int:
    """Return the number of the same medium in a list, so that the page holds its picture once; else the item."""
    return next(
        (at for at, one in enumerate(media) if item.get("src") and one.get("src") == item.get("src")),
        item,
    )
