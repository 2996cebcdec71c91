"""Construction of model objects from resolved names and arguments."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from lmms_eval.api.model import Model, lmms
from lmms_eval.errors import LmmsEvalError, MissingOptionalDependencyError, ModelError
from lmms_eval.models.resolved import ResolvedModel

log = logging.getLogger(__name__)
CONSTRUCTOR_ERRORS = (TypeError, ValueError, AssertionError, LookupError, OSError, ImportError, RuntimeError)
"""Errors of a constructor about arguments, files, packages or devices that do not fit."""

LOCAL_MODELS_NEED = ("torch", "transformers", "accelerate")
"""Dependencies that ``requirements-lean.txt`` leaves out."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of the command line that reach a model's constructor, and how a plugin is fed."""

    batch_size: int | str | None = None
    max_batch_size: int | None = None
    device: str | None = None
    force_simple: bool = False
    trust_remote_code: bool = False
    """Code of the checkpoint may run; for models that have an argument of this name."""
    image_format: str | None = None
    """Format of pictures that must be encoded anew, where the command line says one."""
    image_quality: int | None = None
    no_media: bool = False
    """Prompts are not built (of the model ``baseline``)."""
    chunk_size: int | None = None
    """Requests in one call of a class-interface plugin; by default as ``LegacyAdapter`` says."""


def build_model(resolved: ResolvedModel, model_args: str | Mapping[str, Any], options: BuildOptions) -> Model:
    """Build a model; a plugin of the class interface comes wrapped in ``LegacyAdapter``.

    ``model_args`` wins over ``batch_size``, ``max_batch_size`` and ``device``, which are passed where they are not
    ``None`` and the constructor takes them.

    Raises:
        ModelError: the class cannot be imported, or its constructor refuses the arguments. Values are not shown.
    """
    name = resolved.manifest.model_id
    cls = resolved.load()
    given = _heeded(name, cls, parse_model_args(model_args))
    if options.no_media and "no_media" not in _parameters(cls):
        raise ModelError(f"--no_media: model {name!r} needs the media to answer; only `baseline` does without")
    arguments = {**_accepted_options(cls, options), **given}
    _check_arguments(name, cls, arguments)
    try:
        model = cls(**arguments)
    except LmmsEvalError:
        raise
    except CONSTRUCTOR_ERRORS as error:
        raise _refusal(name, error) from error
    return adapt_model(model, options)


def _refusal(name: str, error: Exception) -> LmmsEvalError:
    if isinstance(error, ModuleNotFoundError) and error.name in LOCAL_MODELS_NEED:
        return MissingOptionalDependencyError(
            f"model {name!r} runs on this machine and needs {error.name}, which a lean install leaves out: "
            f"pip install {' '.join(LOCAL_MODELS_NEED)}"
        )
    return ModelError(f"model {name!r} cannot be built: {type(error).__name__}: {error}")


def adapt_model(model: Model | lmms, options: BuildOptions | None = None) -> Model:
    """A model object as the engine takes it: plugins of the class interface are wrapped."""
    if isinstance(model, Model):
        return model
    from lmms_eval.models.legacy import LegacyAdapter

    chosen = options or BuildOptions()
    return LegacyAdapter(model, chunk_size=chosen.chunk_size, batch_size=chosen.batch_size)


def parse_model_args(model_args: str | Mapping[str, Any]) -> dict[str, Any]:
    """``k=v,k=v`` or a mapping as keyword arguments."""
    if isinstance(model_args, Mapping):
        return dict(model_args)
    from lmms_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(model_args))


def _heeded(name: str, cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that say nothing to the class, for each of which there is a warning."""
    ignored = ignored_arguments(cls, given)
    for argument, reason in ignored.items():
        log.warning("model %r: the argument %s has no effect here: %s", name, argument, reason)
    return {argument: value for argument, value in given.items() if argument not in ignored}


def ignored_arguments(cls: type[Any], given: Iterable[str]) -> dict[str, str]:
    """Tell which of the ``given`` arguments say nothing to a model class (``Model.ignored_arguments``), and why."""
    table: Mapping[str, str] = getattr(cls, "ignored_arguments", {})
    own = _parameters(cls) if table else {}
    found = {}
    for name in given:
        reason = next((why for pattern, why in table.items() if fnmatchcase(name, pattern)), None)
        if reason is not None and name not in own:
            found[name] = reason
    return found


def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _takes_any(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())


def _accepted_options(cls: type[Any], options: BuildOptions) -> dict[str, Any]:
    parameters = _parameters(cls)
    extra = {
        "batch_size": options.batch_size,
        "max_batch_size": options.max_batch_size,
        "device": options.device,
        "image_format": options.image_format,
        "image_quality": options.image_quality,
        "no_media": options.no_media or None,
    }
    accepted: dict[str, Any] = {}
    if options.trust_remote_code and "trust_remote_code" in parameters:
        accepted["trust_remote_code"] = True
    for key, value in extra.items():
        if value is None:
            continue
        if key in parameters or _takes_any(parameters):
            accepted[key] = value
        else:
            log.debug("%s takes no %s: option not passed", cls.__name__, key)
    return accepted


def _check_arguments(name: str, cls: type[Any], arguments: Mapping[str, Any]) -> None:
    parameters = _parameters(cls)
    named = [
        key
        for key, parameter in parameters.items()
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ]
    missing = [key for key in named if parameters[key].default is inspect.Parameter.empty and key not in arguments]
    if missing:
        raise ModelError(f"model {name!r} needs --model_args {','.join(f'{key}=...' for key in missing)}")
    if _takes_any(parameters):
        return
    for key in arguments:
        if key in named:
            continue
        close = difflib.get_close_matches(key, named, n=3, cutoff=0.5)
        answer = f"did you mean {', '.join(close)}?" if close else f"it takes: {', '.join(sorted(named)) or 'none'}"
        raise ModelError(f"model {name!r} has no argument {key!r} (--model_args); {answer}")
