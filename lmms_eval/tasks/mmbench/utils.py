"""MMBench: multiple choice, asked once for each order of the options; an item counts if every row of it is right."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, Unscored
from lmms_eval.errors import UsageError
from lmms_eval.tasks._task_utils.judge_texts import JudgeText, identity, noted
from lmms_eval.tasks._task_utils.question import Doc, Settings, framed
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import written, written_json
from lmms_eval.tasks._task_utils.verdicts import reply_of
from lmms_eval.tasks._task_utils.workbooks import write_rows
from lmms_eval.tasks.mmbench import circular
from lmms_eval.tasks.mmbench.letters import LETTERS, find_letter, options_of
from lmms_eval.utils.answer_reading import note_chance

_COLUMNS = ("index", "question", "answer", "prediction", "hint", "source", "split", "category", "L2-category")
_COLUMNS_CC = ("index", "question", "answer", "prediction", "source", "category")
_HEAD = "There are several options:"
TEXT = JudgeText(
    "mmbench_match",
    """You match an answer with the options of a multiple-choice question. Choose the option whose meaning is nearest \
to the answer. If no option means about the same, choose E. Write one capital letter and nothing else.

Question: Which animal is in the picture?
Options: A. horse B. cow C. sheep D. goat
Answer: a small brown pony
Letter: A

Question: Which animal is in the picture?
Options: A. horse B. cow C. sheep D. goat
Answer: an aeroplane
Letter: E

Question: {question}?
Options: {options}
Answer: {prediction}
Letter: """,
    "89cab8a0b30ed65d",
)


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return hint, question and options in English."""
    return _asked(doc, "" if doc.get("hint") in (None, "nan") else f"{doc['hint']} ", lmms_eval_specific_kwargs)


def doc_to_text_cn(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return hint, question and options in Chinese, where an absent hint is asked as ``nan``."""
    return _asked(doc, "" if doc.get("hint") is None else f"{doc['hint']} ", lmms_eval_specific_kwargs)


def doc_to_text_cc(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question and options."""
    return _asked(doc, "", lmms_eval_specific_kwargs)


def _asked(doc: Doc, hint: str, settings: Settings) -> str:
    lines = "".join(f"\n{letter}. {text}" for letter, text in options_of(doc).items())
    return framed(f"{hint}{doc['question']} {_HEAD}{lines}\n", settings)


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the question which option the answer means; none where its letter is plain."""
    options = options_of(doc)
    if find_letter(results[0], options) is not None:
        return []
    lines = "".join(f"{letter}. {text}\n" for letter, text in options.items())
    prompt = TEXT.used(lmms_eval_specific_kwargs).filled(
        question=doc["question"], options=f"{_HEAD} \n{lines}", prediction=results[0]
    )
    reader = functools.partial(find_letter, options=options)
    return [{"name": "match", "prompt": prompt, "reader": reader, "generation": {"max_new_tokens": 256}}]


@depends_on(identity(TEXT))
def process_results(doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """Give the row, with what the judge made of an answer without a letter, to the score; and to the submission.

    The aggregation needs every row of an item, so a row about which no reply came goes there too; its document counts
    as unscored.
    """
    return _judged(_row(doc, results, _COLUMNS), verdicts)


@depends_on(identity(TEXT))
def process_results_cc(doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """Give the row as ``process_results`` does, without the columns that this part of the data lacks."""
    return _judged(_row(doc, results, _COLUMNS_CC), verdicts)


def process_results_static(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Give the row to the score without a judge, and to the submission."""
    row = _row(doc, results, _COLUMNS)
    return {"gpt_eval_score": row, "submission": row}


def process_results_test(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Give the row to the submission: the answers of the test split are not public."""
    return {"submission": _row(doc, results, _COLUMNS)}


def _row(doc: Doc, results: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    known = {**doc, "prediction": results[0].strip()}
    options = {letter: doc.get(letter, "nan") for letter in LETTERS}
    return {column: known.get(column, "nan") for column in columns} | options


def _judged(row: dict[str, Any], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    options = options_of(row)
    if find_letter(row["prediction"], options) is not None:
        return {"gpt_eval_score": row, "gpt_eval_score_fixed": row, "submission": row}
    reply = reply_of(verdicts, "match")
    letter = None if isinstance(reply, Unscored) else find_letter(reply, options)
    judged = letter or (circular.NO_LETTER if verdicts else circular.NO_JUDGE)
    if judged == circular.NO_LETTER:
        note_chance()
    scored = {**row, "judged": judged}
    beside = {"judge": reply} if isinstance(reply, Unscored) else {}
    return {"gpt_eval_score": scored, "gpt_eval_score_fixed": scored, "submission": row, **beside}


def aggregate(rows: Sequence[Doc], args: Any, task: Any) -> Estimate:
    """Share of items with every row right, in percent; a letter that the judge cannot find is drawn.

    The shares by category are written to ``TASK_results.json`` too. The judge's text is reported if a judge was asked.
    """
    made = _with_file(circular.official(rows), args, task)
    was_asked = any(row.get("judged", circular.NO_JUDGE) != circular.NO_JUDGE for row in rows)
    return noted(made, task, TEXT) if was_asked else made


def aggregate_fixed(rows: Sequence[Doc]) -> Estimate:
    """The share over items that no drawn letter decides."""
    return circular.fixed(rows)


def aggregate_static(rows: Sequence[Doc], args: Any, task: Any) -> Estimate:
    """The share without a judge; an answer without a letter is wrong."""
    return _with_file(circular.static(rows), args, task)


def _with_file(estimate: Estimate, args: Any, task: Any) -> Estimate:
    table = estimate.details.get("mmbench")
    if table is None:
        return estimate
    file = written_json(table, f"{task.name}_results.json", args)
    return replace(estimate, details={**estimate.details, **file.details})


def write_submission(rows: Sequence[Doc], args: Any, task: Any) -> Estimate:
    """Write ``TASK_results.xlsx`` for the benchmark's server; without openpyxl a note says how to get it."""
    try:
        return written(lambda path: write_rows(rows, path), f"{task.name}_results.xlsx", args)
    except UsageError as error:
        return Estimate(None, notes=(f"no file is written: {error}",))
