"""Scoring of one document: whatever happens there, a journal record comes out."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.task import PipelineScore, ScoredDoc
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.failures import failure
from lmms_eval.engine.records import failure_record, score_record
from lmms_eval.engine.watchdog import ScoringTimeout


def score_document(job: Job) -> dict[str, Any]:
    """The journal record of one document; whatever the scoring raises ends as a failed sample, not as a lost run."""
    record = _scored(job)
    if job.verdicts:
        record["judge"] = [verdict.as_record() for verdict in job.verdicts]
    return record


def _scored(job: Job) -> dict[str, Any]:
    name, doc_id, answers = job.task.name, job.doc_id, job.answers
    if job.reason:
        return failure_record(name, doc_id, answers, job.reason)
    try:
        return score_record(name, doc_id, answers, job.task.score(doc_id, answers, job.verdicts))
    except NotEvaluated as absent:
        scores = tuple(PipelineScore(one, None, {}, "unscored", absent.reason) for one in job.task.pipelines)
        return score_record(name, doc_id, answers, ScoredDoc(target="", doc={}, doc_hash="", scores=scores))
    except (KeyboardInterrupt, ScoringTimeout):  # from outside of the scoring
        raise
    except BaseException as raised:  # noqa: BLE001 - foreign code: one bad sample is one failed sample
        return failure_record(name, doc_id, answers, failure("scoring", raised))
