"""Exchanges with a model about one (document, repeat), by the task's output type."""

from __future__ import annotations

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.exchanges.agentic import AgenticExchange
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.exchanges.generation import PluginRoundsExchange, RoundsExchange, SingleExchange
from lmms_eval.tasks.yaml.exchanges.likelihood import LikelihoodExchange
from lmms_eval.tasks.yaml.exchanges.visual_cot import PluginVisualCotExchange, VisualCotExchange

_KINDS: dict[str, type[TaskExchange]] = {
    "generate_until": SingleExchange,
    "loglikelihood": LikelihoodExchange,
    "multiple_choice": LikelihoodExchange,
    "generate_until_multi_round": RoundsExchange,
    "generate_until_agentic": AgenticExchange,
    "generate_visual_cot": VisualCotExchange,
}
_BY_PLUGINS: dict[str, type[TaskExchange]] = {
    "generate_until_multi_round": PluginRoundsExchange,
    "generate_visual_cot": PluginVisualCotExchange,
}
"""Output types whose rounds class plugins run themselves."""


def exchange_class(output_type: str, legacy: bool, where: str) -> type[TaskExchange]:
    """Return the exchange of an output type; ``legacy``: for a plugin of the class interface.

    Raises:
        TaskError: the output type has no exchange.
    """
    kinds = {**_KINDS, **_BY_PLUGINS} if legacy else _KINDS
    if output_type not in kinds:
        raise TaskError(f"{where}: output_type {output_type!r} is not in this version")
    return kinds[output_type]
