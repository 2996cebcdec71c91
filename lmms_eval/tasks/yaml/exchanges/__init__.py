"""Exchanges with a model about one (document, repeat), by the task's output type."""

from __future__ import annotations

from lmms_eval.api.task import Exchange
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.exchanges.agentic import AgenticExchange
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.exchanges.generation import PluginRoundsExchange, RoundsExchange, SingleExchange
from lmms_eval.tasks.yaml.exchanges.likelihood import LikelihoodExchange
from lmms_eval.tasks.yaml.exchanges.visual_cot import PluginVisualCotExchange, VisualCotExchange
from lmms_eval.tasks.yaml.requests import RequestFactory

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


def exchange_for(requests: RequestFactory, doc_id: int, repeat: int) -> Exchange:
    """Open the exchange of the task's output type.

    Raises:
        TaskError: the output type has no exchange.
    """
    output_type = requests.task.output_type
    if output_type not in _KINDS:
        raise TaskError(f"{requests.where}: output_type {output_type!r} is not in this version")
    kinds = {**_KINDS, **_BY_PLUGINS} if requests.options.legacy else _KINDS
    return kinds[output_type](requests, doc_id, repeat)
