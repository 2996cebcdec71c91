"""Models that can be chosen: names, what they are, their arguments, and what of them is missing here."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lmms_eval.models.arguments import Argument, arguments_of
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.resolved import INSTALL_NAMES
from lmms_eval.models.services import NAMED_SERVICES, OPENAI_KEY

Sort = Literal["Local models", "Engines", "Services", "Checks", "Plugins"]
_SORTS: tuple[Sort, ...] = ("Local models", "Services", "Engines", "Checks", "Plugins")
_FIRST = ("hf", "openai")
_CHECKS = ("baseline", "dummy", "replay")
"""Models that ask nobody: they check tasks, or repeat an earlier run."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A name that ``--model`` takes."""

    name: str
    sort: Sort
    kind: str
    """``chat``, ``chat+simple`` or ``simple``."""
    aliases: tuple[str, ...]
    text: str
    """What its class says of itself."""
    missing: tuple[str, ...]
    """Sentences on packages and keys that are not here."""


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """The arguments of a model."""

    name: str
    arguments: tuple[Argument, ...]
    fixed: Mapping[str, Any]
    """Arguments that the name of a service stands for."""


class ModelChoices:
    """The models of a registry, read once.

    Args:
        plugins: packages that the server was started with.
    """

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self._registry = ModelRegistry(tuple(plugins))
        self._choices: tuple[ModelChoice, ...] = ()

    def all(self) -> tuple[ModelChoice, ...]:
        """List the registry's models and the services that have names of their own, sort by sort."""
        if not self._choices:
            listed = self._registry.list_models()
            named = {one.name for one in listed}
            own = [self._choice(one.name, one.kind, one.aliases) for one in listed]
            services = [self._choice(name, "chat", ()) for name in sorted(NAMED_SERVICES) if name not in named]
            self._choices = tuple(
                sorted((*own, *services), key=lambda one: (_SORTS.index(one.sort), one.name not in _FIRST, one.name))
            )
        return self._choices

    def details(self, name: str) -> ModelDetails:
        """Tell the arguments of a model, by name or alias.

        Raises:
            UnknownNameError: there is no such model. ModelError: its class cannot be imported.
        """
        resolved = self._registry.resolve(name)
        service = NAMED_SERVICES.get(name)
        fixed: dict[str, Any] = {} if service is None else dict(service.fixed)
        if service is not None:
            told = {"model": service.model, "base_url": service.base_url}
            fixed |= {key: value for key, value in told.items() if value}
        return ModelDetails(name, arguments_of(resolved.manifest.model_id, resolved.load()), fixed)

    def _choice(self, name: str, kind: str, aliases: tuple[str, ...]) -> ModelChoice:
        from lmms_eval.errors import LmmsEvalError

        try:
            cls = self._registry.resolve(name).load()
        except LmmsEvalError as error:
            return ModelChoice(name, "Plugins", kind, aliases, "", (str(error),))
        service = NAMED_SERVICES.get(name)
        text = _told(cls) if service is None or not service.model else f"{service.model}, by {service.backend}"
        return ModelChoice(name, _sort(name, cls), kind, aliases, text, tuple(_missing(name, cls)))


def _sort(name: str, cls: type[Any]) -> Sort:
    if name in _CHECKS:
        return "Checks"
    if hasattr(cls, "engine") and cls.__module__.startswith("lmms_eval."):
        return "Engines"
    if hasattr(cls, "arguments_kind"):
        return "Services"
    return "Local models" if hasattr(cls, "profile") else "Plugins"


def _told(cls: type[Any]) -> str:
    """One sentence for people: the checkpoints of a family, else what the module says of itself."""
    types = getattr(getattr(cls, "profile", None), "model_types", ())
    if types:
        return f"checkpoints of {', '.join(types)}"
    is_own = cls.__module__.startswith("lmms_eval.") and not cls.__module__.endswith(".wrappers")
    stated = inspect.getdoc(inspect.getmodule(cls)) if is_own else inspect.getdoc(cls)
    line = (stated or "").partition("\n")[0].partition(" See ")[0]
    return re.sub(r"^The back end [^:]{1,40}: |^``\w{1,40}``(?:: | for )|``", "", line)


def _missing(name: str, cls: type[Any]) -> Iterator[str]:
    for module in _modules(name, cls):
        if not _is_installed(module):
            yield f"package {module}: pip install '{INSTALL_NAMES.get(module.partition('.')[0], module)}'"
    variables = _key_variables(name, cls)
    if variables and not any(os.environ.get(variable) for variable in variables):
        yield f"key: {' or '.join(variables)} is not set where the server was started"


def _modules(name: str, cls: type[Any]) -> tuple[str, ...]:
    if (service := getattr(cls, "service", None)) is not None:
        return (service.module,)
    if (engine := getattr(cls, "engine", None)) is not None and isinstance(getattr(engine, "name", None), str):
        return (engine.name,)
    if name == "litellm":
        return ("litellm",)
    return tuple(getattr(getattr(cls, "profile", None), "packages", ()))


def _key_variables(name: str, cls: type[Any]) -> tuple[str, ...]:
    service = NAMED_SERVICES.get(name)
    if service is not None and service.key_variable:
        return (service.key_variable,)
    if (sdk := getattr(cls, "service", None)) is not None:
        return tuple(sdk.key_variables)
    return (OPENAI_KEY,) if service is not None else ()


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
