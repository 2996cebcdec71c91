"""MMStar: multiple choice that cannot be answered without the picture; means over 18 categories of the second level."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks._task_utils.estimates import by, over_parts
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, framed

if TYPE_CHECKING:
    from PIL import Image

log = logging.getLogger(__name__)
CHOICES = ("A", "B", "C", "D")
_ABSENT = (None, "", "nan")
CATEGORIES = (
    "coarse perception", "fine-grained perception", "instance reasoning", "logical reasoning", "science & technology",
    "math",
)  # fmt: skip


def doc_to_text_columns(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return question and options, each in a column of its letter, in their frame."""
    options = "".join(f"{letter}. {doc[letter]}\n" for letter in LETTERS if doc.get(letter) not in _ABSENT)
    question = doc["question"].replace("<image 1>", "")
    return framed(f"{question}\nOptions:\n{options}", lmms_eval_specific_kwargs).rstrip()


def doc_to_visual_base64(doc: Doc) -> list[Image.Image]:
    """Return the picture, whose file the column ``image`` holds in base64, as RGB.

    Raises:
        MediaError: it holds no picture.
    """
    from lmms_eval.media import load_image

    return [load_image(f"data:image/jpeg;base64,{doc['image']}", rotate=False).convert("RGB")]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Score the answer's letter 1 or 0, under the category and under ``average``."""
    if doc["category"] not in CATEGORIES:
        _warn_of(doc["category"])
    said = extract_mcq_answer(results[0], CHOICES)
    told = {"question_id": doc["index"], "l2_category": doc["l2_category"], "extracted": said}
    scored = {**told, "score": float(said == doc["answer"].strip().upper())}
    return {doc["category"]: scored, "average": scored}


@functools.cache
def _warn_of(category: str) -> None:
    log.warning(
        "mmstar: unknown category %r (of %s) counts for the average alone", category, ", ".join(map(repr, CATEGORIES))
    )


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the plain mean of the shares of right answers in the categories of the second level."""
    return over_parts(by(results, "l2_category", lambda result: result["score"]), "l2_category")
