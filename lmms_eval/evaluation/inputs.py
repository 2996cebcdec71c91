"""Values that the stages of a run pass on: how it was started, the model as named, and everything collected."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Selection, Task
from lmms_eval.config.options import options
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.tasks import Catalogue
from lmms_eval.utils.prices import Tariffs
from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from lmms_eval.engine.looks import Sampling
    from lmms_eval.evaluation.recipe import RunRecipe
    from lmms_eval.judges.providers import Judge


_BRINGS_CODE = ("--plugins", "--include_path", "--config")
"""Flags of code outside this package, which ``PYTHONPATH`` may lead to."""


def this_command() -> str:
    """Return the command line of this process with the variables that it needs, secrets redacted.

    These are the package's own variables of options (``LMMS_EVAL_PLUGINS``, ...), and ``PYTHONPATH`` if the command
    names code outside of this package.
    """
    words = sys.argv[1:]
    own = {name for one in options() for name in one.variables if name.startswith("LMMS_EVAL_")}
    needed = [name for name in sorted(own) if os.environ.get(name) and not name.startswith("LMMS_EVAL_GIT_")]
    if "LMMS_EVAL_PLUGINS" in needed or any(word.partition("=")[0] in _BRINGS_CODE for word in words):
        needed = ["PYTHONPATH", *needed] if os.environ.get("PYTHONPATH") else needed
    stated = [f"{name}={shlex.quote(os.environ[name])}" for name in needed]
    return str(redact(" ".join([*stated, shlex.join(["lmms-eval", *words])])))


class ModelChoice(Struct, frozen=True):
    """The model as named or given, before its weights are loaded."""

    name: str
    backend: str
    """``module.Class (chat|simple)``."""
    chat: bool
    legacy: bool
    model_id: str = ""
    """Canonical name if ``name`` is an alias."""
    ignored_arguments: frozenset[str] = frozenset()
    """Model arguments that the back end ignores."""
    opens_media: bool = True
    """True if the files that documents name are opened for it."""
    object: Model | lmms | None = None
    """The caller's model object, if given. The run does not close it."""


class RecordedModel(Struct, frozen=True):
    """The model of a recorded run, which cannot be asked."""

    choice: ModelChoice
    model: Model
    ignored: tuple[str, ...] = ()
    """Options of ``--gen_kwargs`` that were not sent."""
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the run lacked of its recipe, by task."""


class Start(Struct, frozen=True):
    """The circumstances of a run's start."""

    command: str = field(default_factory=this_command)
    """The command that continues the run."""
    catalogue: Catalogue | None = None
    """The tasks by name, if the caller has loaded them already."""
    tasks: tuple[Task, ...] = ()
    """The tasks themselves, if the caller has them already."""
    returns_samples: bool = False
    """True if the caller gets the samples with the results."""
    recorded: RecordedModel | None = None
    """The model of an earlier run that is only scored again."""
    reading: str = ""
    """The recipe whose reading the answers of that run get too."""
    began: float = field(default_factory=time.time)
    """Seconds since 1970."""


class Collected(Struct, frozen=True):
    """Everything that a run needs before it opens its journal."""

    selection: Selection
    plans: tuple[TaskPlan, ...]
    model: Model
    choice: ModelChoice
    key: str
    scoring_key: str
    common_key: str
    """Hash of everything that must be equal in the processes of a launch."""
    is_resumable: bool
    """True if the key distinguishes this model from every other, so that an interrupted run may be continued."""
    judge: Judge | None = None
    baselines: Mapping[str, Path] = field(default_factory=dict)
    """Samples to compare with, by task (``--baseline``)."""
    tariffs: Tariffs | None = None
    """Prices, if the user gives a table."""
    ignored: tuple[str, ...] = ()
    """Options of ``--gen_kwargs`` that have no place in the model's requests (``--allow_ignored``)."""
    sampling: Sampling | None = None
    """Random order of the documents, with the stopping rules (``--order``, ``--until``)."""
    recipe: RunRecipe | None = None
    """The recipe of ``--recipe`` as the run applies it."""
    asks: bool = True
    """True if the model is asked. It is not if a recorded run is only scored again."""
    seconds: float = 0.0
    """Wall time of collecting."""
