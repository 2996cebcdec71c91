"""COCO captions 2017: a sentence about each picture, scored against five by the benchmark's toolkit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.captioning import cider, scored_alike
from lmms_eval.tasks._task_utils.submissions import written_json

Doc = Mapping[str, Any]
_METRICS = ("Bleu_4", "Bleu_3", "Bleu_2", "Bleu_1", "METEOR", "ROUGE_L", "CIDEr")
_NAMES = tuple(f"coco_{metric}" for metric in _METRICS)


def doc_to_gold(doc: Doc) -> str:
    """Return the first reference caption."""
    return str(doc["answer"][0])


def image_id(doc: Doc) -> int:
    """Return the picture's number: the part of its file name between the last ``_`` and the period.

    Raises:
        ItemError: that is not a number.
    """
    name = str(doc["question_id"])
    number = name.rpartition("_")[2].partition(".")[0]
    if not number.isdecimal():
        raise ItemError(f"coco_cap: column 'question_id' holds {name!r:.200}: it must end in the picture's number")
    return int(number)


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return caption and references under each metric's name; the metrics are those of the whole split."""
    row = {"answer": doc["answer"], "pred": results[0].strip(), "image_id": image_id(doc), "id": doc["id"]}
    return scored_alike(_NAMES, row)


def process_test_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the caption of a picture without references."""
    return {"coco_passthrough": {"pred": [results[0].strip()], "image_id": image_id(doc)}}


def cider_and_file(results: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate | Withheld:
    """Return CIDEr-D, and write the captions once for all metrics."""
    written = _written(results, "coco_captions_val2014_alg_results.json", args)
    made = cider(results)
    return made if isinstance(made, Withheld) else replace(made, details=written.details)


def write_test_file(results: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the captions of the test split, which the organisers' server scores."""
    return _written(results, "coco_captions_test2014_alg_results.json", args)


def _written(results: Sequence[Mapping[str, Any]], file_name: str, args: Any) -> Estimate:
    def caption(made: str | list[str]) -> str:
        return made if isinstance(made, str) else made[0]

    return written_json(
        [{"image_id": row["image_id"], "caption": caption(row["pred"])} for row in results], file_name, args
    )
