"""Generation options of a run: refuses those that the model does not take, and records what is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from loguru import logger

from lmms_eval.api.generation import MOST, TakenOptions
from lmms_eval.api.model import Model
from lmms_eval.config import RunConfig
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import ModelError
from lmms_eval.utils.redaction import redact

MOST_NAMED = 40
"""Most options that a message lists."""


def refuse_unplaced(config: RunConfig, model: Model) -> tuple[str, ...]:
    """Refuse options of ``--gen_kwargs`` that have no place in the model's requests.

    Returns the options that are ignored because of ``--allow_ignored``; the results name them. Raises ``ModelError`` if
    there are such options, and ``--allow_ignored`` is not given.
    """
    taken, stated = model.generation_options(), config.arguments("gen_kwargs")
    if config.retry_truncated:
        _check_retry(config, taken)
    if taken is None:
        return ()
    objections = {name: taken.objection(name, value) for name, value in stated.items()}
    objections = {name: why for name, why in objections.items() if why}
    if not objections:
        return ()
    listed = "; ".join(f"{name} ({why})" for name, why in objections.items())
    if config.allow_ignored:
        logger.warning("model {!r} is asked without these options of --gen_kwargs: {}", config.model, listed)
        return tuple(sorted(objections))
    names = sorted((taken.names | (taken.variables or frozenset())) - set(taken.reasons))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    others = ", and any other option" if taken.forwards else ""
    raise ModelError(
        f"model {config.model!r} has no place for these options of --gen_kwargs: {listed}. It takes: "
        f"{', '.join(names[:MOST_NAMED])}{more}{others}. --allow_ignored asks without them, and the results name them"
    )


def _check_retry(config: RunConfig, taken: TakenOptions | None) -> None:
    if taken is None:
        logger.warning(
            "--retry_truncated: model {!r} may not report whether the token limit ended an answer: only answers with "
            "that report are asked for again",
            config.model,
        )
    elif config.retry_truncated == MOST and taken.needs_length:
        raise ModelError(f"--retry_truncated max: {taken.needs_length}; give a number with model {config.model!r}")


def effective_requests(model: Model, plans: Sequence[TaskPlan]) -> dict[str, Any]:
    """Return what is sent with the requests of each task in addition to their messages, taken from its first document.

    A task has no entry if its request cannot be built or if the model sends nothing. Secrets are masked.
    """
    found = {}
    for plan in plans:
        if not plan.requested or plan.task.control_of:
            continue
        try:
            request = next(iter(plan.task.exchange(plan.doc_ids[0], 0).open()), None)
            of_request = {} if request is None else model.sent_with(request)
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything; the sample fails later
            logger.debug("{}: no request to record: {}: {}", plan.task.name, type(error).__name__, error)
            continue
        if sent := {name: value for name, value in of_request.items() if value not in (None, "", {}, [])}:
            found[plan.task.name] = effective_request(sent)
    return found


def effective_request(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is sent with a request, secrets masked, with the SHA-256 of its JSON with sorted keys."""
    from lmms_eval.results.samples_file import json_text

    shown: dict[str, Any] = orjson.loads(json_text(redact(dict(sent))))
    canonical = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
    return {"sha256": hashlib.sha256(canonical).hexdigest(), **shown}
