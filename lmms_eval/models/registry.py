"""Model names: built-in models, entry points of installed packages, and plugin packages of the older kind."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from lmms_eval.aliases import find_alias
from lmms_eval.api.model import Model
from lmms_eval.api.registry import MODEL_REGISTRY, ModelManifest
from lmms_eval.errors import ModelError, UnknownNameError
from lmms_eval.models.building import (
    BuildOptions,
    ResolvedModel,
    build_model,
    check_arguments,
    parse_model_args,
)
from lmms_eval.utils.files import read_table
from lmms_eval.utils.installed import error_text
from lmms_eval.utils.plugins import plugin_error, plugin_names, plugin_task_folders

_HOME = "lmms_eval.models."
_FOLDER = Path(__file__).resolve().parent
log = logging.getLogger(__name__)
MODEL_NAMES = ("model", "model_version", "pretrained")
OPENAI_KEY = "OPENAI_API_KEY"
KEY_VARIABLES = {
    "api.reka.ai": "REKA_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""The environment variable of the key, by the host of ``base_url``."""
VENDORS = (
    "openai.com", "openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com", "anthropic.com",
    "googleapis.com", "amazonaws.com", "x.ai", "mistral.ai", "deepseek.com", "cohere.com", "cohere.ai", "reka.ai",
    "moonshot.ai", "moonshot.cn", "aliyuncs.com",
)  # fmt: skip
"""Domains of model vendors. Their services reject unknown options."""
ENTRY_POINT_GROUP = "lmms_eval.models"
FOREIGN_NAMES = Path(__file__).with_name("foreign_names.tsv")
_HOW_TO_RUN = (
    "its class runs as a plugin: LMMS_EVAL_PLUGINS=PACKAGE, see docs/model_guide.md; docs/models/names.md lists the "
    "names that run without one"
)
_REGISTERED: dict[str, ModelManifest] = {}
"""The manifests that were given to ``register_manifest`` in this process."""
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
"""Class paths by name, for programs of the family. An entry that such a program adds or changes becomes a model of that
name."""
_DECORATED: dict[str, set[str]] = {}
"""Names registered with ``@register_model`` while a plugin was imported, by plugin, as it is imported only once."""


class _Finder:
    """A finder in ``sys.meta_path`` that resolves modules below ``lmms_eval.models`` from plugin packages."""

    def __init__(self) -> None:
        self.packages: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_HOME):
            return None
        spec = find_alias(fullname) or (PathFinder.find_spec(fullname, path) if _is_ours(fullname) else None)
        twins = self.twins(fullname)
        if spec is not None:
            if spec.loader is not None and spec.submodule_search_locations is None and any(twins):
                spec.loader = _Supplied(spec.loader, self.twins)
            return spec
        twin = next(twins, None)
        return None if twin is None else ModuleSpec(fullname, _SameModule(twin), is_package=_is_package(twin))

    def twins(self, fullname: str) -> Iterator[str]:
        """Yield the names of the plugins' modules that correspond to a name."""
        for package in self.packages:
            name = f"{package}.models.{fullname.removeprefix(_HOME)}"
            try:
                if name in sys.modules or importlib.util.find_spec(name) is not None:
                    yield name
            except Exception:  # noqa: BLE001 - a broken plugin has no modules here, and is reported when it is loaded
                continue


class _SameModule(Loader):
    """Loads a module that already has another name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - the interface
        module = importlib.import_module(self._name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has replaced it by that of the other name


class _Supplied(Loader):
    """Loads a module of this package, and lets plugins supply names that it lacks."""

    def __init__(self, own: Any, twins: Callable[[str], Iterator[str]]) -> None:
        self._own, self._twins = own, twins

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        _supply(module, self._twins)


def _supply(module: ModuleType, twins: Callable[[str], Iterator[str]]) -> None:
    before: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def attribute(name: str) -> Any:
        if before is not None and name in dir(module):  # a name of this package that is loaded when it is first used
            return before(name)
        if not name.startswith("__"):
            for twin in twins(module.__name__):
                found = vars(importlib.import_module(twin))
                if name in found:
                    return found[name]
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = attribute


def _is_ours(fullname: str) -> bool:
    place = _FOLDER.joinpath(*fullname.removeprefix(_HOME).split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


_FINDER = _Finder()


def supply_modules(package: str) -> None:
    """Let a plugin package supply modules and names that ``lmms_eval.models`` lacks. Later packages take precedence."""
    _FINDER.packages = [package, *(known for known in _FINDER.packages if known != package)]
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
        for name, module in list(sys.modules.items()):
            if name.startswith(_HOME) and not hasattr(module, "__path__"):
                _supply(module, _FINDER.twins)


class NamedService(Struct, frozen=True):
    """A model name that selects a service."""

    name: str
    backend: str
    model: str = ""
    """The default model; if empty, the arguments must name one."""
    base_url: str = ""
    """The address; if empty, that of the back end."""
    key_variable: str = ""
    """The environment variable of the key, if it is not that of the back end."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the name implies."""

    def arguments(self, given: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
        """Complete the arguments for the back end. Raises ``ModelError`` if the service has no key."""
        arguments = {name: value for name, value in given.items() if value is not None}
        if self.model and not any(arguments.get(name) for name in MODEL_NAMES):
            log.info("model %r: uses %s; choose another one with model_version=...", self.name, self.model)
            arguments["model"] = self.model
        if self.key_variable and not arguments.get("api_key"):
            key = environment.get(self.key_variable)
            if key:
                arguments["api_key"] = key
            elif not arguments.get("base_url"):  # another service's key must not be sent there
                raise ModelError(
                    f"no key for {self.base_url}: set {self.key_variable}, or give the model argument api_key"
                )
        if self.base_url and not arguments.get("base_url"):
            arguments["base_url"] = self.base_url
        return {**self.fixed, **arguments}


NAMED_SERVICES = {
    service.name: service
    for service in (
        NamedService("batch_gpt4", "openai", "gpt-4o", fixed={"batch": True}),
        NamedService("claude", "anthropic", "claude-sonnet-4-6"),
        NamedService("gemini", "gemini", "gemini-3.8-flash"),
        NamedService("gemini_api", "gemini", "gemini-3.8-flash"),
        NamedService("gpt4o_audio", "openai", "gpt-4o-audio-preview"),
        NamedService("gpt4v", "openai", "gpt-4o"),
        NamedService("openrouter", "openai", "", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        NamedService(
            "qwen_vl_api", "openai", "qwen-vl-max",
            "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY",
        ),
        NamedService("reka", "openai", "reka-flash", "https://api.reka.ai/v1", "REKA_API_KEY"),
        NamedService("xai", "openai", "grok-4", "https://api.x.ai/v1", "XAI_API_KEY"),
    )
}  # fmt: skip
"""The services by name."""


def is_vendor(address: str | None) -> bool:
    """Return whether an address is a vendor's own service."""
    host = (urlsplit(address or "").hostname or "").lower()
    return any(host == domain or host.endswith(f".{domain}") for domain in VENDORS)


def aliases_of(backend: str) -> tuple[str, ...]:
    """Return the names of services that are aliases of a back end."""
    return tuple(name for name, service in NAMED_SERVICES.items() if service.backend == backend != name)


def find_key(host: str | None, environment: Mapping[str, str]) -> tuple[str, str]:
    """Find the key for a host with the protocol of ``openai``. Returns it with the name of its variable.

    If the host's own variable is not set, or the host is not known, ``OPENAI_API_KEY`` is used.
    """
    variable = KEY_VARIABLES.get(host or "", OPENAI_KEY)
    return environment.get(variable) or environment.get(OPENAI_KEY, ""), variable


FAMILIES = (
    "aria", "audio_flamingo_3", "fuyu", "gemma3", "glm4v", "hf_text", "idefics2", "idefics3", "instructblip",
    "internvl_hf", "lfm2_5_vl", "llama4_scout", "llama_vision", "llava_hf", "llava_onevision", "phi4_multimodal",
    "plm", "qwen2_audio", "qwen2_5_omni", "qwen2_vl", "qwen2_5_vl", "qwen3_5", "qwen3_omni", "qwen3_vl",
    "smolvlm", "video_llava", "videollama3",
)  # fmt: skip
"""The rows of ``families.table``, which is imported when one of them is used."""
_BUILTIN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "anthropic": ("anthropic.Anthropic", aliases_of("anthropic")),
    "baseline": ("baseline.Baseline", ()),
    "dummy": ("baseline.Dummy", ("dummy_video_reader",)),
    "gemini": ("gemini.Gemini", aliases_of("gemini")),
    "hf": ("hf.model.HuggingFace", ("huggingface", "async_hf", "async_hf_model")),
    "openai": (
        "openai.model.OpenAI",
        (
            "async_openai",
            "openai_compatible",
            "openai_compatible_chat",
            "async_openai_compatible",
            "async_openai_compatible_chat",
            *aliases_of("openai"),
        ),
    ),
    "internvl": ("chat_form.checkpoints.InternVL", ("internvl2", "internvl3", "internvl3_5", "internvideo2_5")),
    "minicpm_v": ("chat_form.checkpoints.MiniCPM", ("minicpm_o",)),
    "litellm": ("litellm.LiteLLM", ("litellm_chat", "litellm_compatible")),
    "replay": ("replay.Replay", ("from_log",)),
    "sglang": ("sglang.SGLang", ("llava_sglang",)),
    "vllm": ("vllm.VLLM", ("vllm_generate",)),
    "whisper": ("families.whisper.Whisper", ("whisper_vllm",)),
    **{name: (f"families.table:{name}", ("llava",) if name == "llava_hf" else ()) for name in FAMILIES},
}
"""Class path below this package and aliases, by name."""
BUILTIN_MANIFESTS = tuple(
    ModelManifest(name, chat_class_path=f"lmms_eval.models.{path}", aliases=aliases)
    for name, (path, aliases) in _BUILTIN.items()
)

AVAILABLE_CHAT_TEMPLATE_MODELS: dict[str, str] = {one.model_id: str(one.chat_class_path) for one in BUILTIN_MANIFESTS}
_TABLES = (dict(AVAILABLE_SIMPLE_MODELS), dict(AVAILABLE_CHAT_TEMPLATE_MODELS))
_BUILTIN_PATHS = {manifest.model_id: manifest.chat_class_path for manifest in BUILTIN_MANIFESTS}


def foreign_names() -> dict[str, str]:
    """Return the names of the family's models that need their own code base, and what they need."""
    return {row["name"]: row["needs"] for row in read_table(FOREIGN_NAMES)}


class ModelRegistry:
    """All known model names. Entry points and plugin packages are read at the first look-up.

    Args:
        plugins: packages of the older kind, as a list or in the comma form of ``LMMS_EVAL_PLUGINS``. Each may have
            ``PACKAGE.models.AVAILABLE_MODELS = {module name: class name}`` and a sub-package ``PACKAGE.tasks``.
            Modules, files and folders are allowed too: they are imported for their classes with ``@register_model``.
    """

    def __init__(self, plugins: str | Sequence[str] = ()) -> None:
        names = plugins.split(",") if isinstance(plugins, str) else plugins
        self._plugins = plugin_names([name.strip() for name in names if name.strip()])
        self._manifests: dict[str, ModelManifest] = {}
        self._aliases: dict[str, str] = {}
        self._broken: list[str] = []
        self._loaded = False

    def resolve(self, name: str, force_simple: bool = False) -> ResolvedModel:
        """Look up a name or alias. The chat class is preferred; with ``force_simple``, the simple class.

        Raises:
            UnknownNameError: no model has this name. The message suggests the nearest ones.
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
        """Build the model of a name (see ``lmms_eval.models.building.build_model``). Also returns what was resolved.

        The name of a service completes the arguments, unless a plugin has replaced that name.
        """
        chosen = options or BuildOptions()
        resolved = self.resolve(name, chosen.force_simple)
        service = NAMED_SERVICES.get(name)
        if service is not None and resolved.class_path == _BUILTIN_PATHS[service.backend]:
            model_args = service.arguments(parse_model_args(model_args), os.environ)
        return build_model(resolved, model_args, chosen), resolved

    def check_arguments(self, resolved: ResolvedModel, name: str, model_args: str | Mapping[str, Any]) -> None:
        """Check the names of a model's arguments without building it. Raises ``ModelError``.

        Services are left out: their names complete the arguments.
        """
        if name not in NAMED_SERVICES:
            check_arguments(resolved, model_args)

    def get_model_class(self, name: str, force_simple: bool = False) -> type[Any]:
        """Import the class of a name. Raises the errors of ``resolve`` and ``ResolvedModel.load``."""
        return self.resolve(name, force_simple).load()

    def get_manifest(self, name: str) -> ModelManifest:
        """Return the manifest of a name or alias. Raises ``UnknownNameError``."""
        return self.resolve(name).manifest

    def list_canonical_model_ids(self) -> list[str]:
        """Return the sorted names, without aliases."""
        self._load()
        return sorted(self._manifests)

    def list_model_names(self) -> list[str]:
        """Return the sorted names and aliases."""
        self._load()
        return sorted({*self._manifests, *self._aliases})

    def register_manifest(self, manifest: ModelManifest, *, overwrite: bool = False) -> None:
        """Register a model in all registries of this process. Raises ``ValueError`` if another one has its name."""
        self._load()
        known = self._manifests.get(manifest.model_id)
        if known is not None and known != manifest and not overwrite:
            raise ValueError(
                f"model {manifest.model_id!r} is known as {known.chat_class_path or known.simple_class_path}"
            )
        _REGISTERED[manifest.model_id] = manifest
        self._add_all([manifest])

    def list_models(self) -> list[ModelManifest]:
        """List chat-only models first, then those with both interfaces, then simple ones, each sorted by name.

        The aliases are those that are in use, sorted by name.
        """
        self._load()
        order = {"chat": 0, "chat+simple": 1, "simple": 2}
        found = []
        for name, manifest in self._manifests.items():
            aliases = tuple(sorted(alias for alias, target in self._aliases.items() if target == name))
            found.append(replace(manifest, model_id=name, aliases=aliases))
        return sorted(found, key=lambda item: (order[item.kind], item.model_id))

    def plugin_task_folders(self) -> list[Path]:
        """Return the existing folders ``PACKAGE.tasks`` of the plugin packages, for the task catalogue."""
        return plugin_task_folders(self._plugins)

    def _warn_of_another_class(self, name: str, manifest: ModelManifest) -> None:
        """Warn about a class with a known name that code outside of the plugins registered, and that is not used."""
        cls = MODEL_REGISTRY.get(name)
        if cls is None or _path_of(cls) in (manifest.simple_class_path, manifest.chat_class_path):
            return
        if not _is_of_package(cls, "lmms_eval"):
            log.warning(
                "model %r is %s; the class %s, registered under the same name with @register_model, is not used: give "
                "its module in --plugins, or another name",
                name,
                manifest.chat_class_path or manifest.simple_class_path,
                _path_of(cls),
            )

    def _resolve_decorated(self, name: str) -> ResolvedModel:
        """Resolve a class that was registered in this process with ``@register_model``, without a manifest."""
        from lmms_eval.utils.other_names import model_elsewhere

        if name not in MODEL_REGISTRY:
            if need := foreign_names().get(name):
                raise UnknownNameError("model", name, (), f"it is the family's and needs {need}; {_HOW_TO_RUN}", ": ")
            if other := model_elsewhere(name):
                raise UnknownNameError("model", name, (), other.words(), "; ")
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
            except Exception as error:  # noqa: BLE001 - a broken package that may not be needed must not stop a run
                self._broken.append(f"{entry.name} = {entry.value} ({error_text(error)})")
                log.warning("entry point %s of group %s: %s", entry.name, ENTRY_POINT_GROUP, error_text(error))
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


def _added_to_tables() -> list[ModelManifest]:
    simple = {name: path for name, path in AVAILABLE_SIMPLE_MODELS.items() if _TABLES[0].get(name) != path}
    chat = {name: path for name, path in AVAILABLE_CHAT_TEMPLATE_MODELS.items() if _TABLES[1].get(name) != path}
    for name, path in {**simple, **chat}.items():
        if "." not in path:
            raise ModelError(f"model {name!r}: {path!r} is not the path of a class; give package.module.Class")
    return [ModelManifest(name, simple.get(name), chat.get(name)) for name in {**simple, **chat}]


def _as_manifests(name: str, payload: Any) -> list[ModelManifest]:
    """Read an entry point's value: a manifest, a list of manifests, or a callable that returns either."""
    if callable(payload) and not isinstance(payload, ModelManifest):
        payload = payload()
    found = [payload] if isinstance(payload, ModelManifest) else list(payload)
    for item in found:
        if not isinstance(item, ModelManifest):
            raise ModelError(f"entry point {name!r} gave a {type(item).__name__}: give ModelManifest objects")
    return found


def _plugin_manifests(package: str) -> list[ModelManifest]:
    """Return the classes of a plugin, from ``PACKAGE.models.AVAILABLE_MODELS`` or ``@register_model``.

    A package without ``models`` contains tasks only, or is a module of decorated classes.
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
        raise plugin_error(package, error) from error
    except Exception as error:  # a plugin's module may raise anything when it is imported
        raise plugin_error(package, error) from error
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


__all__ = ["BUILTIN_MANIFESTS", "ModelManifest", "ModelRegistry", "ResolvedModel"]
