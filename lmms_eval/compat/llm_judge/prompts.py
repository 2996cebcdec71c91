"""The prompts of the ready-made judgements, and filling a task's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lmms_eval.judges.prompts import fill_template

BINARY = (
    "You check answers. Decide whether the given answer to the question means the same as the reference answer.\n\n"
    "Question: {question}\nReference answer: {answer}\nGiven answer: {prediction}\n\n{wanted}"
)
WANTED = {
    "0/1": "Reply with the single character 1 if it does, 0 if it does not.",
    "yes/no": "Reply with the single word yes if it does, no if it does not.",
}
COMPARATIVE = (
    "You compare two replies to the same question. Rate each of them from {low} to {high}.\n\n"
    "{context}Question: {question}\n\nFirst reply: {response1}\n\nSecond reply: {response2}\n\n"
    "Write the two numbers, first reply first, on the first line, separated by a blank. Explain below."
)
RUBRIC = (
    "You rate an answer by a rubric.\n\nQuestion: {question}\nAnswer: {prediction}\nRubric (JSON): {rubric}\n\n"
    "Reply with one JSON object that gives a number for each of these keys: {keys}."
)


def binary(values: Mapping[str, Any], output_format: str, custom: str | None) -> str:
    if custom:
        return fill_template(custom, values, "the custom judge prompt")
    wanted = WANTED.get(output_format, WANTED["yes/no"])
    return fill_template(BINARY, {**values, "wanted": wanted}, "the judge prompt")


def comparative(values: Mapping[str, Any], score_range: tuple[float, float], custom: str | None) -> str:
    given = {**values, "low": score_range[0], "high": score_range[1]}
    if custom:
        return fill_template(custom, {**given, "score_range": score_range}, "the custom judge prompt")
    context = values.get("context")
    return fill_template(
        COMPARATIVE, {**given, "context": f"Context: {context}\n\n" if context else ""}, "the judge prompt"
    )


def rubric(question: str, prediction: str, criteria: Mapping[str, Any]) -> str:
    values = {
        "question": question,
        "prediction": prediction,
        "rubric": json.dumps(criteria, ensure_ascii=False, default=str),
        "keys": ", ".join(map(str, criteria)),
    }
    return fill_template(RUBRIC, values, "the judge prompt")
