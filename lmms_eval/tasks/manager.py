"""``TaskManager`` and ``get_task_dict``: the Python interface of the family (harness specification §1.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.errors import UsageError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import build_task, select_tasks
from lmms_eval.tasks.yaml.functions import resolve_all
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task import TaskSource
from lmms_eval.tasks.yaml.task_table import keys_of


class TaskManager:
    """An index of tasks for Python programs."""

    def __init__(
        self,
        verbosity: str | None = None,
        include_path: str | Sequence[str] | None = None,
        include_defaults: bool = True,
        model_name: str | None = None,
    ) -> None:
        paths = [include_path] if isinstance(include_path, str) else list(include_path or ())
        self.verbosity, self.model_name = verbosity, model_name
        self.catalogue = Catalogue(paths, include_defaults=include_defaults)

    @property
    def all_tasks(self) -> list[str]:
        """Names of tasks, groups and tags, sorted."""
        return self.catalogue.names()

    @property
    def all_subtasks(self) -> list[str]:
        return sorted(self.catalogue.tasks)

    @property
    def all_groups(self) -> list[str]:
        return sorted(self.catalogue.groups)

    @property
    def all_tags(self) -> list[str]:
        return sorted(self.catalogue.tags)

    @property
    def task_index(self) -> dict[str, dict[str, Any]]:
        """Map each name to ``{type, yaml_path}``; tags also list their tasks."""
        entries = {**self.catalogue.groups, **self.catalogue.tasks}
        index: dict[str, dict[str, Any]] = {
            name: {"type": "tag", "yaml_path": -1, "task": self.catalogue.members(name)} for name in self.all_tags
        }
        index.update({name: {"type": entry.kind, "yaml_path": str(entry.file)} for name, entry in entries.items()})
        return index

    def match_tasks(self, task_list: Sequence[str]) -> list[str]:
        """Expand names and wildcards into known names, sorted."""
        return sorted(self.catalogue.match(task_list))

    def list_all_tasks(self, list_groups: bool = True, list_tags: bool = True, list_subtasks: bool = True) -> str:
        """Markdown tables of the chosen kinds."""
        parts = []
        if list_groups:
            parts.append(groups_table(self.catalogue))
        if list_tags:
            parts.append(tags_table(self.catalogue))
        if list_subtasks:
            parts.append(subtasks_table(self.catalogue))
        return "\n\n".join(parts)

    def _get_config(self, name: str) -> dict[str, Any]:
        """Return the keys of a task's or group's YAML, with includes merged in and functions imported.

        Raises:
            UnknownNameError: there is no such task or group. TaskError: a function cannot be imported.
        """
        entry = self.catalogue.entry(name)
        if entry is None:
            raise self.catalogue.unknown(name)
        made: dict[str, Any] = resolve_all(dict(keys_of(YamlReader(), entry.file, entry.bare_name)))
        return made

    def load_task_or_group(
        self, task_list: str | Sequence[str], task_type: str = "simple", options: TaskOptions | None = None
    ) -> dict[str, Task]:
        """Build and load the leaf tasks of names."""
        names = [task_list] if isinstance(task_list, str) else list(task_list)
        selection = select_tasks(names, self.catalogue, self.options(task_type, options))
        for task in selection.tasks:
            task.load()
        return {task.name: task for task in selection.tasks}

    def options(self, task_type: str, options: TaskOptions | None = None) -> TaskOptions:
        """Return the options for ``simple`` or ``chat`` tasks of this manager's model.

        Raises ``UsageError`` if the type is neither.
        """
        if task_type not in ("simple", "chat"):
            raise UsageError(f"task_type {task_type!r}: give 'simple' or 'chat'")
        return options or TaskOptions(model_name=self.model_name or "", chat=task_type == "chat")


def get_task_dict(
    task_name_list: str | Mapping[str, Any] | Task | Sequence[str | Mapping[str, Any] | Task],
    task_manager: TaskManager | None = None,
    task_type: str = "simple",
) -> dict[str, Task]:
    """Build and load tasks from names, configurations (mappings with functions in them) and ``Task`` objects.

    Raises ``UsageError`` if an item is something else, or ``select_tasks`` raises it.
    """
    items = [task_name_list] if isinstance(task_name_list, str | Mapping | Task) else list(task_name_list)
    manager = task_manager or TaskManager()
    made: dict[str, Task] = {}
    for item in items:
        if isinstance(item, str):
            made.update(manager.load_task_or_group(item, task_type))
        elif isinstance(item, Task):
            item.load()
            made[item.name] = item
        elif isinstance(item, Mapping):
            task = task_of_mapping(item, manager.catalogue, manager.options(task_type))
            task.load()
            made[task.name] = task
        else:
            raise UsageError(f"tasks: {item!r} is neither a name, a mapping nor a Task")
    return made


def task_of_mapping(config: Mapping[str, Any], catalogue: Catalogue, options: TaskOptions) -> Task:
    """Build a task from a mapping with Python functions: a whole configuration, or changes to a task of the index.

    Raises ``UsageError`` if the mapping names no task.
    """
    name = config.get("task")
    if not isinstance(name, str):
        raise UsageError(f"tasks: a configuration needs 'task', the name: {dict(config)!r:.120}")
    base: dict[str, Any] = {}
    where = f"configuration {name!r}"
    entry = catalogue.entry(name)
    if entry is not None and entry.kind == "task" and not config.get("dataset_path"):
        base, where = keys_of(YamlReader(), entry.file, entry.bare_name), str(entry.file)
    return build_task(TaskSource(name, where, {**base, **config}), options)


def groups_table(catalogue: Catalogue) -> str:
    return _table(("Group", "Config Location"), [(e.name, e.location) for e in _sorted(catalogue.groups)])


def subtasks_table(catalogue: Catalogue) -> str:
    rows = [(entry.name, entry.location, entry.output_type) for entry in _sorted(catalogue.tasks)]
    return _table(("Task", "Config Location", "Output Type"), rows)


def tags_table(catalogue: Catalogue) -> str:
    return _table(("Tag",), [(tag,) for tag in sorted(catalogue.tags)])


def _sorted(entries: Mapping[str, Any]) -> list[Any]:
    return [entries[name] for name in sorted(entries)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "|" + "|".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + "|" for line in lines
    )
