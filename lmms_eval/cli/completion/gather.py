"""Builds the completion index from commands, options, tasks and models.

The index consists of JSON types, so that it is read back as it was written.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Iterator
from typing import Any, TypedDict

from lmms_eval.cli.arguments import CommandParser, parsers_asked_for_help, plugins_of_environment
from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import topics
from lmms_eval.config.options import Option, options
from lmms_eval.config.resolve import spellings
from lmms_eval.config.rules import CONTROLS
from lmms_eval.errors import LmmsEvalError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.tasks.catalogue import Catalogue

_MODELS = ("eval", "check", "general-bench run")
"""Commands whose ``--model`` is a model of the registry. Elsewhere it is a name that the user chooses."""
_FILES = ("DIR", "FILE", "FOLDER", "PATH", "RUN", "BASE")
_NAMED_CHOICES = {"ablate": CONTROLS}


class Value(TypedDict):
    """Possible values of a flag, or of a word without a flag."""

    takes: bool
    optional: bool
    kind: str
    """``task``, ``model``, ``model_args``, ``choice``, ``file``, or empty if nothing can be suggested."""
    is_list: bool
    """Whether the value is a comma list."""
    choices: list[str]


class Node(TypedDict):
    """A command."""

    flags: dict[str, Value]
    spellings: dict[str, str]
    """Other spellings of the flags."""
    words: list[Value]


class Index(TypedDict):
    """Everything that can be suggested."""

    nodes: dict[str, Node]
    """Commands by name; actions by both names (``cache stats``)."""
    tasks: list[str]
    packs: dict[str, list[int]]
    """The places in ``tasks`` of the names of each pack."""
    models: list[str]
    aliases: dict[str, str]
    model_args: dict[str, list[str]]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@_silence()
def gathered_index() -> Index:
    """Build the index. What cannot be loaded is left out; running it reports why."""
    registry = ModelRegistry(plugins_of_environment())
    models = registry.list_models()
    names = [model.model_id for model in models]
    catalogue = Catalogue(plugins=plugins_of_environment())
    places = {name: place for place, name in enumerate(catalogue.names())}
    return {
        "nodes": dict(_nodes()),
        "tasks": [*places],
        "packs": {
            name: sorted(places[each] for each in {*(entry.name for entry in pack.offered), *pack.tags})
            for name, pack in catalogue.packs.items()
        },
        "models": names,
        "aliases": {alias: model.model_id for model in models for alias in model.aliases},
        "model_args": {name: _arguments(registry, name) for name in names},
    }


@_silence()
def tasks_of(folder: str) -> list[str]:
    """Return the names of tasks, groups and tags in a folder of task files."""
    with contextlib.suppress(LmmsEvalError, OSError):
        return Catalogue([folder], include_defaults=False).names()
    return []


def _nodes() -> Iterator[tuple[str, Node]]:
    for command in COMMANDS.values():
        if command.name == "eval":
            yield command.name, _evaluation([*options()])
        elif command.name == "score":
            from lmms_eval.evaluation.rescore import GIVEN

            yield command.name, _evaluation([option for option in options() if option.name in GIVEN], [_value("file")])
        elif command.name == "help":
            words = [*topics(), *(name for name in COMMANDS if name not in topics())]
            yield command.name, {"flags": {}, "spellings": {}, "words": [_value("choice", choices=words)]}
        else:
            for parser in parsers_asked_for_help(command, []):
                yield command.name, _node(command.name, parser)
                # Actions of a command are the choices of a word.
                for word in [str(word) for action in _places(parser) for word in action.choices or ()]:
                    for further in parsers_asked_for_help(command, [word]):
                        if further.prog != parser.prog:
                            yield f"{command.name} {word}", _node(f"{command.name} {word}", further)


def _evaluation(members: list[Option], words: list[Value] | None = None) -> Node:
    flags: dict[str, Value] = {}
    others: dict[str, str] = {}
    for option in members:
        if option.is_switch:
            value = _value("", takes=False)
        else:
            kind = _kind(option.name, option.metavar, model=True)
            choices = [*(option.choices or _NAMED_CHOICES.get(option.name, ()))]
            is_list = option.name in _NAMED_CHOICES or kind in ("task", "model_args")
            value = _value("choice" if choices else kind, choices=choices, is_list=is_list)
            value["optional"] = option.optional_value
        flags |= dict.fromkeys((option.flag, *option.aliases), value)
        others.update({name: option.flag for name in spellings(option) if name not in flags})
        if option.is_switch:
            others[f"--no_{option.name}"] = option.flag
    return {"flags": {**flags, "--help": _value("", takes=False)}, "spellings": others, "words": words or []}


def _node(command: str, parser: CommandParser) -> Node:
    flags: dict[str, Value] = {}
    others: dict[str, str] = {}
    for action in parser._actions:
        if names := action.option_strings:
            main = next((name for name in names if name.startswith("--")), names[0])
            flags[main] = _of_action(command, action)
            others.update({name: main for name in names if name != main})
    return {"flags": flags, "spellings": others, "words": [_of_action(command, place) for place in _places(parser)]}


def _of_action(command: str, action: argparse.Action) -> Value:
    if action.choices is not None:
        return _value("choice", choices=[str(choice) for choice in action.choices])
    kind = _kind(action.dest, str(action.metavar or ""), model=command in _MODELS)
    if command == "tasks describe" and not action.option_strings:
        kind = "task"
    value = _value(kind, takes=action.nargs != 0, choices=["nltk"] if command == "fetch" and kind == "task" else [])
    return {**value, "optional": action.nargs == "?", "is_list": kind in ("task", "model_args")}


def _places(parser: CommandParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings]


def _kind(name: str, metavar: str, model: bool) -> str:
    if name == "tasks" or metavar.startswith("TASK"):
        return "task"
    if name in ("model", "model_args"):
        return name if model else ""
    return "file" if metavar.startswith(_FILES) else ""


def _value(kind: str, takes: bool = True, choices: list[str] | None = None, is_list: bool = False) -> Value:
    return {"takes": takes, "optional": False, "kind": kind, "is_list": is_list, "choices": choices or []}


def _arguments(registry: ModelRegistry, name: str) -> list[str]:
    """Return the arguments that a model's class declares; empty if it cannot be loaded."""
    from lmms_eval.utils.signatures import parameters_of

    try:
        loaded: Any = registry.resolve(name).load()
    except Exception:  # noqa: BLE001 - code of a plugin, which the user did not ask to run
        return []
    declared = getattr(loaded, "arguments_kind", None)
    return sorted(parameters_of(loaded).names if declared is None else declared.model_fields)
