"""Conversion of flag texts and YAML values to the values of ``RunConfig``'s fields, with their grammars.

An option names its function in ``Option.form``. The annotation of the argument lists the types that callers may pass;
other types are returned unchanged, and the check of types refuses them. A wrong value raises ``ConfigError``.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.utils.arguments import parse_seed_list, simple_parse_args_string
from lmms_eval.utils.redaction import redact

FORMS = (
    "write halfwidth<=0.01 (or 1%), decided:NUMBER, decided:BASELINE, or one of them after the name of a task or group "
    "and a colon"
)
_HALFWIDTH, _DECIDED = "halfwidth<=", "decided:"
log = logging.getLogger(__name__)
_SWITCH = {"true": True, "false": False}
_SWITCHES = {
    **_SWITCH,
    **dict.fromkeys(("t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("f", "no", "n", "off", "0"), False),
}
_TYPE_NAMES: Mapping[Any, str] = {
    int: "a valid integer", float: "a valid number", bool: "a valid boolean", str: "a text", dict: "a mapping",
    tuple: "a list of texts",
}  # fmt: skip
_NO_TAGS = ("", "none", "null", "false")


class StoppingRule(Struct, frozen=True):
    """A condition on a score that ends the requests of a task once it holds."""

    text: str
    """The rule as it was written, without the target."""
    kind: Literal["halfwidth", "decided"]
    number: float | None = None
    """The greatest half-width, or the number that the score must differ from."""
    is_share: bool = False
    """Whether the number is a share of the score's range rather than in its units."""
    baseline: str = ""
    """The ``--baseline`` that the score must differ from, if ``number`` is ``None``."""
    target: str = ""
    """Task or group; empty for every task that no other rule names."""


def stopping_rules(text: str) -> tuple[StoppingRule, ...]:
    """Parse ``[TARGET:] RULE; ...``; an empty text has no rules.

    Raises ``ConfigError`` if a part is not a rule, or a target has several.
    """
    rules = tuple(_rule(part.strip()) for part in text.split(";")) if text.strip() else ()
    targets = [rule.target for rule in rules]
    for target in targets:
        if targets.count(target) > 1:
            named = f"{target!r} has" if target else "every task has"
            raise ConfigError(f"until: {named} {targets.count(target)} rules; give each task and group one")
    return rules


class SampleDesign(Struct, frozen=True):
    """The size of a random sample, and how it is drawn."""

    size: int
    kind: Literal["simple", "stratified", "neyman"] = "simple"


def sample_design(text: str) -> SampleDesign:
    """Parse ``N[:stratified|neyman]``. Raises ``ConfigError``."""
    count, colon, kind = (part.strip() for part in text.partition(":"))
    if not (count.isdecimal() and int(count) > 0) or (colon and kind not in ("stratified", "neyman")):
        raise ConfigError(
            f"sample: {text!r}: give a number of documents from 1 on, N:stratified, or N:neyman with --anchors"
        )
    return SampleDesign(int(count), "neyman" if kind == "neyman" else "stratified" if kind else "simple")


def _rule(text: str) -> StoppingRule:
    target, plain = "", text
    if not (text.startswith(_DECIDED) or "".join(text.split()).startswith("halfwidth<")):
        target, _, plain = (part.strip() for part in text.partition(":"))
    statement = "".join(plain.split()) if plain.startswith("halfwidth") else plain
    if text and not target and statement == text.partition(":")[2].strip():
        raise ConfigError(f"until: {text!r} names no task or group before the colon; {FORMS}")
    if statement.startswith(_HALFWIDTH):
        number, is_share = _number(statement.removeprefix(_HALFWIDTH))
        if number is None or not number > 0:
            raise ConfigError(f"until: {text!r}: the half-width is a number above 0; {FORMS}")
        return StoppingRule(statement, "halfwidth", number, is_share, target=target)
    value = statement.removeprefix(_DECIDED).strip()
    if not statement.startswith(_DECIDED) or not value:
        raise ConfigError(f"until: {text!r} is not a rule; {FORMS}")
    number, is_share = _number(value)
    if number is None:
        return StoppingRule(statement, "decided", baseline=value, target=target)
    return StoppingRule(statement, "decided", number, is_share, target=target)


def _number(text: str) -> tuple[float | None, bool]:
    """Parse ``0.01`` or ``1%``, and return whether it is a share; ``None`` for anything else."""
    is_share = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if is_share else 1)
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else None, is_share


def argument_mapping(value: str | Mapping[str, Any] | None, name: str = "") -> dict[str, Any]:
    """Return ``k=v,k=v``, or a mapping, as a mapping. Raises ``ConfigError`` if a part has no ``=``."""
    if not value:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return dict(simple_parse_args_string(value))
    except UsageError as error:
        place = f"{name}: " if name else ""
        raise ConfigError(f"{place}write it as key=value,key=value ({redact(str(error))})") from None


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

    Raises ``ConfigError`` if the text is neither ``none`` nor a JSON list of pairs.
    """
    if text.strip().lower() in _NO_TAGS:
        return ()
    try:
        pairs = json.loads(text)
    except json.JSONDecodeError:
        pairs = None
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(tag, str) and tag for tag in pair)
        for pair in pairs
    ):
        raise ConfigError(f'{option}: give a JSON list of pairs like [["<think>", "</think>"]], or none; got {text!r}')
    return tuple((pair[0], pair[1]) for pair in pairs)


def arguments(value: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> Any:
    """Convert ``k=v,k=v``, a mapping, or a list of both; later entries win."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if all(isinstance(part, str) for part in value):
        return ",".join(value)
    merged: dict[str, Any] = {}
    for part in value:
        if not isinstance(part, str | Mapping):
            raise ConfigError("a list takes texts key=value and mappings")
        merged.update(argument_mapping(part))
    return merged


def typed(kind: Any, value: Any) -> Any:
    """Return a value as a type of an option. Texts become numbers and switches, numbers become texts.

    Raises ``ValueError``, which names the types, if the value fits none of them.
    """
    members = get_args(kind) or (kind,)
    if str in members:
        if isinstance(value, int | float) and not isinstance(value, bool) and int not in members:
            return str(value)
    elif isinstance(value, str):
        text = value.strip().lower()
        value = _SWITCHES.get(text, text) if bool in members else text
    with suppress(msgspec.ValidationError):
        found = msgspec.convert(value, kind, strict=False)
        if found is not None or value is None:  # msgspec reads the text "null" as None
            return found
    wanted = [_TYPE_NAMES[get_origin(member) or member] for member in members if member is not NoneType]
    raise ValueError(" or ".join(wanted))


def names(value: str | Sequence[str]) -> Any:
    """Convert a list to a comma list."""
    return ",".join(str(part) for part in value) if isinstance(value, list | tuple) else value


def names_or_switches(value: str | Sequence[str] | Mapping[str, Any]) -> Any:
    """Convert a text, a list of names, or a mapping of names to true, false or null."""
    if isinstance(value, Mapping):
        for task, wanted in value.items():
            if wanted not in (None, True, False):
                raise ConfigError(
                    f"{task!r} has the value {wanted!r}; a mapping takes only true, false or nothing. "
                    "To change a task, write a YAML file that includes it."
                )
        value = [task for task, wanted in value.items() if wanted is not False]
    if isinstance(value, list | tuple) and not all(isinstance(task, str) for task in value):
        raise ConfigError(f"give names; got {value!r}")
    return names(value)


def one_or_several(value: str | Sequence[str]) -> Any:
    """Convert a list of one to its element."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def seeds(value: int | str | Sequence[int | None]) -> Any:
    """Convert one seed for all generators, or four. Each may be ``None``."""
    text = names(value if isinstance(value, list | tuple) else [str(value)])
    try:
        found = tuple(parse_seed_list(text))
    except UsageError as error:
        raise ConfigError(str(error)) from error
    if len(text.split(",")) == len(found) - 1:
        log.warning("seed: three values given; the fourth (few-shot sampling) is %s", found[-1])
    return found


def batch_size(value: int | str) -> Any:
    """Convert a count, ``auto`` or ``auto:N``."""
    text = str(value).strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    head, _, count = text.partition(":")
    if head == "auto" and (text == "auto" or (count.isdecimal() and int(count) > 0)):
        return text
    raise ConfigError(f"give a count from 1 on, auto, or auto:N; got {text!r}")


def tags(value: str | Sequence[Sequence[str]] | bool | None) -> Any:
    """Convert pairs of tags to JSON, and ``None`` and ``False`` to ``none``."""
    if value is None or value is False:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def sample(value: str | int) -> Any:
    """Check the size and the design of a sample."""
    sample_design(str(value))
    return str(value).strip()


def rules(value: str | Sequence[str]) -> Any:
    """Check stopping rules, and join a list of them."""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = value[0] if len(value) == 1 else "; ".join(value)
    if isinstance(value, str | int | float):
        stopping_rules(str(value))
    return value


def upper(value: str) -> Any:
    """Convert to capitals."""
    return value.upper() if isinstance(value, str) else value


def image_format(value: str) -> Any:
    """Convert to the name of the format in capitals."""
    return "JPEG" if upper(value) == "JPG" else upper(value)


def folder_or_switch(value: bool | str) -> Any:
    """Convert a folder's name, or ``true`` or ``false``."""
    return _SWITCH.get(value.lower(), value) if isinstance(value, str) else value


def count_or_switch(value: bool | int | str) -> Any:
    """Convert a number, or ``true`` or ``false``."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    return _SWITCH.get(text, int(text) if text.isdecimal() else value)


def ids(value: int | str | Sequence[int]) -> Any:
    """Convert document ids to their shortest form. A file's content is read now, so later edits do not matter."""
    from lmms_eval.utils.document_ids import ids_text

    return ids_text(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def variants(value: str | Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """Convert variants of a prompt to JSON. A file's content is read now, so later edits do not matter."""
    from lmms_eval.utils.prompt_variants import variants_text

    return variants_text(value) if isinstance(value, str | list | tuple | Mapping) else value


def recipe(value: str) -> Any:
    """Return the name of a recipe, or the absolute path of its file, each with its variant."""
    text = str(value)
    path, mark, variant = text.rpartition(":")
    if not path or "/" in variant or "\\" in variant:
        path, mark, variant = text, "", ""
    is_file = path.endswith((".yaml", ".yml"))
    return f"{Path(path).expanduser().absolute()}{mark}{variant}" if is_file else text


def expression(value: str) -> Any:
    """Check an expression over a document's columns."""
    from lmms_eval.utils.where import parse_where

    if isinstance(value, str):
        parse_where(value)
    return value


def share(value: str | float) -> Any:
    """Check a share for ``truncation_budget``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        truncation_budget(value)
    return value


def truncation_budget(text: str) -> tuple[float, bool]:
    """Parse ``SHARE[!]``: the share of answers that may be truncated, and whether the score is withheld above it.

    Raises ``ConfigError`` if the text is not a share from 0 to 1.
    """
    try:
        found = float(text.removesuffix("!"))
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise ConfigError(f"give a share from 0 to 1, such as 0.05 or 0.05!; got {text!r}")
    return found, text.endswith("!")


def tokens(value: int | str) -> Any:
    """Check a number of tokens, or ``max``."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and value != "max" and not (value.isdecimal() and int(value) > 0):
        raise ConfigError(f"give a number of tokens from 1 on, or max; got {value!r}")
    return value
