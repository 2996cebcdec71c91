"""The results document (``results.json``): the keys of the lmms-eval family, and further keys of this project."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, field

from lmms_eval import stats
from lmms_eval.api.task import Selection
from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.groups import GroupResult
from lmms_eval.engine.headline import LEVEL
from lmms_eval.engine.looks import LookStop, headline_metric
from lmms_eval.engine.outcomes import AnswerCounts, TaskOutcome, TaskTally
from lmms_eval.engine.records import RunSpending
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.certainty import AnchorsEntry, intervals_of, noise_of, plain, sampled_of, variances_of
from lmms_eval.results.controls import NO_CONTROLS, Controls
from lmms_eval.results.facts import EarlyStop
from lmms_eval.results.schema import (
    Cost,
    EarlyStopEntry,
    EfficiencyEntry,
    JudgeCounts,
    Outcome,
    PartialValue,
    SampleCounts,
    Throughput,
    TokenSums,
    UsagePart,
)
from lmms_eval.utils import model_name_from_args, sanitize_model_name
from lmms_eval.utils.installed import git, package_version
from lmms_eval.utils.prices import Spending, Tariff, Tariffs
from lmms_eval.utils.records import to_dict


def row_aliases(selection: Selection, groups: Sequence[GroupResult], tasks: Mapping[str, TaskResult]) -> dict[str, str]:
    """Return the indented names of the table's rows, in their order.

    Groups come first, each followed by its children one level deeper, then tasks that are named directly, by name. The
    controls of a task follow it, in the order of asking.
    """
    by_name = {group.group.name: group for group in groups}
    children = {child for group in groups for child in group.group.children}
    named = {name: result.task for name, result in tasks.items() if not result.task.control_of}
    rows: dict[str, str] = {}

    def add(group: GroupResult, depth: int) -> None:
        rows[group.group.name] = _indent(depth) + group.group.alias
        for child in group.group.children:
            if child in by_name:
                add(by_name[child], depth + 1)
            elif child in named:
                indent = "" if child in selection.direct else _indent(depth + 1)
                rows.setdefault(child, indent + named[child].alias)

    for group in groups:
        if group.group.name not in children:
            add(group, 0)
    for name in sorted(named):
        rows.setdefault(name, named[name].alias)
    found: dict[str, str] = {}
    for name, alias in rows.items():
        indent = " " * (len(alias) - len(alias.lstrip(" -"))) + _indent(1)
        below = [result.task for result in tasks.values() if result.task.control_of == name]
        found |= {name: alias, **{task.name: indent + task.alias for task in below}}
    return found


def _indent(depth: int) -> str:
    return "" if depth == 0 else " " * depth + "- "


def directions(tasks: Mapping[str, TaskResult], groups: Sequence[GroupResult]) -> dict[str, dict[str, bool | None]]:
    """Return by task or group and metric whether a higher number is better; ``None`` if it is not stated."""
    found: dict[str, dict[str, bool | None]] = {
        name: {metric.name: metric.higher_is_better for metric in result.task.metrics} for name, result in tasks.items()
    }
    united: dict[str, dict[str, bool | None]] = {}
    for group in groups:
        union = united.setdefault(group.group.name, {})
        for leaf in group.leaves:
            for metric, higher in found.get(leaf, {}).items():
                # `None` if the leaves disagree.
                union[metric] = higher if union.get(metric, higher) == higher else None
    return {**united, **found}


def group_outcome(group: GroupResult, tasks: Mapping[str, TaskResult]) -> TaskOutcome:
    """Add up the counts of a group's leaves. The leaves keep their reasons."""
    parts = [tasks[leaf].outcome for leaf in group.leaves if leaf in tasks]
    return TaskOutcome(
        requested=sum(part.requested for part in parts),
        scored=sum(part.scored for part in parts),
        unscored=sum(part.unscored for part in parts),
        failed=sum(part.failed for part in parts),
        not_asked=sum(part.not_asked for part in parts),
        answers=sum((part.answers for part in parts), AnswerCounts()),
        judge_unread=sum(part.judge_unread for part in parts),
        over_truncation_budget=any(part.over_truncation_budget for part in parts),
        withheld=next((part.withheld for part in parts if part.withheld), ""),
    )


RECORDED_PACKAGES = (
    "accelerate", "aiohttp", "av", "codebleu", "datasets", "nltk", "numpy", "openai", "orjson", "pillow", "pyarrow",
    "pycocoevalcap", "pydantic", "rapidfuzz", "sacrebleu", "sglang", "sympy", "text-unidecode", "torch", "transformers",
    "vllm",
)  # fmt: skip


class GitState(NamedTuple):
    """Commit and branch of a checkout; ``None`` if there is no checkout."""

    commit: str | None
    branch: str | None


@lru_cache(maxsize=1)
def git_state() -> GitState:
    """Return the state of the current folder's checkout."""
    return GitState(git("rev-parse", "HEAD"), git("rev-parse", "--abbrev-ref", "HEAD"))


def versions() -> dict[str, Any]:
    """Return the installed versions of Python and of the packages that can change a result, without importing them."""
    found = {name: version for name in RECORDED_PACKAGES if (version := package_version(name)) is not None}
    return {"python": platform.python_version(), "lmms_eval": package_version("lmms_eval"), **found}


def machine() -> dict[str, Any]:
    """Return facts about the host. They may differ between two starts of the same run."""
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["gpus"] = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        facts["cuda"] = torch.version.cuda
    return facts


def cost_part(spent: RunSpending, tariffs: Tariffs) -> Any:
    """Return ``usage.cost``, over all starts of the run whose journals are available. Cache hits cost nothing.

    ``None`` means that a cost is unknown: the back end reported no tokens, the table has no price, or it has a price
    for media and some media were not measured.
    """
    model, judge = _cost(tariffs.model, spent.model), _cost(tariffs.judge, spent.judge)
    return plain(
        Cost(
            model=model,
            judge=judge,
            total=None if model is None or judge is None else model + judge,
            currency=tariffs.model.currency,
            price=tariffs.model.source,
            judge_price=UNSET if tariffs.judge is None else tariffs.judge.source,
        )
    )


def cost_lines(spent: RunSpending, tariffs: Tariffs | None) -> list[str]:
    """Return lines about the cost of the run; empty without prices."""
    if tariffs is None:
        return []
    lines = _lines("cost", tariffs.model, spent.model)
    return lines + (_lines("cost of the judge", tariffs.judge, spent.judge) if spent.judge != Spending() else [])


def _lines(name: str, tariff: Tariff | None, spent: Spending) -> list[str]:
    tokens = f"{spent.input_tokens:,} tokens in and {spent.output_tokens:,} out"
    if tariff is None:
        return [f"{name}: price not known ({tokens})"]
    cost = _cost(tariff, spent)
    if cost is None:
        if spent.untold:
            return [f"{name}: not known, for {spent.untold:,} answers came without a count of their tokens"]
        return [f"{name}: not known, for {spent.unmeasured:,} sounds of unknown length or whole videos were sent"]
    return [f"{name}: {tariff.shown(cost)} for {tokens} (price: {tariff.source})"]


def _cost(tariff: Tariff | None, spent: Spending) -> float | None:
    """Return the cost; ``None`` without a price, a token count, or a measure of media that have a price."""
    if spent == Spending():
        return 0.0
    return None if tariff is None or spent.untold or not tariff.price.knows(spent) else tariff.cost(spent)


def throughput(report: AskReport) -> dict[str, float]:
    """Return the speed of the requests of this start; empty if the back end counted no tokens.

    ``avg_latency`` is the mean of the latencies that the back end reported, in seconds from a request to its answer. It
    does not depend on the concurrency, and is absent if the back end reported no latency.
    """
    if not report.output_tokens or report.seconds <= 0:
        return {}
    speeds = Throughput(
        total_gen_tokens=report.output_tokens,
        total_elapsed_time=report.seconds,
        avg_speed=report.output_tokens / report.seconds,
        avg_latency=report.latency / report.timed if report.timed else UNSET,
    )
    return to_dict(speeds)


def efficiency(tasks: Sequence[TaskResult]) -> dict[str, Any]:
    """Return ``overall`` and ``by_task``. Each document counts once, however many filter pipelines the task has."""
    total = TaskTally()
    for result in tasks:
        for name in TaskTally.__struct_fields__:
            setattr(total, name, getattr(total, name) + getattr(result.tally, name))
    return {"by_task": {result.task.name: _entry(result.tally) for result in tasks}, "overall": _entry(total)}


def _entry(tally: TaskTally) -> dict[str, Any]:
    return to_dict(
        EfficiencyEntry(
            docs=float(tally.documents),
            docs_with_token_counts=float(tally.documents_with_tokens),
            total_input_tokens=float(tally.input_tokens),
            total_output_tokens=float(tally.output_tokens),
            total_tokens=float(tally.input_tokens + tally.output_tokens),
            total_correct_score=tally.correct,
            avg_output_tokens_per_sample=tally.output_tokens / tally.documents if tally.documents else 0.0,
            tokens_per_correct_answer=tally.output_tokens / tally.correct if tally.correct > 0 else None,
        )
    )


def judge_part(judge: Mapping[str, Any], tasks: Sequence[TaskResult], report: AskReport) -> dict[str, Any]:
    """Return counts over all documents of the run; ``asked`` and ``cache`` are for this start only."""
    by_task: dict[str, dict[str, int]] = {}
    for result in tasks:
        if result.task.is_judged:
            tally = result.tally
            counts = JudgeCounts(
                questions=tally.judge_questions,
                replies=tally.judge_replies,
                answered=tally.judge_answered,
                judge_unparsable=tally.judge_unparsable,
                failed=tally.judge_failed,
                input_tokens=tally.judge_input_tokens,
                output_tokens=tally.judge_output_tokens,
                reasoning_tokens=tally.judge_reasoning_tokens,
            )
            by_task[result.task.name] = to_dict(counts)
    names = JudgeCounts.__struct_fields__
    totals = {name: sum(counts[name] for counts in by_task.values()) for name in names}
    return {
        **judge,
        "asked": report.judge_asked,
        **totals,
        "by_task": by_task,
        **({"given_up": report.judge_give_up} if report.judge_give_up else {}),
        **({"cache": dict(report.judge_cache)} if report.judge_cache else {}),
    }


class RunFacts(Struct, frozen=True):
    """Facts of the run that the document and the printed lines state in addition to its numbers."""

    config: RunConfig
    model_backend: str
    """``module.Class (chat|simple)``."""
    command: str
    """The command that continues the run."""
    date: str
    git: GitState
    start_time: float
    end_time: float
    """Seconds since 1970."""
    seconds: Mapping[str, float]
    """Wall time by stage."""
    run_key: str
    model: Mapping[str, Any] = field(default_factory=dict)
    """The model's description of itself."""
    model_asked: str = ""
    """The model's name on its server, if it has one."""
    cache: Mapping[str, Any] = field(default_factory=dict)
    """Path and counts of the response cache, if the run uses one."""
    judge: Mapping[str, Any] = field(default_factory=dict)
    """The judge and its counts, if the run asked one."""
    tariffs: Tariffs | None = None
    """Prices, if the user gives a table."""
    requests: Mapping[str, Any] = field(default_factory=dict)
    """The parts of a request other than its messages, by task."""
    ignored: Sequence[str] = ()
    """Options of ``--gen_kwargs`` that the model's requests cannot carry (``--allow_ignored``)."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """The recipe and what the run has in place of it (``--recipe``)."""


def results_document(
    run: RunScores, selection: Selection, facts: RunFacts, paired: Mapping[str, Mapping[str, PairedScores]],
    controls: Controls = NO_CONTROLS,
) -> dict[str, Any]:  # fmt: skip
    """Build the document from the run's numbers; ``paired`` holds comparisons by task and ``METRIC,FILTER``."""
    tasks = {result.task.name: result for result in run.tasks if not result.task.asks_again}
    groups = {group.group.name: group for group in run.groups}
    results = {
        name: _group_entry(groups[name], alias)
        if name in groups
        else _task_entry(tasks[name], alias, paired.get(name, {}))
        for name, alias in row_aliases(selection, run.groups, tasks).items()
    }
    aggregating = {name: entry for name, entry in results.items() if name in groups and groups[name].metrics}
    commit, branch = facts.git.commit, facts.git.branch
    document: dict[str, Any] = {
        "results": results,
        **({"groups": aggregating} if aggregating else {}),
        **_task_parts(selection, tasks, run.groups),
        "config": _config_part(facts),
        "git_hash": commit,
        "git_branch": branch,
        "lmms_eval_version": f"{branch or 'unknown'}@{(commit or 'unknown')[:8]}",
        "date": facts.date,
        **_measurements(run, facts),
        "task_hashes": {name: result.task_hash for name, result in tasks.items()},
        **_model_part(facts),
        **_additions(run, tasks, facts),
    }
    if paired:
        rows = {name: {row: to_dict(scores) for row, scores in of_task.items()} for name, of_task in paired.items()}
        for row in (row for of_task in rows.values() for row in of_task.values()):
            for name in ("baseline_early", "depends"):
                if not row[name]:
                    del row[name]
        document["paired"] = rows
    if controls.tasks:
        document["controls"] = controls.as_dict()
    for result in tasks.values():
        for part, content in (pair for metric in result.metrics for pair in metric.details.items()):
            of_tasks = document.setdefault(part, {})
            known = of_tasks.get(result.task.name)
            # Mappings that several metrics of a task give under one name are merged.
            are_mappings = isinstance(known, Mapping) and isinstance(content, Mapping)
            of_tasks[result.task.name] = {**known, **content} if are_mappings else content
    if sub_scores := {result.task.name: found for result in tasks.values() if (found := _sub_scores(result))}:
        document["sub_scores"] = sub_scores
    return document


def _config_part(facts: RunFacts) -> dict[str, Any]:
    config, arguments = facts.config, resolved_cli_args(facts.config)
    seeds = (*config.seed, None, None, None, None)[:4]
    return {
        "model": config.model,
        "model_args": arguments["model_args"],
        "model_backend": facts.model_backend,
        "batch_size": config.batch_size,
        "batch_sizes": [],
        "device": config.device,
        "use_cache": config.use_cache,
        "limit": config.limit,
        "offset": config.offset,
        "bootstrap_iters": config.bootstrap_iters,
        "gen_kwargs": arguments["gen_kwargs"],
        **dict(zip(("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"), seeds, strict=True)),
        "resolved_cli_args": arguments,
    }


def _anchors(tasks: Mapping[str, TaskResult]) -> dict[str, Any]:
    """Return, by task, its estimate with the scores of earlier runs."""
    found = {}
    for name, result in tasks.items():
        for metric in result.metrics:
            if metric.looked is not None and (mean := metric.looked.anchored()) is not None and name not in found:
                interval = None if result.early_stop is None else metric.interval
                found[name] = plain(
                    AnchorsEntry(
                        metric=metric.metric,
                        filter=metric.filter,
                        runs=list(mean.anchors.runs),
                        digest=mean.anchors.digest,
                        fit=mean.anchors.fit,
                        cross_validated=mean.anchors.cross_validated,
                        known=mean.anchors.known,
                        of=result.plan.requested,
                        asked=metric.looked.asked,
                        estimate=mean.estimate,
                        r_squared=mean.r_squared,
                        method="" if interval is None else interval.method,
                    )
                )
    return found


def _early_stops(run: RunScores, tasks: Mapping[str, TaskResult]) -> dict[str, Any]:
    """Return, by task or group that stopped early, the rule, the number of documents, and the interval."""
    found: dict[str, tuple[EarlyStop | LookStop, stats.Interval | None, stats.Interval | None]] = {}
    for name, result in tasks.items():
        if (stop := result.early_stop) is not None:
            headline = headline_metric(result.task).name
            intervals = [one.interval for one in result.metrics if one.metric == headline]
            found[name] = stop, next(iter(intervals), None), stop.difference
    for group in run.groups:
        leaves = [tasks[leaf] for leaf in group.leaves if leaf in tasks]
        stops = [result.early_stop for result in leaves if result.early_stop is not None]
        if group.metrics and stops:
            whole = EarlyStop(
                asked=sum(len(result.doc_ids) for result in leaves),
                of=sum(result.plan.requested for result in leaves),
                order="; ".join(dict.fromkeys(stop.order for stop in stops)),
                rule="; ".join(dict.fromkeys(stop.rule for stop in stops)),
            )
            found[group.group.name] = whole, group.metrics[0].interval, None

    def at_level(interval: stats.Interval) -> dict[str, Any]:
        return {**to_dict(interval), "level": LEVEL}

    return {
        name: plain(
            EarlyStopEntry(
                rule=stop.rule,
                order=stop.order,
                asked=stop.asked,
                of=stop.of,
                interval=None if interval is None else at_level(interval),
                difference=UNSET if difference is None else at_level(difference),
            )
        )
        for name, (stop, interval, difference) in found.items()
    }


def _sub_scores(result: TaskResult) -> dict[str, Any]:
    """Return scores of parts of a task's documents, by metric, dividing column, and name."""
    return {
        f"{metric.metric},{metric.filter}": {
            by: {name: to_dict(score) for name, score in parts.items()} for by, parts in metric.sub_scores.items()
        }
        for metric in result.metrics
        if metric.sub_scores
    }


def _task_entry(result: TaskResult, alias: str, paired: Mapping[str, PairedScores]) -> dict[str, Any]:
    entry: dict[str, Any] = {"alias": alias}
    for metric in result.metrics:
        key, name = metric.filter, metric.metric
        entry[f"{name},{key}"] = metric.value
        shown = metric.value is not None or not metric.withheld_reason  # an error without its value misleads
        entry[f"{name}_stderr,{key}"] = metric.stderr if shown else NOT_AVAILABLE
        entry[f"{name}_stderr_clt,{key}"] = metric.stderr_clt if shown else NOT_AVAILABLE
        entry[f"{name}_stderr_clustered,{key}"] = metric.stderr_clustered if shown else NOT_AVAILABLE
        if metric.stability is not None:
            entry |= {f"{name}_{label},{key}": value for label, value in to_dict(metric.stability).items()}
    for first in list(paired.values())[:1]:  # the family's keys hold one comparison: that of the first row that has any
        names = ("baseline", "baseline_score", "ci_lower", "ci_upper", "pvalue")
        entry |= {f"paired_{name}": getattr(first, name) for name in names}
    return entry


def _group_entry(group: GroupResult, alias: str) -> dict[str, Any]:
    entry: dict[str, Any] = {} if group.metrics else {" ": " "}
    for metric in group.metrics:
        entry[f"{metric.metric},{metric.filter}"] = metric.value
        entry[f"{metric.metric}_stderr,{metric.filter}"] = metric.stderr
    return entry | {"alias": alias}


def _task_parts(selection: Selection, tasks: Mapping[str, TaskResult], groups: Sequence[GroupResult]) -> dict[str, Any]:
    subtasks = {group.name: list(group.children) for group in selection.groups}
    subtasks |= {name: [] for name in tasks if name in selection.direct}
    group_versions = {group.name: group.version for group in selection.groups if group.version is not None}
    packs = {name: dict(pack) for name, result in tasks.items() if (pack := result.task.pack)}
    return {
        "group_subtasks": subtasks,
        "configs": {name: result.task.describe() for name, result in tasks.items()},
        **({"packs": packs} if packs else {}),
        "versions": dict(sorted({**group_versions, **{n: r.task.version for n, r in tasks.items()}}.items())),
        "n-shot": {name: result.task.num_fewshot for name, result in sorted(tasks.items())},
        "higher_is_better": directions(tasks, groups),
        "n-samples": {
            name: to_dict(SampleCounts(original=result.plan.original, effective=result.plan.requested))
            for name, result in tasks.items()
        },
    }


def _measurements(run: RunScores, facts: RunFacts) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    reported = facts.model.get("reported", {})  # a plugin's own counts, used if its answers carry no counts
    if speeds := throughput(run.asking) or reported.get("throughput"):
        parts["throughput"] = speeds
    parts["usage"] = usage_part(run.tasks) or reported.get("usage", {})
    if parts["usage"] and run.asking.give_up and run.asking.give_up_kind == "budget":
        parts["usage"] = {**parts["usage"], "budget_exceeded": True}
    if facts.tariffs is not None:
        parts["usage"] = {**parts["usage"], "cost": cost_part(run.spent, facts.tariffs)}
    if facts.config.log_samples:
        parts["efficiency"] = efficiency(run.tasks)
    return parts


def usage_part(tasks: Sequence[TaskResult]) -> dict[str, Any]:
    """Return token counts over all answers of the run; ``{}`` if no back end reported any."""
    # Providers count reasoning tokens among the output tokens, so they are not added to the total again.
    asked = {
        one.task.name: _tokens(
            one.tally.input_tokens, one.tally.output_tokens, one.tally.reasoning_tokens, one.tally.answers
        )
        for one in tasks
    }
    judged = {
        one.task.name: _tokens(
            one.tally.judge_input_tokens,
            one.tally.judge_output_tokens,
            one.tally.judge_reasoning_tokens,
            one.tally.judge_replies,
        )
        for one in tasks
    }
    by_task = {name: _sum([entry, judged[name]]) for name, entry in asked.items()}
    if not any(entry.total_tokens for entry in by_task.values()):
        return {}
    by_source = {"model": _sum(asked.values())}
    if any(entry.n_api_calls for entry in judged.values()):
        by_source["judge"] = _sum(judged.values())
    total = _sum(by_task.values())
    return to_dict(UsagePart(total=total, by_task=by_task, by_source=by_source, budget_exceeded=False))


def _tokens(sent: int, received: int, reasoning: int, answers: int) -> TokenSums:
    return TokenSums(
        input_tokens=sent,
        output_tokens=received,
        reasoning_tokens=reasoning,
        total_tokens=sent + received,
        n_api_calls=answers,
    )


def _sum(entries: Iterable[TokenSums]) -> TokenSums:
    found = list(entries)
    return TokenSums(**{name: sum(getattr(one, name) for one in found) for name in TokenSums.__struct_fields__})


def _model_part(facts: RunFacts) -> dict[str, Any]:
    system, name = facts.config.system_instruction, model_name_from_args(argument_text(facts.config.model_args))
    return {
        "model_source": facts.config.model,
        "model_name": name,
        "model_name_sanitized": sanitize_model_name(name),
        "system_instruction": system,
        "system_instruction_sha": hashlib.sha256(system.encode()).hexdigest() if system else None,
        "fewshot_as_multiturn": bool(facts.config.fewshot_as_multiturn),
        "chat_template": facts.model.get("chat_template"),
        "chat_template_sha": facts.model.get("chat_template_sha"),
        "start_time": facts.start_time,
        "end_time": facts.end_time,
        "total_evaluation_time_seconds": str(facts.end_time - facts.start_time),
    }


def _additions(run: RunScores, tasks: Mapping[str, TaskResult], facts: RunFacts) -> dict[str, Any]:
    """Return this project's own parts. They are at the top level, since readers iterate over ``results[TASK]``."""
    files = {name: list(result.task.data_files) for name, result in tasks.items() if result.task.data_files}
    sent = {name: media for name, result in tasks.items() if (media := result.tally.seen.summary())}
    return {
        "intervals": {
            **{name: intervals_of(result.metrics) for name, result in tasks.items()},
            **{group.group.name: intervals_of(group.metrics) for group in run.groups if group.metrics},
        },
        **({"variance": split} if (split := variances_of(tasks)) else {}),
        **({"noise_floor": noise} if (noise := noise_of(tasks)) else {}),
        "outcomes": {
            **{
                result.task.name: _outcome(result.outcome, result.metrics)
                | ({"stops": to_dict(result.tally.stops)} if result.tally.stops.answers else {})
                | {"drew": result.tally.drew}
                for result in run.tasks
            },
            **{
                group.group.name: _outcome(group_outcome(group, tasks), group.metrics)
                for group in run.groups
                if group.metrics
            },
        },
        "clusters": {name: result.clusters.entry() for name, result in tasks.items()},
        **({"data_files": files} if files else {}),
        "left_out": {group.group.name: dict(group.left_out) for group in run.groups if group.left_out},
        "state": run.state,
        **({"early_stop": stops} if (stops := _early_stops(run, tasks)) else {}),
        **({"sampled": drawn} if (drawn := sampled_of(tasks, run.groups)) else {}),
        **({"anchors": anchors} if (anchors := _anchors(tasks)) else {}),
        "error_budget": facts.config.error_budget,
        "run_key": facts.run_key,
        "prompt_fingerprint": run.prompt_fingerprint,
        **({"sent_media": sent} if sent else {}),
        **({"effective_requests": dict(facts.requests)} if facts.requests else {}),
        **({"ignored_gen_kwargs": list(facts.ignored)} if facts.ignored else {}),
        **({"recipe": dict(facts.recipe)} if facts.recipe else {}),
        "timing": {
            **dict(facts.seconds),
            **run.seconds,
            "first_request_to_last_response": run.asking.seconds,
            "asked": run.asking.answered + run.asking.failed,
            "resumed": run.resumed,
        },
        **({"cache": dict(facts.cache)} if facts.cache else {}),
        **({"judge": dict(facts.judge)} if facts.judge else {}),
        **({"batch_check": run.batch_check.to_dict()} if run.batch_check is not None else {}),
        "model": {**facts.model, **({"served": dict(run.served)} if run.served else {})},
        "library_versions": versions(),
        "machine": machine(),
    }


def _outcome(outcome: TaskOutcome, metrics: Sequence[MetricResult]) -> dict[str, Any]:
    named = {f"{metric.metric},{metric.filter}": metric for metric in metrics}
    counts = outcome.answers
    found: dict[str, Any] = plain(
        Outcome(
            requested=outcome.requested,
            scored=outcome.scored,
            unscored=outcome.unscored,
            failed=outcome.failed,
            not_asked=outcome.not_asked,
            coverage=outcome.coverage,
            withheld=bool(outcome.withheld),
            reasons=dict(outcome.reasons),
            answers=counts.total,
            blank=counts.blank,
            filtered=counts.filtered,
            truncated=counts.truncated,
            in_thought=counts.in_thought,
            shares=counts.shares(),
            judge_unread=outcome.judge_unread,
            over_truncation_budget=outcome.over_truncation_budget,
            n={key: metric.n for key, metric in named.items()},
            truncation={key: one.truncation for key, one in named.items() if one.truncation is not None} or UNSET,
            missing_bounds={key: one.missing_bounds for key, one in named.items() if one.missing_bounds is not None}
            or UNSET,
            undrawn={key: one.undrawn for key, one in named.items() if one.undrawn is not None} or UNSET,
            partial={
                key: PartialValue(
                    value=metric.partial, n=metric.n, reason=metric.withheld_reason, interval=metric.interval
                )
                for key, metric in named.items()
                if metric.value is None and metric.withheld_reason
            },
            wrote_files=[key for key, one in named.items() if one.value is None and "submission_files" in one.details]
            or UNSET,
        )
    )
    return found
