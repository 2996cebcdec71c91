"""Builds ``RunConfig`` objects from defaults, environment, configuration file and command line."""

from __future__ import annotations

import argparse
import difflib
import logging
import os
import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml
from msgspec import Struct, structs

from lmms_eval.config import convert
from lmms_eval.config.options import Option, RunConfig, environment_defaults, option_table, options
from lmms_eval.config.rules import check_config
from lmms_eval.errors import ConfigError
from lmms_eval.utils.redaction import REDACTED, learn_secrets, redact
from lmms_eval.utils.yaml_bounds import UniqueKeyLoader, load_bounded, yaml_mistake

_VARIABLE = re.compile(
    r"\$(?:(?P<escape>\$)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<default>(?:[^{}]|\{[^{}]*\})*))?\}"
    r"|(?P<plain>[A-Za-z_]\w*)|(?P<broken>\{))"
)
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
log = logging.getLogger(__name__)
RUN_ONLY_MODEL_ARGS = frozenset(
    {
        "adaptive_concurrency", "adaptive_decrease_factor", "adaptive_failure_threshold", "adaptive_increase_step",
        "adaptive_max_concurrency", "adaptive_min_concurrency", "adaptive_target_latency_s", "batch_max_mb",
        "batch_max_requests", "batch_poll_s", "batch_size", "batch_timeout", "device", "idle_timeout", "image_cache_mb",
        "max_batch_tokens", "max_reply_mb", "max_retries", "num_concurrent", "num_cpus",
        "prefix_aware_queue", "prefix_hash_chars", "preprocess_workers", "retry_backoff_s", "stream", "timeout",
    }
)  # fmt: skip
"""Model arguments that do not change an answer."""
_BOOLEANS_TOO = ("reasoning_tags", "tasks")


class FileItem(Struct, frozen=True):
    """One run of a configuration file."""

    place: str
    """File and number of the run, for messages."""
    values: Mapping[str, Any]
    environment: Mapping[str, Any]
    """The ``env`` part as written, before expansion."""


def read_config_file(path: str) -> list[FileItem]:
    """Read the runs that a configuration file describes.

    Raises ``ConfigError`` if the file cannot be read, or ``read_config_text`` refuses it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config: cannot read {path}: {error}") from error
    return read_config_text(text, path)


def read_config_text(text: str, name: str) -> list[FileItem]:
    """Read the runs that the text of a configuration file describes; messages call the file ``name``.

    Raises ``ConfigError`` if the text is not YAML, or holds neither a mapping nor a list of mappings.
    """
    try:
        content = load_bounded(text, UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"--config: {name} is not valid YAML: {yaml_mistake(error)}") from None
    if isinstance(content, list) and content:
        return [_item(entry, f"{name}, run {number}") for number, entry in enumerate(content, start=1)]
    return [_item(content, name)]


def _item(content: Any, place: str) -> FileItem:
    if not isinstance(content, Mapping) or not content:
        raise ConfigError(f"{place}: needs a mapping of options (or the file a list of such mappings)")
    values = {str(key): value for key, value in content.items()}
    environment = values.pop("env", None)
    if environment is None:
        environment = {}
    if not isinstance(environment, Mapping):
        raise ConfigError(f"{place}: env needs a mapping of variable names to values")
    return FileItem(place, values, environment)


def apply_environment(items: Sequence[FileItem], environ: MutableMapping[str, str]) -> list[str]:
    """Set the variables of all items in file order. Return a log line for each, with secrets masked.

    Raises ``ConfigError`` if a value is not a text, number or boolean, or names a variable that is not set.
    """
    lines = []
    for item in items:
        for name, value in item.environment.items():
            if not isinstance(value, str | int | float):
                raise ConfigError(f"{item.place}: env: {name} needs a text, a number or a boolean")
            environ[str(name)] = text = _expand(str(value), environ, f"{item.place}: env: {name}")
            lines.append(f"Config env: {name}={mask(str(name), text)}")
    return lines


def mask(name: str, text: str) -> str:
    """Return a variable's value for display: up to 8 asterisks if its name is that of a secret."""
    return "*" * min(8, len(text)) if _is_secret(name) else text


def _is_secret(name: str) -> bool:
    return any(word in name.upper() for word in _SECRET_NAMES)


def _expand(text: str, environ: Mapping[str, str], place: str) -> str:
    """Replace ``$VAR``, ``${VAR}`` and ``${VAR:-default}`` (if ``VAR`` is unset or empty), and ``$$`` by ``$``."""

    def replace(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        if match["broken"]:
            raise ConfigError(
                f"{place}: cannot read '${{...}}'; write ${{VAR}} or ${{VAR:-default}}, and $$ for a plain $"
            )
        name = match["braced"] or match["plain"]
        value = environ.get(name)
        if match["default"] is not None:
            return value or _expand(match["default"], environ, place)
        if value is None:
            shown = "a variable in it" if _is_secret(place.rpartition(" ")[2]) else f"the variable {name}"
            raise ConfigError(f"{place}: {shown} is not set; set it, write ${{VAR:-default}}, or $$ for a plain $")
        return value

    return _VARIABLE.sub(replace, text)


class FlagParser(argparse.ArgumentParser):
    """Parser that raises ``ConfigError`` instead of exiting, and accepts no abbreviations."""

    def __init__(self) -> None:
        super().__init__(prog="lmms-eval", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise ConfigError(re.sub(r"^argument ([^/:]+)[^:]*", r"\1", message))


def parse_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the options that a command line states: their texts by name, ``True`` or ``False`` for switches.

    Dashes and underscores in a flag's name are equivalent. ``--no_NAME`` turns off a switch that a file turned on.
    Raises ``ConfigError`` if a flag is unknown (the message suggests known ones) or its value is missing.
    """
    parser = flag_parser()
    namespace, rest = parser.parse_known_args(list(arguments))
    if not rest:
        return vars(namespace)
    word, known = rest[0], flag_names()
    if not word.startswith("-"):
        raise ConfigError(f"unexpected word {word!r}: it belongs to no flag (quote values that contain spaces)")
    flag = word.split("=")[0]
    close = [name for name in known if flag.startswith("--") and name.startswith(flag)]
    close = close or difflib.get_close_matches(flag, list(known), n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(close[:2])}?" if close else "see lmms-eval --help"
    raise ConfigError(f"unknown flag {flag}; {hint}")


def flag_parser() -> FlagParser:
    """Return the parser of an evaluation's flags. Its result holds only the flags that are given."""
    parser = FlagParser()
    for option in options():
        names = spellings(option)
        if option.is_switch:
            parser.add_argument(*names, dest=option.name, action="store_true")
            off = dict.fromkeys((f"--no_{option.name}", f"--no-{option.name.replace('_', '-')}"))
            parser.add_argument(*off, dest=option.name, action="store_false")
        elif option.optional_value:
            parser.add_argument(*names, dest=option.name, nargs="?", const=True)
        else:
            parser.add_argument(*names, dest=option.name, action="append" if option.repeatable else "store")
    return parser


def flag_names() -> list[str]:
    """Return every spelling of every flag."""
    return [spelling for option in options() for spelling in spellings(option)]


def spellings(option: Option) -> list[str]:
    """Return the flag, its aliases, and their spellings with dashes or underscores."""
    names: list[str] = []
    for name in (option.flag, *option.aliases):
        names.append(name)
        if name.startswith("--"):
            names += ("--" + name[2:].replace("-", "_"), "--" + name[2:].replace("_", "-"))
    return list(dict.fromkeys(names))


class LoadedConfigs(Struct, frozen=True):
    """The runs that a command line asks for."""

    configs: tuple[RunConfig, ...]
    notes: tuple[str, ...] = ()
    """Log lines about environment variables that a file has set, with secrets masked."""


def load_configs(given: Mapping[str, Any], environ: MutableMapping[str, str] | None = None) -> LoadedConfigs:
    """Return the runs for options by name, as on the command line, and for the file that ``config`` names.

    The command line overrides the file, the file the environment, the environment the defaults. The file's ``env``
    parts are put into ``environ`` first. The result has not been checked by ``check_config``. Raises ``ConfigError`` if
    a key is unknown, or a value has the wrong form.
    """
    environ = os.environ if environ is None else environ
    learn_secrets(given, environ)
    path = given.get("config")
    if not path:
        return LoadedConfigs((_resolve(given, None, environ),))
    items = read_config_file(str(path))
    for item in items:
        learn_secrets({"values": item.values, "environment": item.environment})
        check_names(item.values, item.place)
    notes = apply_environment(items, environ)
    learn_secrets({}, environ)
    return LoadedConfigs(tuple(_resolve(given, item, environ) for item in items), tuple(notes))


def build_config(values: Mapping[str, Any], environ: MutableMapping[str, str] | None = None) -> RunConfig:
    """Build and check one configuration from option values: texts as on the command line, or YAML's types.

    Raises ``ConfigError`` if a name is unknown, a value is wrong, or a rule of ``check_config`` is broken.
    """
    check_names(values, "options")
    loaded = load_configs(values, environ)
    if len(loaded.configs) != 1:
        raise ConfigError("config: this file describes several runs; use load_configs")
    return check_config(loaded.configs[0])


class Options(argparse.Namespace):
    """All options of an evaluation by name, for programs that read and change them before a run."""

    __slots__ = ("given",)
    given: frozenset[str]
    """Names of the options that the command line states; not part of ``vars``."""


def parse_options(arguments: Sequence[str]) -> Options:
    """Return all options: those that a command line states, and the defaults of the others.

    The environment and the file are not read. When the options are run, they fill in what still has its default. Raises
    ``ConfigError`` if a flag is unknown, or a value has the wrong form.
    """
    found = parse_flags(arguments)
    config = _resolve(found, None, {})
    made = Options(**{name: getattr(config, name) for name in option_table()})
    made.given = frozenset(found)
    return made


def stated_options(values: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, and those that differ from their default.

    Attributes that are not options are ignored, with a warning.
    """
    given: frozenset[str] = getattr(values, "given", frozenset())
    table = option_table()
    if unknown := sorted(set(vars(values)) - set(table)):
        log.warning("ignored, not options of an evaluation: %s", ", ".join(unknown))
    return {
        name: value
        for name, value in vars(values).items()
        if name in table and value is not None and (name in given or value != table[name].default)
    }


def flags_of(given: Mapping[str, Any]) -> list[str]:
    """Return options as a command line."""
    flags: list[str] = []
    for name, value in given.items():
        option = option_table()[name]
        if option.is_switch:
            flags.append(option.flag if value else f"--no_{name}")
        elif value is True and option.optional_value:
            flags.append(option.flag)
        else:
            text = convert.argument_text(value) if isinstance(value, Mapping) else convert.names(value)
            flags.append(f"{option.flag}={text}")
    return flags


def check_names(values: Mapping[str, Any], place: str) -> None:
    """Raise ``ConfigError``, with similar names, if a key is not an option. The message begins with ``place``."""
    known = option_table()
    unknown = []
    for key in values:
        if key in known:
            continue
        plain = key.lstrip("-").replace("-", "_")
        meant = [option.name for option in known.values() if plain == option.name or f"--{plain}" in option.aliases]
        close = meant or difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
        unknown.append(f"{key!r} (did you mean {close[0]}?)" if close else repr(key))
    if unknown:
        keys = f"unknown key{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}"
        raise ConfigError(f"{place}: {keys}. Valid keys: {', '.join(known)}")


def _resolve(given: Mapping[str, Any], item: FileItem | None, environ: Mapping[str, str]) -> RunConfig:
    table = option_table()
    # By name the value and its source, for messages.
    layered: dict[str, tuple[Any, str]] = {
        name: (found.text, f"{found.variable} (environment)") for name, found in environment_defaults(environ).items()
    }
    if item is not None:
        if item.values.get("config"):
            raise ConfigError(f"{item.place}: config: a configuration file cannot name another one")
        layered |= {
            name: (value, f"{item.place}: {name}")
            for name, value in item.values.items()
            if name != "config" and (value is not None or name == "reasoning_tags")
        }
    layered |= {name: (value, table[name].flag) for name, value in given.items() if value is not None}
    values = {name: _converted(table[name], value, source) for name, (value, source) in layered.items()}
    config = RunConfig(**values)
    return structs.replace(config, log_samples=True) if config.predict_only else config


def _converted(option: Option, value: Any, source: str) -> Any:
    if isinstance(value, bool) and option.choices:
        value = str(value).lower()  # YAML reads a bare `true` as a boolean
    if isinstance(value, bool) and not (option.is_switch or option.optional_value or option.name in _BOOLEANS_TOO):
        raise ConfigError(f"{source}: needs a value; got {str(value).lower()}")
    try:
        value = getattr(convert, option.form)(value) if option.form else value
    except ConfigError as error:
        raise ConfigError(f"{source}: {str(error).removeprefix(f'{option.name}: ')}") from error
    if option.choices and value not in option.choices:
        raise ConfigError(f"{source}: choose one of {', '.join(option.choices)}; got {value!r}")
    try:
        return convert.typed(option.kind, value)
    except ValueError as error:  # a secret is not shown
        raise ConfigError(f"{source}: should be {error}; got {redact({option.name: value})[option.name]!r}") from None


def resolved_cli_args(config: RunConfig) -> dict[str, Any]:
    """Return all options as results record them: JSON values without secrets, usable as a configuration file."""
    recorded = {name: getattr(config, name) for name in option_table()}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in recorded.items()}
    redacted: dict[str, Any] = redact(plain)
    return redacted


def answer_options(config: RunConfig, ignored_model_args: Collection[str] = ()) -> dict[str, Any]:
    """Return the options that can change a model's answer, for the run key.

    Secrets and options about speed or output are left out, and so are ``ignored_model_args``, which the model ignores.
    """

    def kept(name: str, ignored: Collection[str] = ()) -> dict[str, Any]:
        given: dict[str, Any] = redact(config.arguments(name))
        left_out = {*RUN_ONLY_MODEL_ARGS, *ignored}
        return {key: value for key, value in given.items() if value != REDACTED and key not in left_out}

    return {
        **{option.name: getattr(config, option.name) for option in options() if not option.run_only},
        "model_args": kept("model_args", ignored_model_args),
        "t2i_args": kept("t2i_args"),
        "gen_kwargs": config.arguments("gen_kwargs"),
        "task_kwargs": config.arguments("task_kwargs"),
        **{name: given for name in ("sample", "prompt_variants") if (given := getattr(config, name))},  # else old keys
        "fewshot_as_multiturn": bool(config.fewshot_as_multiturn),  # lm-eval's tasks have it in their fingerprints
        "repeats": config.repeats or 1,  # a task's own value is part of its fingerprint
    }
