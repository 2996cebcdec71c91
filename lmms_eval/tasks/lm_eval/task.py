"""A task of a pack of lm-eval."""

from __future__ import annotations

import logging
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from msgspec.structs import replace

from lmms_eval.api.task import Request
from lmms_eval.errors import FunctionError, MissingDataError, TaskError
from lmms_eval.tasks.data import DataSet, Documents
from lmms_eval.tasks.data.splits import of_datasets
from lmms_eval.tasks.lm_eval.config import (
    MEDIA_KEYS,
    LmEvalConfig,
    generation_kwargs,
    lm_eval_config,
    sent_generation,
)
from lmms_eval.tasks.lm_eval.exchanges import EXCHANGES
from lmms_eval.tasks.lm_eval.metrics import definition_of, lm_eval_metrics
from lmms_eval.tasks.lm_eval.prompts import (
    ExampleDraws,
    LmEvalPromptBuilder,
    LmEvalPrompts,
    example_pool,
    is_number,
    sampler_of,
)
from lmms_eval.tasks.lm_eval.scoring import LmEvalScorer, lm_eval_plan
from lmms_eval.tasks.yaml.config import GENERATING
from lmms_eval.tasks.yaml.exchanges import TaskExchange
from lmms_eval.tasks.yaml.fingerprints import hash_of_text
from lmms_eval.tasks.yaml.metrics import TaskMetric
from lmms_eval.tasks.yaml.scoring import ScoringPlan
from lmms_eval.tasks.yaml.settings import check_generation, with_stated
from lmms_eval.tasks.yaml.task import NAMED_KEYS, YamlTask, media_policy

log = logging.getLogger(__name__)
_MODEL = re.compile(r"\b(tokenizer|pretrained|model_args)\b")
"""Matches messages of ``custom_dataset`` about arguments of the model."""
_SEEDING = threading.RLock()
_UNCONFINED = (
    "its scoring runs programs of the model outside the sandbox (key unsafe_code); --allow_unsafe_code permits that"
)


class NoTokenizerError(MissingDataError):
    """A task makes its documents with the tokenizer of a model, and the run names none."""

    kind = "a tokenizer: --model_args tokenizer=NAME, or pretrained=NAME"
    """What is missing; a check counts tasks by it."""


@contextmanager
def seeded_python() -> Iterator[None]:
    """Seed Python's generator with 0 for a while, so that every start gets the same documents."""
    with _SEEDING:
        state = random.getstate()
        random.seed(0)
        try:
            yield
        finally:
            random.setstate(state)


def seeded(process: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``process_docs`` with Python's generator seeded."""

    def processed(documents: Any) -> Any:
        with seeded_python():
            return process(documents)

    return processed


def _is_confined(function: Callable[..., Any]) -> bool:
    """Return whether a function's module runs programs by ``code_eval``, which uses the sandbox."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return any(getattr(value, "is_confined", False) is True for value in vars(module or object).values())


class LmEvalTask(YamlTask):
    """A YAML task by the rules of lm-eval. Raises as ``YamlTask`` does."""

    config: LmEvalConfig
    prompts: LmEvalPrompts
    named_keys: ClassVar[tuple[str, ...]] = (*NAMED_KEYS, "custom_dataset", *MEDIA_KEYS)
    names_all_code = False
    moves_blanks = True

    def _checked(self, raw: Mapping[str, Any]) -> LmEvalConfig:
        return lm_eval_config(raw, self.where)

    def _process_docs(self) -> Callable[[Any], Any] | None:
        process = self.config.process_docs
        return None if process is None else seeded(process)

    def _open_data(self) -> DataSet:
        """Find the data; ``custom_dataset`` returns it by split for the metadata, settings and model of the run."""
        make = self.config.custom_dataset
        if make is None:
            return super()._open_data()
        stated = {**self.config.facts, **(self.config.dataset_kwargs or {})}
        given = {**self.options.model_args, **stated, **self.options.task_kwargs, "config_source": self.where}
        try:
            with seeded_python():
                made = make(**given)
        except FunctionError as error:
            cause = error.__cause__
            is_of_code = isinstance(cause, AssertionError | KeyError | TypeError | ValueError)
            if is_of_code and not self.options.model_args and _MODEL.search(str(cause)):
                raise NoTokenizerError(
                    f"{self.where}: custom_dataset makes the documents with the tokenizer of a model: give "
                    f"--model_args tokenizer=NAME, or pretrained=NAME; it raised: {cause}"
                ) from error
            if not isinstance(cause, ConnectionError | FileNotFoundError):
                raise
            raise MissingDataError(
                f"{self.where}: {error}; check the network, or give a local copy with --data_root DIR"
            ) from error
        if not isinstance(made, Mapping):
            raise TaskError(
                f"{self.where}: key 'custom_dataset' must return data sets by split, not a {type(made).__name__}"
            )
        return of_datasets(made, f"{self.where}: custom_dataset", media_policy(self.config, self.where, self.options))

    def _generation_options(self) -> dict[str, Any]:
        if self.config.output_type not in GENERATING:
            return {}
        made = with_stated(generation_kwargs(self.config), replace(self.options, legacy=False))
        check_generation(made, f"task {self.config.task}")
        return sent_generation(made)

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
        if self._shots and self.source.documents is None:  # a process that scores makes no prompts
            pool, excludes = example_pool(config, self._examples_in, self.where)
            draws = ExampleDraws(pool, documents, self._shots, sampler, excludes, self.options.fewshot_seed)
            draws.check(self.where)
        return LmEvalPromptBuilder(self.prompts, documents, draws)

    def _examples_in(self, split: str) -> Documents:
        """Return the documents of a split as examples, after ``process_docs`` of ``fewshot_config`` if it is there."""
        process = self.config.examples.get("process_docs")
        if process is None:
            return self.data.processed(split)
        unprocessed = self._open_data()
        unprocessed.process(seeded(process), [split])
        return unprocessed.documents(split)

    def fingerprint(self) -> Mapping[str, str]:
        """The fingerprint of a YAML task, with further functions and the form of conversations."""
        found, own = super().fingerprint(), self._hash_of(("custom_dataset", "gen_prefix"))
        is_joined = self.options.apply_chat_template and self.options.fewshot_as_multiturn is False
        return {
            **found,
            "config": hash_of_text(f"{found['config']} joined") if is_joined else found["config"],
            "functions": hash_of_text(found["functions"] + own),
        }

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
