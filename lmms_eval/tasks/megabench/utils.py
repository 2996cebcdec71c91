"""Functions of the task YAML: prompts from documents, scores from answers, and the task's results.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Estimate, NotEvaluated, TaskNumbers, Unscored
from lmms_eval.sandbox.policy import current_policy
from lmms_eval.tasks._task_utils.linguistic import data_identity
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import written
from lmms_eval.tasks.megabench import prompts, submission, summary
from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.data import QueryRow, parse_row
from lmms_eval.tasks.megabench.geocoding import geocoder_identity
from lmms_eval.tasks.megabench.metrics import SANDBOX
from lmms_eval.tasks.megabench.scoring.query import read_context, score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, task_spec
from lmms_eval.tasks.megabench.settings import Settings


def right_reply(row: QueryRow, spec: TaskSpec) -> str:
    """Return the answer in the form that the task's parser reads: a JSON object, or a line ``Answer: ...``.

    The first of several accepted phrases is used. Free-form fields (``##...``) have no reference answer, so their reply
    is not right.
    """
    values = dict(row.answer)
    for field, truth in row.answer.items():
        metric = spec.metrics.get(field)
        if metric is not None and metric.name == "multi_ref_phrase" and isinstance(truth, str):
            references = str_to_list(truth.replace("，", ","))
            values[field] = references[0] if references else truth
    if spec.parser == "json":
        return json.dumps(values, ensure_ascii=False)
    return f"Answer: {values.get(spec.answer_field or '', '')}"


Options = Mapping[str, Any] | None


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the prompt's text. Media are opened only for the one task that mixes pictures and videos."""
    row = parse_row(doc)
    return prompts.prompt_text(row, Settings.of(lmms_eval_specific_kwargs).media if row.kind == "mixed" else None)


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """Return pictures, paths of videos, or pictures and frames."""
    return prompts.visuals(parse_row(doc), Settings.of(lmms_eval_specific_kwargs).media)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """Return one user turn: all visuals and then the text, or with ``interleave`` media at their places."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    row = parse_row(doc)
    if settings.interleave:
        return prompts.interleaved_messages(row, settings.media, settings)
    return prompts.messages(row, settings.media)


def doc_to_target(doc: Mapping[str, Any]) -> str:
    """Return the ``answer`` column."""
    return str(doc["answer"])


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """Return a reply with full marks, for ``--model baseline --model_args strategy=gold`` and the demo's target."""
    row = parse_row(doc)
    return right_reply(row, task_spec(str(row.metric_info), row.task_name, tuple(row.answer)))


def scoring_data_identity(lmms_eval_specific_kwargs: Options) -> str:
    """Return what scores depend on besides document and reply. Raises ``DataError`` for an unusable geocoding table."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    try:
        words = data_identity(settings.nltk_data)
    except NotEvaluated as damaged:
        words = damaged.reason
    return f"{words} {geocoder_identity(settings.geocode_table, settings.geocoder)}".strip()


def doc_to_judge(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> list[JudgeQuestion]:
    """Return the questions for the judge metrics of a query; most have none."""
    row = parse_row(doc)
    spec = task_spec(str(row.metric_info), row.task_name, tuple(row.answer))
    if spec.eval_type == "rule":
        return []
    from lmms_eval.tasks.megabench.judge_questions import JudgedQuery, questions

    def find(name: str) -> Path:
        return Settings.of(lmms_eval_specific_kwargs).media.path(name)

    query = JudgedQuery(row.answer, row.query.text, row.query.media, read_context(row.eval_context), find)
    return questions(results[0] if results else "", query, spec)


def sandbox_record() -> dict[str, Any]:
    """Return the layers that confine programs now, and whether running without them is allowed."""
    policy = current_policy()
    layers = [layer.name for layer in policy.probe() if layer.active]
    return {"layers": layers, "allow_unsafe_code": policy.allow_unsafe}


@depends_on(scoring_data_identity)
def process_results(
    doc: Mapping[str, Any],
    results: Sequence[Any],
    verdicts: Mapping[str, Verdict] | None = None,
    lmms_eval_specific_kwargs: Options = None,
) -> dict[str, Any]:
    """Return the submission record with its scores, and the values for the aggregations.

    ``scored`` is 1, or ``Unscored`` if a field could not be evaluated (no judge, no program, no data).

    Raises:
        DataError, TaskError: the document is not as the data set has it.
    """
    row = parse_row(doc)
    reply = results[0] if results else ""
    spec = task_spec(str(row.metric_info), row.task_name, tuple(row.answer))
    context = read_context(row.eval_context)
    data = Settings.of(lmms_eval_specific_kwargs).outside_data
    outcome = score_query(reply, row.answer, spec, context, verdicts, data)
    record = {**submission.record(row, context, reply), "scores": outcome.as_dict()}
    if outcome.scorer_errors:
        record["scorer_error"] = dict(outcome.scorer_errors)
    value: dict[str, Any] = {
        "task_name": row.task_name,
        "eval_type": spec.eval_type,
        "query": outcome.query,
        "score": None if outcome.query is None else max(0.0, outcome.query),
        "fixed": None if outcome.fixed is None else outcome.fixed.query,
        "num_demo": int(bool(row.example.text or row.example.media)),
    }
    missing = "; ".join(f"{field}: {reason}" for field, reason in outcome.not_evaluated.items())
    if outcome.reading is not None:
        value |= outcome.reading.as_dict()
    if not missing and any(metric.needs == SANDBOX for metric in spec.metrics.values()):
        value["sandbox"] = sandbox_record()
    return {"submission": record, "macro_mean": value, "scored": Unscored(missing) if missing else 1.0}


def aggregate_macro_mean(values: Sequence[Mapping[str, Any]]) -> Any:
    """Return the mean over tasks of the mean over a task's queries; see ``summary.macro_mean``."""
    return summary.macro_mean(values)


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Core, open, overall and the breakdown over the tasks of a run."""
    from lmms_eval.tasks.megabench.report import report as whole

    return whole(tasks, stem)


def aggregate_scored(values: Sequence[float]) -> int:
    """Return the number of scored queries."""
    return len(values)


def aggregate_submission(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write the submission file, named after the task, if there is an output folder. The estimate has no value."""
    return written(lambda path: submission.write(records, path), submission.file_name(task.name), args)
