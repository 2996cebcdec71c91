"""Models, tasks and options that a server offers."""

from __future__ import annotations

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
from msgspec.structs import replace

from lmms_eval.checks.findings import absent_needs
from lmms_eval.config.options import GROUPS, options
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


_TEXTS = {
    "hf": "Any vision-language checkpoint of transformers: pretrained=NAME, or a folder",
    "hf_text": "Any text-only checkpoint of transformers",
    "internvl": "InternVL checkpoints with a chat method of their own",
    "minicpm_v": "MiniCPM-V and MiniCPM-o checkpoints with a chat method of their own",
}
"""Descriptions of models whose modules describe something wider."""
_LOCAL = ("torch", "transformers")
"""Packages that every local model needs."""
NO_NEED = "none"


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

    def missing(self, name: str) -> tuple[str, ...]:
        """Return messages about packages and keys that a model lacks here."""
        return next((one.missing for one in self.all() if one.name == name), ())

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
        text = (
            _description(name, cls)
            if service is None or not service.model
            else f"{service.model}, by {service.backend}"
        )
        return ListedModel(name, sort, kind, aliases, text, tuple(_missing(name, cls)))


def _description(name: str, cls: type[Any]) -> str:
    """Return one sentence: the checkpoints of a family, or the first line of the module's docstring."""
    if name in _TEXTS:
        return _TEXTS[name]
    types = getattr(getattr(cls, "profile", None), "model_types", ())
    if types:
        return f"Checkpoints of {', '.join(types)}"
    is_own = cls.__module__.startswith("lmms_eval.") and not cls.__module__.endswith(".wrappers")
    stated = inspect.getdoc(inspect.getmodule(cls)) if is_own else inspect.getdoc(cls)
    line = (stated or "").partition("\n")[0].partition(" See ")[0]
    text = re.sub(r"^The back end [^:]{1,40}: |^``\w{1,40}``(?:: | for )|``", "", line).removesuffix(".")
    return text[:1].upper() + text[1:]


def _missing(name: str, cls: type[Any]) -> Iterator[str]:
    """Yield messages about packages and keys that a model needs and that are missing."""
    service = NAMED_SERVICES.get(name)
    profile = getattr(cls, "profile", None)
    modules: tuple[str, ...] = () if profile is None else (*_LOCAL, *getattr(profile, "packages", ()))
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
    """Number of tasks of a tag or group; 0 for tasks, and for groups until their facts are known."""
    pack: str = ""
    """The pack that it comes from; empty outside packs."""


class TaskSearch(Struct, frozen=True):
    """A search among the names that ``--tasks`` takes. Empty terms match everything."""

    word: str = ""
    """Words that the name, the title or a tag must contain, in any case."""
    kind: str = ""
    modality: str = ""
    need: str = ""
    """A need that scoring must have; ``none``: no need at all."""
    source: str | None = None
    """A pack; empty: this package and the server's own folders."""
    most: int = 120
    """Most results that are returned."""


class FoundTasks(Struct, frozen=True):
    """The results of a search."""

    tasks: tuple[TaskChoice, ...]
    """The best results."""
    found: int
    """Number of all results."""
    total: int
    """Number of all names."""
    sources: tuple[str, ...]
    """The packs."""
    hint: str
    """What an unknown name could mean, if nothing was found."""
    is_complete: bool
    """Whether the facts of groups are known already. A server reads them in the background when it starts."""


class _Searched(Struct, frozen=True):
    """A name with the texts that are searched."""

    choice: TaskChoice
    name: str
    text: str

    def rank(self, words: Sequence[str]) -> int | None:
        """Return how well it matches, 0 is best; ``None`` if a word is missing."""
        if not all(word in self.text for word in words):
            return None
        if not words:
            return 0
        whole = " ".join(words)
        return 0 if self.name == whole else 1 if self.name.startswith(whole) else 2 if words[0] in self.name else 3


class TaskChoices:
    """The tasks of a catalogue with the server's own folders and plugins, read once."""

    def __init__(self, include_paths: Sequence[str] = (), plugins: Sequence[str] = ()) -> None:
        self._include_paths, self._plugins = include_paths, plugins
        self._choices: tuple[TaskChoice, ...] = ()
        self._groups: list[dict[str, Any]] | None = None
        self._searched: tuple[tuple[_Searched, ...], bool] = ((), False)
        """The names to search, and whether the facts of groups are among them."""
        self._lock = threading.RLock()

    def read_ahead(self) -> None:
        """Read names and facts in the background, so that the first search finds them."""

        def read() -> None:
            with suppress(LmmsEvalError):  # the search reports it
                self.groups()

        threading.Thread(target=read, daemon=True, name="lmms-eval-tasks").start()

    @cached_property
    def catalogue(self) -> Catalogue:
        with self._lock:
            return Catalogue(self._include_paths, self._plugins)

    def all(self) -> tuple[TaskChoice, ...]:
        """List groups, then tags, then tasks; those of packs come last in each part."""
        if self._choices:
            return self._choices
        with self._lock:
            if not self._choices:
                self._choices = tuple(self._listed())
            return self._choices

    def _listed(self) -> Iterator[TaskChoice]:
        known = self.catalogue
        tasks, groups, tags = known.tasks, known.groups, known.tags
        own = {*known.own_names()}
        parts = [sorted(part.values(), key=lambda one: (bool(one.pack), one.name)) for part in (groups, tasks)]
        yield from map(self._entry, parts[0])
        for tag in sorted(tags, key=lambda tag: (tag not in own, tag)):
            if tag not in tasks and tag not in groups:
                pack = "" if tag in own else known.entry(tags[tag][0]).pack  # type: ignore[union-attr]
                yield TaskChoice(tag, "tag", "", None, (), (), (), "", len(tags[tag]), pack)
        yield from map(self._entry, parts[1])

    def groups(self) -> list[dict[str, Any]]:
        """Describe the tasks of each group and tag together, which takes longer than to find their names.

        A group whose YAML is wrong is left out, and so are those of packs: nothing is known about their tasks.
        """
        self.all()  # a search needs the names before the facts
        with self._lock:
            if self._groups is None:
                self._groups = [*self._described()]
            return self._groups

    def _described(self) -> Iterator[dict[str, Any]]:
        own = {*self.catalogue.own_names()}
        for one in self.all():
            if one.kind != "task" and one.name in own:
                with suppress(LmmsEvalError):
                    found = describe(one.name, self.catalogue, is_logged=False)
                    facts = {name: getattr(found, name) for name in ("name", "documents", "modalities", "needs")}
                    yield {**facts, "size": len(found.parts)}

    def search(self, wanted: TaskSearch) -> FoundTasks:
        """Find names by words and facts: exact names first, then names that begin with the words or contain them."""
        names, is_complete = self._names()
        words = wanted.word.casefold().split()
        found = [
            (rank, one.choice) for one in names if _fits(one.choice, wanted) and (rank := one.rank(words)) is not None
        ]
        found.sort(key=lambda pair: pair[0])
        hint = str(self.catalogue.unknown(wanted.word)) if len(words) == 1 and not found else ""
        tasks = tuple(choice for _, choice in found[: wanted.most])
        return FoundTasks(tasks, len(found), len(names), tuple(self.catalogue.packs), hint, is_complete)

    def named(self, names: Iterable[str]) -> tuple[TaskChoice, ...]:
        """Return what is known of some names; unknown ones are left out."""
        wanted = {*names}
        return tuple(one.choice for one in self._names()[0] if one.choice.name in wanted)

    def _names(self) -> tuple[tuple[_Searched, ...], bool]:
        """Return the names to search. Facts of groups that another thread is reading are added later."""
        names, has_facts = self._searched
        groups = self._groups
        if names and (has_facts or groups is None):
            return names, has_facts
        facts = {one["name"]: one for one in groups or ()}
        choices = (replace(one, **facts[one.name]) if one.name in facts else one for one in self.all())
        names = tuple(
            _Searched(one, one.name.casefold(), " ".join((one.name, one.title, *one.tags)).casefold())
            for one in choices
        )
        self._searched = names, groups is not None
        return self._searched

    def details(self, name: str) -> dict[str, Any]:
        """Describe a task, group or tag, with what scoring needs and what this machine lacks.

        Raises:
            UnknownNameError: the name does not exist.
            TaskError: the task's YAML is wrong.
        """
        found = describe(name, self.catalogue, is_logged=False)
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
            facts.needs if facts else (), entry.tags, entry.output_type, 0, entry.pack,
        )  # fmt: skip


def _fits(one: TaskChoice, wanted: TaskSearch) -> bool:
    if wanted.kind not in ("", one.kind) or wanted.source not in (None, one.pack):
        return False
    if wanted.modality and wanted.modality not in one.modalities:
        return False
    return not wanted.need or (not one.needs if wanted.need == NO_NEED else wanted.need in one.needs)


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
    found = []
    for option in options():
        if option.name in ELSEWHERE or option.name in refused:
            continue
        default = (defaults or {}).get(option.name, option.default)
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        kind, choices = kind_of(option.kind)
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
