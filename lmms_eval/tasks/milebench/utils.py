"""Functions of the task YAML: prompts from documents, scores from answers, and the task's results.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import BenchmarkReport, Estimate, TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils import file_utils
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.milebench import prompts, submission
from lmms_eval.tasks.milebench.facts import find
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, SampleScore
from lmms_eval.tasks.milebench.scoring.samples import score_sample
from lmms_eval.tasks.milebench.settings import Settings

Options = Mapping[str, Any] | None


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the prompt's text with an image token for every picture. No picture is opened."""
    return prompts.prompt_of(doc, Settings.of(lmms_eval_specific_kwargs)).simple_text


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """Open the pictures of the prompt (RGB), in order."""
    return prompts.visuals(doc, Settings.of(lmms_eval_specific_kwargs))


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """Return one user turn: texts and pictures in their places. Pictures that need no change are given as paths."""
    return prompts.messages(doc, Settings.of(lmms_eval_specific_kwargs))


def doc_to_target(doc: Mapping[str, Any]) -> str:
    """Return the reference answer; for choice questions the text of the option."""
    return str(doc["response"])


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """Return a reply with full marks by both sets of rules, for ``--model baseline --model_args strategy=gold``."""
    wanted = str(doc["response"])
    choices = [str(choice) for choice in doc["choice_list"] or ()]
    letters = [chr(65 + place) for place, choice in enumerate(choices[:26]) if choice == wanted]
    candidates = [f"{letter}. {wanted}" for letter in letters] + [wanted, *letters]

    def marks(reply: str) -> float:
        score = judge(doc, reply)
        return 0.0 if score.error is not None else float(score.score or 0) + float(score.fixed or 0)

    return max(candidates, key=marks)


def process_results(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> dict[str, Any]:
    """Return the official and the fixed score, and the record of ``pred.json`` with the values for the report.

    Raises ``DataError`` if the reference answer is missing, or is not one of the options; the sample fails.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    reply = str(results[0]) if results else ""
    score = judge(doc, reply)
    if score.error is not None:
        raise DataError(f"MileBench, {doc['dataset']}, sample {doc['sample_id']}: {score.error}")
    record = {
        **submission.record(doc, prompts.prompt_of(doc, settings), reply),
        "score": score.score,
        "fixed": score.fixed,
        "sequence": score.sequence,
        "metric": score.metric,
        "level": score.level,
        "step": score.step,
        "fixed_step": score.fixed_step,
        "extracted": score.extracted,
        "fixed_extracted": score.fixed_extracted,
        "no_answer": int(score.is_empty),
        "needle_depth": doc.get("needle_depth"),
        "needle_length": doc.get("needle_length"),
    }
    if score.note:
        record["note"] = score.note
    name = find(str(doc["dataset"])).metric
    return {name: score.score, f"{name}_fixed": score.fixed, "predictions": record}


def judge(doc: Mapping[str, Any], reply: str) -> SampleScore:
    """Score a reply by both sets of rules."""
    sample = {
        "sample_id": doc["sample_id"],
        "response": doc["response"],
        "task_instance": {"images_path": doc["images_path"], "choice_list": doc["choice_list"]},
    }
    return score_sample(DatasetFacts(str(doc["dataset"]), str(doc["question_type"])), sample, reply)


def aggregate_predictions(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Return no value. The details hold the report's values and the path of ``OUT/milebench/MODEL/NAME/pred.json``; it
    is written if there is an output folder."""
    from lmms_eval.tasks.milebench.summary.dataset import estimate

    if not records:
        return Estimate(None)
    described = task.describe()
    settings = Settings.of(described.get("lmms_eval_specific_kwargs"))
    details = dict(estimate(records, described["dataset_name"], settings.variant).details)
    output_path = getattr(args, "output_path", None)
    if not output_path:
        return Estimate(None, details=details)
    marks = ["adv"] if settings.adversarial else []
    marks += [f"combined_{settings.combine_image}"] if settings.combine_image else []
    top = "milebench" if settings.data_folder is None else "milebench_demo"
    path = file_utils.model_folder(output_path, args, marks, top) / described["dataset_name"] / submission.PREDICTIONS
    text = submission.dumps(records, file_utils.shared_model_name(args), described.get("generation_kwargs") or {})
    write_whole(path, text, "predictions ")
    return Estimate(None, details={**details, "submission_files": [str(path.resolve())]})


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Report groups, overall figures and the curve over the number of pictures for the tasks of a run."""
    from lmms_eval.tasks.milebench.report import report as whole

    return whole(tasks, stem)
