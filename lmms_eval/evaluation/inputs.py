"""The values that the stages of a run hand on: how it was started, its model as named, and all that was collected."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Selection, Task
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.judges.providers import Judge
from lmms_eval.tasks import Catalogue
from lmms_eval.utils.prices import Tariffs
from lmms_eval.utils.redaction import redact


def this_command() -> str:
    """Return the command line of this process, secrets redacted."""
    return str(redact(shlex.join(["lmms-eval", *sys.argv[1:]])))


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model as named or given, before its weights are loaded."""

    name: str
    backend: str
    """``module.Class (chat|simple)``."""
    chat: bool
    legacy: bool
    model_id: str = ""
    """Canonical name, where ``name`` is an alias."""
    ignored_arguments: frozenset[str] = frozenset()
    """Model arguments that say nothing to its back end."""
    opens_media: bool = True
    """Files that documents name are opened for it."""
    object: Model | lmms | None = None
    """Set when the caller gave a model object; it is not closed by the run."""


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """The model of a recorded run, in name only."""

    choice: ModelChoice
    model: Model
    ignored: tuple[str, ...] = ()
    """Options of ``--gen_kwargs`` that it was asked without."""


@dataclass(frozen=True, slots=True)
class Start:
    """The circumstances under which a run begins."""

    command: str = field(default_factory=this_command)
    """The command that continues the run."""
    catalogue: Catalogue | None = None
    """The tasks that names stand for, where a program has one already."""
    tasks: tuple[Task, ...] = ()
    """The tasks themselves, where a program has them already."""
    returns_samples: bool = False
    """The caller gets the samples with the results."""
    recorded: RecordedModel | None = None
    """The model of an earlier run, which is only scored again."""
    began: float = field(default_factory=time.time)
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that a run needs before its journal is opened."""

    selection: Selection
    plans: tuple[TaskPlan, ...]
    model: Model
    choice: ModelChoice
    key: str
    scoring_key: str
    common_key: str
    """Hash of all that must agree in the processes of a launch, wherever their files lie."""
    is_resumable: bool
    """The key tells this model from every other one, so an interrupted run may be continued."""
    judge: Judge | None = None
    baselines: Mapping[str, Path] = field(default_factory=dict)
    """Samples to compare with, by task (``--baseline``)."""
    tariffs: Tariffs | None = None
    """Prices, where the user gives a table."""
    ignored: tuple[str, ...] = ()
    """Options of ``--gen_kwargs`` that have no place in the model's requests (``--allow_ignored``)."""
    sampling: Sampling | None = None
    """Random order of the documents, with what is looked for (``--order``, ``--until``)."""
    asks: bool = True
    """The model is asked; ``False`` where a recorded run is only scored again."""
    seconds: float = 0.0
    """Wall time that collecting took."""
