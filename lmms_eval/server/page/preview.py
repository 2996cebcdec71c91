"""Conversions of a request: to the equivalent command line and configuration file, and from a file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import yaml
from msgspec import Struct, structs

from lmms_eval.config.convert import argument_mapping, argument_text
from lmms_eval.config.options import Option, RunConfig, option_table
from lmms_eval.config.resolve import check_names, load_configs, parse_flags, read_config_text
from lmms_eval.config.rules import check_config
from lmms_eval.errors import ConfigError, LmmsEvalError, RequestError
from lmms_eval.server import requests
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.redaction import is_secret_key, redact

ARGUMENTS = ("model_args", "gen_kwargs", "task_kwargs", "judge_args", "t2i_args")
FILE_NAME = "run.yaml"
_BY_FILE = f"lmms-eval --config {FILE_NAME}"
MOST_TEXT = 256 * 1024
"""Characters that an imported file may have."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values of fields that were not filled in."""
SERVER_DEFAULTS = {"log_samples": True}
"""Default values of the server that differ from those of the command line."""
OUTPUT = "results"
"""Output folder in the shown command. The server uses its own folders."""
NOT_TAKEN = {
    **requests.NOT_TAKEN,
    "env": "variables come from the environment of the server",
    "env_vars": "variables come from the environment of the server, keys too",
    "env_setup": "the server runs no commands of requests: prepare its environment before it is started",
    "config": "a request names no file of the server: import its text",
}
_OF_SERVERS = {"num_gpus": "processes"}
"""Fields of a request that are not options, with the equivalent options of the command line."""
_AT_SERVERS = {option: field for field, option in _OF_SERVERS.items()}


class Problem(Struct, frozen=True):
    """A mistake in a request or file."""

    name: str
    """The option; empty if the mistake belongs to no option."""
    text: str
    line: int | None = None
    """Line of the file, from 1 on."""


Refuse = Callable[[Mapping[str, Any]], Iterable[Problem]]
"""Returns the reasons why the server refuses a request."""


class Preview(Struct, frozen=True):
    """A request as a command and as a file, and its mistakes."""

    command: str
    """Command for a shell."""
    yaml: str
    problems: tuple[Problem, ...]


class Imported(Struct, frozen=True):
    """A request that was read from a file, and the mistakes of the file."""

    request: Mapping[str, Any]
    problems: tuple[Problem, ...]


def as_request(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the page's fields to a request: empty fields are dropped, ``output_path`` becomes ``output_dir``.

    Raises:
        RequestError: a field may not come from the page.
    """
    request = {name: value for name, value in given.items() if value not in _EMPTY}
    if "output_path" in request:
        request.setdefault("output_dir", request.pop("output_path"))
    for name in request:
        if name in NOT_TAKEN:
            raise RequestError(f"{name}: {NOT_TAKEN[name]}")
    return request


def preview(request: Mapping[str, Any], refuse: Refuse | None = None) -> Preview:
    """Show a request as a command and as a file, with secrets masked, and list its mistakes.

    ``refuse`` returns why the server refuses a request. Files that a refused request names are not opened.
    """
    filled = {name: value for name, value in SERVER_DEFAULTS.items() if name not in request}
    shown: dict[str, Any] = redact({**_given(request), **filled, "output_path": OUTPUT})
    if refuse is not None and (refused := tuple(refuse(request))):
        return Preview(_BY_FILE, as_yaml(shown), refused)
    return Preview(_command(shown), as_yaml(shown), tuple(problems_of(request)))


def as_yaml(values: Mapping[str, Any]) -> str:
    """Return the options as the text of a configuration file."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=100) if values else ""


def problems_of(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the mistakes of a request by option. Rules between options are checked only if each option is right."""
    is_right = True
    for name, value in request.items():
        for text in _wrong(name, value):
            is_right = False
            yield Problem(name, text)
    if not is_right:
        return
    try:
        # The server chooses the output folder.
        check_config(structs.replace(load_configs(_given(request), {}).configs[0], output_path="."))
    except LmmsEvalError as error:
        found = re.match(r"--(\w{1,60})", str(error))
        yield Problem(found[1] if found and found[1] in option_table() else "", str(error))


def read_request(text: str, refuse: Refuse | None = None) -> Imported:
    """Read the text of a configuration file that describes one run. Secrets are left out and reported.

    Options that the server refuses (see ``preview``) are left out and reported too.
    """
    name = "the file"
    if len(text) > MOST_TEXT:
        return _unread(f"{name} has more than {MOST_TEXT // 1024} KiB")
    try:
        items = read_config_text(text, name)
    except ConfigError as error:
        message = str(error).removeprefix("--config: ")
        line = re.search(r"line (\d{1,9})", message)
        return Imported({}, (Problem("", message, int(line[1]) if line else None),))
    if len(items) > 1:
        return _unread(f"{name} describes {len(items)} runs: import them one by one")
    lines = _lines(text)
    # The server chooses the output folder.
    stated = {key: value for key, value in items[0].values.items() if value is not None and key != "output_path"}
    values = {_AT_SERVERS.get(key, key): value for key, value in stated.items()}
    if items[0].environment:
        values["env"] = dict(items[0].environment)
    # Each option is checked alone, so that the rest of the file can be used.
    refused = {
        key: problems
        for key, value in values.items()
        if refuse is not None and key not in NOT_TAKEN and (problems := tuple(refuse({key: value})))
    }
    values = {key: value for key, value in values.items() if key not in refused}
    right: dict[str, Any] = {key: _form(key, value) for key, value in values.items() if not any(_wrong(key, value))}
    request = {key: value for key, value in right.items() if SERVER_DEFAULTS.get(key) != value}
    found = [*(one for problems in refused.values() for one in problems), *problems_of(values)]
    return Imported(request, tuple(structs.replace(one, line=lines.get(one.name)) for one in found))


def _unread(text: str) -> Imported:
    return Imported({}, (Problem("", text),))


def _given(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known options of a request, those of the model and the tasks first."""
    table = option_table()
    renamed = {_OF_SERVERS.get(name, name): value for name, value in request.items()}
    named: dict[str, Any] = {name: renamed[name] for name in ("model", "model_args", "tasks") if name in renamed}
    rest = {name: renamed[name] for name in table if name in renamed}
    return {name: value for name, value in {**named, **rest}.items() if value not in _EMPTY and name != "config"}


def _wrong(name: str, value: Any) -> Iterator[str]:
    """Yield what is wrong with the value of one option."""
    if name in ("output_dir", "output_path") or (name in NOT_TAKEN and value in _EMPTY):
        return
    if name in NOT_TAKEN:
        yield f"{name}: {NOT_TAKEN[name]}"
        return
    name = _OF_SERVERS.get(name, name)
    try:
        check_names({name: value}, "")
        if value not in _EMPTY:
            config = load_configs({name: value}, {}).configs[0]
            given = argument_mapping(getattr(config, name), name) if name in ARGUMENTS else {}
            for key in filter(is_secret_key, given):
                yield f"{name}: {key} is a secret: set its variable where the server is started, see doctor"
    except LmmsEvalError as error:
        yield str(error).removeprefix(": ").partition(". Valid keys:")[0]


def _form(name: str, value: Any) -> Any:
    """Return the value in the page's form: arguments as a mapping, tasks as a list."""
    if name in ARGUMENTS:
        return argument_mapping(getattr(load_configs({name: value}, {}).configs[0], name), name)
    if name == "tasks":
        return list(comma_list(load_configs({name: value}, {}).configs[0].tasks))
    return value


def _command(values: Mapping[str, Any]) -> str:
    """Return the command with one flag per line, or the one that reads the file if flags cannot express the values."""
    table = option_table()
    flags = [words for name, value in values.items() if (words := _words(table.get(name), value))]
    command = " \\\n  ".join(["lmms-eval", *map(shlex.join, flags)])
    try:
        meant = _plain(load_configs(values, {}).configs[0])
    except LmmsEvalError:
        return command  # the mistakes are listed next to the command
    try:
        expressed = _plain(load_configs(parse_flags([*chain.from_iterable(flags)]), {}).configs[0])
    except LmmsEvalError:
        return _BY_FILE
    return command if expressed == meant else _BY_FILE


def _words(option: Option | None, value: Any) -> list[str]:
    if option is None or value is False:
        return []
    if value is True:
        return [option.flag]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    text = argument_text(value) if isinstance(value, Mapping) else str(value)
    return [f"{option.flag}={text}"] if text.startswith("-") and not text[1:2].isdigit() else [option.flag, text]


def _plain(config: RunConfig) -> dict[str, Any]:
    found = {name: getattr(config, name) for name in option_table()}
    return found | {name: argument_mapping(found[name], name) for name in ARGUMENTS}


def _lines(text: str) -> dict[str, int]:
    """Return the line of each key in the only mapping of a YAML text that was parsed before."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if isinstance(node, yaml.SequenceNode) and node.value:
        node = node.value[0]
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
