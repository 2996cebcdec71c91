"""Models, tasks and options that a server offers."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.checks.findings import absent_needs
from lmms_eval.config.options import GROUPS, RunConfig, options
from lmms_eval.errors import LmmsEvalError, UnknownNameError
from lmms_eval.models.building import INSTALL_NAMES, Argument, ArgumentKind, arguments_of, ignored_arguments, kind_of
from lmms_eval.models.registry import NAMED_SERVICES, OPENAI_KEY, ModelManifest, ModelRegistry
from lmms_eval.models.remote.sdk import SdkModel
from lmms_eval.server.policy import names_file
from lmms_eval.tasks.catalogue import Catalogue, IndexEntry
from lmms_eval.tasks.describing import EntryKind, card_of, describe
from lmms_eval.tasks.facts import NEEDS, facts_of
from lmms_eval.utils.files import read_text
from lmms_eval.utils.records import to_dict

Sort = Literal["Local models", "Engines", "Services", "Checks", "Plugins"]
_SORTS: tuple[Sort, ...] = ("Local models", "Services", "Engines", "Checks", "Plugins")
_FIRST = ("hf", "openai")
_CHECKS = ("baseline", "dummy", "replay")
"""Models without a network or weights: they check tasks, or repeat an earlier run."""
ELSEWHERE = ("config", "model", "model_args", "tasks")
"""Options that the page asks for separately, or not at all."""
USUAL = (
    "limit", "batch_size", "num_fewshot", "repeats", "gen_kwargs", "system_instruction", "order", "judge_model",
    "device",
)  # fmt: skip


class ListedModel(Struct, frozen=True):
    """A name that ``--model`` takes."""

    name: str
    sort: Sort
    kind: str
    """``chat``, ``chat+simple`` or ``simple``."""
    aliases: tuple[str, ...]
    text: str
    """Description of the model's class."""
    missing: tuple[str, ...]
    """Messages about missing packages and keys."""


class ModelChoices:
    """The models of a registry with the server's plugins, read once."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self.registry = ModelRegistry(tuple(plugins))
        self._lock = threading.Lock()
        self._choices: tuple[ListedModel, ...] = ()

    @cached_property
    def listed(self) -> list[ModelManifest]:
        """The models of the registry."""
        with self._lock:
            return self.registry.list_models()

    def all(self) -> tuple[ListedModel, ...]:
        """List the models of the registry and the named services, grouped by sort."""
        if not self._choices:
            named = {one.model_id for one in self.listed}
            own = [self._choice(one.model_id, one.kind, one.aliases) for one in self.listed]
            services = [self._choice(name, "chat", ()) for name in sorted(NAMED_SERVICES) if name not in named]
            self._choices = tuple(
                sorted((*own, *services), key=lambda one: (_SORTS.index(one.sort), one.name not in _FIRST, one.name))
            )
        return self._choices

    def details(self, name: str) -> tuple[tuple[Argument, ...], Mapping[str, Any]]:
        """Return the arguments of a model, by name or alias, and those that the name of a service implies.

        Raises:
            UnknownNameError: the model does not exist.
            ModelError: the model's class cannot be imported.
        """
        resolved = self.registry.resolve(name)
        service = NAMED_SERVICES.get(name)
        fixed: dict[str, Any] = {} if service is None else dict(service.fixed)
        if service is not None:
            stated = {"model": service.model, "base_url": service.base_url}
            fixed |= {key: value for key, value in stated.items() if value}
        return arguments_of(resolved.manifest.model_id, resolved.load()), fixed

    def check(self, name: str) -> None:
        """Raise ``UnknownNameError``, with similar names, if there is no such model."""
        with self._lock:
            self.registry.resolve(name)

    def check_arguments(self, name: str, given: Iterable[str]) -> None:
        """Raise ``UsageError`` if a model does not have one of the ``given`` arguments.

        Models that pass further arguments to something else, and those whose class cannot be imported, are not checked.
        """
        try:
            cls = self.registry.resolve(name).load()
            known, fixed = self.details(name)
        except LmmsEvalError:
            return
        kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
        checked = getattr(cls, "arguments_kind", None)
        takes_any = getattr(checked, "model_config", {}).get("extra") == "allow" if checked is not None else True
        if inspect.Parameter.VAR_KEYWORD in kinds and takes_any:
            return
        names = {*fixed, *(other for one in known for other in (one.name, *one.other_names))}
        unknown = [each for each in given if each not in names and each not in ignored_arguments(cls, (each,))]
        if unknown:
            raise UnknownNameError("argument", unknown[0], names, f"(of the model {name})")

    def _choice(self, name: str, kind: str, aliases: tuple[str, ...]) -> ListedModel:
        try:
            cls = self.registry.resolve(name).load()
        except LmmsEvalError as error:
            return ListedModel(name, "Plugins", kind, aliases, "", (str(error),))
        is_own = cls.__module__.startswith("lmms_eval.")
        sort: Sort = "Local models" if hasattr(cls, "profile") else "Plugins"
        if name in _CHECKS:
            sort = "Checks"
        elif hasattr(cls, "engine") and is_own:
            sort = "Engines"
        elif hasattr(cls, "arguments_kind"):
            sort = "Services"
        service = NAMED_SERVICES.get(name)
        text = _description(cls) if service is None or not service.model else f"{service.model}, by {service.backend}"
        return ListedModel(name, sort, kind, aliases, text, tuple(_missing(name, cls)))


def _description(cls: type[Any]) -> str:
    """Return one sentence: the checkpoints of a family, or the first line of the module's docstring."""
    types = getattr(getattr(cls, "profile", None), "model_types", ())
    if types:
        return f"checkpoints of {', '.join(types)}"
    is_own = cls.__module__.startswith("lmms_eval.") and not cls.__module__.endswith(".wrappers")
    stated = inspect.getdoc(inspect.getmodule(cls)) if is_own else inspect.getdoc(cls)
    line = (stated or "").partition("\n")[0].partition(" See ")[0]
    return re.sub(r"^The back end [^:]{1,40}: |^``\w{1,40}``(?:: | for )|``", "", line)


def _missing(name: str, cls: type[Any]) -> Iterator[str]:
    """Yield messages about packages and keys that a model needs and that are missing."""
    service = NAMED_SERVICES.get(name)
    modules = getattr(getattr(cls, "profile", None), "packages", ())
    if issubclass(cls, SdkModel):
        modules = (cls.module,)
    elif isinstance(engine := getattr(getattr(cls, "engine", None), "name", None), str):
        modules = (engine,)
    elif name == "litellm":
        modules = ("litellm",)
    for module in modules:
        if not _is_installed(module):
            yield f"package {module}: pip install '{INSTALL_NAMES.get(module.partition('.')[0], module)}'"
    variables = cls.key_variables if issubclass(cls, SdkModel) else (OPENAI_KEY,) if service is not None else ()
    if service is not None and service.key_variable:
        variables = (service.key_variable,)
    if variables and not any(os.environ.get(variable) for variable in variables):
        yield f"key: {' or '.join(variables)} is not set where the server was started"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


class TaskChoice(Struct, frozen=True):
    """A name that ``--tasks`` takes."""

    name: str
    kind: EntryKind
    title: str
    """Heading of the benchmark's card."""
    documents: int | None
    """``None`` if the number is not known without opening the data."""
    modalities: tuple[str, ...]
    needs: tuple[str, ...]
    tags: tuple[str, ...]
    output_type: str
    size: int
    """Number of tasks of a tag; 0 for tasks and groups."""


class TaskChoices:
    """The tasks of a catalogue with the server's own folders and plugins, read once."""

    def __init__(self, include_paths: Sequence[str] = (), plugins: Sequence[str] = ()) -> None:
        self._include_paths, self._plugins = include_paths, plugins
        self._choices: tuple[TaskChoice, ...] = ()
        self._groups: list[dict[str, Any]] = []
        self._lock = threading.RLock()

    @cached_property
    def catalogue(self) -> Catalogue:
        with self._lock:
            return Catalogue(self._include_paths, self._plugins)

    def all(self) -> tuple[TaskChoice, ...]:
        """List groups, then tags, then tasks; those of packs come last in each part."""
        if not self._choices:
            known = self.catalogue
            tasks, groups, tags = known.tasks, known.groups, known.tags
            own = {*known.own_names()}
            shown = [
                TaskChoice(tag, "tag", "", None, (), (), (), "", len(tags[tag]))
                for tag in sorted(tags, key=lambda tag: (tag not in own, tag))
                if tag not in tasks and tag not in groups
            ]
            parts = [sorted(part.values(), key=lambda one: (bool(one.pack), one.name)) for part in (groups, tasks)]
            first, last = (map(self._entry, part) for part in parts)
            self._choices = (*first, *shown, *last)
        return self._choices

    def groups(self) -> list[dict[str, Any]]:
        """Describe the tasks of each group and tag together, which takes longer than to find their names.

        A group whose YAML is wrong is left out, and so are those of packs: nothing is known about their tasks.
        """
        with self._lock:
            own = {*self.catalogue.own_names()}
            for one in () if self._groups else self.all():
                if one.kind != "task" and one.name in own:
                    with suppress(LmmsEvalError):
                        found = describe(one.name, self.catalogue)
                        facts = {name: getattr(found, name) for name in ("name", "documents", "modalities", "needs")}
                        self._groups.append({**facts, "size": len(found.parts)})
        return self._groups

    def details(self, name: str) -> dict[str, Any]:
        """Describe a task, group or tag, with what scoring needs and what this machine lacks.

        Raises:
            UnknownNameError: the name does not exist.
            TaskError: the task's YAML is wrong.
        """
        found = describe(name, self.catalogue)
        needs = (*found.needs, *found.uses)
        return {**to_dict(found), "needs_text": [NEEDS[word] for word in needs], "missing": list(absent_needs(needs))}

    def check(self, names: Iterable[str]) -> None:
        """Raise ``UsageError``, with similar names, if a name or wildcard matches no task. Files are not checked."""
        self.catalogue.match(name for name in names if not names_file(name))

    def yaml(self, name: str) -> str:
        """Read the file of a task or group. Raises ``UnknownNameError``, also for tags, which have no file."""
        entry = self.catalogue.entry(name)
        if entry is None:
            raise self.catalogue.unknown(name)
        return read_text(entry.file)

    def _entry(self, entry: IndexEntry) -> TaskChoice:
        facts = None if entry.pack else facts_of(entry.name, is_group=entry.kind == "group")
        title = card_of(entry.file.parent).partition(". ")[0].replace("\\", "")  # escapes of Markdown
        return TaskChoice(
            entry.name, entry.kind, title, facts.documents if facts else None, facts.modalities if facts else (),
            facts.needs if facts else (), entry.tags, entry.output_type, 0,
        )  # fmt: skip


class OptionChoice(Struct, frozen=True):
    """An option of a run."""

    name: str
    group: str
    kind: ArgumentKind
    default: bool | int | float | str | None
    choices: tuple[str, ...]
    text: str
    metavar: str
    is_usual: bool
    """Whether the option is one of the few that most users set."""


def option_choices(
    refused: Collection[str] = (), defaults: Mapping[str, bool] | None = None
) -> tuple[OptionChoice, ...]:
    """List the options that are not ``refused``: the usual ones first, the others by group in the order of the help.

    ``defaults`` are default values of this server that differ from those of the command line.
    """
    kinds = {field.name: kind_of(field.type) for field in dataclasses.fields(RunConfig)}
    found = []
    for option in options():
        if option.name in ELSEWHERE or option.name in refused:
            continue
        default = (defaults or {}).get(option.name, option.default)
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        kind, choices = kinds[option.name]
        found.append(
            OptionChoice(
                option.name,
                option.group,
                kind,
                default if default != "" else None,
                option.choices or choices,
                option.text,
                option.metavar,
                option.name in USUAL,
            )
        )

    def place(one: OptionChoice) -> tuple[int, int]:
        return (0, USUAL.index(one.name)) if one.is_usual else (1, GROUPS.index(one.group))

    return tuple(sorted(found, key=place))
