"""Documents of MMMU and MMMU-Pro, with pictures named in the text, and accuracy by subjects and domains."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmms_eval.api.outcome import Estimate, SubScore
from lmms_eval.errors import ItemError
from lmms_eval.metrics.mmmu import mmmu_letter
from lmms_eval.tasks._task_utils.estimates import mean, part
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, option_lines, read_list

if TYPE_CHECKING:
    from PIL import Image

log = logging.getLogger(__name__)
PLACE = re.compile(r"<image (\d+)>")
"""Placeholder in a text for the picture of the column ``image_N``."""
DIGITS = 5
"""Decimals of accuracies."""
DOMAINS = {
    "Art and Design": ("Art", "Art_Theory", "Design", "Music"),
    "Business": ("Accounting", "Economics", "Finance", "Manage", "Marketing"),
    "Science": ("Biology", "Chemistry", "Geography", "Math", "Physics"),
    "Health and Medicine": (
        "Basic_Medical_Science", "Clinical_Medicine", "Diagnostics_and_Laboratory_Medicine", "Pharmacy",
        "Public_Health",
    ),
    "Humanities and Social Science": ("History", "Literature", "Sociology", "Psychology"),
    "Tech and Engineering": (
        "Agriculture", "Architecture_and_Engineering", "Computer_Science", "Electronics", "Energy_and_Power",
        "Materials", "Mechanical_Engineering",
    ),
}  # fmt: skip


def options(doc: Doc) -> list[str]:
    """Return the options, which the column ``options`` holds as the text of a list.

    Raises:
        ItemError: it holds no list.
    """
    return read_list(doc, "options")


def picture(doc: Doc, number: int | str) -> Image.Image:
    """Return the picture that a text names by its number, as RGB.

    Raises:
        ItemError: the document has no picture of that number.
    """
    image = doc.get(f"image_{number}")
    if image is None:
        raise ItemError(f"{doc['id']}: the text names <image {number}>, but column 'image_{number}' holds no picture")
    rgb: Image.Image = image.convert("RGB")
    return rgb


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """Return the pictures that question and options name, each once, in the order of their numbers."""
    named = PLACE.findall(f"{doc['question']} {doc['options']}")
    return [picture(doc, number) for number in sorted(set(named))]


def listed(question: str, doc: Doc, settings: Settings, instruction: str) -> str:
    """Return question, options and instruction in the frame of Qwen3-VL's report."""
    before = (settings or {}).get("pre_prompt") or ""
    return f"{before}{question}\nOptions:\n{option_lines(options(doc))}\n{instruction}"


def chosen(doc: Doc, answers: Sequence[str]) -> list[str]:
    """Return the letters of the options that answers to a document name; if one names none, a letter is drawn.

    Raises:
        ItemError: there are no options.
    """
    found = dict(zip(LETTERS, options(doc), strict=False))
    if not found:
        raise ItemError(f"{doc['id']}: column 'options' holds {doc['options']!r}: a choice needs options")
    return [mmmu_letter(answer, found, f"{doc['id']}:{number}") for number, answer in enumerate(answers)]


def accuracy(subjects: Sequence[str], right: Sequence[float]) -> Estimate:
    """Return the share of right answers, also by domain and subject.

    Args:
        subjects: the subject of each document.
        right: 1 if its answer is right, else 0.
    """
    if not subjects:
        return Estimate(None)
    known = {subject for names in DOMAINS.values() for subject in names}
    if unknown := sorted(set(subjects) - known):
        log.warning("unknown subjects count in the whole alone: %s", ", ".join(unknown))
    scores: dict[str, list[float]] = {}
    for subject, score in zip(subjects, right, strict=True):
        scores.setdefault(subject, []).append(score)
    parts: dict[str, SubScore] = {}
    for domain, names in DOMAINS.items():
        within = [score for name in names for score in scores.get(name, ())]
        parts[f"Overall-{domain}"] = _rounded(within)
        parts |= {name: _rounded(scores[name]) for name in names if name in scores}
    parts["Overall"] = _rounded(right)
    return replace(mean(right, sub_scores={"subject": parts}), value=parts["Overall"].value)


def _rounded(scores: Sequence[float]) -> SubScore:
    found = part(scores)
    return SubScore(0.0, 0) if found is None else replace(found, value=round(found.value, DIGITS))
