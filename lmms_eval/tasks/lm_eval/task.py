"""A task of a pack of lm-eval."""

from __future__ import annotations

import logging
import random
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.task import Request
from lmms_eval.errors import TaskError
from lmms_eval.tasks.data import Documents, open_data
from lmms_eval.tasks.lm_eval.config import LmEvalConfig, generation_kwargs, lm_eval_config, sent_generation
from lmms_eval.tasks.lm_eval.exchanges import EXCHANGES
from lmms_eval.tasks.lm_eval.filters import lm_eval_plan
from lmms_eval.tasks.lm_eval.metrics import definition_of, lm_eval_metrics
from lmms_eval.tasks.lm_eval.prompts import (
    ExampleDraws,
    LmEvalPromptBuilder,
    LmEvalPrompts,
    example_pool,
    is_number,
    sampler_of,
)
from lmms_eval.tasks.lm_eval.scoring import LmEvalScorer
from lmms_eval.tasks.yaml.config import GENERATING
from lmms_eval.tasks.yaml.exchanges import TaskExchange
from lmms_eval.tasks.yaml.metrics import TaskMetric
from lmms_eval.tasks.yaml.scoring import ScoringPlan
from lmms_eval.tasks.yaml.task import YamlTask

log = logging.getLogger(__name__)
_SEEDING = threading.RLock()
_UNCONFINED = (
    "its scoring runs programs of the model outside the sandbox (key unsafe_code); --allow_unsafe_code permits that"
)


def seeded(process: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``process_docs`` with Python's generator seeded by 0, so that every start gets the same documents."""

    def processed(documents: Any) -> Any:
        with _SEEDING:
            state = random.getstate()
            random.seed(0)
            try:
                return process(documents)
            finally:
                random.setstate(state)

    return processed


def _is_confined(function: Callable[..., Any]) -> bool:
    """Return whether a function's module runs programs by ``code_eval``, which uses the sandbox."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return any(getattr(value, "is_confined", False) is True for value in vars(module or object).values())


class LmEvalTask(YamlTask):
    """A YAML task by the rules of lm-eval. Raises as ``YamlTask`` does."""

    config: LmEvalConfig
    prompts: LmEvalPrompts

    def _checked(self, raw: Mapping[str, Any]) -> LmEvalConfig:
        return lm_eval_config(raw, self.where)

    def _process_docs(self) -> Callable[[Any], Any] | None:
        process = self.config.process_docs
        return None if process is None else seeded(process)

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
            pool, excludes = example_pool(config, self._examples_in, self.where)
            draws = ExampleDraws(pool, documents, self._shots, sampler, excludes, self.options.fewshot_seed)
            draws.check(self.where)
        return LmEvalPromptBuilder(self.prompts, documents, draws)

    def _examples_in(self, split: str) -> Documents:
        """Return the documents of a split as examples, after ``process_docs`` of ``fewshot_config`` if it is there."""
        process = self.config.examples.get("process_docs")
        if process is None:
            return self.data.processed(split)
        unprocessed = open_data(self.data_request, split)
        unprocessed.process(seeded(process), [split])
        return unprocessed.documents(split)

    def load(self) -> None:
        if self._documents is not None:
            return
        super().load()
        if self._is_refused and isinstance(self._scorer, LmEvalScorer):
            log.warning("task %s: its samples will not be scored: %s", self.name, _UNCONFINED)
            self._scorer.refusal = _UNCONFINED

    @property
    def _is_refused(self) -> bool:
        """Whether scoring would run programs of the model unconfined, and the run does not allow it."""
        config, options = self.config, self.options
        if not config.unsafe_code or options.allow_unsafe_code or options.predict_only:
            return False
        functions = [config.process_results, *(metric.function for metric in self._lm_eval_metrics)]
        return not all(map(_is_confined, filter(None, functions)))

    def legacy_context_turns(self, request: Request) -> list[dict[str, str]]:
        doc = self.documents.text_view(request.doc_id)
        is_choice = self.output_type == "multiple_choice" and is_number(self.prompts.text(doc))
        choices = self.prompts.choices(doc) or []
        question = choices[request.index] if is_choice and request.index < len(choices) else None
        return self.requests.builder.text_turns(request.doc_id, question)

    def add_metrics(self, returned: Sequence[str]) -> None:
        """Add metrics that ``process_results``, or a function that gives several, returns under other names.

        Those of a function have its aggregation and direction, all others are averaged. A function that gives several
        has no metric of its own name.
        """
        known = {metric.name for metric in self.metrics}
        functions = [one for one in self._lm_eval_metrics if one.name not in returned and one.function is not None]
        like = functions[0].metric.definition if len(functions) == 1 else None
        for name in dict.fromkeys(returned):
            if name not in known:
                added = definition_of(name, "mean", True, self.where) if like is None else replace(like, name=name)
                self.metrics = (*self.metrics, added)
        if like is not None:
            self.metrics = tuple(metric for metric in self.metrics if metric.name != like.name)

    def _answer_scorer(self, documents: Documents) -> LmEvalScorer:
        full = documents if self.config.full_docs else None
        return LmEvalScorer(self.prompts, self._lm_eval_metrics, self._plan, full, self.seeding.scoring_may_draw)

    @cached_property
    def _exchange(self) -> type[TaskExchange]:
        if self.output_type not in EXCHANGES:
            raise TaskError(f"{self.where}: output_type {self.output_type!r} is not one of {', '.join(EXCHANGES)}")
        return EXCHANGES[self.output_type]
