"""Jobs of a check: tasks and groups by the names that choose them, as jobs for worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lmms_eval.api.task import TaskOptions
from lmms_eval.checks.findings import Finding, What
from lmms_eval.checks.reasons import finding
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import choose
from lmms_eval.tasks.yaml.loader import encode
from lmms_eval.tasks.yaml.task import TaskSource


@dataclass(frozen=True, slots=True)
class Job:
    """A task, group or model to be checked."""

    what: What
    name: str
    file: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Of a task as ``Task.spec`` gives it; of a model its name and arguments."""

    @property
    def place(self) -> str:
        """Jobs of one place share code: the folder of a task's file."""
        return self.file.rpartition("/")[0] if self.what == "task" else self.what


def task_job(spec: Mapping[str, Any]) -> Job:
    """A job from a task's ``spec``: its documents are opened anew, and a worker knows the included folders already."""
    return Job("task", spec["name"], spec["file"], {**spec, "documents": None, "included": []})


def model_job(
    name: str,
    arguments: str | Mapping[str, Any],
    plugins: Sequence[str] = (),
    force_simple: bool = False,
    **built: int | str | None,
) -> Job:
    """A job for a model; ``built``: ``batch_size`` and ``device``."""
    spec = {"name": name, "arguments": arguments, "plugins": list(plugins), "force_simple": force_simple}
    return Job("model", name, "", {"batch_size": 1, "device": None, **spec, **built})


def jobs_of(catalogue: Catalogue, names: Sequence[str], options: TaskOptions) -> Iterator[Job]:
    """Make the jobs of some names, of all that the catalogue has where none are given; no task code is imported.

    A group is one job; its members become jobs when it has been looked at, where no name stands for them.
    """
    chosen = catalogue.match(names) if names else catalogue.names()
    members = (member for name in chosen for member in (catalogue.members(name) if name in catalogue.tags else [name]))
    found = list(dict.fromkeys(members))
    for name in sorted(found, key=lambda name: name not in catalogue.groups):
        if name in catalogue.groups:
            yield Job("group", name, str(catalogue.groups[name].file))
        elif name in catalogue.tasks:
            source = TaskSource(name, str(catalogue.tasks[name].file), {}, {})
            yield task_job(spec_of(source, options))


def spec_of(source: TaskSource, options: TaskOptions) -> dict[str, Any]:
    """Describe a task that is not built yet, in the form of ``Task.spec``."""
    return {
        "name": source.name,
        "file": source.file,
        "overrides": encode(source.overrides or {}),
        "standalone": source.standalone,
        "change": source.change,
        "base": source.base,
        "documents": None,
        "options": asdict(options),
        "included": [],
    }


@dataclass(slots=True)
class GroupMembers:
    """The groups of a catalogue, which is read when the first is asked for."""

    include_paths: Sequence[str]
    plugins: Sequence[str]
    options: Mapping[str, Any]
    _catalogue: Catalogue | None = None

    def of(self, name: str) -> tuple[list[Finding], list[Mapping[str, Any]]]:
        """Look a group up to its tasks: the finding, and a ``spec`` for each."""
        try:
            if self._catalogue is None:
                self._catalogue = Catalogue(self.include_paths, self.plugins)
            sources = choose([name], self._catalogue).sources
        except (Exception, SystemExit) as error:  # noqa: BLE001 - modules of its aggregations are imported here
            return [finding("group", error)], []
        options = TaskOptions(**self.options)
        return [Finding("group")], [spec_of(source, options) for source in sources]
