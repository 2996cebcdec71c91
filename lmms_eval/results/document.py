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

from msgspec import Struct, field

from lmms_eval.api.task import Selection
from lmms_eval.engine.aggregate import GroupResult, MetricResult, TaskResult
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.headline import LEVEL
from lmms_eval.engine.looks import headline_metric
from lmms_eval.engine.outcomes import TaskOutcome, TaskTally
from lmms_eval.engine.records import RunSpending
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.controls import NO_CONTROLS, Controls
from lmms_eval.results.layout import directions, group_early_stop, group_outcome, table_layout
from lmms_eval.utils.installed import git, package_version
from lmms_eval.utils.prices import Spending, Tariff, Tariffs
from lmms_eval.utils.records import to_dict

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


def cost_part(spent: RunSpending, tariffs: Tariffs) -> dict[str, Any]:
    """Return ``usage.cost``, over all starts of the run whose journals are available. Cache hits cost nothing.

    ``None`` means that a cost is unknown: the back end reported no tokens, the table has no price, or it has a price
    for media and some media were not measured.
    """
    model, judge = _cost(tariffs.model, spent.model), _cost(tariffs.judge, spent.judge)
    part: dict[str, Any] = {
        "model": model,
        "judge": judge,
        "total": None if model is None or judge is None else model + judge,
        "currency": tariffs.model.currency,
        "price": tariffs.model.source,
    }
    return part | ({"judge_price": tariffs.judge.source} if tariffs.judge is not None else {})


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
    speeds = {
        "total_gen_tokens": report.output_tokens,
        "total_elapsed_time": report.seconds,
        "avg_speed": report.output_tokens / report.seconds,
    }
    return {**speeds, "avg_latency": report.latency / report.timed} if report.timed else speeds


def efficiency(tasks: Sequence[TaskResult]) -> dict[str, Any]:
    """Return ``overall`` and ``by_task``. Each document counts once, however many filter pipelines the task has."""
    total = TaskTally()
    for result in tasks:
        for name in TaskTally.__struct_fields__:
            setattr(total, name, getattr(total, name) + getattr(result.tally, name))
    return {"by_task": {result.task.name: _entry(result.tally) for result in tasks}, "overall": _entry(total)}


def _entry(tally: TaskTally) -> dict[str, Any]:
    return {
        "docs": float(tally.documents),
        "docs_with_token_counts": float(tally.documents_with_tokens),
        "total_input_tokens": float(tally.input_tokens),
        "total_output_tokens": float(tally.output_tokens),
        "total_tokens": float(tally.input_tokens + tally.output_tokens),
        "total_correct_score": tally.correct,
        "avg_output_tokens_per_sample": tally.output_tokens / tally.documents if tally.documents else 0.0,
        "tokens_per_correct_answer": tally.output_tokens / tally.correct if tally.correct > 0 else None,
    }


COUNTS = {
    "questions": "judge_questions",
    "replies": "judge_replies",
    "answered": "judge_answered",
    "judge_unparsable": "judge_unparsable",
    "failed": "judge_failed",
    "input_tokens": "judge_input_tokens",
    "output_tokens": "judge_output_tokens",
    "reasoning_tokens": "judge_reasoning_tokens",
}
"""Key of the results document -> field of ``TaskTally``."""


def judge_part(judge: Mapping[str, Any], tasks: Sequence[TaskResult], report: AskReport) -> dict[str, Any]:
    """Return counts over all documents of the run; ``asked`` and ``cache`` are for this start only."""
    by_task = {
        result.task.name: {key: getattr(result.tally, name) for key, name in COUNTS.items()}
        for result in tasks
        if result.task.is_judged
    }
    totals = {key: sum(counts[key] for counts in by_task.values()) for key in COUNTS}
    part: dict[str, Any] = {**judge, "asked": report.judge_asked, **totals, "by_task": by_task}
    if report.judge_give_up:
        part["given_up"] = report.judge_give_up
    if report.judge_cache:
        part["cache"] = dict(report.judge_cache)
    return part


def judge_usage(tally: TaskTally) -> dict[str, int]:
    """Return the judge's tokens as an entry of ``usage``."""
    return {
        "input_tokens": tally.judge_input_tokens,
        "output_tokens": tally.judge_output_tokens,
        "reasoning_tokens": tally.judge_reasoning_tokens,
        "total_tokens": tally.judge_input_tokens + tally.judge_output_tokens,
        "n_api_calls": tally.judge_replies,
    }


class RunFacts(Struct, frozen=True):
    """Facts of the run that the document states in addition to its numbers."""

    config: Mapping[str, Any]
    """The ``config`` block, with secrets redacted."""
    model_source: str
    model_name: str
    model_name_sanitized: str
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
    system_instruction: str | None = None
    fewshot_as_multiturn: bool = False
    log_samples: bool = False
    error_budget: float = 0.0
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


def results_document(
    run: RunScores, selection: Selection, facts: RunFacts, paired: Mapping[str, Mapping[str, PairedScores]],
    controls: Controls = NO_CONTROLS,
) -> dict[str, Any]:  # fmt: skip
    """Build the document from the run's numbers; ``paired`` holds comparisons by task and ``METRIC,FILTER``."""
    tasks = {result.task.name: result for result in run.tasks}
    layout = table_layout(selection, run.groups, tasks)
    document: dict[str, Any] = {"results": {}}
    aggregating = {}
    for row in layout:
        if row.group is not None:
            entry = _group_entry(row.group, row.alias)
            if row.group.group.metrics:
                aggregating[row.name] = entry
        else:
            entry = _task_entry(tasks[row.name], row.alias) | _paired_entry(paired.get(row.name, {}))
        document["results"][row.name] = entry
    if aggregating:
        document["groups"] = aggregating
    document |= _task_parts(selection, tasks, run.groups)
    document["config"] = dict(facts.config)
    commit, branch = facts.git.commit, facts.git.branch
    document |= {
        "git_hash": commit,
        "git_branch": branch,
        "lmms_eval_version": f"{branch or 'unknown'}@{(commit or 'unknown')[:8]}",
        "date": facts.date,
    }
    document |= _measurements(run, facts)
    document["task_hashes"] = {name: result.task_hash for name, result in tasks.items()}
    document |= _model_part(facts)
    document |= _additions(run, tasks, facts)
    document |= _comparisons(paired, controls)
    for result in run.tasks:
        for metric in result.metrics:
            for part, content in metric.details.items():
                _add_part(document.setdefault(part, {}), result.task.name, content)
    if sub_scores := {result.task.name: found for result in run.tasks if (found := _sub_scores(result))}:
        document["sub_scores"] = sub_scores
    return document


def _add_part(part: dict[str, Any], task: str, content: Any) -> None:
    """Add a detail of a metric. Mappings that several metrics of a task give under one name are merged."""
    known = part.get(task)
    if isinstance(known, Mapping) and isinstance(content, Mapping):
        content = {**known, **content}
    part[task] = content


def _early_stops(run: RunScores, tasks: Mapping[str, TaskResult]) -> dict[str, Any]:
    """Return, by task or group that stopped early, the rule, the number of documents, and the interval."""
    stops: dict[str, Any] = {}
    for name, result in tasks.items():
        if (stop := result.early_stop) is not None:
            headline = headline_metric(result.task).name
            stops[name] = _stop_entry(stop.as_record(), [one for one in result.metrics if one.metric == headline])
            if stop.difference is not None:
                stops[name]["difference"] = {**to_dict(stop.difference), "level": LEVEL}
    for group in run.groups:
        if group.metrics and (whole := group_early_stop(group, tasks)) is not None:
            record = {"rule": whole.rule, "order": whole.order, "asked": whole.asked, "of": whole.of}
            stops[group.group.name] = _stop_entry(record, group.metrics)
    return stops


def _stop_entry(record: Mapping[str, object], metrics: Sequence[MetricResult]) -> dict[str, Any]:
    found = metrics[0].interval if metrics else None
    interval = None if found is None else {**to_dict(found), "level": LEVEL}
    return {**record, "interval": interval}


def _sub_scores(result: TaskResult) -> dict[str, Any]:
    """Return scores of parts of a task's documents, by metric, dividing column, and name."""
    return {
        f"{metric.metric},{metric.filter}": {
            by: {name: to_dict(score) for name, score in parts.items()} for by, parts in metric.sub_scores.items()
        }
        for metric in result.metrics
        if metric.sub_scores
    }


def _task_entry(result: TaskResult, alias: str) -> dict[str, Any]:
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
    return entry


def _group_entry(group: GroupResult, alias: str) -> dict[str, Any]:
    if not group.metrics:
        return {" ": " ", "alias": alias}
    entry: dict[str, Any] = {}
    for metric in group.metrics:
        entry[f"{metric.metric},{metric.filter}"] = metric.value
        entry[f"{metric.metric}_stderr,{metric.filter}"] = metric.stderr
    return entry | {"alias": alias}


def _paired_entry(rows: Mapping[str, PairedScores]) -> dict[str, Any]:
    """Return the family's keys, which hold one comparison: the one of the task's first row that has any."""
    if not rows:
        return {}
    first = next(iter(rows.values()))
    return {
        "paired_baseline": first.baseline,
        "paired_baseline_score": first.baseline_score,
        "paired_ci_lower": first.ci_lower,
        "paired_ci_upper": first.ci_upper,
        "paired_pvalue": first.pvalue,
    }


def _paired_row(scores: PairedScores) -> dict[str, Any]:
    return {key: value for key, value in to_dict(scores).items() if key != "baseline_early" or value}


def _comparisons(paired: Mapping[str, Mapping[str, PairedScores]], controls: Controls) -> dict[str, Any]:
    rows = {name: {row: _paired_row(scores) for row, scores in rows.items()} for name, rows in paired.items()}
    return ({"paired": rows} if rows else {}) | ({"controls": controls.as_dict()} if controls.tasks else {})


def _task_parts(selection: Selection, tasks: Mapping[str, TaskResult], groups: Sequence[GroupResult]) -> dict[str, Any]:
    subtasks = {group.name: list(group.children) for group in selection.groups}
    subtasks |= {name: [] for name in tasks if name in selection.direct}
    group_versions = {group.name: group.version for group in selection.groups if group.version is not None}
    return {
        "group_subtasks": subtasks,
        "configs": {name: result.task.describe() for name, result in tasks.items()},
        "versions": dict(sorted({**group_versions, **{n: r.task.version for n, r in tasks.items()}}.items())),
        "n-shot": {name: result.task.num_fewshot for name, result in sorted(tasks.items())},
        "higher_is_better": directions(tasks, groups),
        "n-samples": {
            name: {"original": result.plan.original, "effective": result.plan.requested}
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
    if facts.log_samples:
        parts["efficiency"] = efficiency(run.tasks)
    return parts


def usage_part(tasks: Sequence[TaskResult]) -> dict[str, Any]:
    """Return token counts over all answers of the run; ``{}`` if no back end reported any."""
    asked = {
        result.task.name: {
            "input_tokens": result.tally.input_tokens,
            "output_tokens": result.tally.output_tokens,
            "reasoning_tokens": result.tally.reasoning_tokens,
            # Providers count reasoning tokens among the output tokens, so they are not added again.
            "total_tokens": result.tally.input_tokens + result.tally.output_tokens,
            "n_api_calls": result.tally.answers,
        }
        for result in tasks
    }
    judged = {result.task.name: judge_usage(result.tally) for result in tasks}
    by_task = {name: _sum([entry, judged[name]]) for name, entry in asked.items()}
    if not any(entry["total_tokens"] for entry in by_task.values()):
        return {}
    by_source = {"model": _sum(asked.values())}
    if any(entry["n_api_calls"] for entry in judged.values()):
        by_source["judge"] = _sum(judged.values())
    return {"total": _sum(by_task.values()), "by_task": by_task, "by_source": by_source, "budget_exceeded": False}


def _sum(entries: Iterable[Mapping[str, int]]) -> dict[str, int]:
    keys = ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "n_api_calls")
    found = list(entries)
    return {key: sum(entry[key] for entry in found) for key in keys}


def _model_part(facts: RunFacts) -> dict[str, Any]:
    system = facts.system_instruction
    return {
        "model_source": facts.model_source,
        "model_name": facts.model_name,
        "model_name_sanitized": facts.model_name_sanitized,
        "system_instruction": system,
        "system_instruction_sha": hashlib.sha256(system.encode()).hexdigest() if system else None,
        "fewshot_as_multiturn": facts.fewshot_as_multiturn,
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
            **{name: _intervals(result.metrics) for name, result in tasks.items()},
            **{group.group.name: _intervals(group.metrics) for group in run.groups if group.metrics},
        },
        "outcomes": {
            **{
                name: _outcome(result.outcome, result.metrics)
                | ({"stops": to_dict(result.tally.stops)} if result.tally.stops.answers else {})
                | {"drew": result.tally.drew}
                for name, result in tasks.items()
            },
            **{
                group.group.name: _outcome(group_outcome(group, tasks), group.metrics)
                for group in run.groups
                if group.metrics
            },
        },
        **({"data_files": files} if files else {}),
        "left_out": {group.group.name: dict(group.left_out) for group in run.groups if group.left_out},
        "state": run.state,
        **({"early_stop": stops} if (stops := _early_stops(run, tasks)) else {}),
        "error_budget": facts.error_budget,
        "run_key": facts.run_key,
        "prompt_fingerprint": run.prompt_fingerprint,
        **({"sent_media": sent} if sent else {}),
        **({"effective_requests": dict(facts.requests)} if facts.requests else {}),
        **({"ignored_gen_kwargs": list(facts.ignored)} if facts.ignored else {}),
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


def _intervals(metrics: Sequence[MetricResult]) -> dict[str, Any]:
    return {
        f"{metric.metric},{metric.filter}": (
            {"low": None, "high": None, "reason": metric.certainty.no_interval}
            if metric.interval is None
            else to_dict(metric.interval)
        )
        for metric in metrics
        if metric.value is not None and (metric.interval is not None or metric.certainty.no_interval)
    }


def _outcome(outcome: TaskOutcome, metrics: Sequence[MetricResult]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "requested": outcome.requested,
        "scored": outcome.scored,
        "unscored": outcome.unscored,
        "failed": outcome.failed,
        "not_asked": outcome.not_asked,
        "coverage": outcome.coverage,
        "withheld": bool(outcome.withheld),
        "reasons": dict(outcome.reasons),
        "answers": outcome.answers.total,
        **outcome.answers.as_dict(),
        "shares": outcome.answers.shares(),
        "judge_unread": outcome.judge_unread,
        "over_truncation_budget": outcome.over_truncation_budget,
    }
    partial = {
        f"{metric.metric},{metric.filter}": {
            "value": metric.partial,
            "n": metric.n,
            "reason": metric.withheld_reason,
            "interval": to_dict(metric.interval) if metric.interval is not None else None,
        }
        for metric in metrics
        if metric.value is None and metric.withheld_reason
    }
    entry["n"] = {f"{metric.metric},{metric.filter}": metric.n for metric in metrics}
    truncation = {
        f"{one.metric},{one.filter}": to_dict(one.truncation) for one in metrics if one.truncation is not None
    }
    if truncation:
        entry["truncation"] = truncation
    undrawn = {f"{one.metric},{one.filter}": to_dict(one.undrawn) for one in metrics if one.undrawn is not None}
    if undrawn:
        entry["undrawn"] = undrawn
    wrote = [f"{one.metric},{one.filter}" for one in metrics if one.value is None and "submission_files" in one.details]
    return entry | {"partial": partial} | ({"wrote_files": wrote} if wrote else {})
