"""Replies that deserve full marks, for the gold baseline."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.data.documents import item_of, stated_type
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.nlp.types import type_of
from lmms_eval.tasks.general_bench.readers.masks import mask
from lmms_eval.tasks.general_bench.readers.sides import Side
from lmms_eval.tasks.general_bench.settings import Settings


def gold(doc: Mapping[str, Any], settings: Settings) -> str:
    """Returns a reply from which the reference answer is read; empty where there is none, or no text says it."""
    item = item_of(doc, settings)
    reference = item.reference
    if isinstance(reference, list | tuple) and reference and all(isinstance(one, str) for one in reference):
        reference = reference[0]
    if reference is None:
        return ""
    if item.facts.modality != LANGUAGE:
        if item.form == "mask" and isinstance(reference, str):
            try:
                # run lengths: the form in which a text can state a mask
                found = mask(item.reference, Side(item, predicted=False))
                edges = [0, *(int(edge) for run in zip(found.starts, found.ends, strict=True) for edge in run)]
                edges.append(found.height * found.width)
                reference = {
                    "size": list(found.size),
                    "counts": [end - start for start, end in itertools.pairwise(edges)],
                }
            except LmmsEvalError:  # its scoring names the fault, by this empty outline
                return "[]"
        return reference if isinstance(reference, str) else json.dumps(reference)
    kind = type_of(stated_type(doc))
    if kind.name == "MultipleChoiceQA":
        return f"answer: {reference}"
    if kind.is_number:
        return f"[{reference}]"
    if kind.name == "Code Defect Detection":
        return "no defect" if reference == "0" else "defect"
    return f"{kind.marker} {reference}".strip().replace("<p>", ", ")
