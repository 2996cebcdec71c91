"""BLINK: multiple choice about one to four pictures, fourteen tasks that people solve within a blink."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.messages import build_user_turn
from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings

_COLUMNS = ("image_1", "image_2", "image_3", "image_4")
_INSTRUCTION = "Answer with the option's letter from the given choices directly."
_FIRST_LETTER = re.compile(r"\A[(\s]*([A-Z])", re.IGNORECASE)
_FIRST_WORD = re.compile(r"\A[(\s]*([A-Z])\b", re.IGNORECASE)


def doc_to_visual(doc: Doc) -> list[Any]:
    """Return the pictures that are there as RGB, in the order of their columns."""
    return [doc[name].convert("RGB") for name in _COLUMNS if doc.get(name) is not None]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the column ``prompt`` behind the frame's text, where ``{}`` represents the letters."""
    before = (lmms_eval_specific_kwargs or {}).get("pre_prompt") or ""
    letters = ", ".join(LETTERS[: len(doc["choices"])])
    return f"{before.replace('{}', letters)}{doc['prompt']}"


def doc_to_messages(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the pictures and the text; with the setting ``prompt_format: neo_ov`` several pictures are numbered."""
    pictures = doc_to_visual(doc)
    if (lmms_eval_specific_kwargs or {}).get("prompt_format") != "neo_ov":
        return build_user_turn(pictures, doc_to_text(doc, lmms_eval_specific_kwargs))
    content: list[dict[str, Any]] = []
    for number, picture in enumerate(pictures, 1):
        if len(pictures) > 1:
            content.append({"type": "text", "text": f"Image-{number}: "})
        content.append({"type": "image", "url": picture})
    question = doc["prompt"].replace("<image>", "").strip()
    return [{"role": "user", "content": [*content, {"type": "text", "text": f"{question}\n{_INSTRUCTION}"}]}]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Compare the answer's letter with the right one: by the benchmark's rule, and by a stricter one (``*_fixed``).

    The benchmark takes the first letter of whatever the answer begins with (``The`` is T, ``Because`` is B); the
    stricter rule takes a letter of the choices that is a word.

    Raises:
        ItemError: the reference answer is no letter in parentheses.
    """
    gold = doc["answer"].strip("() ")
    if len(gold) != 1 or gold not in LETTERS:
        raise ItemError(f"blink: column 'answer' holds {doc['answer']!r}: it must be a letter such as '(A)'")
    answer = results[0].strip()
    official, strict = _FIRST_LETTER.search(answer), _FIRST_WORD.search(answer)
    loose, sure = ("" if found is None else found[1].upper() for found in (official, strict))

    def compared(letter: str) -> dict[str, Any]:
        told = {"id": doc["idx"], "gt_content": gold, "pred_parsed": letter, "pred": answer}
        return {**told, "sub_task": doc["sub_task"], "is_correct": letter == gold}

    is_choice = sure in LETTERS[: len(doc["choices"])]
    return {"blink_acc": compared(loose), "blink_acc_fixed": compared(sure if is_choice else "")}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers."""
    return mean([float(result["is_correct"]) for result in results])
