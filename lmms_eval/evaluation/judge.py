"""The judge of a run: from the options to a model with its journal and its part of the response cache."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.config import RunConfig
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.ask_report import AskReport
from lmms_eval.engine.cache_file import CacheFile, cache_path
from lmms_eval.engine.cache_key import CacheKeys
from lmms_eval.engine.judgements import JudgementStore
from lmms_eval.engine.judging import JudgeSetup, JudgingOptions
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.response_cache import ResponseCache
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.judges.options import JudgeOptions
from lmms_eval.judges.providers import Judge, open_judge
from lmms_eval.results.judge import judge_part
from lmms_eval.utils.redaction import redact_text


def judge_options(config: RunConfig, device: str | None = None) -> JudgeOptions:
    return JudgeOptions(config.judge_model, config.judge_base_url, config.judge_arguments, device)


def build_judge(config: RunConfig, plans: tuple[TaskPlan, ...], device: str | None) -> Judge | None:
    """The judge, where one is named and a task needs it.

    Raises:
        ModelError: it cannot be built.
    """
    options = judge_options(config, device)
    judged = [plan.task.name for plan in plans if plan.task.is_judged]
    if not judged or not options.is_given:
        if judged:
            names = ", ".join(judged)
            logger.info("no judge (--judge_model): samples of {} that a judge must score stay unscored", names)
        return None
    return open_judge(options)


def judge_key(config: RunConfig, judge: Judge | None) -> Any:
    """The judge's part of the scoring key."""
    if judge is None:
        return None
    return {**judge.identity(), "retries": config.judge_retries, "repeats": config.judge_repeats}


def open_setup(
    config: RunConfig, judge: Judge | None, folder: Path, rank: int, limits: StreamLimits, opened: ExitStack
) -> JudgeSetup | None:
    """Open the judge's journal and cache, which ``opened`` closes; ``None`` without a judge.

    Raises:
        JournalError: its journal cannot be opened.
    """
    if judge is None:
        return None
    keys = CacheKeys(judge.identity(), reads_documents=False)
    cache = None
    if config.use_cache:
        name = redact_text(f"judge {judge.provider} {judge.name}")
        cache = ResponseCache(CacheFile(cache_path(config.use_cache)), keys, name, judge.arguments)
        opened.callback(cache.close)
    # Questions are prepared beside the requests, so they get a share of the threads and of the memory.
    share = replace(limits, threads=min(2, limits.threads), max_bytes=max(1 << 20, limits.max_bytes // 4))
    options = JudgingOptions(config.judge_retries, share, cache)
    store = JudgementStore(folder, keys, rank)
    opened.callback(store.close)
    return JudgeSetup(judge.model, judge.name, store, options)


def recorded_judge(judge: Judge | None, tasks: tuple[TaskResult, ...], report: AskReport) -> Mapping[str, Any]:
    """``judge`` in the results document."""
    return {} if judge is None else judge_part(judge.describe(), tasks, report)
