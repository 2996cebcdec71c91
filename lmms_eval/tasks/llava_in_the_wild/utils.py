"""LLaVA-Bench in the wild: a judge rates the model's answer and a reference answer; the score is their ratio."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, Unscored
from lmms_eval.tasks._task_utils import estimates
from lmms_eval.tasks._task_utils.judge_texts import JudgeText, identity, noted
from lmms_eval.tasks._task_utils.question import Doc, Settings
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.verdicts import reply_of

KINDS = ("conv", "detail", "complex")
OTHER_KIND, FAILED = [-999, -999], [-1, -1]
_METRIC = "gpt_eval_llava_"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORDING = """Two AI assistants have answered the question above, which a user asked about a picture. You cannot see \
the picture; the context above describes it.
Rate each answer as a whole from 1 to 10, higher is better. Consider how helpful, relevant, accurate and detailed it is.
Your first line must hold the two ratings alone, first that of Assistant 1, then that of Assistant 2, with one blank \
between them.
Give your reasons in the lines below it. Do not prefer an answer for its place: the order of the two means nothing."""
TEXTS = {kind: JudgeText(f"llava_bench_{kind}", _WORDING, "2ce22b562d600886") for kind in KINDS}


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the question how good the two answers are."""
    content = _content(doc, results[0], lmms_eval_specific_kwargs)
    generation, compared = {"max_new_tokens": 1024}, {"compares": ["reference", "answer"]}
    return [{"name": "review", "prompt": content, "reader": _scores, "generation": generation, "details": compared}]


def _content(doc: Doc, answer: str, settings: Settings) -> str:
    """Return context, question, reference answer, answer and rule, as the judge reads them."""
    kind = doc["category"]
    role, rule = ("Assistant", TEXTS[kind].used(settings).text) if kind in TEXTS else ("user", "")
    return (
        f"[Context]\n{_context(doc)}\n\n[Question]\n{doc['question']}\n\n"
        f"[{role} 1]\n{doc['gpt_answer']}\n\n[End of {role} 1]\n\n"
        f"[{role} 2]\n{answer}\n\n[End of {role} 2]\n\n[System]\n{rule}\n\n"
    )


def _context(doc: Doc) -> str:
    caption = doc["caption"]
    return caption if isinstance(caption, str) else "\n".join(caption)


def _scores(reply: str) -> list[float] | None:
    """Read the first two numbers of the stripped reply's first line; ``None`` if there are fewer."""
    first, _, _ = reply.strip().partition("\n")
    found = _NUMBER.findall(first.replace(",", " ").replace(";", " "))
    return [float(found[0]), float(found[1])] if len(found) > 1 else None


@depends_on(identity(*TEXTS.values()))
def process_results(
    doc: Doc,
    results: Sequence[str],
    verdicts: Mapping[str, Verdict],
    lmms_eval_specific_kwargs: Settings = None,
) -> dict[str, Any]:
    """Give both ratings to the metric of all documents and to that of the document's category."""
    reply = reply_of(verdicts, "review")
    if isinstance(reply, Unscored):
        return dict.fromkeys([f"{_METRIC}{kind}" for kind in ("all", *KINDS)], reply)
    row = {
        "question": doc["question"], "ans1": doc["gpt_answer"], "ans2": results[0], "context": _context(doc),
        "category": f"llava_bench_{doc['category']}", "review": reply.strip(),
        "scores": _scores(reply) or FAILED, "eval_model": verdicts["review"].model,
        "content": _content(doc, results[0], lmms_eval_specific_kwargs),
    }  # fmt: skip
    beside = {**row, "scores": OTHER_KIND}
    return {f"{_METRIC}{kind}": row if kind in ("all", doc["category"]) else beside for kind in ("all", *KINDS)}


def aggregate(rows: Sequence[Doc]) -> Estimate:
    """The model's mean rating in percent of the reference answers'; none where the latter is 0.

    Judgements without two ratings are left out and counted. A single category also reports both means.
    """
    asked = [list(row["scores"]) for row in rows if list(row["scores"]) != OTHER_KIND]
    read = [scores for scores in asked if scores != FAILED]
    lost = len(asked) - len(read)
    notes = (f"failed: {lost} of {len(asked)} judgements hold no two ratings and are left out",) if lost else ()
    means = _means(read)
    kinds = {row["category"].removeprefix("llava_bench_") for row in rows if list(row["scores"]) in read}
    details = {"llava_bench_means": {kind: means for kind in kinds}} if len(kinds) == 1 else {}
    if not means or not means[0]:
        return Estimate(None, details=details, notes=notes)
    references, answers = zip(*read, strict=True)
    stderr = estimates.ratio(answers, references, 100).stderr
    return Estimate(round(means[1] / means[0] * 100, 1), stderr, details=details, notes=notes)


def aggregate_all(rows: Sequence[Doc], task: Any) -> Estimate:
    """The number over all categories, with both means of each and the texts that the judge was given."""
    kinds = {"all": rows} | {kind: [row for row in rows if row["category"] == f"llava_bench_{kind}"] for kind in KINDS}
    tables = {
        kind: means
        for kind, part in kinds.items()
        if (means := _means([list(row["scores"]) for row in part if list(row["scores"]) not in (OTHER_KIND, FAILED)]))
    }
    made = replace(aggregate(rows), details={"llava_bench_means": tables})
    return noted(made, task, *TEXTS.values())


def _means(scores: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each column to three decimals: reference answers, model."""
    return [round(sum(column) / len(column), 3) for column in zip(*scores, strict=True)]
