"""A task of a pack of lm-eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from lmms_eval.errors import TaskError
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.lm_eval.config import LmEvalConfig, generation_kwargs, lm_eval_config, sent_generation
from lmms_eval.tasks.lm_eval.exchanges import EXCHANGES
from lmms_eval.tasks.lm_eval.filters import lm_eval_plan
from lmms_eval.tasks.lm_eval.metrics import lm_eval_metrics
from lmms_eval.tasks.lm_eval.prompts import (
    ExampleDraws,
    LmEvalPromptBuilder,
    LmEvalPrompts,
    example_pool,
    sampler_of,
)
from lmms_eval.tasks.lm_eval.scoring import LmEvalScorer
from lmms_eval.tasks.yaml.config import GENERATING
from lmms_eval.tasks.yaml.exchanges import TaskExchange
from lmms_eval.tasks.yaml.metrics import TaskMetric
from lmms_eval.tasks.yaml.scoring import ScoringPlan
from lmms_eval.tasks.yaml.task import YamlTask


class LmEvalTask(YamlTask):
    """A YAML task by the rules of lm-eval. Raises as ``YamlTask`` does."""

    config: LmEvalConfig
    prompts: LmEvalPrompts

    def _checked(self, raw: Mapping[str, Any]) -> LmEvalConfig:
        return lm_eval_config(raw, self.where)

    def _generation_options(self) -> dict[str, Any]:
        if self.config.output_type not in GENERATING:
            return {}
        return sent_generation({**generation_kwargs(self.config), **self.options.gen_kwargs})

    def _stated_metrics(self) -> Sequence[TaskMetric]:
        self._lm_eval_metrics = lm_eval_metrics(self.config, self.options.predict_only, self.where)
        return [one.metric for one in self._lm_eval_metrics]

    def _scoring_plan(self) -> ScoringPlan:
        return lm_eval_plan(self.config, self.options, self.where)

    def _made_prompts(self) -> LmEvalPrompts:
        return LmEvalPrompts(self.config, self.options, self.where)

    def _few_shot(self) -> None:
        """Examples are drawn when the data is open."""

    def _prompt_builder(self, documents: Documents) -> LmEvalPromptBuilder:
        config, draws = self.config, None
        sampler = sampler_of(config, self.where)
        if self._shots:
            pool, excludes = example_pool(config, self.data.processed, self.where)
            draws = ExampleDraws(pool, documents, self._shots, sampler, excludes, self.options.fewshot_seed)
            draws.check(self.where)
        return LmEvalPromptBuilder(self.prompts, documents, draws)

    def _answer_scorer(self, documents: Documents) -> LmEvalScorer:
        full = documents if self.config.full_docs else None
        return LmEvalScorer(self.prompts, self._lm_eval_metrics, self._plan, full, self.seeding.scoring_may_draw)

    @cached_property
    def _exchange(self) -> type[TaskExchange]:
        if self.output_type not in EXCHANGES:
            raise TaskError(f"{self.where}: output_type {self.output_type!r} is not one of {', '.join(EXCHANGES)}")
        return EXCHANGES[self.output_type]
