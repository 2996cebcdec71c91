"""Scores of a document's answers: reasoning tags, filter pipelines, then ``process_results`` or the default metrics."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from lmms_eval.api.interleaved import InterleavedText
from lmms_eval.api.judging import JudgeQuestion, Verdict, repeat_name
from lmms_eval.api.outcome import NotEvaluated, Unscored, evaluated_wholly
from lmms_eval.api.registry import FILTERS as ADDED_FILTERS
from lmms_eval.api.task import Answer, PipelineScore, SecondReading, TaskOptions
from lmms_eval.errors import TaskError, UnknownNameError, UsageError
from lmms_eval.filters import FILTERS, FilterEnsemble, get_filter, run_filters
from lmms_eval.filters.reasoning import (
    DEFAULT_TAGS,
    THOUGHT_TAGS,
    parse_reasoning_tags_config,
    strip_pairs,
    without_box_marks,
)
from lmms_eval.tasks.yaml.config import GENERATING, TaskConfig
from lmms_eval.tasks.yaml.metrics import BYPASS, TaskMetric, metric_function, score_text, stated_reducers
from lmms_eval.tasks.yaml.prompts import Prompts, RenderError, dump
from lmms_eval.utils.answer_reading import DRAWN, NOTHING, WHOLE_ANSWER, AnswerReading, reading_apart, scoring_notes
from lmms_eval.utils.installed import error_text
from lmms_eval.utils.numbers import item_number
from lmms_eval.utils.signatures import accepts, keywords_for, parameters_of

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages
    from lmms_eval.media.policy import MediaPolicy
    from lmms_eval.metrics.choice import ChoiceItem, LikelihoodItem


KEYS = ("name", "prompt", "messages", "images", "generation", "reader", "max_side", "details")
DEFAULT_GENERATION: Mapping[str, Any] = MappingProxyType({"temperature": 0, "max_new_tokens": 1024})
_MARK = "@"


def scope(pipeline: str, number: int | None) -> str:
    """Return the prefix of an evaluation's names: ``number`` counts single answers, ``None`` means all together."""
    if pipeline == "none" and not number:
        return ""
    return f"{_MARK}{pipeline}{'' if number is None else f'#{number}'}/"


def verdicts_in(verdicts: Sequence[Verdict], prefix: str) -> dict[str, Verdict]:
    """Return the verdicts of one evaluation by the names that the task gave."""
    if not prefix:
        return {verdict.name: verdict for verdict in verdicts if not verdict.name.startswith(_MARK)}
    return {
        verdict.name.removeprefix(prefix): verdict for verdict in verdicts if verdict.name.startswith(prefix)
    }  # fmt: skip


def asked_again(verdicts: Mapping[str, Verdict], number: int) -> dict[str, Verdict]:
    """Return the verdicts of one repetition of the questions by the questions' own names."""
    mark = repeat_name("", number)
    return {name.removesuffix(mark): verdict for name, verdict in verdicts.items() if name.endswith(mark)}


def known_values(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that were evaluated."""
    return {key: value for key, value in metrics.items() if not isinstance(value, Unscored)}


def repeated(found: Iterable[JudgeQuestion], times: int) -> list[JudgeQuestion]:
    """Repeat every question ``times`` times."""
    return [
        replace(question, name=repeat_name(question.name, number), asking=number)
        for question in found
        for number in range(1, times + 1)
    ]


def questions(
    function: Any,
    doc: Mapping[str, Any],
    results: list[Any],
    settings: Any,
    where: str,
    media: MediaPolicy | None = None,
) -> list[JudgeQuestion]:
    """Call ``doc_to_judge``.

    Raises:
        TaskError: it did not return a list of mappings with the keys of ``KEYS``.
        MediaError: a document from the hub names a picture that it must not show.
    """
    more = keywords_for(function, {"lmms_eval_specific_kwargs": settings})
    made = function(doc, results, **more) or []
    if not isinstance(made, list | tuple):
        raise TaskError(f"{where}: doc_to_judge must return a list of questions, not a {type(made).__name__}")
    found = [item if isinstance(item, JudgeQuestion) else _question(item, where, media) for item in made]
    names = [question.name for question in found]
    if len(set(names)) < len(names) or any(name.startswith(_MARK) for name in names):
        raise TaskError(f"{where}: doc_to_judge: names must differ and not begin with {_MARK!r}: {names}")
    return found


def _question(item: Any, where: str, media: MediaPolicy | None) -> JudgeQuestion:
    from lmms_eval.judges.prompts import MAX_SIDE, reader

    if not isinstance(item, Mapping) or not (set(item) <= set(KEYS)):
        raise TaskError(f"{where}: doc_to_judge: a question is a mapping with some of {', '.join(KEYS)}: {item!r:.200}")
    prompt, messages = item.get("prompt"), item.get("messages")
    if (prompt is None) == (messages is None):
        raise TaskError(f"{where}: doc_to_judge: a question needs either prompt or messages: {item!r:.200}")
    if prompt is not None:
        side = item.get("max_side", MAX_SIDE)
        images = tuple(item.get("images") or ())
        build = functools.partial(_turn, str(prompt), images if media is None else tuple(media.media(images)), side)
    else:
        build = functools.partial(_given, messages, media)
    return JudgeQuestion(
        name=str(item.get("name", "judge")),
        build_messages=build,
        accepts=reader(item.get("reader", "text"), f"{where}: doc_to_judge"),
        generation={**DEFAULT_GENERATION, **(item.get("generation") or {})},
        details=dict(item.get("details") or {}),
    )


def _turn(prompt: str, images: Sequence[Any], max_side: int | None) -> ChatMessages:
    from lmms_eval.judges.prompts import bounded_picture, user_turn

    return user_turn(prompt, [bounded_picture(image, max_side) for image in images])


def _given(messages: Any, media: MediaPolicy | None) -> ChatMessages:
    from lmms_eval.api.messages import ChatMessages

    made = messages if isinstance(messages, ChatMessages) else ChatMessages(messages=list(messages))
    return made if media is None else ChatMessages.model_validate({"messages": media.turns(dump(made))})


log = logging.getLogger(__name__)
SETTINGS = "lmms_eval_specific_kwargs"
Doc = Mapping[str, Any]
Tags = Sequence[tuple[str, str]]


class ScoringPlan(Struct, frozen=True):
    """Filters and metrics of a task."""

    pipelines: tuple[FilterEnsemble | None, ...]
    """``None`` is the default pipeline: it leaves answers unchanged, and a document's value is their mean."""
    tags: Tags
    """Reasoning tags that are stripped after the filters."""
    first_tags: Tags
    """Reasoning tags that are stripped before the filters (``auto_strip_thinking``)."""
    thought_tags: Tags
    """Tags of reasoning that is not part of the task's answers; empty if the task scores reasoning."""

    @property
    def is_ours(self) -> bool:
        """Whether all filters come with this package."""
        filters = [step for pipeline in self.pipelines if pipeline is not None for step in pipeline.filters]
        return all(type(step).__module__.startswith("lmms_eval.filters.") for step in filters)


def scoring_plan(config: TaskConfig, options: TaskOptions, where: str) -> ScoringPlan:
    """Build the filters of a task, and choose its tags.

    Raises ``TaskError`` if a filter is unknown, arguments are wrong, or reasoning tags have a wrong form.
    """
    try:
        own = parse_reasoning_tags_config(None, config.reasoning_tags)
    except UsageError as error:
        raise TaskError(f"{where}: key 'reasoning_tags': {error}") from error
    is_stated = config.reasoning_tags is not None
    tags: Tags = tuple(own or ()) if is_stated else tuple(options.reasoning_tags)
    first: Tags = (tags or DEFAULT_TAGS) if config.auto_strip_thinking else ()
    scores_thoughts = not own if is_stated else options.keeps_thoughts
    pipelines: list[FilterEnsemble | None] = [None] if config.filter_list is None else []
    for entry in config.filter_list or ():
        name, steps = entry.get("name"), entry.get("filter")
        if not isinstance(name, str) or not isinstance(steps, list):
            problem = f"an entry needs name and filter (a list): {dict(entry)!r:.120}"
            raise TaskError(f"{where}: key 'filter_list': {problem}")
        pipelines.append(FilterEnsemble(name, tuple(_filter(step, where) for step in steps)))
    thoughts: Tags = () if scores_thoughts else (*THOUGHT_TAGS, *options.thinking_tags)
    return ScoringPlan(tuple(pipelines), tags, first, thoughts)


def _filter(step: Any, where: str) -> Any:
    if not isinstance(step, Mapping) or "function" not in step:
        raise TaskError(f"{where}: key 'filter_list': a filter needs 'function': {step!r:.120}")
    named = step["function"]
    arguments = {key: value for key, value in step.items() if key != "function"}
    if isinstance(named, str) and named not in FILTERS and named not in ADDED_FILTERS:
        raise UnknownNameError("filter", named, {*FILTERS, *ADDED_FILTERS.names()}, f"({where}: key 'filter_list')")
    made = named if callable(named) else get_filter(named)
    try:
        built = made(**arguments)
    except (TypeError, ValueError, UsageError) as error:
        raise TaskError(f"{where}: key 'filter_list': filter {named!r}: {error}") from error
    except Exception as error:  # a filter may be third-party code, which may raise anything
        raise TaskError(f"{where}: key 'filter_list': filter {named!r}: {error_text(error)}") from error
    if not hasattr(built, "apply"):
        raise TaskError(f"{where}: key 'filter_list': {named!r} has no method apply(resps, docs)")
    return built


class AnswerScorer:
    """Scores the documents of one task.

    Args:
        prompts: the task's prompts; their ``config`` holds functions, not references.
        metrics: its metrics.
        plan: its filters.
        full_docs: the whole split, if ``process_results`` takes ``full_docs``.
        may_draw: the task's scoring code names ``random``.
    """

    def __init__(
        self, prompts: Prompts, metrics: Sequence[TaskMetric], plan: ScoringPlan, full_docs: Any = None,
        may_draw: bool = False,
    ) -> None:  # fmt: skip
        self.prompts, self.metrics, self.plan, self.may_draw = prompts, metrics, plan, may_draw
        self.config, self.predict_only = prompts.config, prompts.options.predict_only
        self._reducers = stated_reducers(prompts.options.reduce)
        self._second = None if self.predict_only else prompts.options.second_reading
        self._takes_verdicts, self._given = False, dict[str, Any]()
        if (function := self.config.process_results) is not None:
            self._takes_verdicts = self.config.doc_to_judge is not None and accepts(function, "verdicts")
            if full_docs is not None and accepts(function, "full_docs"):
                self._given["full_docs"] = full_docs
            if SETTINGS in parameters_of(function).names:
                self._given[SETTINGS] = prompts.kwargs

    def scores(
        self, doc: Doc, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()
    ) -> tuple[PipelineScore, ...]:
        """Return one score per pipeline. A score that needs an absent part is *unscored*."""
        has_several, made = len(answers) > 1 and not self.predict_only, []
        for pipeline in self.plan.pipelines:
            filtered: Any = None
            each: list[Mapping[str, Any]] = []
            readings: list[AnswerReading] = []
            reasons: list[str] = []
            with scoring_notes(self.may_draw) as notes:
                try:
                    evaluations = self._evaluated(pipeline, doc, answers)
                    single = [values for _, values in evaluations]
                    filtered = single[0]
                    if pipeline is None and len(single) > 1:
                        filtered = [list(values) for values in zip(*single, strict=True)]
                    for scope, values in evaluations:
                        with reading_apart() as alone:
                            each.append(self.evaluate(doc, values, verdicts_in(verdicts, scope) if verdicts else {}))
                        readings.append(alone.reading)
                except NotEvaluated as absent:
                    each, reasons = [], [absent.reason]
            metrics = mean_metrics(each) if pipeline is None and len(each) > 1 else next(iter(each), {})
            # Values that were not evaluated are dropped. A document that lacks any value is unscored.
            reasons += [value.reason for value in metrics.values() if isinstance(value, Unscored)]
            first = 0 if pipeline is None else 1
            of_answers = each[first:] if has_several else ()
            if of_answers and self._reducers and not reasons:
                votes = [self._vote(pipeline, *one) for one in zip(single[first:], readings[first:], strict=True)]
                metrics = {**metrics, **self._reduced(of_answers, votes)}
            heard = evaluations[first if has_several else 0 :] if each else []
            made.append(
                PipelineScore(
                    filter="none" if pipeline is None else pipeline.name,
                    filtered=filtered,
                    metrics=known_values(metrics),
                    status="unscored" if reasons else "scored",
                    reason="; ".join(dict.fromkeys(reasons)),
                    per_answer=tuple(map(known_values, of_answers)),
                    per_verdict=self._of_verdicts(doc, heard, verdicts),
                    drew=notes.drew,
                    reading=notes.reading,
                )
            )
        if self._second is not None:
            made[0] = self._read_again(self._second, doc, answers, verdicts, made[0])
        return tuple(made)

    def _read_again(
        self,
        second: SecondReading,
        doc: Doc,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        own: PipelineScore,
    ) -> PipelineScore:
        """Add the values of another reading to a score of the task's own."""
        with scoring_notes():  # the audit is about the task's own reading
            found = second.values(doc, self._truth(doc), answers, lambda text: self.evaluate(doc, [text]), verdicts)
        names = [metric.name for metric in second.metrics([metric.definition for metric in self.metrics])]
        each = [{name: one.get(name) for name in names if name in one or not one} for one in found]
        per_answer = tuple({**alone, **added} for alone, added in zip(own.per_answer, each, strict=False))
        return structs.replace(own, metrics={**own.metrics, **combined(each)}, per_answer=per_answer)

    def _truth(self, doc: Doc) -> Any:
        return "" if self.config.doc_to_target is None else self.prompts.target(doc)

    def _of_verdicts(
        self, doc: Doc, evaluations: Sequence[tuple[str, list[Any]]], verdicts: Sequence[Verdict]
    ) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Return the metrics of each answer by each asking of the judge; empty without repeats of the judge."""
        times = self.prompts.options.judge_repeats
        if times < 2 or not self._takes_verdicts or self.predict_only:
            return ()
        made = []
        for prefix, values in evaluations:
            found = verdicts_in(verdicts, prefix)
            of_answer = []
            for number in range(1, times + 1):
                asked = found if number == 1 else asked_again(found, number)
                with scoring_notes(), contextlib.suppress(NotEvaluated):
                    of_answer.append(known_values(self.evaluate(doc, values, asked)))
            made.append(tuple(of_answer))
        return tuple(made)

    def _vote(self, pipeline: FilterEnsemble | None, filtered: Sequence[Any], reading: AnswerReading) -> Hashable:
        """Return the extracted answer; equal answers vote together. ``None`` if scoring does not extract one."""
        if pipeline is None and reading.rule in (NOTHING, DRAWN):
            return ""
        if pipeline is None and reading.found:
            return reading.found
        has_none = pipeline is None and self.config.process_results is not None and reading.rule != WHOLE_ANSWER
        return None if has_none else " ".join(str(self._results(filtered)[0]).split()).casefold()

    def _reduced(self, of_answers: Sequence[Mapping[str, Any]], votes: Sequence[Hashable]) -> dict[str, Any]:
        """Return the reduced metrics of a document (``reduced_metrics``), if every answer has a number."""
        config, made = self.config, dict[str, Any]()
        for metric in self.metrics:
            items = [one.get(metric.name) for one in of_answers]
            scores = [item_number(item, config.score_key) for item in items]
            known = [float(score) for score in scores if score is not None]
            if len(known) < len(scores):
                continue
            for reducer in self._reducers:
                if reducer.needs_answers and None in votes:
                    continue
                value: Any = reducer.value(known, votes, metric.definition.higher_is_better is not False)
                if config.cluster_key:
                    cluster = items[0].get(config.cluster_key) if isinstance(items[0], Mapping) else None
                    value = {config.score_key: value, config.cluster_key: cluster}
                made[f"{metric.name}_{reducer.name}"] = value
        return made

    def judge_questions(self, doc: Doc, answers: Sequence[Answer]) -> list[JudgeQuestion]:
        """Return the questions of ``doc_to_judge`` about every set of answers that is scored."""
        found: list[JudgeQuestion] = []
        for pipeline in self.plan.pipelines if self.config.doc_to_judge is not None else ():
            for prefix, filtered in self._evaluated(pipeline, doc, answers):
                prompts, results = self.prompts, self._results(filtered)
                made = questions(self.config.doc_to_judge, doc, results, prompts.kwargs, prompts.where, prompts.media)
                found += [replace(question, name=prefix + question.name) for question in made]
        if self._second is not None:
            found += self._second.questions(doc, self._truth(doc), answers)
        return found

    def evaluate(
        self, doc: Doc, filtered: Sequence[Any], verdicts: Mapping[str, Verdict] = MappingProxyType({})
    ) -> Mapping[str, Any]:
        """Return the values of filtered answers, one answer for each request of the document."""
        results, kind = self._results(filtered), self.config.output_type
        if self.predict_only:
            return {BYPASS: [[self.prompts.target(doc)], list(results)]}
        if self.config.process_results is not None:
            given = {**self._given, "verdicts": verdicts} if self._takes_verdicts else self._given
            with evaluated_wholly():
                made = self.config.process_results(doc, results, **given)
            if not isinstance(made, Mapping):
                raise RenderError(f"process_results must return a mapping of metrics, not a {type(made).__name__}")
            return made
        if kind in GENERATING:
            answer = results[0] if results else ""
            if isinstance(answer, list):
                answer = answer[-1] if answer else ""
            targets = self._targets(doc)
            return {metric.name: score_text(metric, kind, targets, answer) for metric in self.metrics}
        item = self._choice_item(doc, results) if kind == "multiple_choice" else self._likelihood_item(doc, results)
        functions = [(metric, metric_function(metric.name, kind)) for metric in self.metrics]
        return {metric.name: function(item, **metric.arguments) for metric, function in functions if function}

    def _evaluated(
        self, pipeline: FilterEnsemble | None, doc: Doc, answers: Sequence[Answer]
    ) -> list[tuple[str, list[Any]]]:
        """Return scope and filtered answers for every call of ``process_results``."""
        if pipeline is None:
            return [
                (scope("none", number) if number else "", self._filtered(None, doc, [answer]))
                for number, answer in enumerate(answers)
            ]
        found = [(scope(pipeline.name, None), self._filtered(pipeline, doc, answers))]
        if len(answers) > 1:
            with contextlib.suppress(UsageError):  # the pipeline needs several answers (``take_first_k``)
                alone = [self._filtered(pipeline, doc, [answer]) for answer in answers]
                found += [(scope(pipeline.name, number), filtered) for number, filtered in enumerate(alone)]
        return found

    def _filtered(self, pipeline: FilterEnsemble | None, doc: Doc, answers: Sequence[Answer]) -> list[Any]:
        """Return one filtered value per request of the document."""
        if self.config.output_type in GENERATING:
            each: list[list[Any]] = [[_unmarked(answer.value)] for answer in answers]
        else:
            each = [[(float(value), bool(greedy)) for value, greedy in answer.value] for answer in answers]
        per_request = [list(values) for values in zip(*each, strict=True)]
        if self.plan.first_tags:
            per_request = [_stripped(values, self.plan.first_tags) for values in per_request]
        if pipeline is None:
            found = [values[0] for values in per_request]
        else:
            found = run_filters(pipeline, per_request, [doc] * len(per_request))
        return [_stripped(value, self.plan.tags) for value in found] if self.plan.tags else found

    def _results(self, filtered: Sequence[Any]) -> list[Any]:
        """Return the results for ``process_results``; texts of generating tasks are stripped."""
        if self.config.output_type not in GENERATING:
            return list(filtered)
        value = filtered[0] if filtered else ""
        if self.config.output_type == "generate_until_multi_round":
            return [value]
        values = value if isinstance(value, list | tuple) else filtered or [""]
        trimmed = [item.strip() if isinstance(item, str) else item for item in values]
        return ["" if item is None else item for item in trimmed]

    def _targets(self, doc: Doc) -> list[Any]:
        """Return the reference answers of a document. A list gives several answers; numbers name choices."""
        value, choices = self.prompts.target(doc), self.prompts.choices(doc) or []
        found = list(value) if isinstance(value, list | tuple) else [value]
        return [choices[item] if _is_number(item) and 0 <= item < len(choices) else item for item in found]

    def _choice_item(self, doc: Doc, results: Sequence[Any]) -> ChoiceItem:
        """Return losses and right choices of a document. Numbers and texts name choices; −1 is not among them."""
        from lmms_eval.metrics.choice import ChoiceItem

        choices = self.prompts.choices(doc) or []
        losses, greedy = [loss for loss, _ in results], [is_greedy for _, is_greedy in results]
        bare: Sequence[float] = ()
        if len(results) == 2 * len(choices):
            losses, greedy, bare = losses[::2], greedy[::2], losses[1::2]
        value: Any = self.prompts.text(doc) if self.config.doc_to_text is not None else None
        if not _is_number(value):
            value = self.prompts.target(doc)
        gold = tuple(
            item if _is_number(item) else choices.index(str(item)) if str(item) in choices else -1
            for item in (value if isinstance(value, list | tuple) else [value])
        )
        if not any(0 <= index < len(choices) for index in gold):
            log.warning("%s: target %r is not one of the %d choices", self.prompts.where, value, len(choices))
        return ChoiceItem(tuple(losses), tuple(greedy), tuple(choices), gold, tuple(bare))

    def _likelihood_item(self, doc: Doc, results: Sequence[Any]) -> LikelihoodItem:
        from lmms_eval.metrics.choice import LikelihoodItem

        loss, greedy = results[0]
        target = self.prompts.answer_text(doc)
        return LikelihoodItem(-loss, greedy, max(1, len(target.split())), max(1, len(target.encode())))


def combined(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average the metrics of a document's answers; what one of them lacks (``None``) is ``None``, in mappings too."""
    made = mean_metrics(each)
    for name, mean in made.items():
        values = [one.get(name) for one in each]
        if None in values:
            made[name] = None
        elif isinstance(mean, Mapping):
            absent = [key for value in values if value is not None for key, item in value.items() if item is None]
            made[name] = {**mean, **dict.fromkeys(absent)}
    return made


def mean_metrics(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average the metrics of a document's answers, also inside mappings.

    If an answer could not be evaluated, neither is the document. For values that are not numbers, the first is kept.
    """
    return {
        key: _mean([one[key] for one in each if key in one]) for key in dict.fromkeys(k for one in each for k in one)
    }


def _mean(values: Sequence[Any]) -> Any:
    absent = next((value for value in values if isinstance(value, Unscored)), None)
    if absent is not None:
        return absent
    if all(isinstance(value, int | float) for value in values):
        same = all(value == values[0] for value in values)
        return values[0] if same else math.fsum(values) / len(values)
    if all(isinstance(value, Mapping) for value in values):
        return {key: _mean([value[key] for value in values if key in value]) for key in values[0]}
    return values[0]


def _unmarked(value: Any) -> Any:
    """Return an answer without the marks that its model writes around what is final."""
    return without_box_marks(value) if type(value) is str else value


def _stripped(value: Any, tags: Tags) -> Any:
    if isinstance(value, InterleavedText):
        return value.edited(lambda text: strip_pairs(text, tags)).strip()
    if isinstance(value, str):
        return strip_pairs(value, tags)
    if isinstance(value, list):
        return [_stripped(item, tags) for item in value]
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
