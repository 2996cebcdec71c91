"""Recipes: what the authors of a model, or a tool that they name, set for each benchmark.

A recipe is a YAML file, ``FAMILY@SOURCE.yaml``, without code. It may build on another (``base``), and has variants,
which are laid over it. What it does not state stays the task's own.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import yaml
from msgspec import Struct

from lmms_eval.errors import ConfigError, ItemError, TaskError, UnknownNameError
from lmms_eval.recipes.layouts import RESERVED, filled, mistakes
from lmms_eval.recipes.layouts import Layout as Layout
from lmms_eval.tasks.yaml.settings import GENERATION_OPTIONS, check_generation
from lmms_eval.utils.yaml_bounds import load_bounded, yaml_mistake

FOLDER = Path(__file__).parent
_PRODUCT = re.compile(r"\d+( ?\* ?\d+)+")
_Record = TypeVar("_Record", bound=Struct)


class MediaLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the pictures and videos that the model gets. ``None``: not stated."""

    min_pixels: int | None = None
    max_pixels: int | None = None
    """Pixels of a picture, or of one frame of a video."""
    total_pixels: int | None = None
    """Pixels of all frames of a video."""
    fps: float | None = None
    min_frames: int | None = None
    max_frames: int | None = None
    frames: int | None = None
    """Frames of each video, whatever its length."""
    frame_rule: Literal["qwen-vl-utils", "inner", "by-rate", "middle"] | None = None
    """How frames are chosen and scaled (``media.frame_rules``)."""
    tiles: int | None = None
    """Most tiles of a picture."""
    tiles_later: int | None = None
    """The same for all pictures of a document but the first."""
    tiles_in_all: int | None = None
    """Most tiles of all pictures of a document."""
    double_first: bool | None = None
    """The first picture is doubled in width and height."""
    stitched: bool | None = None
    """Several pictures are put together into one."""
    enlarged_at_random: bool | None = None
    """Small pictures are enlarged to a random size, which nobody can repeat document by document."""

    def tiles_of(self, place: int, pictures: int) -> int | None:
        """Return the most tiles of one of a document's pictures, by its place from 0; ``None`` if it is not stated."""
        most = self.tiles_later if place and self.tiles_later is not None else self.tiles
        if most is None or self.tiles_in_all is None:
            return most
        return max(1, min(most, self.tiles_in_all // max(1, pictures)))


class JudgeChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The judge of a benchmark: its model (``none``: the source asks none), and what happens if it gives no answer."""

    model: str
    tries: int | None = None
    on_failure: Literal["random_option", "wrong", "error"] | None = None
    temperature: float | None = None


class Thinking(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The switch of the chat template, the rule that removes thoughts from answers, and their limit in tokens."""

    enabled: bool | None = None
    removal: Literal["after_last_mark", "pairs", "kimi", "none"] | None = None
    budget: int | None = None


class TaskRecipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Statements of a recipe about one benchmark. ``None`` and empty: not stated."""

    gen_kwargs: dict[str, Any] = {}
    repeats: int | None = None
    seed: int | None = None
    system_prompt: str | None = None
    """An empty text: the source sends none."""
    layout: Layout | None = None
    media: MediaLimits = MediaLimits()
    thinking: Thinking = Thinking()
    extract: str | None = None
    """Name of a rule that reads the answer."""
    judge: JudgeChoice | None = None
    metric: str | None = None
    data: str | None = None
    """The file of questions that the source reads, if it is not the task's own."""
    engine: dict[str, Any] = {}
    """Arguments of the source's engine. Recorded, not applied."""
    not_reproducible: tuple[str, ...] = ()
    """Steps of the source that no run can repeat."""
    stated: dict[str, str] = {}
    """The place of each value in the source, by key (``gen_kwargs.top_p``): ``FILE:LINE``."""

    @property
    def values(self) -> dict[str, Any]:
        """The stated values by key: ``layout``, ``gen_kwargs.top_p``, ``media.max_pixels``, ..."""
        found: dict[str, Any] = {}
        for key in _SINGLE:
            if (value := getattr(self, key)) not in (None, ()):
                found[key] = value
        for key in _NESTED:
            value = getattr(self, key) or {}
            options = value if isinstance(value, Mapping) else msgspec.structs.asdict(value)
            found.update({f"{key}.{name}": option for name, option in options.items() if option is not None})
        return found

    @property
    def not_stated(self) -> tuple[str, ...]:
        """The keys that matter for a score and that the recipe does not state."""
        return tuple(key for key in _EXPECTED if not any(f"{name}.".startswith(f"{key}.") for name in self.values))


class RecipeSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The place where the authors' settings were read."""

    repository: str
    path: str = ""
    revision: str = ""
    date: str = ""


class Recipe(Struct, frozen=True, kw_only=True):
    """A recipe in one variant."""

    name: str
    models: tuple[str, ...]
    """Shell patterns of models' names."""
    about: str
    source: RecipeSource
    contradictions: tuple[str, ...]
    variant: str
    variants: Mapping[str, str]
    """Descriptions of the variants by name; the first variant is the recipe as it is."""
    tasks: Mapping[str, TaskRecipe]
    """By name or pattern of names."""
    digest: str
    """SHA-256 of the file, with those of the files that it builds on."""

    def task(self, name: str) -> TaskRecipe | None:
        """Return what the recipe states for a task; ``None`` if it does not cover it."""
        if name in self.tasks:
            return self.tasks[name]
        return next((task for pattern, task in self.tasks.items() if fnmatchcase(name, pattern)), None)

    def fits(self, model: str) -> bool:
        """Return whether a model's name, or the end of its path, matches one of the recipe's patterns."""
        return fits(self.models, model)


_NESTED = ("gen_kwargs", "media", "thinking", "judge", "engine")
_SINGLE = ("repeats", "seed", "system_prompt", "layout", "extract", "metric", "data", "not_reproducible")
_EXPECTED = (
    "gen_kwargs.temperature", "gen_kwargs.top_p", "gen_kwargs.max_new_tokens", "seed", "repeats", "system_prompt",
    "layout", "media", "thinking.removal", "extract", "judge", "metric",
)  # fmt: skip
_TOP = frozenset({
    "base", "models", "about", "source", "contradictions", "texts", "layouts", "defaults", "tasks", "variant",
    "variants",
})  # fmt: skip
_OF_VARIANT = frozenset({"about", "texts", "layouts", "defaults", "tasks"})
_BLOCK = frozenset(TaskRecipe.__struct_fields__)


def names() -> tuple[str, ...]:
    """Return the names of the shipped recipes, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def fitting(model: str) -> tuple[str, ...]:
    """Return the shipped recipes that fit a model's name or path."""
    return tuple(name for name in names() if fits(_patterns(FOLDER / f"{name}.yaml"), model))


def fits(patterns: Sequence[str], model: str) -> bool:
    """Return whether a model's name, or the end of its path, matches one of the shell patterns of names."""
    *folders, short = repository_of(model).lower().split("/")
    tail = "/".join([*folders[-1:], short])
    lowered = [pattern.lower() for pattern in patterns]
    return any(fnmatchcase(tail, pattern) or fnmatchcase(short, pattern.split("/")[-1]) for pattern in lowered)


def repository_of(model: str) -> str:
    """Return a model's name or path; of a snapshot in the hub's cache (``models--ORG--NAME/snapshots/X``) its name."""
    parts = model.rstrip("/").split("/")
    if len(parts) >= _SNAPSHOT_PARTS and parts[-2] == "snapshots" and parts[-3].startswith("models--"):
        return parts[-3].removeprefix("models--").replace("--", "/", 1)
    return "/".join(parts)


_SNAPSHOT_PARTS = 3
_MODELS = re.compile(r"^models:.*\n(?:[ \-].*\n)*", re.MULTILINE)


def _patterns(file: Path) -> tuple[str, ...]:
    """Return the key ``models`` of a shipped recipe without reading the rest: every run of a named model asks."""
    found = _MODELS.search(file.read_text("utf-8"))
    return () if found is None else tuple(load_bounded(found[0])["models"])


def read(name_or_path: str, variant: str = "") -> Recipe:
    """Read a recipe.

    Args:
        name_or_path: the name of a shipped recipe or the path of a YAML file, which may end with ``:VARIANT``.
        variant: the name of a variant, or several joined by ``+``. Empty: the recipe without any.

    Raises:
        UnknownNameError: there is no recipe or variant of this name.
        ConfigError: the file cannot be read, or says something wrong; the message names file and key.
    """
    name, file, own = _located(str(name_or_path))
    variant = variant or own
    layers, digest = _layers(file, ())
    top = layers[-1]
    states: dict[str, Mapping[str, Any]] = {}
    for layer in layers:
        states.update(layer.get("variants") or {})
    states = {key: value for key, value in states.items() if value is not None}
    first = next((str(layer["variant"]) for layer in reversed(layers) if layer.get("variant")), "default")
    chosen = [part for part in variant.split("+") if part and part != first]
    for part in chosen:
        if part not in states:
            raise UnknownNameError("variant", part, states, f"({file} has {', '.join([first, *states])})")
    source = _record(top.get("source") or {"repository": ""}, RecipeSource, f"{file}: source")
    stack = _Stack(file)
    for layer in layers:
        stack.add(layer, str((layer.get("source") or {}).get("path") or file.name))
    for part in chosen:
        stack.add(states[part], f"{source.path or file.name}, variant {part}")
    return Recipe(
        name=name,
        models=tuple(top.get("models") or ()),
        about=str(top.get("about") or ""),
        source=source,
        contradictions=tuple(top.get("contradictions") or ()),
        variant="+".join(chosen) or first,
        variants={first: "", **{key: str(value.get("about") or "") for key, value in states.items()}},
        tasks=stack.tasks(),
        digest=digest,
    )


def _located(given: str) -> tuple[str, Path, str]:
    """Return name, file and variant of what a user wrote."""
    before, _, after = given.rpartition(":")
    for text, variant in ((given, ""), (before, after)):
        if text in names():
            return text, FOLDER / f"{text}.yaml", variant
        if text.endswith((".yaml", ".yml")) and Path(text).is_file():
            return Path(text).stem, Path(text), variant
    if given.endswith((".yaml", ".yml")):
        raise ConfigError(f"recipe {given}: there is no such file")
    raise UnknownNameError(
        "recipe", before if before in names() else given, names(), "(lmms-eval recipes list shows them)"
    )


def _layers(file: Path, above: tuple[Path, ...]) -> tuple[list[Mapping[str, Any]], str]:
    """Return the contents of the files that a recipe builds on, the deepest first, and its own; and the digest."""
    if file in above:
        raise ConfigError(f"{file}: base: the recipe builds on itself")
    content, raw = _content(file)
    digest = hashlib.sha256(raw).hexdigest()
    base = content.get("base")
    if base is None:
        return [content], digest
    if str(base) != Path(str(base)).name:
        raise ConfigError(f"{file}: base: give the name of a recipe, or of a file in the same folder; got {base!r:.80}")
    lower = FOLDER / f"{base}.yaml" if base in names() else file.parent / str(base)
    if not lower.is_file():
        raise ConfigError(f"{file}: base: there is no recipe {base!r}, and no file {lower}")
    layers, of_base = _layers(lower, (*above, file))
    return [*layers, content], hashlib.sha256(f"{digest}{of_base}".encode()).hexdigest()


@functools.lru_cache(maxsize=256)
def _parsed(file: Path, raw: bytes) -> Any:
    try:
        return load_bounded(raw.decode("utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: {yaml_mistake(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is no UTF-8 text: {error}") from error


def _content(file: Path) -> tuple[Mapping[str, Any], bytes]:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"recipe {file}: cannot be read: {error.strerror}") from error
    content = _mapping(_parsed(file, raw), str(file))
    _known(content, _TOP, str(file))
    for key in ("models", "contradictions"):
        if not _is_texts(content.get(key) or []):
            raise ConfigError(f"{file}: {key}: must be a list of texts")
    _mapping(content.get("source") or {}, f"{file}: source")
    for name, variant in _mapping(content.get("variants") or {}, f"{file}: variants").items():
        where = f"{file}: variants.{name}"
        _known(_mapping({} if variant is None else variant, where), _OF_VARIANT, where)
    return content, raw


class _Stack:
    """Layers of a recipe, laid over each other."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._texts: dict[str, str] = {}
        self._layouts: dict[str, dict[str, Any]] = {}
        self._defaults: dict[str, Any] = {}
        self._tasks: dict[str, dict[str, Any]] = {}
        self._layer = 0
        self._changed: dict[str, tuple[int, str]] = {}
        """The layer that last set a text, layout or task's layout, by key, and where that is stated."""

    def add(self, layer: Mapping[str, Any], where: str) -> None:
        """Lay a file or variant, which is stated at ``where``, over those before it."""
        self._layer += 1
        for name, text in self._items(layer, "texts"):
            if not isinstance(text, str):
                raise ConfigError(f"{self._file}: texts.{name}: must be a text, not {text!r:.80}")
            if name in RESERVED:
                raise ConfigError(f"{self._file}: texts.{name}: the name of a field; templates could not show both")
            self._texts[name] = text
            self._changed[f"texts.{name}"] = (self._layer, where)
        for name, layout in self._items(layer, "layouts"):
            self._layouts[name] = _laid(self._layouts.get(name), _layout(layout, f"{self._file}: layouts.{name}"))
            self._changed[f"layouts.{name}"] = (self._layer, where)
        if "defaults" in layer:
            self._defaults = _merged(self._defaults, self._block(layer["defaults"], "defaults"))
        for keys, block in self._items(layer, "tasks"):
            for key in re.split(r"[\s,]+", keys):
                if block is None:
                    self._tasks.pop(key, None)
                    continue
                self._tasks[key] = _merged(self._tasks.get(key, {}), self._block(block, f"tasks.{key}"))
                if "layout" in block:
                    self._changed[f"tasks.{key}"] = (self._layer, "")

    def tasks(self) -> dict[str, TaskRecipe]:
        """Return what is stated for each task: its own keys over the defaults."""
        return {name: self._task(name, block) for name, block in self._tasks.items()}

    def _items(self, layer: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
        yield from _mapping(layer.get(key) or {}, f"{self._file}: {key}").items()

    def _block(self, block: Any, key: str) -> dict[str, Any]:
        where = f"{self._file}: {key}"
        _known(_mapping(block, where), _BLOCK, where)
        own = {name: value for name, value in block.items() if name != "stated"}
        for name in _NESTED:
            if own.get(name) is not None:
                own[name] = _products(_mapping(own[name], f"{where}.{name}"))
        if own.get("layout") is not None:
            own["layout"] = _layout(own["layout"], f"{where}.layout")
        return {**own, "stated": _stated(own, block.get("stated"), f"{where}.stated")}

    def _task(self, name: str, block: Mapping[str, Any]) -> TaskRecipe:
        where = f"{self._file}: tasks.{name}"
        whole = _merged({key: value for key, value in self._defaults.items() if key != "layout"}, block)
        given: dict[str, Any] = {key: value for key, value in whole.items() if value is not None}
        _check_options(given.get("gen_kwargs") or {}, f"{where}.gen_kwargs")
        for key, kind in (("media", MediaLimits), ("thinking", Thinking), ("judge", JudgeChoice)):
            if key in given:
                given[key] = _record(given[key], kind, f"{where}.{key}")
        if given.get("system_prompt"):
            given["system_prompt"] = self._filled(given["system_prompt"], f"{where}.system_prompt")
        if "layout" in given or "parts" in self._resolved(self._defaults.get("layout") or {}, where, ()):
            layout = given.get("layout") or {}
            given["layout"] = self._made(layout, f"{where}.layout")
            keys = (f"tasks.{name}", *self._likes(layout), *(f"texts.{text}" for text in given["layout"].texts))
            changed = [self._changed[key] for key in keys if key in self._changed]
            last = max(changed, key=lambda found: found[0], default=(0, ""))
            if last[1]:
                given["stated"] = {**given["stated"], "layout": last[1]}
        return _record(given, TaskRecipe, where)

    def _filled(self, text: Any, where: str) -> str:
        try:
            return filled(str(text), self._texts)
        except ItemError as error:
            raise ConfigError(f"{where}: {error}") from error

    def _made(self, layout: Mapping[str, Any], where: str) -> Layout:
        over = {**self._resolved(self._defaults.get("layout") or {}, where, ()), **self._resolved(layout, where, ())}
        templates = " ".join(str(value) for value in over.values())
        used = {name: text for name, text in self._texts.items() if name in templates}
        made: Layout = _record({**over, "texts": used}, Layout, where)
        for key, mistake in mistakes(made):
            raise ConfigError(f"{where}.{key}: {mistake}")
        return made

    def _likes(self, layout: Mapping[str, Any]) -> Iterator[str]:
        """Yield the keys of the layouts that a layout is like."""
        like = layout.get("like")
        while like is not None:
            yield f"layouts.{like}"
            like = self._layouts[like].get("like")

    def _resolved(self, layout: Mapping[str, Any], where: str, above: tuple[str, ...]) -> dict[str, Any]:
        """Return a layout with the keys of the one that it is like."""
        like = layout.get("like")
        own = {key: value for key, value in layout.items() if key != "like"}
        if like is None:
            return own
        if like in above:
            raise ConfigError(f"{where}: layout {like!r} is like itself")
        if like not in self._layouts:
            raise ConfigError(f"{where}: unknown layout {like!r}; there are {', '.join(self._layouts) or 'none'}")
        return {**self._resolved(self._layouts[like], where, (*above, like)), **own}


def _layout(value: Any, where: str) -> dict[str, Any]:
    """Return a layout as a mapping; a text is the name of the one that it is like."""
    if isinstance(value, str):
        return {"like": value}
    made = dict(_mapping(value, where))
    _known(made, frozenset({*Layout.__struct_fields__, "like"}) - {"texts"}, where)
    if isinstance(made.get("parts"), str):
        made["parts"] = [made["parts"]]
    if made.get("parts") == []:
        raise ConfigError(f"{where}.parts: must hold at least one template")
    if not isinstance(made.get("like", ""), str):
        raise ConfigError(f"{where}.like: must be the name of a layout, not {made['like']!r:.80}")
    return made


def _laid(lower: Mapping[str, Any] | None, upper: dict[str, Any]) -> dict[str, Any]:
    """Return a layout over another of the same place: one with texts of its own replaces it, others change keys."""
    return upper if "like" in upper or "parts" in upper else {**(lower or {}), **upper}


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block over another. A null takes a value of the block below away."""
    merged = dict(lower)
    for key, value in upper.items():
        if key == "stated":
            continue
        if value is None:
            merged.pop(key, None)
        elif key in _NESTED:
            options = {**(merged.get(key) or {}), **value}
            merged[key] = {name: option for name, option in options.items() if option is not None}
        elif key == "layout":
            merged[key] = _laid(merged.get(key), value)
        else:
            merged[key] = value
    taken = set(_keys(upper))
    kept = {key: where for key, where in (lower.get("stated") or {}).items() if key not in taken}
    merged["stated"] = {**kept, **(upper.get("stated") or {})}
    return merged


def _keys(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of the values that a block sets: ``seed``, ``gen_kwargs.top_p``, ..."""
    for key, value in block.items():
        if key == "stated":
            continue
        if key in _NESTED and value is not None:
            yield from (f"{key}.{name}" for name in value)
        else:
            yield key


def _stated(block: Mapping[str, Any], given: Any, where: str) -> dict[str, str]:
    """Return the source of each value of a block: its own, that of its key, or that of all others (``*``)."""
    stated = {"*": given} if isinstance(given, str) else _mapping(given or {}, where)
    keys = list(_keys(block))
    for key, text in stated.items():
        if not isinstance(text, str):
            raise ConfigError(f"{where}.{key}: must be a text (FILE:LINE), not {text!r:.80}")
        if key != "*" and not any(f"{name}.".startswith(f"{key}.") for name in keys):
            raise ConfigError(f"{where}.{key}: the source of a value that is not set here")
    found = {key: stated.get(key) or stated.get(key.split(".")[0]) or stated.get("*") for key in keys}
    return {key: text for key, text in found.items() if text}


def _check_options(given: Mapping[str, Any], where: str) -> None:
    try:
        check_generation(given, where)
    except TaskError as error:
        raise ConfigError(str(error)) from error
    for name in given:
        if name not in GENERATION_OPTIONS:
            raise ConfigError(f"{where}: unknown generation option {name!r}")


def _products(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with products (``1280*28*28``) worked out."""
    return {
        key: math.prod(map(int, value.split("*"))) if isinstance(value, str) and _PRODUCT.fullmatch(value) else value
        for key, value in values.items()
    }


def _record(given: Any, kind: type[_Record], where: str) -> _Record:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: must be a mapping with names, not {value!r:.80}")
    return value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _known(given: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; there are {', '.join(sorted(known))}")
