"""MEGA-Bench: whole tasks and runs of several tasks, through the evaluator of submissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api import judging
from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.judges import ask
from lmms_eval.sandbox.policy import current_policy, not_confined
from lmms_eval.tasks.megabench.metrics import METRICS, SANDBOX
from lmms_eval.tasks.megabench.reference import ReferenceTask
from lmms_eval.tasks.megabench.scoring.pool import ScorePool
from lmms_eval.tasks.megabench.standalone import EvaluatorOutput, JudgePanel, evaluate
from lmms_eval.tasks.megabench.summary import TaskTotals
from tests.parity.adapters.megabench import NLTK_DATA, decode, expects_error, outside_data, same
from tests.parity.adapters.megabench_judges import Recorded, picture, wrong_request
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

TOTALS = ("task_score", "mean_task_score", "eval_type")


class Silent:
    """A watcher that needs to know nothing."""

    def task(self, score: TaskTotals, is_reused: bool) -> None: ...

    def block(self, so_far: EvaluatorOutput) -> None: ...


@line_adapter("megabench/end_to_end.jsonl")
def task_line(vector: Vector) -> Verdict:
    """A task, or a run of several, perhaps with an earlier output."""
    record = vector.record
    missing = next((part for info in metric_infos(record).values() if (part := missing_part(info))), "")
    if missing:
        return pending(missing)
    recorded = Recorded(record["judge_outputs"]) if "judge_outputs" in record else None
    found = evaluated(record, recorded)
    if record.get("recommended") == "none":
        return unknown_task_verdict(record, found)
    expected, summary = expectations(record)
    if expects_error(expected):
        return error_verdict(record, found)
    problem = wrong_request(recorded, record) if recorded else ""
    return failed(problem) if problem else compare_run(record, found, expected, summary)


def submitted(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    entries = record["submission"]
    return entries if record["kind"] == "run" else [entries]


def metric_infos(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """By task; one that is not in the data set has none."""
    if record["kind"] == "run":
        return record["metric_infos"]
    info = record["metric_info"]
    return {} if info is None else {record["submission"]["task_name"]: info}


def missing_part(metric_info: Any) -> str:
    """What the metrics of a task need and is absent here, or empty."""
    tables = [metric_info.get(key) or {} for key in ("field_score_function", "global_aux_metrics")]
    names = [str(name).lower() for table in tables for name in table.values()]
    specs = [METRICS[name] for name in names if name in METRICS]
    if any(spec.needs == "linguistic data" for spec in specs) and not NLTK_DATA.is_dir():
        return "linguistic data"
    if any(spec.needs == SANDBOX for spec in specs) and not_confined(current_policy().probe()):
        return "the code sandbox"
    return next((str(spec.needs) for spec in specs if not spec.path), "")


def expectations(record: Mapping[str, Any]) -> tuple[Any, Any]:
    """What is right, and its summary where one was recorded (README: the recommended side, a correction before it)."""
    if record.get("recommended") == "upstream" and "deviation" not in record:
        return decode(record["expected_upstream"]), None
    return decode(record["expected"]), decode(record.get("expected_summary"))


def evaluated(record: Mapping[str, Any], recorded: Recorded | None) -> EvaluatorOutput:
    infos, entries = metric_infos(record), submitted(record)
    contexts = decode(record.get("eval_contexts"))
    tasks = {
        entry["task_name"]: reference_task(entry, infos[entry["task_name"]], contexts)
        for entry in entries
        if entry["task_name"] in infos
    }
    previous = {task["task_name"]: task for task in record.get("existing_output", {}).get("data", ())}

    def answers(questions: Sequence[JudgeQuestion]) -> list[judging.Verdict]:
        assert recorded is not None
        return [verdict for question in questions for verdict in ask(recorded.judge, [question])]

    pool = ScorePool(1, data=outside_data(record))
    try:
        panel = JudgePanel(answers, picture) if recorded else None
        return evaluate(entries, tasks, previous, pool, panel, Silent())
    finally:
        pool.close()


def reference_task(entry: Mapping[str, Any], metric_info: Any, contexts: Sequence[Any] | None) -> ReferenceTask:
    positions = {str(query["global_idx"]): number for number, query in enumerate(entry["query_response"])}
    given = contexts or [{}] * len(positions)
    texts = [context if isinstance(context, str) else repr(context) for context in given]
    return ReferenceTask(entry["task_name"], repr(decode(metric_info)), texts, positions)


def shown(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task of the output as the vectors have it; one that was skipped has neither totals nor ``eval_type``."""
    samples = [
        {key: value for key, value in query["scores"].items() if key != "fixed"}
        for query in task["query_response"]
        if "scores" in query
    ]
    return {"samples": samples, **{key: task[key] for key in TOTALS if key in task}}


def wanted_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """The reference loses ``eval_type`` where it reuses a task; a skipped one is told by what it lacks."""
    wanted = {key: value for key, value in task.items() if key != "skipped"}
    return {"eval_type": "rule", **wanted} if "task_score" in wanted else wanted


def compare_run(record: Mapping[str, Any], found: EvaluatorOutput, expected: Any, summary: Any) -> Verdict:
    content = found.as_dict()
    if found.problems:
        return failed(f"errors {content['errors']}")
    got = [shown(task) for task in content["data"]]
    wanted = [wanted_task(task) for task in (expected if record["kind"] == "run" else [expected])]
    if not same(got, wanted):
        return failed(f"got {got}, expected {wanted}")
    if "judge_outputs" in record and (errors := scorer_errors(content)):
        return failed(f"scorer errors {errors}")
    total = {key: value for key, value in content["summary"].items() if key != "fixed"}
    return PASSED if summary is None or same(total, summary) else failed(f"summary {total}, expected {summary}")


def scorer_errors(content: Mapping[str, Any]) -> list[Any]:
    queries = [query for task in content["data"] for query in task["query_response"]]
    return [query["scorer_error"] for query in queries if "scorer_error" in query]


def error_verdict(record: Mapping[str, Any], found: EvaluatorOutput) -> Verdict:
    """One bad sample is scored 0; anything else is refused before it is scored, with the task's name."""
    content = found.as_dict()
    if record.get("error_class") == "sample":
        scores = shown(content["data"][0])["samples"][:1]
        good = bool(scores) and scores[0]["query"] == 0 and set(scores[0]["field"].values()) == {0.0}
        return deviates("megabench_sample_error_is_zero") if good else failed(f"got {content}")
    named = {problem.task_name for problem in found.problems if problem.task_name in problem.error}
    refused = {entry["task_name"] for entry in submitted(record)}
    good = named == refused and not any(set(TOTALS) & set(task) for task in content["data"])
    return PASSED if good else failed(f"the configuration was accepted: {content}")


def unknown_task_verdict(record: Mapping[str, Any], found: EvaluatorOutput) -> Verdict:
    """A task that is not in the data set: listed in ``errors``, not in the summary."""
    content = found.as_dict()
    good = [problem.task_name for problem in found.problems] == [entry["task_name"] for entry in submitted(record)]
    good = (
        good and content["summary"]["num_tasks"] == 0 and not any(set(TOTALS) & set(task) for task in content["data"])
    )
    return PASSED if good else failed(f"{content}")
