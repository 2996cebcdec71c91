"""Tasks and models of the registries, as the tools describe them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from lmms_eval.server.choices import ModelChoices, TaskChoices
from lmms_eval.server.mcp.answers import ModelArgument, ModelInfo, ModelLine, ModelList, TaskInfo, TaskLine, TaskList
from lmms_eval.utils.records import to_dict

MOST_TASKS, MOST_PARTS = 200, 50
"""Most names in a list of tasks, and most tasks in the description of a group."""
_LONGEST_TITLE = 160


class Names:
    """Tasks and models by name, with those of further folders and plugins; the registries are read once."""

    def __init__(self, include_paths: Sequence[str] = (), plugins: Sequence[str] = ()) -> None:
        self._tasks, self._models = TaskChoices(include_paths, plugins), ModelChoices(plugins)

    def tasks(self, query: str, only: Sequence[str] | None = None) -> TaskList:
        """Find groups, tags and tasks. Names that begin with the query come first, then names that contain it.

        ``only`` lists the names that may be found, known here or not; ``None`` means all names that are known here.
        """
        lines = [line for line in self._lines(query) if only is None or line.name in only]
        if only is not None:
            known = {*self._tasks.catalogue.names()}
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

        found = to_dict(describe(name, self._tasks.catalogue))
        needs = [NEEDS[word] for word in (*found["needs"], *found["uses"])]
        parts = found["parts"]
        return TaskInfo(**found | {"needs": needs, "tasks": parts[:MOST_PARTS], "total_tasks": len(parts)})

    def models(self, include_aliases: bool) -> ModelList:
        lines = [
            ModelLine(name=one.model_id, kind=one.kind, aliases=list(one.aliases) if include_aliases else [])
            for one in self._models.listed
        ]
        return ModelList(models=lines, total=len(lines))

    def model(self, name: str) -> ModelInfo:
        """Describe a model.

        Raises:
            UnknownNameError: the model does not exist.
            ModelError: the model's class cannot be imported.
        """
        from lmms_eval.models.building import arguments_of

        resolved = self._models.registry.resolve(name)
        own = resolved.manifest.model_id
        cls = resolved.load()
        title = (inspect.getdoc(inspect.getmodule(cls)) or "").partition("\n\n")[0].replace("\n", " ")
        # Arguments for keys are left out, since keys come from the environment.
        arguments = [ModelArgument(**to_dict(one)) for one in arguments_of(own, cls) if not one.is_secret]
        kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
        return ModelInfo(
            name=own,
            kind=resolved.manifest.kind,
            aliases=next((list(one.aliases) for one in self._models.listed if one.model_id == own), []),
            title=title,
            arguments=arguments,
            takes_further=inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(cls, "arguments_kind"),
        )

    def check(self, model: str, tasks: Sequence[str]) -> None:
        """Check the names of an evaluation. Raises ``UsageError``, which suggests similar names."""
        self._models.registry.resolve(model)
        self._tasks.check(tasks)

    def _lines(self, query: str) -> Iterator[TaskLine]:
        from lmms_eval.tasks.describing import SearchTerms, card_of, search

        catalogue, word = self._tasks.catalogue, query.casefold()
        offered = {one.name: one for one in self._tasks.all()}
        groups = sorted(catalogue.groups.values(), key=lambda one: (bool(one.pack), one.name))
        names = [one.name for one in groups if word in f"{one.name} {card_of(one.file.parent)}".casefold()]
        names += [one.name for one in offered.values() if one.kind == "tag" and word in one.name.casefold()]
        names += [entry.name for entry in search(catalogue, SearchTerms(word=query))]
        for one in (offered[name] for name in names):
            title = f"{one.size} tasks" if one.kind == "tag" else one.title[:_LONGEST_TITLE]
            modalities = list(one.modalities)
            yield TaskLine(
                name=one.name, kind=one.kind, title=title, documents=one.documents, modalities=modalities
            )  # fmt: skip
