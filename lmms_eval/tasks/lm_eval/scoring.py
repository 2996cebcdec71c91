"""Filters, metrics and scores of lm-eval's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import FilterEnsemble
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.filters import get_filter
from lmms_eval.tasks.lm_eval.config import LmEvalConfig
from lmms_eval.tasks.yaml.config import GENERATING
from lmms_eval.tasks.yaml.metrics import TaskMetric, task_metrics
from lmms_eval.tasks.yaml.scoring import AnswerScorer, Doc, ScoringPlan, scoring_plan


def lm_eval_metrics(config: LmEvalConfig, predict_only: bool, where: str) -> Sequence[TaskMetric]:
    """Return the metrics of a task."""
    return task_metrics(config, predict_only, where)


def lm_eval_plan(config: LmEvalConfig, options: TaskOptions, where: str) -> ScoringPlan:
    """Return the filters of a task; without ``filter_list`` the first answer counts."""
    plan = scoring_plan(config, options, where)
    if config.filter_list is not None:
        return plan
    first = FilterEnsemble("none", (get_filter("take_first")(),))
    return ScoringPlan((first,), plan.tags, plan.first_tags, plan.thought_tags)


class LmEvalScorer(AnswerScorer):
    """Scores answers as they are, without trimming; likelihoods are logarithms, greater is likelier."""

    def _filtered(self, pipeline: FilterEnsemble | None, doc: Doc, answers: Sequence[Answer]) -> list[Any]:
        return super()._filtered(pipeline, doc, answers)

    def _results(self, filtered: Sequence[Any]) -> list[Any]:
        if self.config.output_type not in GENERATING:
            return [(-loss, is_greedy) for loss, is_greedy in filtered]
        return list(filtered)

    def evaluate(self, doc: Doc, filtered: Sequence[Any], verdicts: Mapping[str, Any] | None = None) -> Any:
        return super().evaluate(doc, filtered, verdicts or {})
