"""MathVerse: mathematical problems, stated more and more by the picture; a judge decides whether an answer is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, Unscored
from lmms_eval.tasks._task_utils import binary_judge, judge_texts
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import Doc, Settings
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import written_json

if TYPE_CHECKING:
    from PIL import Image

_NOTE = "one question to a judge, not the paper's two steps: not comparable with the paper's numbers"


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the column that the setting ``query_type`` names."""
    return str(doc[(lmms_eval_specific_kwargs or {}).get("query_type") or "query_wo"]).strip()


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """Return the picture as RGB; an empty list for a problem in words alone."""
    image = doc["image"]
    return [] if image is None or not str(image).strip() else [image.convert("RGB")]


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the question whether the answer is right."""
    asked = doc["question_for_eval"]
    return [binary_judge.question(asked, doc["answer"], results[0].strip(), lmms_eval_specific_kwargs)]


@depends_on(judge_texts.identity(binary_judge.TEXT))
def process_results(doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict] | None = None) -> dict[str, Any]:
    """Score as the judge says, by the official reading of its reply and the fixed one; and the document's record."""
    scores = binary_judge.scores(verdicts, "gpt_eval_score")
    official = scores["gpt_eval_score"]
    record = {
        **{key: value for key, value in doc.items() if key != "image"},
        "prediction": results[0].strip(),
        "true_false": None if isinstance(official, Unscored) else bool(official),
    }
    return {**scores, "submission": record}


def aggregate(results: Sequence[float], task: Any) -> Estimate:
    """Return the mean, and which text the judge was given."""
    found = judge_texts.noted(mean(results), task, binary_judge.TEXT)
    return replace(found, notes=(*found.notes, _NOTE))


def write_records(results: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write all records; with the scores of problem versions and of subfields."""
    split = results[0]["metadata"].get("split") if results else None
    name = f"mathverse_{split or 'testmini'}_results.json"
    judged = [record for record in results if record["true_false"] is not None]
    parts = {
        "problem_version": by(judged, "problem_version", _score),
        "subfield": by(judged, lambda record: record["metadata"].get("subfield"), _score),
    }
    return replace(written_json(list(results), name, args, f"submissions/{task.name}"), sub_scores=parts)


def _score(record: Mapping[str, Any]) -> float:
    return float(record["true_false"])
