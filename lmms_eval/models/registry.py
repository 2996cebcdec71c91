"""Model names: built-in ones, entry points of installed packages, and plugin packages of the older kind."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.model import Model
from lmms_eval.api.registry import MODEL_REGISTRY, ModelManifest
from lmms_eval.errors import ModelError, UnknownNameError
from lmms_eval.models.building import BuildOptions, build_model, parse_model_args
from lmms_eval.models.families.table import FAMILIES, FAMILY_ALIASES
from lmms_eval.models.plugin_modules import supply_modules
from lmms_eval.models.resolved import ResolvedModel
from lmms_eval.models.services import NAMED_SERVICES, aliases_of
from lmms_eval.utils.absent_names import absent_name, told
from lmms_eval.utils.task_files import read_table

ENTRY_POINT_GROUP = "lmms_eval.models"
FOREIGN_NAMES = Path(__file__).with_name("foreign_names.tsv")
_HOW_TO_RUN = (
    "its class runs as a plugin: LMMS_EVAL_PLUGINS=PACKAGE, see docs/model_guide.md; docs/models/names.md lists the "
    "names that run without one"
)
log = logging.getLogger(__name__)

BUILTIN_MANIFESTS = (
    ModelManifest("anthropic", chat_class_path="lmms_eval.models.anthropic.Anthropic", aliases=aliases_of("anthropic")),
    ModelManifest("baseline", chat_class_path="lmms_eval.models.baseline.Baseline"),
    ModelManifest("dummy", chat_class_path="lmms_eval.models.dummy.Dummy", aliases=("dummy_video_reader",)),
    ModelManifest("gemini", chat_class_path="lmms_eval.models.gemini.Gemini", aliases=aliases_of("gemini")),
    ModelManifest(
        "hf",
        chat_class_path="lmms_eval.models.hf.model.HuggingFace",
        aliases=("huggingface", "async_hf", "async_hf_model"),
    ),
    ModelManifest(
        "openai",
        chat_class_path="lmms_eval.models.openai.model.OpenAI",
        aliases=(
            "async_openai",
            "openai_compatible",
            "openai_compatible_chat",
            "async_openai_compatible",
            "async_openai_compatible_chat",
            *aliases_of("openai"),
        ),
    ),
    ModelManifest(
        "internvl",
        chat_class_path="lmms_eval.models.chat_form.checkpoints.InternVL",
        aliases=("internvl2", "internvl3", "internvl3_5", "internvideo2_5"),
    ),
    ModelManifest(
        "minicpm_v", chat_class_path="lmms_eval.models.chat_form.checkpoints.MiniCPM", aliases=("minicpm_o",)
    ),
    ModelManifest(
        "litellm", chat_class_path="lmms_eval.models.litellm.LiteLLM", aliases=("litellm_chat", "litellm_compatible")
    ),
    ModelManifest("replay", chat_class_path="lmms_eval.models.replay.Replay", aliases=("from_log",)),
    ModelManifest("sglang", chat_class_path="lmms_eval.models.sglang.SGLang", aliases=("llava_sglang",)),
    ModelManifest("vllm", chat_class_path="lmms_eval.models.vllm.VLLM", aliases=("vllm_generate",)),
    ModelManifest("whisper", chat_class_path="lmms_eval.models.families.whisper.Whisper", aliases=("whisper_vllm",)),
    *(
        ModelManifest(
            name, chat_class_path=f"lmms_eval.models.families.wrappers:{name}", aliases=FAMILY_ALIASES.get(name, ())
        )
        for name in FAMILIES
    ),
)

_BUILTIN_PATHS = {manifest.model_id: manifest.chat_class_path for manifest in BUILTIN_MANIFESTS}


@dataclass(frozen=True, slots=True)
class ModelListing:
    """One line of ``lmms-eval models``."""

    name: str
    kind: str
    """``chat``, ``chat+simple`` or ``simple``."""
    aliases: tuple[str, ...]


def foreign_names() -> dict[str, str]:
    """Names of the family's models that need a code base of their own, and what they need."""
    return {row["name"]: row["needs"] for row in read_table(FOREIGN_NAMES)}


class ModelRegistry:
    """All models that can be named. Entry points and plugin packages are read at the first look-up.

    Args:
        plugins: packages of the older kind, as a list or in the comma form of ``LMMS_EVAL_PLUGINS``: each may have
            ``PACKAGE.models.AVAILABLE_MODELS = {module name: class name}`` and a sub-package ``PACKAGE.tasks``. Also
            modules, which are imported for the classes that ``@register_model`` names there.
    """

    def __init__(self, plugins: str | Sequence[str] = ()) -> None:
        names = plugins.split(",") if isinstance(plugins, str) else plugins
        self._plugins = tuple(name.strip() for name in names if name.strip())
        self._manifests: dict[str, ModelManifest] = {}
        self._aliases: dict[str, str] = {}
        self._broken: list[str] = []
        self._loaded = False

    def resolve(self, name: str, force_simple: bool = False) -> ResolvedModel:
        """Look a name or alias up: with ``force_simple`` the simple class if there is one, else chat before simple.

        Raises:
            UnknownNameError: no model has this name; names the nearest ones.
        """
        self._load()
        manifest = self._manifests.get(name) or self._manifests.get(self._aliases.get(name, ""))
        if manifest is None:
            return self._resolve_decorated(name)
        self._warn_of_another_class(name, manifest)
        if manifest.simple_class_path and (force_simple or not manifest.chat_class_path):
            return ResolvedModel(manifest, manifest.simple_class_path, "simple")
        return ResolvedModel(manifest, str(manifest.chat_class_path), "chat")

    def build(
        self, name: str, model_args: str | Mapping[str, Any] = "", options: BuildOptions | None = None
    ) -> tuple[Model, ResolvedModel]:
        """Build the model behind a name; see ``lmms_eval.models.building.build_model``. Also says what was chosen.

        The name of a service completes the arguments, unless a plugin has taken the name.
        """
        chosen = options or BuildOptions()
        resolved = self.resolve(name, chosen.force_simple)
        service = NAMED_SERVICES.get(name)
        if service is not None and resolved.class_path == _BUILTIN_PATHS[service.backend]:
            model_args = service.arguments(parse_model_args(model_args), os.environ)
        return build_model(resolved, model_args, chosen), resolved

    def get_model_class(self, name: str, force_simple: bool = False) -> type[Any]:
        """Import the class behind a name. Raises as ``resolve`` and ``ResolvedModel.load``."""
        return self.resolve(name, force_simple).load()

    def get_manifest(self, name: str) -> ModelManifest:
        """Return the manifest behind a name or alias. Raises ``UnknownNameError``."""
        return self.resolve(name).manifest

    def list_canonical_model_ids(self) -> list[str]:
        """Names without aliases, sorted."""
        self._load()
        return sorted(self._manifests)

    def list_model_names(self) -> list[str]:
        """Names and aliases, sorted."""
        self._load()
        return sorted({*self._manifests, *self._aliases})

    def register_manifest(self, manifest: ModelManifest, *, overwrite: bool = False) -> None:
        """Make a model known to this registry and to those that are made later in this process.

        Raises:
            ValueError: the name has other classes, and ``overwrite`` is not given.
        """
        self._load()
        known = self._manifests.get(manifest.model_id)
        if known is not None and known != manifest and not overwrite:
            raise ValueError(
                f"model {manifest.model_id!r} is known as {known.chat_class_path or known.simple_class_path}"
            )
        _REGISTERED[manifest.model_id] = manifest
        self._add_all([manifest])

    def list_models(self) -> list[ModelListing]:
        """Chat-only models first, then those with both interfaces, then simple ones; by name within each."""
        self._load()
        order = {"chat": 0, "chat+simple": 1, "simple": 2}
        found = []
        for name, manifest in self._manifests.items():
            aliases = tuple(sorted(alias for alias, target in self._aliases.items() if target == name))
            found.append(ModelListing(name, manifest.kind, aliases))
        return sorted(found, key=lambda item: (order[item.kind], item.name))

    def plugin_task_folders(self) -> list[Path]:
        """The folders of ``PACKAGE.tasks`` of the plugin packages that have one, for the task catalogue."""
        folders: list[Path] = []
        for package in self._plugins:
            try:
                spec = importlib.util.find_spec(f"{package}.tasks")
            except ModuleNotFoundError as error:
                if error.name == f"{package}.tasks":  # the plugin is a module, which has none
                    continue
                raise _plugin_error(package, error) from error
            if spec is not None and spec.submodule_search_locations:
                folders.extend(Path(location) for location in spec.submodule_search_locations)
        return folders

    def _warn_of_another_class(self, name: str, manifest: ModelManifest) -> None:
        """Say that a class which code outside of the plugins registered under a known name is not taken."""
        cls = MODEL_REGISTRY.get(name)
        if cls is None or _path_of(cls) in (manifest.simple_class_path, manifest.chat_class_path):
            return
        if not _is_of_package(cls, "lmms_eval"):
            log.warning(
                "model %r is %s; the class %s, which @register_model names so too, is not taken: give its module in "
                "--plugins, or another name",
                name,
                manifest.chat_class_path or manifest.simple_class_path,
                _path_of(cls),
            )

    def _resolve_decorated(self, name: str) -> ResolvedModel:
        """A class that ``@register_model`` has seen in this process, without a manifest."""
        if name not in MODEL_REGISTRY:
            if need := foreign_names().get(name):
                raise UnknownNameError("model", name, (), f"it is the family's and needs {need}; {_HOW_TO_RUN}", ": ")
            known = {*self._manifests, *self._aliases, *MODEL_REGISTRY}
            hint = "(`lmms-eval models` lists all)"
            if self._broken:
                hint += f"; these entry points could not be loaded: {'; '.join(self._broken)}"
            raise UnknownNameError("model", name, known, hint)
        cls = MODEL_REGISTRY[name]
        manifest = _decorated_manifest(name, cls)
        return ResolvedModel(manifest, _path_of(cls), "simple" if manifest.simple_class_path else "chat")

    def _load(self) -> None:
        if self._loaded:
            return
        from importlib.metadata import entry_points

        self._add_all(BUILTIN_MANIFESTS)
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            try:
                manifests = _as_manifests(entry.name, entry.load())
            except Exception as error:  # noqa: BLE001 - a broken package that nobody asked for must not stop a run
                self._broken.append(f"{entry.name} = {entry.value} ({told(error)})")
                log.warning("entry point %s of group %s: %s", entry.name, ENTRY_POINT_GROUP, told(error))
            else:
                self._add_all(manifests)
        self._add_all([*_added_to_tables(), *_REGISTERED.values()], " (registered in this process)")
        for package in self._plugins:
            self._add_all(_plugin_manifests(package), f" (plugin {package})")
        self._loaded = True

    def _add_all(self, manifests: Iterable[ModelManifest], source: str = "") -> None:
        for manifest in manifests:
            path = manifest.chat_class_path or manifest.simple_class_path
            if manifest.model_id in self._manifests or manifest.model_id in self._aliases:
                log.info("model %r now comes from %s%s", manifest.model_id, path, source)
            self._manifests[manifest.model_id] = manifest
            self._aliases.update(dict.fromkeys(manifest.aliases, manifest.model_id))


_REGISTERED: dict[str, ModelManifest] = {}
"""What ``register_manifest`` got in this process."""

AVAILABLE_CHAT_TEMPLATE_MODELS: dict[str, str] = {one.model_id: str(one.chat_class_path) for one in BUILTIN_MANIFESTS}
AVAILABLE_SIMPLE_MODELS: dict[str, str] = {
    name: f"lmms_eval.models.simple.{name}.{cls}"
    for name, cls in {
        "llava_hf": "LlavaHf",
        "openai": "OpenAICompatible",
        "qwen2_5_vl": "Qwen2_5_VL",
        "qwen3_5": "Qwen3_5",
        "qwen3_vl": "Qwen3_VL",
        "vllm": "VLLM",
    }.items()
}
"""Names to the paths of classes, as programs of the family read them. An entry that such a program adds or changes is a
model of that name."""
_TABLES = (dict(AVAILABLE_SIMPLE_MODELS), dict(AVAILABLE_CHAT_TEMPLATE_MODELS))


def _added_to_tables() -> list[ModelManifest]:
    simple = {name: path for name, path in AVAILABLE_SIMPLE_MODELS.items() if _TABLES[0].get(name) != path}
    chat = {name: path for name, path in AVAILABLE_CHAT_TEMPLATE_MODELS.items() if _TABLES[1].get(name) != path}
    for name, path in {**simple, **chat}.items():
        if "." not in path:
            raise ModelError(f"model {name!r}: {path!r} is no path of a class; give package.module.Class")
    return [ModelManifest(name, simple.get(name), chat.get(name)) for name in {**simple, **chat}]


def _as_manifests(name: str, payload: Any) -> list[ModelManifest]:
    """Read an entry point's value: a manifest, a list of them, or a callable that gives either."""
    if callable(payload) and not isinstance(payload, ModelManifest):
        payload = payload()
    found = [payload] if isinstance(payload, ModelManifest) else list(payload)
    for item in found:
        if not isinstance(item, ModelManifest):
            raise ModelError(f"entry point {name!r} gave a {type(item).__name__}: give ModelManifest objects")
    return found


_DECORATED: dict[str, set[str]] = {}
"""Names that ``@register_model`` got while a plugin was imported, by plugin: a module runs once in a process."""


def _plugin_manifests(package: str) -> list[ModelManifest]:
    """The classes that a plugin names, in ``PACKAGE.models.AVAILABLE_MODELS`` or by ``@register_model``.

    A package without ``models`` brings tasks only, or is a module of decorated classes.
    """
    before = dict(MODEL_REGISTRY)
    supply_modules(package)
    table = _plugin_table(package)
    names = _DECORATED.setdefault(package, set())
    names |= {name for name, cls in MODEL_REGISTRY.items() if before.get(name) is not cls}
    names |= {name for name, cls in MODEL_REGISTRY.items() if _is_of_package(cls, package)}
    decorated = [
        _decorated_manifest(name, MODEL_REGISTRY[name])
        for name in sorted(names - set(table))
        if name in MODEL_REGISTRY and not _is_of_package(MODEL_REGISTRY[name], "lmms_eval")
    ]
    return decorated + [
        ModelManifest(name, simple_class_path=value if "." in value else f"{package}.models.{name}.{value}")
        for name, value in table.items()
    ]


def _plugin_table(package: str) -> Mapping[str, str]:
    try:
        module = importlib.import_module(f"{package}.models")
    except ModuleNotFoundError as error:
        if error.name == f"{package}.models":
            return {}
        raise _plugin_error(package, error) from error
    except Exception as error:  # a plugin's module may raise anything when it is imported
        raise _plugin_error(package, error) from error
    table: Mapping[str, str] = getattr(module, "AVAILABLE_MODELS", {})
    return table


def _path_of(cls: type[Any]) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _is_of_package(cls: type[Any], package: str) -> bool:
    return f"{cls.__module__}.".startswith(f"{package}.")


def _decorated_manifest(name: str, cls: type[Any]) -> ModelManifest:
    if getattr(cls, "is_simple", False):
        return ModelManifest(name, simple_class_path=_path_of(cls))
    return ModelManifest(name, chat_class_path=_path_of(cls))


def _plugin_error(package: str, error: Exception) -> ModelError:
    return ModelError(
        f"plugin package {package!r} (LMMS_EVAL_PLUGINS) cannot be imported: {told(error)}"
        f"{'' if absent_name(error) else '; install it or put its folder on PYTHONPATH'}"
    )


__all__ = ["BUILTIN_MANIFESTS", "ModelListing", "ModelManifest", "ModelRegistry", "ResolvedModel"]
