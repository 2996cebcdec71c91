"""``--prices``: the prices that hold for the model and the judge of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.config import RunConfig
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.judge import judge_options
from lmms_eval.models.argument_names import MODEL
from lmms_eval.models.services import NAMED_SERVICES
from lmms_eval.utils.prices import PriceTable, Tariffs, read_prices


def model_names(config: RunConfig) -> tuple[str, ...]:
    """Names under which a table may have the model, the surest one first."""
    given: Mapping[str, Any] = config.model_arguments
    service = NAMED_SERVICES.get(config.model)
    named = [str(given[name]) for name in MODEL if given.get(name)]
    return (*named, *([service.model] if service is not None else []), config.model)


def tariffs_of(config: RunConfig) -> Tariffs | None:
    """Read the table and find the run's prices; ``None`` without ``--prices``.

    Raises:
        DataError: the table cannot be read.
        UsageError: it has no price for the model, or there is none where ``--max_cost`` needs it.
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
    """Find the prices of the model and of the judge, where one is named.

    Raises:
        UsageError: there is none for the model.
    """
    service = NAMED_SERVICES.get(config.model)
    is_batch = bool(config.model_arguments.get("batch") or (service is not None and service.fixed.get("batch")))
    model, judge = table.price_of(model_names(config), is_batch), judge_options(config)
    batched = bool(judge.arguments.get("batch"))
    return Tariffs(model, table.find([judge.name, judge.model or ""], batched) if judge.is_given else None)
