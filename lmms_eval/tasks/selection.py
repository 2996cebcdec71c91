"""Selects the tasks of a run from ``--tasks``: names, wildcards, groups, tags, folders and files."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.task import ConfigurableTask, Group, GroupMetric, Selection, Task, TaskOptions
from lmms_eval.errors import LmmsEvalError, TaskError, UsageError
from lmms_eval.tasks.catalogue import Catalogue, IndexEntry, yaml_files
from lmms_eval.tasks.data import DataSet
from lmms_eval.tasks.data.local_copies import LocalCopies
from lmms_eval.tasks.data.splits import of_datasets
from lmms_eval.tasks.yaml.config import GroupConfig, aggregate_metrics, facts_of, group_config, task_config
from lmms_eval.tasks.yaml.fingerprints import absolute_paths, hash_of_functions, hash_of_text
from lmms_eval.tasks.yaml.functions import named, resolve_all
from lmms_eval.tasks.yaml.included import LM_EVAL, include_again, include_if_new, package_of
from lmms_eval.tasks.yaml.loader import YamlReader, decode
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask, media_policy
from lmms_eval.tasks.yaml.task_table import keys_of

log = logging.getLogger(__name__)


class SelectedEntries(Struct, frozen=True):
    """Tasks and groups that names select, before any task is built."""

    sources: tuple[TaskSource, ...]
    """The tasks, each once."""
    groups: tuple[Group, ...]
    direct: frozenset[str]
    """Names of the tasks that were not reached through a group."""


def select_tasks(names: Sequence[str], catalogue: Catalogue, options: TaskOptions) -> Selection:
    """Build the tasks that ``names`` select. Comma lists are split. Only YAML and task modules are read.

    Raises:
        UsageError: an unknown name, a wildcard without match, or a task reached through two groups.
        TaskError: the YAML or the functions of a chosen task are wrong.
    """
    choice = choose(names, catalogue)
    return Selection(tuple(build_task(source, options) for source in choice.sources), choice.groups, choice.direct)


def choose(names: Sequence[str], catalogue: Catalogue, is_logged: bool = True) -> SelectedEntries:
    """Expand names into tasks and groups. Only YAML and the aggregations of groups are read.

    With ``is_logged``, the log names what else a bare name could mean.

    Raises:
        UsageError, TaskError: as ``select_tasks``, except for errors that appear only when a task is built.
    """
    chosen = [name for part in names for item in part.split(",") if (name := item.strip())]
    if not chosen:
        raise UsageError("--tasks: give at least one task; lmms-eval tasks lists them")
    walk = _Walk(catalogue)
    for name in chosen:
        for known in _known_names(name, catalogue, is_logged):
            walk.visit(known, None, {})
    return SelectedEntries(tuple(walk.leaves.values()), tuple(walk.groups.values()), frozenset(walk.direct))


def _known_names(name: str, catalogue: Catalogue, is_logged: bool) -> list[str]:
    if catalogue.has(name):
        if is_logged:
            catalogue.log_others(name)
        return [name]
    path = Path(name).expanduser()
    if path.is_dir():
        include_if_new(path)
        entries = [entry for file in yaml_files(path, recursive=False) for entry in catalogue.add_file(file)]
        if not entries:
            raise UsageError(f"--tasks {name}: the folder holds no YAML file with a task")
        return [entry.name for entry in entries]
    if path.suffix not in (".yaml", ".yml"):
        return catalogue.match([name])
    if not path.is_file():
        raise UsageError(f"--tasks {name}: there is no such file")
    for neighbour in yaml_files(path.parent, recursive=False):  # members of a group may be in the same folder
        if neighbour != path.resolve() and neighbour not in catalogue.broken:
            _add_if_new(neighbour, catalogue)
    include_if_new(path.parent)
    entries = catalogue.add_file(path)
    if not entries:
        raise TaskError(f"{path}: holds neither a task (task: NAME) nor a group (group: NAME with a list of tasks)")
    return [entry.name for entry in entries]


def _add_if_new(file: Path, catalogue: Catalogue) -> None:
    other = Catalogue(include_defaults=False)
    try:
        entries = other.add_file(file)
    except TaskError as error:
        catalogue.broken[file] = str(error)
        return
    if entries and not any(entry.name in catalogue.tasks or entry.name in catalogue.groups for entry in entries):
        catalogue.add_file(file)


class _Place(Struct, frozen=True):
    """The file and the pack of a group."""

    file: str
    pack: str
    """The pack of the file; empty outside packs."""

    @property
    def is_lm_eval(self) -> bool:
        """Whether lm-eval's rules for groups hold (specification of lm-eval's tasks §3.4, §9)."""
        return package_of(Path(self.file)) == LM_EVAL


class _Walk(Struct):
    """Expands names into leaf tasks and groups."""

    catalogue: Catalogue
    reader: YamlReader = field(default_factory=YamlReader)
    leaves: dict[str, TaskSource] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    direct: set[str] = field(default_factory=set)
    _parents: dict[str, str] = field(default_factory=dict)
    _above: list[str] = field(default_factory=list)

    def visit(self, name: str, parent: str | None, overrides: Mapping[str, Any], within: str = "") -> list[str]:
        """Add the task, group or tag of a name. Returns the names that become direct children of ``parent``.

        ``within`` is the pack whose file states the name.
        """
        entry = self.catalogue.entry(name, within)
        if entry is None:
            members = self.catalogue.tagged(name, within)
            if members is None:
                raise self.catalogue.unknown(name)
            return [child for member in members for child in self.visit(member, parent, overrides)]
        if entry.kind == "task":
            self._leaf(self._source(entry, overrides), parent)
        else:
            self._group(self._keys(entry), _Place(str(entry.file), entry.pack), parent, overrides)
        return [entry.name]

    def _source(self, entry: IndexEntry, overrides: Mapping[str, Any], name: str = "") -> TaskSource:
        """Return the origin of a task of the index, under another name if one is given."""
        base = entry.bare_name if name or entry.bare_name != entry.name else ""
        raw = {**self._keys(entry), **overrides}
        return TaskSource(name or entry.name, str(entry.file), raw, dict(overrides), base=base)

    def _keys(self, entry: IndexEntry) -> Mapping[str, Any]:
        """Return the keys of a task or group. The files of its pack become importable."""
        if entry.pack:
            self.catalogue.packs[entry.pack].use()
        return keys_of(self.reader, entry.file, entry.bare_name)

    def _leaf(self, source: TaskSource, parent: str | None) -> None:
        self._claim(source.name, parent, package_of(Path(source.file)) == LM_EVAL)
        if parent is None:
            self.direct.add(source.name)
        known = self.leaves.get(source.name)
        if known is None or (parent is not None and not known.overrides):
            self.leaves[source.name] = source

    def _claim(self, name: str, parent: str | None, may_repeat: bool) -> None:
        """Check that a task or group is under one group only; otherwise it would count twice.

        ``may_repeat`` allows it, as lm-eval does: the task is asked once and counts in each of its groups.
        """
        if parent is None or may_repeat:
            return
        other = self._parents.setdefault(name, parent)
        if other != parent:
            raise UsageError(
                f"--tasks: {name!r} is reached through two groups, {other!r} and {parent!r}; name one of them only"
            )

    def _group(self, data: Mapping[str, Any], place: _Place, parent: str | None, overrides: Mapping[str, Any]) -> str:
        """Add a group with its members, and return its name."""
        file = place.file
        config, own = group_config(data, file, has_known_keys=not place.is_lm_eval)
        is_inline = place.is_lm_eval and parent is not None and not self.catalogue.has(config.group, place.pack)
        name = f"{parent}::{config.group}" if is_inline else self._full_name(config.group, place)
        self._claim(name, parent, place.is_lm_eval)
        if name in self._above:
            raise TaskError(f"{file}: group {name!r} contains itself: {' -> '.join([*self._above, name])}")
        if name in self.groups:
            return name
        alias = config.group_alias or name
        self.groups[name] = Group(name, alias, ())  # keeps its place before nested groups
        self._above.append(name)
        children: list[str] = []
        given = {**overrides, **own} if place.is_lm_eval else {**own, **overrides}
        for member in config.task:
            children += self._member(member, name, place, given)
        self._above.pop()
        self.groups[name] = Group(
            name=name,
            alias=alias,
            children=tuple(dict.fromkeys(children)),
            metrics=tuple(lm_eval_group_metrics(config, file) if place.is_lm_eval else group_metrics(config, file)),
            version=facts_of(config.metadata).get("version"),
        )
        return name

    def _full_name(self, group: str, place: _Place) -> str:
        """Return the name of a group of the index, with that of its pack if the bare name is something else's."""
        entry = self.catalogue.entry(group, place.pack) if place.pack else None
        return group if entry is None else entry.name

    def _member(self, member: Any, group: str, place: _Place, overrides: Mapping[str, Any]) -> list[str]:
        catalogue, pack = self.catalogue, place.pack
        if isinstance(member, str):
            if not catalogue.has(member, pack):
                raise TaskError(f"{place.file}: group {group!r}: {catalogue.unknown(member)}")
            return self.visit(member, group, overrides, pack)
        own = dict(member)
        if isinstance(own.get("task"), list):
            known = catalogue.entry(str(own.get("group")), pack) if place.is_lm_eval else None
            if known is None:
                return [self._group(member, place, group, overrides)]
            changes = {key: value for key, value in own.items() if key not in ("group", "task")}
            return self.visit(known.name, group, {**overrides, **changes}, pack)
        base = own.pop("task", None)
        if not isinstance(base, str):
            raise TaskError(f"{place.file}: group {group!r}: an inline task needs 'task: NAME': {member!r:.120}")
        given = {**overrides, **own}
        if place.is_lm_eval:
            return self._lm_eval_inline(base, given, group, place)
        return [self._inline(base, given, group, place)]

    def _inline(self, base: str, given: Mapping[str, Any], group: str, place: _Place) -> str:
        """``{task: name, ...}``: a known task with overrides, or a task that is defined only here."""
        name, number = base, 0
        while name in self.leaves and self._parents.get(name) is not None:
            number += 1
            name = f"{base}-{number}"
        entry = self.catalogue.entry(base, place.pack)
        if entry is not None and entry.kind == "task":
            source = self._source(entry, given, name)
        else:
            source = TaskSource(name, place.file, given, given, standalone=True)
        self._leaf(source, group)
        return name

    def _lm_eval_inline(self, base: str, given: Mapping[str, Any], group: str, place: _Place) -> list[str]:
        """``{task: name, ...}`` of lm-eval: all tasks of a known name with overrides, or a task of its own."""
        if self.catalogue.has(base, place.pack):
            return self.visit(base, group, given, place.pack)
        over, name = dict(given), f"{group}::{base}"
        if (included := over.pop("include", None)) is not None:
            over, name = {**self.reader.read(Path(place.file).parent / str(included)), **over}, base
        self._leaf(TaskSource(name, place.file, over, over, standalone=True), group)
        return [name]


def group_metrics(config: GroupConfig, file: str) -> Iterator[GroupMetric]:
    """Yield the metrics of a group. Raises ``TaskError`` if an entry is wrong."""
    for entry in aggregate_metrics(config, file):
        yield GroupMetric(
            entry.metric,
            named(resolve_all(entry.aggregation, "aggregation"), f"aggregating {entry.metric!r} over the group"),
            entry.weight_by_size,
            (entry.filter_list,) if isinstance(entry.filter_list, str) else tuple(entry.filter_list),
            {name: text if "," in text else f"{text},none" for name, text in entry.of.items()},
        )


def lm_eval_group_metrics(config: GroupConfig, file: str) -> Iterator[GroupMetric]:
    """Yield the metrics of a group of lm-eval: always means, weighted by size unless the entry denies it.

    Without ``filter_list``, every filter that a task has for the metric counts. Raises ``TaskError`` if an entry is no
    mapping.
    """
    stated = config.aggregate_metric_list or []
    for entry in stated if isinstance(stated, list) else [stated]:
        if not isinstance(entry, Mapping) or "metric" not in entry:
            raise TaskError(f"{file}: aggregate_metric_list: an entry needs 'metric': {entry!r:.120}")
        filters = entry.get("filter_list") or ()
        yield GroupMetric(
            str(entry["metric"]),  # a function, whose name no task has
            "mean",
            bool(entry.get("weight_by_size", True)),
            (filters,) if isinstance(filters, str) else tuple(filters),
        )


class ConfiguredTask(YamlTask):
    """A YAML task whose documents come from ``cls.download``, as for classes of the family."""

    def __init__(self, source: TaskSource, options: TaskOptions, cls: type[ConfigurableTask]) -> None:
        super().__init__(source, options)
        self._cls = cls
        # Every key with its value, with functions imported and data paths resolved.
        given = {name: value for name, value in self.config if name != "class_"}
        kwargs = absolute_paths(self.config.dataset_kwargs)
        given |= {"dataset_path": str(self.config.dataset_path), "dataset_kwargs": kwargs, "class": cls}
        try:
            self._opener = cls(config=given)
        except LmmsEvalError:
            raise
        except Exception as error:  # the constructor is third-party code and may raise anything
            raise TaskError(
                f"{self.where}: key 'class': {cls.__name__} cannot be built: {type(error).__name__}: {error}"
            ) from error

    @property
    def data(self) -> DataSet:
        """The splits that the class returned, unchanged: the class applies ``process_docs`` itself if it wants to."""
        if self._data is None:
            copies = LocalCopies(self.options.data_root, self.where, str(self.config.dataset_path))
            download = copies.reached(named(self._opener.download, f"{self._cls.__name__}.download"))
            download(self._opener.config.dataset_kwargs)
            made = self._opener.dataset
            if not isinstance(made, Mapping):
                raise TaskError(
                    f"{self.where}: {self._cls.__name__}.download must set self.dataset to a datasets.DatasetDict, "
                    f"not a {type(made).__name__}"
                )
            policy = media_policy(self.config, self.where, self.options)
            self._data = of_datasets(made, f"{self.where}: {self._cls.__name__}.dataset", policy)
            self.prompts.media = policy
        return self._data

    def fingerprint(self) -> Mapping[str, str]:
        """The fingerprint of a YAML task, with the class's module among the functions."""
        found = super().fingerprint()
        return {**found, "functions": hash_of_text(found["functions"] + hash_of_functions([self._cls]))}


def build_task(source: TaskSource, options: TaskOptions) -> Task:
    """Build a task from its configuration. The key ``class`` names the task's class, or one that opens its data."""
    if package_of(Path(source.file)) == LM_EVAL:
        from lmms_eval.tasks.lm_eval.python_task import build_lm_eval_task  # most runs have no task of a pack

        return build_lm_eval_task(source, options)
    if source.raw.get("class") is None:
        return YamlTask(source, options)
    config = task_config({**source.raw, "task": source.name}, source.file)
    made = resolve_all(config.class_, "class")
    if isinstance(made, type) and issubclass(made, ConfigurableTask):
        plain = replace(source, raw={key: value for key, value in source.raw.items() if key != "class"})
        opens_data = made.download is not ConfigurableTask.download
        return ConfiguredTask(plain, options, made) if opens_data else YamlTask(plain, options)
    try:
        offered = {"config": dict(source.raw), "options": options, "source": source}
        parameters = inspect.signature(made).parameters
        task = made(**{key: value for key, value in offered.items() if key in parameters})
    except TypeError as error:
        raise TaskError(f"{source.file}: key 'class': {made!r} cannot be built: {error}") from error
    if not isinstance(task, Task):
        raise TaskError(f"{source.file}: key 'class': {made!r} is no lmms_eval.api.task.Task")
    return task


def rebuilt(task: Task, options: TaskOptions) -> Task:
    """Build a task again with other options. A task that is not from YAML is returned unchanged."""
    if not isinstance(task, YamlTask):
        return task
    is_of_pack = package_of(Path(task.source.file)) == LM_EVAL
    if type(task) is YamlTask or is_of_pack or task.source.raw.get("class") is not None:
        return build_task(task.source, options)
    return task


def build_from_spec(spec: Mapping[str, Any], reader: YamlReader | None = None) -> Task:
    """Build the task whose ``spec()`` another process returned. A ``reader`` caches files that several tasks share."""
    include_again(spec["included"])
    overrides = decode(spec["overrides"])
    base = spec["base"] or spec["name"]
    reader = reader or YamlReader()
    raw = overrides if spec["standalone"] else {**keys_of(reader, Path(spec["file"]), base), **overrides}
    options = dict(spec["options"])
    for name in ("reasoning_tags", "thinking_tags"):
        options[name] = tuple((first, second) for first, second in options[name])
    for name in ("reduce", "question_frame", "option_labels"):
        options[name] = tuple(options[name])
    source = TaskSource(
        spec["name"], spec["file"], raw, overrides, spec["standalone"], spec["base"], spec["documents"],
        spec["change"],
    )  # fmt: skip
    task = build_task(source, TaskOptions(**options))
    if "control" not in spec:
        return task
    from lmms_eval.tasks.controls.control import ControlTask  # most runs have no controls

    return ControlTask(task, spec["control"])


def with_options(task: YamlTask, options: TaskOptions) -> YamlTask:
    """Build a task again with other options over the same open data."""
    made = build_task(task.source, options)
    assert isinstance(made, YamlTask)
    made.share_data(task)
    made.load()
    return made


def with_changed_documents(task: YamlTask, name: str, change: str) -> Task:
    """Build a task again under another name, with each document changed (``choices.changed_row``)."""
    source = task.source
    base = source.base or ("" if source.standalone else source.name)
    return build_task(replace(source, name=name, base=base, change=change), task.options)


def selection_of(tasks: Mapping[str, Task]) -> Selection:
    """Return a selection of tasks that were all named directly."""
    return Selection(tuple(tasks.values()), (), frozenset(tasks))
