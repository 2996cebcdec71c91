"""AI2D: multiple choice about diagrams of school books."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.tasks._task_utils.question import LETTERS, Doc, framed, option_lines


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return question and options in the form that the settings name (``mcq``, ``qa``, ``mcq_xcomposer``)."""
    question, options = doc["question"], doc["options"]
    form = (lmms_eval_specific_kwargs or {}).get("prompt_format", "mcq")
    if form == "qa":
        options_text = "\n".join(options)
        return framed(f"{question}{options_text}", lmms_eval_specific_kwargs)
    if form == "mcq_xcomposer":
        lettered = option_lines(options).replace("\n", " ")
        return framed(f"{question}\nContext: N/A\n{lettered}", lmms_eval_specific_kwargs)
    return framed(f"{question}\n{option_lines(options)}", lmms_eval_specific_kwargs)


def doc_to_target(doc: Doc, form: str = "mcq") -> str:
    """Return the letter of the right option, or its text for models that are asked without letters."""
    place = int(doc["answer"])
    return str(doc["options"][place]) if form == "qa" else LETTERS[place]
