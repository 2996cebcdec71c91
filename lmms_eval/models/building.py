"""Construction of models from resolved names and arguments, and description of the arguments."""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.registry import ModelManifest
from lmms_eval.errors import LmmsEvalError, MissingOptionalDependencyError, ModelError
from lmms_eval.utils.files import read_table
from lmms_eval.utils.installed import absent_name, error_text
from lmms_eval.utils.redaction import is_secret_key

log = logging.getLogger(__name__)
Kind = Literal["chat", "simple"]
ArgumentKind = Literal["switch", "whole number", "number", "JSON", "text"]
MEANINGS = Path(__file__).with_name("arguments.tsv")
CONSTRUCTOR_ERRORS = (TypeError, ValueError, AssertionError, LookupError, OSError, ImportError, RuntimeError)
"""Errors that constructors raise for unsuitable arguments, files, packages or devices."""
LOCAL_MODELS_NEED = ("torch", "transformers", "accelerate")
"""Dependencies that ``requirements-lean.txt`` leaves out."""
INSTALL_NAMES = {
    "vllm": "lmms_eval[vllm]",
    "sglang": "lmms_eval[sglang]",
    "anthropic": "lmms_eval[anthropic]",
    "google": "lmms_eval[gemini]",
    "litellm": "lmms_eval[litellm]",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""The package to install by module, if the names differ."""
_KINDS: Mapping[Any, ArgumentKind] = {bool: "switch", int: "whole number", float: "number", dict: "JSON"}
_NAMES = {kind.__name__: kind for kind in (bool, int, float, dict)}
_MODEL = ("model", "pretrained")


class ResolvedModel(Struct, frozen=True):
    """A resolved model name. ``load`` imports the class."""

    manifest: ModelManifest
    class_path: str
    kind: Kind

    def load(self) -> type[Any]:
        """Import the class and check it. Raises ``ModelError`` if it is missing or not a model of this interface."""
        model_id = self.manifest.model_id
        cls = _import_class(model_id, self.class_path)
        if not isinstance(cls, type) or not issubclass(cls, lmms | Model):
            raise ModelError(
                f"model {model_id!r}: {self.class_path} is not a subclass of lmms_eval.api.model.Model or "
                "lmms_eval.api.model.lmms"
            )
        is_simple = bool(getattr(cls, "is_simple", False))
        if is_simple != (self.kind == "simple"):
            raise ModelError(
                f"model {model_id!r}: {self.class_path} has is_simple={is_simple}, but its manifest lists it as "
                f"{self.kind}_class_path; make the two agree"
            )
        return cls


def _import_class(model_id: str, path: str) -> Any:
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise ModelError(f"model {model_id!r} is registered as {path}, but there is no module {missing}") from error
        if absent_name(error):
            raise ModelError(f"model {model_id!r} ({path}) cannot be imported: {error_text(error)}") from error
        root = missing.partition(".")[0]
        hint = f"pip install '{INSTALL_NAMES.get(root, root)}'"
        raise ModelError(f"model {model_id!r} needs the package {missing!r}: {hint}") from error
    except ImportError as error:
        raise ModelError(f"model {model_id!r} ({path}) cannot be imported: {error_text(error)}") from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise ModelError(f"model {model_id!r} is registered as {path}, but {module_name} has no {attribute!r}")
        value = getattr(value, part)
    return value


class BuildOptions(Struct, frozen=True):
    """Options of the command line for a model's constructor and for the adapter of plugins."""

    batch_size: int | str | None = None
    max_batch_size: int | None = None
    device: str | None = None
    force_simple: bool = False
    trust_remote_code: bool = False
    """Allow code of the checkpoint to run, for models that have an argument of this name."""
    image_format: str | None = None
    """Format of pictures that must be encoded, if given on the command line."""
    image_quality: int | None = None
    no_media: bool = False
    """Do not build prompts (of the model ``baseline``)."""
    chunk_size: int | None = None
    """Requests in one call of a class-interface plugin; for the default see ``LegacyAdapter``."""


def build_model(resolved: ResolvedModel, model_args: str | Mapping[str, Any], options: BuildOptions) -> Model:
    """Build a model. A plugin of the class interface is wrapped in ``LegacyAdapter``.

    ``model_args`` override ``batch_size``, ``max_batch_size`` and ``device``, which are passed if they are not ``None``
    and the constructor takes them. Raises ``ModelError`` if the class cannot be imported, or its constructor rejects
    the arguments. Values are not shown.
    """
    name = resolved.manifest.model_id
    cls = resolved.load()
    given = parse_model_args(model_args)
    for argument, reason in ignored_arguments(cls, given).items():
        log.warning("model %r: the argument %s has no effect here: %s", name, argument, reason)
        del given[argument]
    arguments = {**_accepted_options(cls, options), **given}
    _check_arguments(name, cls, arguments)
    try:
        model = cls(**arguments)
    except LmmsEvalError:
        raise
    except CONSTRUCTOR_ERRORS as error:
        if isinstance(error, ModuleNotFoundError) and error.name in LOCAL_MODELS_NEED:
            raise MissingOptionalDependencyError(
                f"model {name!r} runs on this machine and needs {error.name}, which a lean install leaves out: "
                f"pip install {' '.join(LOCAL_MODELS_NEED)}"
            ) from error
        raise ModelError(f"model {name!r} cannot be built: {type(error).__name__}: {error}") from error
    return adapt_model(model, options)


def adapt_model(model: Model | lmms, options: BuildOptions | None = None) -> Model:
    """Return a model for the engine: plugins of the class interface are wrapped."""
    if isinstance(model, Model):
        return model
    from lmms_eval.models.legacy import LegacyAdapter

    chosen = options or BuildOptions()
    return LegacyAdapter(model, chunk_size=chosen.chunk_size, batch_size=chosen.batch_size)


def parse_model_args(model_args: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments from ``k=v,k=v`` or a mapping."""
    if isinstance(model_args, Mapping):
        return dict(model_args)
    from lmms_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(model_args))


def ignored_arguments(cls: type[Any], given: Iterable[str]) -> dict[str, str]:
    """Return the ``given`` arguments without effect on a model class, with reasons (``Model.ignored_arguments``)."""
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
    names = ("batch_size", "max_batch_size", "device", "image_format", "image_quality")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if not _takes_any(parameters):
        for name in given.keys() - parameters.keys():
            log.debug("%s takes no %s: option not passed", cls.__name__, name)
            del given[name]
    for name in ("trust_remote_code", "no_media"):  # only for models that name it
        if getattr(options, name) and name in parameters:
            given[name] = True
    return given


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


class Argument(Struct, frozen=True):
    """An argument of a model class."""

    name: str
    kind: ArgumentKind
    default: bool | int | float | str | None
    """``None`` if there is no default, or the model defines it."""
    is_required: bool
    choices: tuple[str, ...]
    meaning: str
    """Empty for undocumented arguments of plugins."""
    other_names: tuple[str, ...]
    is_first: bool
    """Whether it is one of the commonly used arguments."""
    is_secret: bool


def arguments_of(name: str, cls: type[Any]) -> tuple[Argument, ...]:
    """List the arguments of a model class, the commonly used ones first, with their meanings for the model's name."""
    checked = getattr(cls, "arguments_kind", None)  # the pydantic class that checks the arguments
    others = checked.same if checked is not None else getattr(getattr(cls, "profile", None), "aliases", {})
    rows = [row for row in read_table(MEANINGS) if not row["models"] or name in row["models"].split(",")]
    rows.sort(key=lambda row: bool(row["models"]))  # a row for the model replaces that for all
    meanings = {row["argument"]: (row["meaning"], row["place"] == "first") for row in rows}
    found = []
    for argument, annotation, default in _declared(cls, checked):
        if argument in others or ignored_arguments(cls, [argument]):
            continue
        kind, choices = kind_of(annotation)
        meaning, is_first = meanings.get(argument, ("", False))
        needed = default is inspect.Parameter.empty or (argument in _MODEL and not default)
        shown = default if isinstance(default, bool | int | float | str) else None
        synonyms = tuple(sorted(other for other, target in others.items() if target == argument))
        secret = is_secret_key(argument)
        found.append(Argument(argument, kind, shown, needed, choices, meaning, synonyms, is_first, secret))
    return tuple(sorted(found, key=lambda one: (one.name not in _MODEL, not (one.is_required or one.is_first))))


def _declared(cls: type[Any], checked: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, annotation and default of each argument."""
    if checked is not None:
        for name, field in checked.model_fields.items():
            default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
            yield name, field.annotation, default
        return
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            yield name, parameter.annotation, parameter.default


def kind_of(annotation: Any) -> tuple[ArgumentKind, tuple[str, ...]]:
    """Return the kind of an annotation, which may be given as text, and its choices if it lists them."""
    if isinstance(annotation, str):
        parts = [part.strip() for part in annotation.split("|")]
        known = {_NAMES.get(part.partition("[")[0]) for part in parts if part != "None"}
    else:
        unions = (typing.Union, types.UnionType)
        members = typing.get_args(annotation) if typing.get_origin(annotation) in unions else (annotation,)
        members = tuple(member for member in members if member is not type(None))
        if len(members) == 1 and typing.get_origin(members[0]) is Literal:
            return "text", tuple(map(str, typing.get_args(members[0])))
        known = {typing.get_origin(member) or member for member in members}
    (only,) = known if len(known) == 1 else (None,)
    return _KINDS.get(only, "text"), ()
