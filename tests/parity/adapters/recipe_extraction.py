"""Vectors of recipes: raw outputs, what the sources' rules read in them, and what they decide."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from lmms_eval.recipes.extraction import AskedQuestion, ReadingRule, after_thoughts, rule
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

QWEN = {
    "mmmu_val": "qwen-evaluation/mmmu",
    "mathvision_test": "qwen-evaluation/mathvision",
    "realworldqa": "qwen-evaluation/choice_rule",
    "videomme": "qwen-evaluation/choice_rule",
}
NAMES = {
    "vlmevalkit/mvbench_check": "vlmevalkit/mvbench_check",
    "internvl/mpo(MMMU_DEV_VAL)": "internvl/mpo",
    "internvl-scripts/mvbench": "internvl-scripts/mvbench",
    "glm/answer(MMStar)": "glm/answer",
    "glm/answer(OCRBench)": "glm/answer_without_box",
    "minicpm-v-4/answer(MMMU_DEV_VAL)": "minicpm-v/choice",
    "minicpm-v-4/answer(MathVista_MINI)": "minicpm-v/free",
    "minicpm-v-4.5/answer(HallusionBench)": "minicpm-v/free",
}
"""Names of our rules for those that the vectors name with an argument."""
_TRUTH = re.compile(r"\(gt=\((?P<letter>[A-Z])\).*\)\Z")
EMPTY = "recipe_empty_answer_is_no_error"
PROMPTS = "the judge's prompt is the vendor's wording, which users give; its hash is that of their text"


def _options(item: Mapping[str, Any]) -> dict[str, str]:
    """The options of a recorded item: columns of letters, or a list as text."""
    if "choices" in item:
        return dict(zip("ABCDEFGHIJ", ast.literal_eval(item["choices"]), strict=False))
    return {name: text for name, text in item.items() if len(name) == 1}


@line_adapter("recipes/extract_qwen3vl.jsonl")
@keyed(
    "benchmark", "form", "item.*", "raw_output", "after_thoughts", "by_rule", "needs_judge", "answer", "res",
    "judge_reply_given", "correct",
    information={
        "kind": "the same in all lines",
        "set": "the same in all lines",
        "recipe": "the same in all lines",
        "uses_latex2sympy": "the package that the source needs; ours needs another one",
        "judge_prompt_sha1": PROMPTS,
        "judge_temperature_first_try": "an option of the judge, which the recipe states",
        "item.question": "no rule reads it",
    },
)  # fmt: skip
def extracted_by_qwen(vector: Vector) -> Verdict:
    """Replay a line: the text after the thoughts, what the rule reads, and whether it is right, after the judge too."""
    record = vector.record
    item = record["item"]
    is_open = record["form"] == "open as choice"
    options = {} if is_open else _options(item)
    truth = item["A"] if is_open else str(item.get("GT", item.get("answer")))
    question, own = AskedQuestion(options, truth), rule(QWEN[record["benchmark"]])
    thoughts = after_thoughts(record["raw_output"])
    if thoughts != record["after_thoughts"]:
        return failed(f"after the thoughts: {thoughts!r}")
    found = own.read(record["raw_output"], question)
    if found != record["by_rule"]:
        return failed(f"read {found!r}, recorded {record['by_rule']!r}")
    if (found is None) != record["needs_judge"]:
        return failed("the judge is asked by one of them alone")
    final = record["judge_reply_given"] if found is None else found
    if final != record.get("answer", record.get("res")):
        return failed(f"in the end {final!r}")
    return _decided(own, final, question, record["correct"])


def _decided(own: ReadingRule, found: str, question: AskedQuestion, is_right: bool) -> Verdict:
    assert own.is_right is not None
    decided = own.is_right(found, question)
    return PASSED if decided == is_right else failed(f"{found!r} is {'right' if decided else 'wrong'}")


@line_adapter("recipes/extract_others.jsonl")
@keyed(
    "rule", "options", "options.*", "raw_output", "answer",
    information={"kind": "the same in all lines", "set": "the same in all lines", "what": "the rule in words"},
)  # fmt: skip
def extracted_by_others(vector: Vector) -> Verdict:
    """Replay a line: what the rule reads, or whether it is right."""
    record = vector.record
    given = record["rule"]
    gold = _TRUTH.search(given)
    question = AskedQuestion(record["options"] or {}, gold["letter"] if gold else "")
    own = rule(NAMES.get(_TRUTH.sub("", given), _TRUTH.sub("", given)))
    found = own.read(record["raw_output"], question)
    if gold:
        return _decided(own, found or "", question, record["answer"])
    if record["answer"] == "ERROR":
        return deviates(EMPTY) if found == "" else failed(f"read {found!r} of an empty answer")
    recorded = None if record["answer"] == "Unknown" else record["answer"]
    return PASSED if found == recorded else failed(f"read {found!r}, recorded {recorded!r}")
