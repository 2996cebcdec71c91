"""Scores all queries of a submitted task, in a worker process of the evaluator."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.api.judging import Verdict
from lmms_eval.processes import Parent, do_without
from lmms_eval.sandbox.policy import Policy, using
from lmms_eval.tasks.megabench.metrics.values import NO_DATA, OutsideData
from lmms_eval.tasks.megabench.scoring.query import read_context, score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, task_spec
from lmms_eval.utils.records import to_dict


class QueryJob(Struct, frozen=True):
    """One query as submitted, with its evaluation context."""

    response: str | None
    correct_answer: Mapping[str, Any]
    eval_context: str
    verdicts: tuple[Verdict, ...] = ()
    """Replies of a judge to the query's questions."""


class TaskJob(Struct, frozen=True):
    """The queries of one task."""

    task_name: str
    metric_info: str
    queries: tuple[QueryJob, ...]
    allow_unsafe_code: bool = False
    """Whether programs are run even if no sandbox can confine them."""
    data: OutsideData = NO_DATA

    def spec(self) -> TaskSpec:
        """Read the scoring of the queries. Raises ``TaskError`` for an unusable configuration."""
        return task_spec(self.metric_info, self.task_name, tuple(self.queries[0].correct_answer))


def score_job(job: TaskJob) -> list[dict[str, Any]]:
    """Return for each query its ``scores`` entry, and ``scorer_error`` if a metric raised. All values are JSON."""
    spec = job.spec()
    entries: list[dict[str, Any]] = []
    with using(Policy(job.allow_unsafe_code)):
        for query in job.queries:
            verdicts = {verdict.name: verdict for verdict in query.verdicts}
            context = read_context(query.eval_context)
            outcome = score_query(query.response, query.correct_answer, spec, context, verdicts, job.data)
            entry: dict[str, Any] = {"scores": outcome.as_dict()}
            if outcome.scorer_errors:
                entry["scorer_error"] = dict(outcome.scorer_errors)
            if verdicts:
                entry["judge"] = {name: verdict.as_record() for name, verdict in verdicts.items()}
            entries.append(entry)
    return entries


def to_line(job: TaskJob) -> bytes:
    """Serialise a job for a worker process."""
    queries = [
        [query.response, query.correct_answer, query.eval_context, [verdict.as_record() for verdict in query.verdicts]]
        for query in job.queries
    ]
    return json.dumps([job.task_name, job.metric_info, queries, job.allow_unsafe_code, to_dict(job.data)]).encode()


def from_line(line: bytes) -> TaskJob:
    """Undo ``to_line``."""
    name, metric_info, queries, allow_unsafe_code, data = json.loads(line)
    jobs = tuple(
        QueryJob(response, answer, context, tuple(map(Verdict.from_record, verdicts)))
        for response, answer, context, verdicts in queries
    )
    return TaskJob(name, metric_info, jobs, allow_unsafe_code, OutsideData(**data))


def results_from_line(line: bytes) -> Sequence[dict[str, Any]]:
    """Read the answer of a worker process to a job."""
    found: Sequence[dict[str, Any]] = json.loads(line)
    return found


def main() -> None:
    """Answer jobs until standard input ends."""
    do_without("scipy", "sklearn")  # NLTK would import them, for a second
    gc.set_threshold(100_000)  # what it loads, a million objects, is no garbage; collections took a fifth of the time
    parent = Parent()
    for line in parent:
        parent.send(json.dumps(score_job(from_line(line))).encode())


if __name__ == "__main__":
    main()
