"""Tasks and models of the registries, as the tools describe them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lmms_eval.server.mcp.answers import ModelArgument, ModelInfo, ModelLine, ModelList, TaskInfo, TaskLine, TaskList
from lmms_eval.server.policy import names_file
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.models.registry import ModelListing, ModelRegistry
    from lmms_eval.tasks.catalogue import Catalogue, IndexEntry

MOST_TASKS, MOST_PARTS = 200, 50
"""Most names in a list of tasks, and most tasks in the description of a group."""
_LONGEST_TITLE = 160


class Names:
    """Tasks and models by name; the registries are read once.

    Args:
        include_paths: folders with further task files.
        plugins: packages with further tasks and models.
    """

    def __init__(self, include_paths: Sequence[str] = (), plugins: Sequence[str] = ()) -> None:
        self._include_paths, self._plugins = tuple(include_paths), tuple(plugins)
        self._lock = threading.Lock()

    def tasks(self, query: str, only: Sequence[str] | None = None) -> TaskList:
        """Find groups, tags and tasks. Names that begin with the query come first, then names that contain it.

        Args:
            query: text to look for.
            only: names that may be found, known here or not; ``None`` for all names that are known here.
        """
        lines = [line for line in self._lines(query) if only is None or line.name in only]
        if only is not None:
            known = {*self._catalogue.names()}
            asked = (name for name in only if name not in known and query.casefold() in name.casefold())
            lines += [TaskLine(name=name, kind="task") for name in asked]

        def rank(line: TaskLine) -> int:
            """Rank a name by its match with the query: equal, at the beginning, anywhere, nowhere."""
            name, word = line.name.casefold(), query.casefold()
            return 0 if name == word else 1 if name.startswith(word) else 2 if word in name else 3

        lines.sort(key=rank)
        left_out = len(lines) - MOST_TASKS
        note = f"{left_out} of them are not listed: give a query" if left_out > 0 else ""
        return TaskList(tasks=lines[:MOST_TASKS], total=len(lines), note=note)

    def task(self, name: str) -> TaskInfo:
        """Describe a task, group or tag.

        Raises:
            UnknownNameError: the name does not exist.
            TaskError: the task's YAML is wrong.
        """
        from lmms_eval.tasks.describing import describe
        from lmms_eval.tasks.facts import NEEDS

        found = to_dict(describe(name, self._catalogue))
        needs = [NEEDS[word] for word in (*found["needs"], *found["uses"])]
        parts = found["parts"]
        return TaskInfo(**found | {"needs": needs, "tasks": parts[:MOST_PARTS], "total_tasks": len(parts)})

    def models(self, include_aliases: bool) -> ModelList:
        lines = [
            ModelLine(name=one.name, kind=one.kind, aliases=list(one.aliases) if include_aliases else [])
            for one in self._listings
        ]
        return ModelList(models=lines, total=len(lines))

    def model(self, name: str) -> ModelInfo:
        """Describe a model.

        Raises:
            UnknownNameError: the model does not exist.
            ModelError: the model's class cannot be imported.
        """
        from lmms_eval.models.building import arguments_of

        resolved = self._registry.resolve(name)
        own = resolved.manifest.model_id
        cls = resolved.load()
        title = (inspect.getdoc(inspect.getmodule(cls)) or "").partition("\n\n")[0].replace("\n", " ")
        # Arguments for keys are left out, since keys come from the environment.
        arguments = [ModelArgument(**to_dict(one)) for one in arguments_of(own, cls) if not one.is_secret]
        kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
        return ModelInfo(
            name=own,
            kind=resolved.manifest.kind,
            aliases=next((list(one.aliases) for one in self._listings if one.name == own), []),
            title=title,
            arguments=arguments,
            takes_further=inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(cls, "arguments_kind"),
        )

    def check(self, model: str, tasks: Sequence[str]) -> None:
        """Check the names of an evaluation. Raises ``UsageError``, which suggests similar names."""
        self._registry.resolve(model)
        self._catalogue.match(name for name in tasks if not names_file(name))

    @cached_property
    def _catalogue(self) -> Catalogue:
        from lmms_eval.tasks.catalogue import Catalogue

        with self._lock:
            return Catalogue(self._include_paths, self._plugins)

    @cached_property
    def _registry(self) -> ModelRegistry:
        from lmms_eval.models.registry import ModelRegistry

        return ModelRegistry(self._plugins)

    @cached_property
    def _listings(self) -> list[ModelListing]:
        return self._registry.list_models()

    def _lines(self, query: str) -> Iterator[TaskLine]:
        from lmms_eval.tasks.describing import SearchTerms, card_of, search

        known, word = self._catalogue, query.casefold()
        groups = [entry for _, entry in sorted(known.groups.items())]
        yield from (_line(entry) for entry in groups if word in f"{entry.name} {card_of(entry.file.parent)}".casefold())
        for tag in sorted(known.tags):
            if word in tag.casefold() and tag not in known.tasks and tag not in known.groups:
                yield TaskLine(name=tag, kind="tag", title=f"{len(known.members(tag))} tasks")
        yield from (_line(entry) for entry in search(known, SearchTerms(word=query)))


def _line(entry: IndexEntry) -> TaskLine:
    from lmms_eval.tasks.describing import card_of
    from lmms_eval.tasks.facts import facts_of

    facts = facts_of(entry.name, is_group=entry.kind == "group")
    return TaskLine(
        name=entry.name,
        kind=entry.kind,
        title=card_of(entry.file.parent).partition(". ")[0][:_LONGEST_TITLE],
        documents=facts.documents if facts else None,
        modalities=list(facts.modalities) if facts else [],
    )
