"""Conversion of flag texts and YAML values to the values of ``RunConfig``'s fields, with their grammars."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.utils.arguments import parse_seed_list, simple_parse_args_string
from lmms_eval.utils.document_ids import ids_text
from lmms_eval.utils.redaction import redact
from lmms_eval.utils.where import parse_where

FORMS = (
    "write halfwidth<=0.01 (or 1%), decided:NUMBER, decided:BASELINE, or one of them after the name of a task or group "
    "and a colon"
)
_HALFWIDTH, _DECIDED = "halfwidth<=", "decided:"
log = logging.getLogger(__name__)
_ARGUMENT_OPTIONS = (
    "model_args",
    "judge_args",
    "t2i_args",
    "gen_kwargs",
    "task_kwargs",
    "launcher_args",
    "wandb_args",
    "swanlab_args",
    "trackio_args",
    "hf_hub_log_args",
)
_NO_TAGS = ("", "none", "null", "false")


class Bound(Struct, frozen=True):
    """A number in the units of a score, or a share of its range."""

    number: float
    is_share: bool = False


class StoppingRule(Struct, frozen=True):
    """A condition on a score that ends the requests of a task once it holds."""

    text: str
    """The rule as it was written, without the target."""
    kind: Literal["halfwidth", "decided"]
    bound: Bound | None = None
    """The greatest half-width, or the number that the score must differ from."""
    baseline: str = ""
    """The ``--baseline`` that the score must differ from, if ``bound`` is ``None``."""
    target: str = ""
    """Task or group; empty for every task that no other rule names."""


def stopping_rules(text: str) -> tuple[StoppingRule, ...]:
    """Parse ``[TARGET:] RULE; ...``; an empty text has no rules.

    Raises:
        ConfigError: a part is not a rule, or a target has several.
    """
    rules = tuple(_rule(part.strip()) for part in text.split(";")) if text.strip() else ()
    targets = [rule.target for rule in rules]
    for target in targets:
        if targets.count(target) > 1:
            named = f"{target!r} has" if target else "every task has"
            raise ConfigError(f"until: {named} {targets.count(target)} rules; give each task and group one")
    return rules


def _rule(text: str) -> StoppingRule:
    target, plain = "", text
    if not _is_statement(text):
        target, _, plain = (part.strip() for part in text.partition(":"))
    statement = "".join(plain.split()) if plain.startswith("halfwidth") else plain
    if text and not target and statement == text.partition(":")[2].strip():
        raise ConfigError(f"until: {text!r} names no task or group before the colon; {FORMS}")
    if statement.startswith(_HALFWIDTH):
        bound = _bound(statement.removeprefix(_HALFWIDTH))
        if bound is None or not bound.number > 0:
            raise ConfigError(f"until: {text!r}: the half-width is a number above 0; {FORMS}")
        return StoppingRule(statement, "halfwidth", bound, target=target)
    value = statement.removeprefix(_DECIDED).strip()
    if not statement.startswith(_DECIDED) or not value:
        raise ConfigError(f"until: {text!r} is not a rule; {FORMS}")
    bound = _bound(value)
    return StoppingRule(statement, "decided", bound, "" if bound is not None else value, target)


def _is_statement(text: str) -> bool:
    return text.startswith(_DECIDED) or "".join(text.split()).startswith("halfwidth<")


def _bound(text: str) -> Bound | None:
    """Parse ``0.01`` or ``1%``; ``None`` for anything else."""
    is_share = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return Bound(number / 100 if is_share else number, is_share)


def convert(name: str, value: Any) -> Any:
    """Convert the value of an option, before its type is checked.

    Raises:
        ConfigError: the option does not accept the form of the value.
    """
    if name not in _ARGUMENT_OPTIONS:
        converter = _CONVERTERS.get(name)
        return converter(value) if converter else value
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if all(isinstance(part, str) for part in value):
        return ",".join(value)
    merged: dict[str, Any] = {}  # in a list of texts and mappings, later entries win
    for part in value:
        if not isinstance(part, str | Mapping):
            raise ConfigError(f"{name}: a list takes texts key=value and mappings")
        merged.update(argument_mapping(part, name))
    return merged


def argument_mapping(value: str | Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Return ``k=v,k=v``, or a mapping, as a mapping.

    Raises:
        ConfigError: a part has no ``=``.
    """
    if not value:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return dict(simple_parse_args_string(value))
    except UsageError as error:
        raise ConfigError(f"{name}: write it as key=value,key=value ({redact(str(error))})") from None


def decoded(value: Any) -> Any:
    """Decode a text that is a JSON object or list; return any other value unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def argument_text(value: str | Mapping[str, Any] | None) -> str:
    """Return arguments as ``k=v,k=v`` for display; a text is returned unchanged."""
    if isinstance(value, Mapping):
        return ",".join(
            f"{key}={json.dumps(item) if isinstance(item, list | dict) else item}" for key, item in value.items()
        )
    return value or ""


def tag_pairs(text: str, option: str = "reasoning_tags") -> tuple[tuple[str, str], ...]:
    """Parse pairs of opening and closing tags from JSON; empty for ``none``.

    Raises:
        ConfigError: neither ``none`` nor a JSON list of pairs.
    """
    if text.strip().lower() in _NO_TAGS:
        return ()
    try:
        pairs = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(_tags_message(text, option)) from error
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(tag, str) and tag for tag in pair)
        for pair in pairs
    ):
        raise ConfigError(_tags_message(text, option))
    return tuple((pair[0], pair[1]) for pair in pairs)


def _tags_message(text: str, option: str) -> str:
    return f'{option}: give a JSON list of pairs like [["<think>", "</think>"]], or none; got {text!r}'


def _tasks(value: Any) -> Any:
    """Convert a text, a list of names, or a mapping of names to true, false or null."""
    if isinstance(value, Mapping):
        for task, wanted in value.items():
            if wanted not in (None, True, False):
                raise ConfigError(
                    f"tasks: {task!r} has the value {wanted!r}; a mapping takes only true, false or nothing. "
                    "To change a task, write a YAML file that includes it."
                )
        value = [task for task, wanted in value.items() if wanted is not False]
    if isinstance(value, list | tuple):
        if not all(isinstance(task, str) for task in value):
            raise ConfigError(f"tasks: give names; got {value!r}")
        return ",".join(value)
    return value


def _seed(value: Any) -> Any:
    """Convert one seed for all generators, or four; each may be ``None``."""
    parts = value if isinstance(value, list | tuple) else [value]
    text = ",".join(str(part) for part in parts)
    try:
        seeds = tuple(parse_seed_list(text))
    except UsageError as error:
        raise ConfigError(str(error)) from error
    if len(text.split(",")) == len(seeds) - 1:
        log.warning("seed: three values given; the fourth (few-shot sampling) is %s", seeds[-1])
    return seeds


def _batch_size(value: Any) -> Any:
    text = str(value).strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    head, _, count = text.partition(":")
    if head == "auto" and (text == "auto" or (count.isdecimal() and int(count) > 0)):
        return text
    raise ConfigError(f"batch_size: give a count from 1 on, auto, or auto:N; got {text!r}")


def _tags(value: Any) -> Any:
    if value is None or value is False:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _comma_list(value: Any) -> Any:
    return ",".join(str(part) for part in value) if isinstance(value, list | tuple) else value


def _one_or_several(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _rules(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = value[0] if len(value) == 1 else "; ".join(value)
    if isinstance(value, str | int | float):
        stopping_rules(str(value))
    return value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _image_format(value: Any) -> Any:
    upper = _upper(value)
    return "JPEG" if upper == "JPG" else upper


def _resume(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


def _ids(value: Any) -> Any:
    """Convert document ids to their shortest form. A file's content is read now, so later edits do not matter."""
    if isinstance(value, list | tuple):
        value = ",".join(str(part) for part in value)
    return value if value is None else ids_text(str(value))


def _where(value: Any) -> Any:
    if isinstance(value, str):
        parse_where(value)
    return value


def _count_or_switch(value: Any) -> Any:
    """Convert the value of a switch that may have a number."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    return {"true": True, "false": False}.get(text, int(text) if text.isdecimal() else value)


def truncation_budget(text: str) -> tuple[float, bool]:
    """Parse ``SHARE[!]``: the share of answers that may be truncated, and whether the score is withheld above it.

    Raises:
        ConfigError: the text is not a share from 0 to 1.
    """
    try:
        share = float(text.removesuffix("!"))
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ConfigError(f"give a share from 0 to 1, such as 0.05 or 0.05!; got {text!r}")
    return share, text.endswith("!")


def _truncation_budget(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        truncation_budget(value)
    return value


def _retry_truncated(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and value != "max" and not (value.isdecimal() and int(value) > 0):
        raise ConfigError(f"give a number of tokens from 1 on, or max; got {value!r}")
    return value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "tasks": _tasks,
    "seed": _seed,
    "batch_size": _batch_size,
    "reasoning_tags": _tags,
    "thinking_tags": _tags,
    "include_path": _one_or_several,
    "plugins": _comma_list,
    "allow_media": _comma_list,
    "verbosity": _upper,
    "image_encode_format": _image_format,
    "resume": _resume,
    "until": _rules,
    "dry_run": _count_or_switch,
    "ids": _ids,
    "truncation_budget": _truncation_budget,
    "retry_truncated": _retry_truncated,
    "where": _where,
}
