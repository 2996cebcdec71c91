"""Scores a submission file, with the same scores as in a run of the harness.

The steps of the pipeline specification §5: check the submission, keep scores of an earlier output, ask the questions
of judged tasks, score in worker processes, and sum up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.judge_questions import JudgedQuery, questions
from lmms_eval.tasks.megabench.reference import EntryProblem, ReferenceTask, check
from lmms_eval.tasks.megabench.scoring.pool import ScorePool, Scores
from lmms_eval.tasks.megabench.scoring.query import read_context
from lmms_eval.tasks.megabench.scoring.task_spec import NO_SCORE
from lmms_eval.tasks.megabench.scoring.worker import QueryJob, TaskJob
from lmms_eval.tasks.megabench.summary import EvalType, TaskTotals, score_task, summarise
from lmms_eval.utils.records import to_dict

BLOCK = 25
"""The intermediate state can be saved after so many tasks."""


class EvaluatorOutput(Struct):
    """The evaluator's output."""

    data: list[Mapping[str, Any]]
    """All entries in the submission's order; entries without scores are unchanged."""
    problems: list[EntryProblem]
    tasks: list[TaskTotals] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the output file (§5.2)."""
        content: dict[str, Any] = {"data": self.data, "summary": summarise(self.tasks).as_dict()}
        if self.problems:
            content["errors"] = [to_dict(problem) for problem in self.problems]
        return content


class Watcher(Protocol):
    """Receives the progress of an evaluation."""

    def task(self, score: TaskTotals, is_reused: bool) -> None:
        """Receive the score of a task, new or from the earlier output; tasks come in the submission's order."""

    def block(self, so_far: EvaluatorOutput) -> None:
        """Receive the state after ``BLOCK`` more tasks, which the next start can reuse."""


class JudgePanel(Struct, frozen=True):
    """The judge, and the files that its questions need."""

    ask: Callable[[Sequence[JudgeQuestion]], Sequence[Verdict]]
    """Returns the verdicts in the order of the questions."""
    find: Callable[[str], Path]
    """Finds the file of a medium of the data set."""


class _Open(Struct, frozen=True):
    """A task to score, or one whose earlier scores are kept."""

    position: int
    entry: Mapping[str, Any]
    job: TaskJob
    eval_type: EvalType
    known: Mapping[str, Any] | None


_Pending = tuple[Future[list[Scores]], int]
"""The scores of a group of tasks, and the place of a task in it."""


def evaluate(
    submission: Sequence[Mapping[str, Any]],
    tasks: Mapping[str, ReferenceTask],
    previous: Mapping[str, Mapping[str, Any]],
    pool: ScorePool,
    panel: JudgePanel | None,
    watcher: Watcher,
) -> EvaluatorOutput:
    """Score the entries of ``read_submission``. Without a panel, judged fields are not evaluated.

    ``problems`` names entries that cannot be scored (unknown tasks, repeated entries, unusable configurations).

    Args:
        submission: the entries.
        tasks: tasks of the configuration that the submission answers.
        previous: entries of an earlier output by task. Entries with unchanged answers keep their scores.
        pool: workers for the scoring.
        panel: the judge.
        watcher: receives the progress.
    """
    problems, refused = check(submission, tasks)
    evaluation = EvaluatorOutput(list(submission), problems)
    begun: list[_Open] = []
    for position, entry in enumerate(submission):
        if position in refused or not entry["query_response"]:
            continue
        task, known = tasks[entry["task_name"]], previous.get(entry["task_name"])
        queries = tuple(
            QueryJob(query.get("response"), query["correct_answer"], task.context(query) or "{}")
            for query in entry["query_response"]
        )
        job = TaskJob(task.name, task.metric_info, queries)
        try:
            eval_type = job.spec().eval_type
        except TaskError as error:
            problems.append(EntryProblem(task.name, str(error)))
            continue
        kept = known if known is not None and can_reuse(entry, known) else None
        begun.append(_Open(position, entry, job, eval_type, kept))
    is_judged = {item.position: item.eval_type == "llm" and panel is not None for item in begun}
    futures = _submitted([item for item in begun if item.known is None and not is_judged[item.position]], pool)
    for start in range(0, len(begun), BLOCK):
        block = begun[start : start + BLOCK]
        if panel is not None:
            judged = [item for item in block if item.known is None and is_judged[item.position]]
            futures |= {item.position: (pool.submit(job), 0) for item, job in _with_verdicts(judged, panel)}
        for item, (score, scored) in zip(block, _scored(block, futures), strict=True):
            evaluation.data[item.position] = _with_totals(item.entry, scored, score)
            evaluation.tasks.append(score)
            watcher.task(score, item.known is not None)
        if start + BLOCK < len(begun):
            watcher.block(evaluation)
    return evaluation


def _submitted(begun: Sequence[_Open], pool: ScorePool) -> dict[int, _Pending]:
    """Submit tasks without a judge, all at once, so that no worker waits for the longest task of a block.

    Those whose metrics load the same library go to the same worker, since loading takes longer than scoring. They come
    first, so that they are not the last to end.
    """
    sharing: dict[str, list[_Open]] = {}
    alone: list[list[_Open]] = []
    for item in begun:
        library = item.job.spec().library
        if library:
            sharing.setdefault(library, []).append(item)
        else:
            alone.append([item])
    found: dict[int, _Pending] = {}
    for group in (*sharing.values(), *alone):
        future = pool.submit(*(item.job for item in group))
        found |= {item.position: (future, place) for place, item in enumerate(group)}
    return found


def _scored(begun: Sequence[_Open], futures: dict[int, _Pending]) -> Iterator[tuple[TaskTotals, list[dict[str, Any]]]]:
    """Wait for the scores of a block of tasks. Yields totals, and queries with ``scores``."""
    for item in begun:
        if item.known is not None:
            yield _reused(item.entry, item.known, item.eval_type)
            continue
        future, place = futures.pop(item.position)
        name, results = item.entry["task_name"], future.result()[place]
        queries = [{**query, **result} for query, result in zip(item.entry["query_response"], results, strict=True)]
        scores = [result["scores"] for result in results]
        yield score_task(name, item.eval_type, [one["query"] for one in scores], fixed_queries(scores)), queries


def _with_verdicts(judged: Sequence[_Open], panel: JudgePanel) -> Iterator[tuple[_Open, TaskJob]]:
    """Return the jobs of judged tasks with the verdicts. All their questions are asked at once."""
    asked: list[list[list[JudgeQuestion]]] = [
        [
            questions(
                query.response,
                JudgedQuery(
                    answer=query.correct_answer,
                    text=str(submitted.get("query_text") or ""),
                    images=tuple(submitted.get("images") or ()),
                    context=read_context(query.eval_context),
                    find=panel.find,
                ),
                item.job.spec(),
            )
            for query, submitted in zip(item.job.queries, item.entry["query_response"], strict=True)
        ]
        for item in judged
    ]
    verdicts = iter(panel.ask([question for task in asked for query in task for question in query]))
    for item, of_task in zip(judged, asked, strict=True):
        found = tuple(tuple(next(verdicts) for _ in of_query) for of_query in of_task)
        queries = tuple(replace(q, verdicts=said) for q, said in zip(item.job.queries, found, strict=True))
        yield item, replace(item.job, queries=queries)


def can_reuse(entry: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether an earlier output holds the scores of exactly these answers (§5.3)."""
    if known.get("mean_task_score") is None or known.get("task_score") is None:
        return False
    queries, scored = entry["query_response"], known.get("query_response")
    if not isinstance(scored, list) or len(scored) != len(queries):
        return False
    for query, old in zip(queries, scored, strict=True):
        found = old.get("scores") if isinstance(old, Mapping) else None
        if not isinstance(found, Mapping) or found.get("query") is None:
            return False
        if found["query"] == NO_SCORE and not found.get("field"):
            return False
        if any(query.get(key) != old.get(key) for key in ("response", "correct_answer")):
            return False
    return True


def _reused(
    entry: Mapping[str, Any], known: Mapping[str, Any], eval_type: EvalType
) -> tuple[TaskTotals, list[dict[str, Any]]]:
    """Return the earlier scores, even if they would differ today."""
    kept = ("scores", "scorer_error", "judge")
    queries = [
        {**query, **{key: old[key] for key in kept if key in old}}
        for query, old in zip(entry["query_response"], known["query_response"], strict=True)
    ]
    score = TaskTotals(
        entry["task_name"], eval_type, len(queries), known["task_score"], known["mean_task_score"],
        known.get("fixed_mean_task_score"),
    )  # fmt: skip
    return score, queries


def fixed_queries(scores: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Return the repaired scores among the ``scores`` of a task's queries, by position."""
    return {place: item["fixed"]["query"] for place, item in enumerate(scores) if "fixed" in item}


def _with_totals(entry: Mapping[str, Any], queries: list[dict[str, Any]], score: TaskTotals) -> dict[str, Any]:
    totals: dict[str, Any] = {"eval_type": score.eval_type}
    if score.mean is not None:
        totals = {"task_score": score.total, "mean_task_score": score.mean, **totals}
    if score.fixed_mean is not None:
        totals["fixed_mean_task_score"] = score.fixed_mean
    return {**entry, "query_response": queries, **totals}
