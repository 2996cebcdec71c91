"""Text printed around the final table: header, notes on what is not scored, and the command that continues the run."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.api.task import Group, ReportFunction
from lmms_eval.config import RunConfig, argument_text
from lmms_eval.config.convert import stopping_rules
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.groups import GroupResult
from lmms_eval.engine.looks import headline_metric
from lmms_eval.engine.plan import sample_mark
from lmms_eval.engine.uncertainty import NO_JUDGE_REPEATS, NO_REPEATS
from lmms_eval.results.document import RunFacts, cost_lines
from lmms_eval.results.facts import is_count
from lmms_eval.stats.interval import BENCHMARK, GENERALISED, Estimand
from lmms_eval.utils.names import some_of
from lmms_eval.utils.redaction import redact
from lmms_eval.utils.signatures import place_of

UNSCORED = "unscored: "
"""Prefix of the reasons of documents that could not be evaluated."""


def benchmark_reports(
    results: Iterable[TaskResult], stem: Path | None, groups: Collection[Group] = (), model: str = ""
) -> list[BenchmarkReport]:
    """Return one report for each report function of the run's tasks, in the order of the tasks.

    ``model`` is the name of the run's model, for titles. If a function raises, its report is the error message; the
    scores of its tasks do not depend on it.
    """
    inputs: dict[ReportFunction, dict[str, TaskNumbers]] = {}
    for result in results:
        if result.task.report is not None:
            inputs.setdefault(result.task.report, {})[result.task.name] = replace(_numbers(result, groups), model=model)
    reports = []
    for function, tasks in inputs.items():
        try:
            report = function(tasks, stem)
        except Exception as error:  # noqa: BLE001 - a task's own code may raise anything; its scores are complete
            logger.opt(exception=error).debug("the report of {}", ", ".join(tasks))
            place = place_of(error, function)
            where = f" ({place})" if place else ""
            report = BenchmarkReport(f"no report over {', '.join(tasks)}: {type(error).__name__}: {error}{where}")
        if report is not None:
            reports.append(report)
    return reports


def _numbers(result: TaskResult, groups: Collection[Group]) -> TaskNumbers:
    details = {part: content for metric in result.metrics for part, content in metric.details.items()}
    reasons = [metric.withheld_reason for metric in result.metrics if metric.withheld_reason]
    if result.early_stop is not None:  # a benchmark's numbers need all of its documents
        reasons.insert(0, result.early_stop.mark)
    outcome = result.outcome
    unscored = next(iter(outcome.reasons), "") if outcome.unscored == outcome.requested else ""
    above: set[str] = set()  # the groups that contain the task, directly or indirectly
    below = {result.task.name}
    while below:
        below = {group.name for group in groups if not below.isdisjoint(group.children)} - above
        above |= below
    reason = reasons[0] if reasons else ""
    return TaskNumbers(details, reason, unscored.removeprefix(UNSCORED), frozenset(above), result.missing)


MAX_SHOWN_REASONS = 3
MAX_SHOWN_FILES = 12
MAX_SHOWN_ALIKE = 5
MAX_NAME = 80
"""Characters shown of an option's value."""
_HINT_BLANK = "; the same command asks them again, --allow_blank gives the number as it is"
SAMPLES = "_samples_"
"""Mark in the names of samples files."""


def header(config: RunConfig) -> str:
    arguments, chosen = redact(argument_text(config.model_args)), {"ids": config.ids, "where": config.where}
    return (
        f"{config.model} ({arguments}), gen_kwargs: ({argument_text(config.gen_kwargs)}), limit: {config.limit}, "
        f"offset: {config.offset}, num_fewshot: {config.num_fewshot}, batch_size: {config.batch_size}"
        + "".join(f", {name}: {text[:MAX_NAME]}" for name, text in chosen.items() if text)
    )


def notes(run: RunScores, facts: RunFacts, files: Sequence[str]) -> list[str]:
    """Return lines about everything that is not a plain score. A clean run has only those about the written files."""
    lines: list[str] = []
    alike = _unscored_alike(run.tasks)
    for reason, tasks in alike.items():
        names = ", ".join(result.task.name for result in tasks[:MAX_SHOWN_REASONS])
        lines.append(f"{len(tasks)} tasks are not scored at all ({names}, ...): {reason}")
    covered = {result.task.name for tasks in alike.values() for result in tasks}
    lines += _limited(run, facts.config)
    for result in run.tasks:
        lines += _task_notes(result) if result.task.name not in covered else ()
    for group in run.groups:
        lines += _lists_of(group)
        lines += [line for metric in group.metrics if (line := _missing(f"group {group.group.name}", metric))]
        for key, leaves in group.left_out.items():
            lines.append(
                f"group {group.group.name}: {key} is absent from {', '.join(leaves)}, which is left out of its row"
            )
    lines += run.broken
    # A server may route a name to a dated version of the model.
    served = [f"{name} ({count} answers)" for name, count in run.served.items() if name != facts.model_asked]
    if facts.model_asked and served:
        lines.append(f"asked for the model {facts.model_asked}, the server says that it served {', '.join(served)}")
    if run.batch_check is not None:
        lines.append(run.batch_check.line())
    if facts.ignored:
        lines.append(f"asked without these options of --gen_kwargs (--allow_ignored): {', '.join(facts.ignored)}")
    ignored_of_tasks = facts.model.get("ignored_generation_options", ())
    if others := [name for name in ignored_of_tasks if name not in facts.ignored]:
        lines.append(f"options of tasks that this model has no place for: {', '.join(others)}")
    lines += _endings(run, facts.command)
    lines += decision_lines(facts.config.until or "", sum(not result.task.control_of for result in run.tasks))
    lines += cost_lines(run.spent, facts.tariffs)
    metrics = [metric for result in run.tasks for metric in result.metrics]
    return lines + _written(
        [*files, *[path for metric in metrics for path in metric.details.get("submission_files", ())]]
    )


def _limited(run: RunScores, config: RunConfig) -> list[str]:
    """Return a line about tasks with their first documents only, which are no random sample."""
    plans = [result.plan for result in run.tasks if not result.task.control_of]
    limited = [plan for plan in plans if plan.requested < plan.original]
    has_interval = any(metric.interval and metric.value is not None for one in run.tasks for metric in one.metrics)
    if config.limit in (None, -1) or not limited or not has_interval:
        return []
    first, more = limited[0], len(limited) - 1
    documents = "document" if first.requested == 1 else f"{first.requested:,} documents"
    counted = f"the first {documents} of {first.task.name}" + (f" and of {more} more" if more else "")
    return [
        f"--limit: {counted}: CI95 is as wide as for a random sample, which the first documents are not "
        "(--sample N draws one)"
    ]


def _drawn(result: TaskResult) -> list[str]:
    """Return a line about a random sample, with the interval over its list."""
    sample, name = result.plan.sample, result.task.name
    if sample is None:
        return []
    headline = headline_metric(result.task).name if result.task.metrics else ""
    metric = next((one for one in result.metrics if one.metric == headline and one.value is not None), None)
    about = ""
    if metric is not None and metric.over_list is not None:
        found = metric.over_list.interval
        reason = metric.over_list.no_interval
        where = f"no interval ({reason})" if found is None else f"[{found.low:.4f}, {found.high:.4f}]"
        about = f": over this list, {metric.metric} {where}; CI95 is about questions like these"
    mark = sample_mark(result.plan.requested, sample.of)
    if sample.runs:
        asked = ", ".join(f"{len(sample.order[stratum]):,} of {size:,}" for stratum, size in sample.sizes.items())
        return [
            f"{name}: {mark} documents, drawn by Neyman's allocation by seed {sample.seed} from {len(sample.sizes)} "
            f"strata of earlier scores ({asked}): Value and CI95 weight them by size and are about this list"
        ]
    kind = " by strata" if sample.design == "stratified" else ""
    return [f"{name}: {mark} documents, drawn{kind} by seed {sample.seed}{about}"]


def _lists_of(group: GroupResult) -> list[str]:
    """Return a line with a group's interval over the lists that its tasks' documents were drawn from."""
    metric = next((one for one in group.metrics if one.value is not None and one.over_list is not None), None)
    if metric is None or metric.over_list is None:
        return []
    found = metric.over_list.interval
    where = f"no interval ({metric.over_list.no_interval})" if found is None else f"[{found.low:.4f}, {found.high:.4f}]"
    return [f"{group.group.name}: random samples of its tasks: over their lists, {metric.metric} {where}"]


_ABOUT: Mapping[Estimand, str] = {
    GENERALISED: "expected score over questions like these",
    BENCHMARK: "score over all questions of this list",
}


def estimand_lines(run: RunScores) -> list[str]:
    """Return a line about what the intervals hold, for each kind of them; names only if there are two kinds."""
    of = {result.task.name: result.metrics for result in run.tasks}
    of |= {group.group.name: group.metrics for group in run.groups}
    named: dict[Estimand, list[str]] = {}
    for name, metrics in of.items():
        for estimand in dict.fromkeys(metric.interval.estimand for metric in metrics if metric.interval is not None):
            named.setdefault(estimand, []).append(name)
    which = {estimand: f" of {some_of(names, MAX_SHOWN_REASONS)}" for estimand, names in named.items()}
    return [
        f"CI95{which[estimand] if len(named) > 1 else ''}: {estimand}, the {_ABOUT[estimand]}" for estimand in named
    ]


def _endings(run: RunScores, command: str) -> list[str]:
    """Return lines about unfinished parts of the run, and the command that continues it."""
    lines = _early_stops(run)
    if run.asking.give_up:
        left = ""
        if run.asking.give_up_kind == "budget":
            outcomes = [task.outcome for task in run.tasks]
            of, missing = sum(one.requested for one in outcomes), sum(one.not_asked for one in outcomes)
            left = f": {missing:,} of {of:,} documents not asked; with a larger budget the run continues from here"
        lines.append(f"stopped asking early: {run.asking.give_up}{left}")
    if run.asking.judge_give_up:
        lines.append(f"stopped judging early: {run.asking.judge_give_up}")
    if run.asking.interrupted is not None:
        lines.append("interrupted: what was finished is kept")
    if run.state not in ("complete", "stopped early") and not (run.broken and run.is_finished):
        lines.append(f"{_what_is_left(run)}:\n  {command}")
    return lines


def _what_is_left(run: RunScores) -> str:
    """Return what the same command does: it asks again, or if only a judge is missing, needs one."""
    outcomes = [task.outcome for task in run.tasks]
    reasons = [reason for one in outcomes for reason in one.reasons]
    if reasons and all("--judge_model" in reason for reason in reasons) and not any(one.not_asked for one in outcomes):
        return "to score what needs a judge, add --judge_model NAME to the same command (the model is not asked again)"
    return "to ask only what is missing or failed, run the same command again"


def _early_stops(run: RunScores) -> list[str]:
    """Return lines about tasks that stopped early."""
    lines = []
    for result in run.tasks:
        if (stop := result.early_stop) is None:
            continue
        line = (
            f"{result.task.name}: stopped early, since {stop.rule} holds: {stop.asked:,} of {stop.of:,} documents count"
        )
        if stop.difference is not None:
            line += f"; difference from the baseline [{stop.difference.low:+.4f}, {stop.difference.high:+.4f}]"
        lines.append(line + "".join(map(_anchored, result.metrics)))
    if lines:
        lines.append(
            "these scores are not official ones: their intervals hold at every look for the score over all documents; "
            "the same command without --until asks the rest"
        )
    return lines


def decision_lines(until: str, tasks: int) -> list[str]:
    """Return a line about the decisions of all tasks together, if ``--until`` makes several. Raises ``ConfigError``."""
    rules = [rule for rule in stopping_rules(until) if rule.kind == "decided"]
    named = sum(bool(rule.target) for rule in rules)
    count = named + (tasks - named if len(rules) > named else 0)
    if count < 2:
        return []
    return [
        f"decided: each of {count} decisions is wrong with a probability of at most 5 %, any of them with at most "
        f"{min(100, 5 * count)} %"
    ]


def _anchored(metric: MetricResult) -> str:
    """Return the end of a line about a task that stopped early: the estimate with anchors, if the metric has any."""
    mean = None if metric.looked is None else metric.looked.anchored()
    if mean is None:
        return ""
    explained = "" if mean.r_squared is None else f", which explain {100 * mean.r_squared:.0f} % of its variance"
    how = "" if mean.anchors.fit == "mean" else f" ({mean.anchors.fit} fit)"
    return f"; {metric.metric} over all documents {mean.estimate:.4f} with --anchors{how}{explained}"


def _unscored_alike(tasks: Sequence[TaskResult]) -> dict[str, list[TaskResult]]:
    """Return, by reason, the tasks that are wholly unscored for that one reason, if there are many of them."""
    found: dict[str, list[TaskResult]] = {}
    for result in tasks:
        outcome = result.outcome
        if outcome.unscored == outcome.requested and len(outcome.reasons) == 1:
            found.setdefault(next(iter(outcome.reasons)), []).append(result)
    return {reason: alike for reason, alike in found.items() if len(alike) > MAX_SHOWN_ALIKE}


def _shown(path: str) -> str:
    """Return a path relative to the current folder if it lies below it, else the absolute path."""
    try:
        full, here = os.path.abspath(path), os.getcwd()
    except FileNotFoundError:  # the current folder was removed
        return path
    return os.path.relpath(full, here) if full.startswith(here + os.sep) else full


def _written(paths: Sequence[str]) -> list[str]:
    """Return a line for each file. If there are many, files of the same name, and samples files, are counted."""
    if len(paths) <= MAX_SHOWN_FILES:
        return [f"written: {_shown(path)}" for path in paths]
    kinds: dict[str, list[str]] = {}
    for path in paths:
        name = PurePath(path).name
        kinds.setdefault(f"*{SAMPLES}*" if SAMPLES in name else name, []).append(path)
    lines = []
    for kind, alike in kinds.items():
        if len(alike) <= MAX_SHOWN_REASONS:
            lines += [f"written: {_shown(path)}" for path in alike]
        else:
            lines.append(
                f"written: {len(alike)} files {kind} below {_shown(os.path.commonpath(map(os.path.abspath, alike)))}"
            )
    return lines


def _task_notes(result: TaskResult) -> list[str]:
    name, outcome = result.task.name, result.outcome
    lines = _drawn(result)
    counted = len(result.doc_ids)
    if outcome.scored < counted:
        left = f", {outcome.not_asked} not asked" if outcome.not_asked else ""
        lines.append(
            f"{name}: {outcome.scored} scored, {outcome.unscored} unscored, {outcome.failed} failed{left} "
            f"of {outcome.requested} (coverage {outcome.coverage:.1%})"
        )
        shown = list(outcome.reasons.items())
        lines += [f"  {count} x {reason}" for reason, count in shown[:MAX_SHOWN_REASONS]]
        if len(shown) > MAX_SHOWN_REASONS:
            lines.append(f"  ... and {len(shown) - MAX_SHOWN_REASONS} more reasons (see outcomes in the results file)")
    if result.task.asks_again:
        return lines
    lines += _variance(result) + _noise(result)
    lines += [line for metric in result.metrics if (line := _missing(name, metric))]
    lines += _answer_notes(result) + _cluster_notes(result)
    tally = result.tally
    if tally.drew:
        lines.append(
            f"{name}: scoring drew at random for {tally.drew} of {tally.documents} documents "
            f"({tally.drew / tally.documents:.1%}; drew in the samples file), as it does for answers that name no "
            "choice"
        )
        lines += [
            f"  without them {metric.metric} is {metric.undrawn.value:.4f} ({metric.undrawn.n} documents)"
            for metric in result.metrics
            if metric.undrawn is not None and metric.value is not None
        ]
    if tally.judge_unparsable:
        lines.append(
            f"{name}: {tally.judge_unparsable} of {tally.judge_questions} replies of the judge could not be read; the "
            "task scores them by its own rule"
        )
    for metric in result.metrics:
        lines += [f"{name}: {metric.metric}: {note}" for note in metric.notes]
        partial, interval = metric.partial, metric.interval
        is_score = isinstance(partial, int | float) and not is_count(metric.metric, partial)
        if metric.value is None and is_score:
            number = f"{partial:.4f}" if isinstance(partial, float) else str(partial)
            around = "" if interval is None else f" [{interval.low:.4f}, {interval.high:.4f}]"
            lines.append(
                f"{name}: {metric.metric} is withheld ({metric.withheld_reason}); "
                f"partial value over {metric.n} documents, not a score: {number}{around}"
            )
    return lines


def _variance(result: TaskResult) -> list[str]:
    """Return a line about the sources of the variance of the task's first number that has them, if there is one."""
    metric = next((one for one in result.metrics if one.variance is not None and one.value is not None), None)
    if metric is None or metric.variance is None:
        return []
    found = metric.variance
    parts = {"questions": found.split.questions, "answers": found.split.answers, "judge": found.split.judge}
    known = {name: part for name, part in parts.items() if part is not None}
    whole = math.fsum(known.values())
    shares = ", ".join(f"{part / whole:.0%} {name}" for name, part in known.items()) if whole else "none"
    ranges = [
        f"{'no interval' if one.interval is None else f'[{one.interval.low:.4f}, {one.interval.high:.4f}]'} {what}"
        for what, one in (
            ("for questions like these", found.like_these),
            ("if asked again on this list", found.again),
            ("if the same answers were judged again", found.rejudged),
        )
        if one.no_interval not in (NO_REPEATS, NO_JUDGE_REPEATS)
    ]
    return [f"{result.task.name}: {metric.metric}: variance {shares}; {', '.join(ranges)}"]


def _noise(result: TaskResult) -> list[str]:
    """Return a line about the documents that were asked again, if there are any."""
    noise = result.noise
    if noise is None or noise.answers is None:
        return [] if noise is None else [f"{result.task.name}: no document has two scores: no noise floor"]
    changed = {"answer": noise.answers, **{key.removesuffix(",none"): one.scores for key, one in noise.metrics.items()}}
    shown = ", ".join(
        f"{name} on {found.changed} ({found.share:.1%}, [{found.low:.1%}, {found.high:.1%}])"
        for name, found in list(changed.items())[: 1 + MAX_SHOWN_REASONS]
    )
    documents = "document" if noise.answered == 1 else "documents"
    return [f"{result.task.name}: of {noise.answered} {documents} asked again, changed: {shown}"]


def _cluster_notes(result: TaskResult) -> list[str]:
    """Return lines about the clusters that intervals are over, and about a ``cluster_key`` that no document has."""
    name, clusters = result.task.name, result.clusters
    lines = []
    if clusters.absent_key and clusters.documents:
        lines.append(
            f"{name}: no document has its cluster_key {clusters.absent_key!r}, so clusters are by {clusters.by}; name "
            "a column of the documents, or a field of the metric's value"
        )
    shown = [metric for metric in result.metrics if metric.interval is not None]
    if not any(metric.certainty.is_clustered for metric in shown):
        return lines
    others = [metric.metric for metric in shown if not metric.certainty.is_clustered]
    but = f", except that of {', '.join(others)}" if others else ""
    return [*lines, f"{name}: intervals over {clusters.described()}{but}"]


def _answer_notes(result: TaskResult) -> list[str]:
    """Return lines about empty and truncated answers, and about what ended them."""
    name, outcome, tally = result.task.name, result.outcome, result.tally
    lines = []
    if counts := outcome.answers.described():
        lines.append(
            f"{name}: of {outcome.answers.total} answers {counts}{_HINT_BLANK if outcome.answers.are_empty else ''}"
        )
    lines += [line for metric in result.metrics if (line := _truncation(name, metric))]
    if outcome.over_truncation_budget:
        lines.append(f"{name}: --retry_truncated N asks only the truncated answers again, with N tokens")
    if counts := tally.stops.described():
        lines.append(f"{name}: {counts}")
    if tally.unopened and tally.untagged:
        lines.append(
            f"{name}: {tally.untagged} truncated answers have no tag of thoughts, and {tally.unopened} others close a "
            "thought that the chat template opened: the truncated ones are perhaps thoughts, and scored as answers; "
            "start the server with its reasoning parser, or allow more tokens"
        )
    return lines


def _missing(task: str, metric: MetricResult) -> str:
    """Return a line about what documents without a score could change; empty if that is nothing or not known."""
    found = metric.missing_bounds
    if found is None or found.low is None or found.high is None:
        return ""
    return (
        f"{task}: {metric.metric}: {found.n} of {metric.n + found.n} documents have no score: {found.low:.4f} to "
        f"{found.high:.4f} whatever they would score"
    )


def _truncation(task: str, metric: MetricResult) -> str:
    """Return a line about the scores of completed and truncated answers; empty if no answer is truncated."""
    if (found := metric.truncation) is None:
        return ""
    parts = [f"{part.value:.4f} over {part.n} {kind}" for kind, part in (
        ("completed", found.completed), ("truncated", found.truncated)) if part is not None]  # fmt: skip
    bounds = ""
    if found.low is not None and found.high is not None:
        bounds = f"; between {found.low:.4f} and {found.high:.4f}, whatever the truncated ones would have scored"
    return f"{task}: {metric.metric} is {', '.join(parts)} documents{bounds}"
