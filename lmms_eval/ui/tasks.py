"""Tasks that can be chosen: names, sizes, needs, and what of them is missing here. No data set is opened."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmms_eval.checks.needs import absent_needs
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.catalogue import Catalogue, Entry
from lmms_eval.tasks.describing import Kind, card_of, describe
from lmms_eval.tasks.facts import NEEDS, facts_of
from lmms_eval.utils.task_files import read_text


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """A name that ``--tasks`` takes."""

    name: str
    kind: Kind
    title: str
    """Heading of the benchmark's card."""
    documents: int | None
    """``None``: not stated without opening the data."""
    modalities: tuple[str, ...]
    needs: tuple[str, ...]
    tags: tuple[str, ...]
    output_type: str
    size: int
    """Tasks of a tag; 0 for tasks and groups."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """Facts of the tasks of a group or tag together, which take longer to find than names."""

    name: str
    documents: int | None
    modalities: tuple[str, ...]
    needs: tuple[str, ...]
    size: int


class TaskChoices:
    """The names of a catalogue, read once.

    Args:
        include_paths: folders with further task files that the server was started with.
        plugins: packages with tasks.
    """

    def __init__(self, include_paths: Sequence[str] = (), plugins: Sequence[str] = ()) -> None:
        self._catalogue = Catalogue(include_paths, plugins)
        self._choices: tuple[TaskChoice, ...] = ()
        self._groups: tuple[GroupFacts, ...] = ()
        self._lock = threading.Lock()

    def all(self) -> tuple[TaskChoice, ...]:
        """List groups, then tags, then tasks."""
        if not self._choices:
            known = self._catalogue
            groups = [self._entry(entry) for _, entry in sorted(known.groups.items())]
            tags = [
                TaskChoice(tag, "tag", "", None, (), (), (), "", len(known.members(tag)))
                for tag in sorted(known.tags)
                if tag not in known.tasks and tag not in known.groups
            ]
            self._choices = (*groups, *tags, *(self._entry(entry) for _, entry in sorted(known.tasks.items())))
        return self._choices

    def groups(self) -> tuple[GroupFacts, ...]:
        """Tell the facts of all groups and tags; one whose YAML is wrong is left out."""
        with self._lock:
            if not self._groups:
                names = [one.name for one in self.all() if one.kind != "task"]
                self._groups = tuple(facts for name in names if (facts := self._group(name)) is not None)
        return self._groups

    def _group(self, name: str) -> GroupFacts | None:
        try:
            found = describe(name, self._catalogue)
        except LmmsEvalError:
            return None
        return GroupFacts(name, found.documents, found.modalities, found.needs, len(found.parts))

    def details(self, name: str) -> dict[str, Any]:
        """Describe a name with what scoring needs and this machine lacks.

        Raises:
            UnknownNameError: there is no such name. TaskError: its YAML is wrong.
        """
        found = describe(name, self._catalogue)
        needs = (*found.needs, *found.uses)
        return {**asdict(found), "needs_text": [NEEDS[word] for word in needs], "missing": list(absent_needs(needs))}

    def check(self, name: str) -> None:
        """Raises ``UsageError`` where a name or wildcard is none, naming the nearest. Files are not looked at."""
        if "/" not in name and not name.endswith((".yaml", ".yml", ".py")):
            self._catalogue.match([name])

    def yaml(self, name: str) -> str:
        """Read the file of a task or group.

        Raises:
            UnknownNameError: there is no such task or group, which alone have files.
        """
        entry = self._catalogue.tasks.get(name) or self._catalogue.groups.get(name)
        if entry is None:
            raise self._catalogue.unknown(name)
        return read_text(entry.file)

    def _entry(self, entry: Entry) -> TaskChoice:
        facts = facts_of(entry.name, is_group=entry.kind == "group")
        title = card_of(entry.file.parent).partition(". ")[0].replace("\\", "")  # signs that Markdown needs
        return TaskChoice(
            entry.name, entry.kind, title, facts.documents if facts else None, facts.modalities if facts else (),
            facts.needs if facts else (), entry.tags, entry.output_type, 0,
        )  # fmt: skip
