"""The functions that the YAML files name: document to prompt, answer to scores, scores to the task's numbers.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Estimate, NotEvaluated, TaskNumbers, Unscored, Withheld
from lmms_eval.tasks._task_utils.file_utils import generate_submission_file
from lmms_eval.tasks._task_utils.linguistic import data_identity
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks.megabench import gold, interleave, judge_questions, prompts, sandbox_record, submission
from lmms_eval.tasks.megabench.geocoding import geocoder_identity
from lmms_eval.tasks.megabench.gold import right_reply
from lmms_eval.tasks.megabench.rows import parse_row
from lmms_eval.tasks.megabench.scoring.query import read_context, score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from lmms_eval.tasks.megabench.settings import Settings
from lmms_eval.tasks.megabench.summary import RunSummary, TaskScore, macro_estimate, score_task, summarise

Options = Mapping[str, Any] | None


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """The prompt's text. Media are opened only for the one task that mixes pictures and videos."""
    row = parse_row(doc)
    if not prompts.is_text_rebuilt(row):
        return prompts.plain_text(row)
    return prompts.prompt_text(row, Settings.of(lmms_eval_specific_kwargs).media)


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """Pictures, paths of videos, or pictures and frames."""
    return prompts.visuals(parse_row(doc), Settings.of(lmms_eval_specific_kwargs).media)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """One user turn: all visuals and then the text, or with ``interleave`` everything in its place."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    row = parse_row(doc)
    if settings.interleave:
        return interleave.interleaved_messages(row, settings.media, settings.budget)
    return prompts.messages(row, settings.media)


def doc_to_target(doc: Mapping[str, Any]) -> str:
    """The ``answer`` column as it stands."""
    return str(doc["answer"])


def doc_to_right_reply(doc: Mapping[str, Any]) -> str:
    """A reply that scores in full: the target of the demonstration task, so that a baseline can repeat it."""
    row = parse_row(doc)
    return gold.right_reply(row, _task_spec(str(row.metric_info), row.task_name, tuple(row.answer)))


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """A reply that deserves full marks, for ``--model baseline --model_args strategy=gold``."""
    row = parse_row(doc)
    return right_reply(row, _task_spec(str(row.metric_info), row.task_name, tuple(row.answer)))


def scoring_data_identity(lmms_eval_specific_kwargs: Options) -> str:
    """Name what scores depend on beyond document and reply. Raises ``DataError`` for an unusable geocoding table."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    try:
        words = data_identity(settings.nltk_data)
    except NotEvaluated as damaged:
        words = damaged.reason
    return f"{words} {geocoder_identity(settings.geocode_table, settings.geocoder)}".strip()


def doc_to_judge(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> list[JudgeQuestion]:
    """The questions behind the judge metrics of a query; most have none."""
    row = parse_row(doc)
    spec = _task_spec(str(row.metric_info), row.task_name, tuple(row.answer))
    if spec.eval_type == "rule":
        return []

    def find(name: str) -> Path:
        return Settings.of(lmms_eval_specific_kwargs).media.path(name)

    query = judge_questions.JudgedQuery(
        row.answer, row.query.text, row.query.media, read_context(row.eval_context), find
    )
    return judge_questions.questions(results[0] if results else "", query, spec)


@depends_on(scoring_data_identity)
def process_results(
    doc: Mapping[str, Any],
    results: Sequence[Any],
    verdicts: Mapping[str, Verdict] | None = None,
    lmms_eval_specific_kwargs: Options = None,
) -> dict[str, Any]:
    """The submission record with its scores, and what the aggregations need of it.

    ``scored`` is 1, or ``Unscored`` where a field could not be evaluated (no judge, no program, no data).

    Raises:
        DataError, TaskError: the document is not as the data set has it.
    """
    row = parse_row(doc)
    reply = results[0] if results else ""
    spec = _task_spec(str(row.metric_info), row.task_name, tuple(row.answer))
    data = Settings.of(lmms_eval_specific_kwargs).outside_data
    outcome = score_query(reply, row.answer, spec, read_context(row.eval_context), verdicts, data)
    record = {**submission.record(row, reply), "scores": outcome.as_dict()}
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
    if not missing and any(metric.runs_programs for metric in spec.metrics.values()):
        value["sandbox"] = sandbox_record.sandbox_record()
    return {"submission": record, "macro_mean": value, "scored": Unscored(missing) if missing else 1.0}


def task_scores(values: Sequence[Mapping[str, Any]]) -> list[TaskScore]:
    """Totals of every task from the ``macro_mean`` values of its queries, tasks in order of their first query."""
    queries: dict[str, list[float | None]] = {}
    kinds: dict[str, Any] = {}
    fixed: dict[str, dict[int, float]] = {}
    for value in values:
        name = value["task_name"]
        queries.setdefault(name, []).append(value["query"])
        kinds[name] = value["eval_type"]
        if value.get("fixed") is not None:
            fixed.setdefault(name, {})[len(queries[name]) - 1] = value["fixed"]
    return [score_task(name, kinds[name], of_task, fixed.get(name)) for name, of_task in queries.items()]


def aggregate_macro_mean(values: Sequence[Mapping[str, Any]]) -> Any:
    """Mean over tasks of the mean over a task's queries, with its error and every task's score.

    ``Withheld`` if a task could not be evaluated: the partial value is the mean over the others.
    """
    scores = task_scores(values)
    summary: RunSummary = summarise(scores)
    complete = {score.name for score in scores if score.mean is not None}
    queries: dict[str, list[float]] = {}
    for value in values:
        if value["task_name"] in complete:
            queries.setdefault(value["task_name"], []).append(value["score"])
    demonstrations = {value["task_name"]: value.get("num_demo", 0) for value in values}
    details = {
        "summary": summary.as_dict(),
        "tasks": {
            score.name: {
                "mean_task_score": score.mean,
                "task_score": score.total,
                "num_query": score.num_query,
                "eval_type": score.eval_type,
                "fixed_mean_task_score": score.fixed_mean,
                "num_demo": demonstrations.get(score.name, 0),
            }
            for score in scores
        },
    }
    parts: dict[str, Any] = {"megabench": details}
    if sandboxes := sandbox_record.distinct_sandboxes(values):
        parts["sandbox"] = sandboxes
    estimate = macro_estimate(summary.partial.macro, list(queries.values()), parts)
    if not summary.not_evaluated:
        return estimate
    names = ", ".join(summary.not_evaluated[:5]) + (", ..." if len(summary.not_evaluated) > 5 else "")
    return Withheld(estimate, f"{len(summary.not_evaluated)} tasks not evaluated: {names}")


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Core, open, overall and the breakdown over the tasks of a run."""
    from lmms_eval.tasks.megabench.report import report as whole

    return whole(tasks, stem)


def aggregate_scored(values: Sequence[float]) -> int:
    """Number of queries that were scored."""
    return len(values)


def aggregate_submission_core(records: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the submission file of ``megabench_core``."""
    return _write_submission("megabench_core", records, args)


def aggregate_submission_open(records: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the submission file of ``megabench_open``."""
    return _write_submission("megabench_open", records, args)


def aggregate_submission_core_si(records: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the submission file of ``megabench_core_si``."""
    return _write_submission("megabench_core_si", records, args)


def aggregate_submission_open_si(records: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the submission file of ``megabench_open_si``."""
    return _write_submission("megabench_open_si", records, args)


def aggregate_submission_demo(records: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Write the submission file of ``megabench_demo``."""
    return _write_submission("megabench_demo", records, args)


def _write_submission(task: str, records: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """No number; the results name the file."""
    path = Path(generate_submission_file(submission.file_name(task), args))
    submission.write(records, path)
    return Estimate(None, details={"submission_files": [str(path)]})


@functools.lru_cache(maxsize=1024)
def _task_spec(metric_info: str, task_name: str, fields: tuple[str, ...]) -> TaskSpec:
    return parse_task_spec(metric_info, task_name, fields)
