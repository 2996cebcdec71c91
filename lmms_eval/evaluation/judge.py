"""The judge of a run: builds it from the options, and opens its journal and its part of the response cache."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.model import Model
from lmms_eval.config import RunConfig
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Team
from lmms_eval.errors import ModelError, UsageError
from lmms_eval.models.argument_names import MODEL
from lmms_eval.models.registry import NAMED_SERVICES
from lmms_eval.utils.prices import PriceTable, Tariffs, read_prices
from lmms_eval.utils.redaction import note_secrets, redact_text

if TYPE_CHECKING:
    from lmms_eval.engine.judging import JudgeSetup
    from lmms_eval.judges.options import JudgeOptions
    from lmms_eval.judges.providers import Judge

PLACE = "judge_server"
"""Name of the message that gives the other processes the address of the judge's server."""
UNSERVED = "http://judge.localhost/v1"
"""Placeholder for the address of a judge's server that is started later. The address is a part of the judge's identity.
The real one changes with the port, so that a continued run would ask everything again."""


def judge_options(config: RunConfig, device: str | None = None) -> JudgeOptions:
    """Return the options of the judge: ``--judge_model``, or the model that ``--launcher_args`` serves.

    Raises ``ModelError`` if an argument of the launcher is wrong.
    """
    from lmms_eval.judges.options import JudgeOptions

    if not config.launcher_args:
        return JudgeOptions(config.judge_model, config.judge_base_url, config.arguments("judge_args"), device)
    from lmms_eval.judges.serving.arguments import read_serving

    serving = read_serving(config.arguments("launcher_args"))
    options = JudgeOptions(f"openai:{serving.model}", UNSERVED, {"api_key": "EMPTY", **config.arguments("judge_args")})
    if config.judge_model and JudgeOptions(config.judge_model).name != serving.model:
        raise ModelError(f"--launcher_args serves {serving.model}, but --judge_model names {config.judge_model}")
    return options


def build_judge(config: RunConfig, plans: tuple[TaskPlan, ...], device: str | None) -> Judge | None:
    """Build the judge. Returns ``None`` if the options name no judge or no task needs it. Raises ``ModelError``."""
    judged = [plan.task.name for plan in plans if plan.task.is_judged]
    options = judge_options(config, device) if judged or config.launcher_args else None
    if not judged or options is None or not options.is_given:
        if own := [plan.task.name for plan in plans if plan.task.has_judged_scores]:
            names = ", ".join(own)
            logger.info("no judge (--judge_model): samples of {} that a judge must score stay unscored", names)
        return None
    from lmms_eval.judges.providers import open_judge
    from lmms_eval.judges.serving.arguments import check_program, read_serving

    judge = open_judge(options)
    if not config.launcher_args:
        return judge
    serving = read_serving(config.arguments("launcher_args"))
    check_program(serving)
    return replace(judge, base_url=None, served=serving.describe())


def judge_key(config: RunConfig, judge: Judge | None) -> Any:
    """Return the judge's part of the scoring key."""
    if judge is None:
        return None
    return {**judge.identity(), "retries": config.judge_retries, "repeats": config.judge_repeats}


def open_setup(
    config: RunConfig, judge: Judge | None, folder: Path, team: Team | None, limits: StreamLimits, opened: ExitStack
) -> JudgeSetup | None:
    """Open the judge's journal and cache, and start its server if the run has one. ``opened`` closes them.

    Returns ``None`` without a judge.

    Raises:
        JournalError: its journal cannot be opened.
        ModelError: its server does not start.
    """
    if judge is None:
        return None
    from lmms_eval.engine.judging import JudgementStore, JudgeSetup
    from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache, cache_path

    rank = 0 if team is None else team.place.rank
    keys = CacheKeys(judge.identity(), reads_documents=False)
    cache = None
    if config.use_cache:
        name = redact_text(f"judge {judge.provider} {judge.name}")
        cache = ResponseCache(CacheFile(cache_path(config.use_cache)), keys, name, judge.arguments)
        opened.callback(cache.close)
    # The judge's prompts are prepared in parallel with the requests, so they get a share of the threads and memory.
    share = replace(limits, threads=min(2, limits.threads), max_bytes=max(1 << 20, limits.max_bytes // 4))
    store = JudgementStore(folder, keys, rank)
    opened.callback(store.close)
    model = judge.model if judge.served is None else _served(config, folder, team, opened)
    model.attach_folder(folder / "judge")
    return JudgeSetup(model, judge.name, store, config.judge_retries, share, cache)


def _served(config: RunConfig, folder: Path, team: Team | None, opened: ExitStack) -> Model:
    """Start the judge's server in the first process, which sends its address to the others."""
    from lmms_eval.judges.providers import open_judge
    from lmms_eval.judges.serving.arguments import read_serving
    from lmms_eval.judges.serving.server import JudgeServer

    if team is None or team.is_first:
        server = opened.enter_context(JudgeServer(read_serving(config.arguments("launcher_args")), folder))
        place = {"url": server.url, "key": server.key}
        if team is not None:
            team.publish(PLACE, place)
    else:
        place = team.receive(PLACE, 0)
        note_secrets([place["key"]])
    arguments = {**config.arguments("judge_args"), "api_key": place["key"]}
    served = open_judge(replace(judge_options(config), base_url=place["url"], arguments=arguments))
    opened.callback(served.close)
    return served.model


def model_names(config: RunConfig) -> tuple[str, ...]:
    """Return the names that a table may use for the model, the most specific one first."""
    given: Mapping[str, Any] = config.arguments("model_args")
    service = NAMED_SERVICES.get(config.model)
    named = [str(given[name]) for name in MODEL if given.get(name)]
    return (*named, *([service.model] if service is not None else []), config.model)


def tariffs_of(config: RunConfig) -> Tariffs | None:
    """Read the price table and find the run's prices. Returns ``None`` without ``--prices``.

    Raises:
        DataError: the table cannot be read.
        UsageError: the table has no price for the model, or ``--max_cost`` needs a price that it does not have.
    """
    if config.prices is None:
        if config.max_cost is not None:
            raise UsageError("--max_cost needs prices: give a table with --prices FILE, or --prices litellm")
        return None
    found = find_tariffs(config, read_prices(config.prices))
    if config.max_cost is not None and found.judge is None and judge_options(config).is_given:
        raise UsageError(f"--max_cost: --prices {config.prices} has no price for the judge {config.judge_model!r}")
    return found


def find_tariffs(config: RunConfig, table: PriceTable) -> Tariffs:
    """Find the prices of the model, and of the judge if one is named. Raises ``UsageError`` if the model has none."""
    service = NAMED_SERVICES.get(config.model)
    is_batch = bool(config.arguments("model_args").get("batch") or (service is not None and service.fixed.get("batch")))
    model, judge = table.price_of(model_names(config), is_batch), judge_options(config)
    batched = bool(judge.arguments.get("batch"))
    return Tariffs(model, table.find([judge.name, judge.model or ""], batched) if judge.is_given else None)
