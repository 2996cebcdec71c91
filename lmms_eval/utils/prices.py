"""Prices of models: from a file of the user, or from litellm if that package is installed."""

from __future__ import annotations

import difflib
import importlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml
from msgspec import Struct

from lmms_eval.errors import DataError, MissingOptionalDependencyError, UsageError
from lmms_eval.utils.files import read_plain_text
from lmms_eval.utils.yaml_bounds import load_bounded, yaml_mistake

if TYPE_CHECKING:
    from pydantic import ValidationError

LITELLM = "litellm"
"""Value of ``--prices`` that means the table of this package."""
UNIT = "currency per million tokens"
MILLION = 1_000_000
MOST_NAMES = 20
"""Most models that a message names."""
_WILD = frozenset("*?[")
_LITELLM_NAMES = {
    "input": ("input_cost_per_token", MILLION),
    "output": ("output_cost_per_token", MILLION),
    "cached_input": ("cache_read_input_token_cost", MILLION),
    "reasoning": ("output_cost_per_reasoning_token", MILLION),
    "image": ("input_cost_per_image", 1),
    "audio_second": ("input_cost_per_audio_per_second", 1),
}
"""litellm's key for each key of ours, and the factor that converts its number."""


class Spending(Struct, frozen=True):
    """Tokens and media that a model's provider charges for."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the output tokens."""
    pictures: int = 0
    audio_seconds: float = 0.0
    untold: int = 0
    """Answers without a token count."""
    unmeasured: int = 0
    """Sounds of unknown length, and videos that were sent as a whole."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of one model: per million tokens, per picture, per second of sound; never negative."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    input: float
    output: float
    cached_input: float | None = None
    """Price of cached input. Back ends do not report its amount, so it does not lower estimates."""
    reasoning: float | None = None
    """Price of reasoning tokens; by default that of other output."""
    image: float = 0.0
    audio_second: float = 0.0
    batch: float = 1.0
    """Factor for requests through a batch interface."""

    def knows(self, spent: Spending) -> bool:
        """Return whether everything that has a price, except tokens, was measured."""
        return not spent.unmeasured or not (self.image or self.audio_second)

    def cost(self, spent: Spending, is_batch: bool = False) -> float:
        """Compute the cost in the table's currency. All input counts as not cached."""
        thought = min(spent.reasoning_tokens, spent.output_tokens) if self.reasoning is not None else 0
        tokens = spent.input_tokens * self.input + (spent.output_tokens - thought) * self.output
        tokens += thought * (self.reasoning or 0.0)
        whole = tokens / MILLION + spent.pictures * self.image + spent.audio_seconds * self.audio_second
        return whole * (self.batch if is_batch else 1.0)


class Tariff(Struct, frozen=True):
    """The prices of a model, with their source."""

    price: Price
    currency: str
    source: str
    """File or package, and the entry in it, for messages."""
    is_batch: bool = False

    def cost(self, spent: Spending) -> float:
        return self.price.cost(spent, self.is_batch)

    def shown(self, amount: float) -> str:
        """Return an amount with its currency: two decimals, more for small amounts."""
        decimals = 2 if amount >= 1 or amount == 0 else 4 if amount >= 0.01 else 6
        return f"{amount:,.{decimals}f} {self.currency}"


class Tariffs(Struct, frozen=True):
    """The prices of a run."""

    model: Tariff
    judge: Tariff | None = None
    """``None`` without a judge, and if the table has no price for it."""


class PriceTable(Struct, frozen=True):
    """Prices by model name. Names may have the wildcards ``*``, ``?`` and ``[...]``."""

    models: Mapping[str, Price]
    currency: str = "USD"
    source: str = ""
    """The file, or the package."""

    def find(self, names: Sequence[str], is_batch: bool = False) -> Tariff | None:
        """Find the prices of a model by its names, the most reliable one first; ``None`` if the table has no entry.

        An exact name takes precedence over wildcards, and a longer wildcard over a shorter one. If ``PROVIDER/NAME`` is
        not found, ``NAME`` is looked up.
        """
        given = [name for name in names if name]
        for name in (*given, *(name.rpartition("/")[2] for name in given if "/" in name)):
            fitting = [key for key in self.models if key == name or (_WILD & {*key} and fnmatchcase(name, key))]
            if fitting:
                entry = max(fitting, key=lambda key: (key == name, len(key)))
                return Tariff(self.models[entry], self.currency, f"{self.source}: {entry}", is_batch)
        return None

    def price_of(self, names: Sequence[str], is_batch: bool = False) -> Tariff:
        """Find the prices of a model, as ``find`` does.

        Raises ``UsageError`` if the table has no price for the model; the message lists similar names.
        """
        found = self.find(names, is_batch)
        if found is not None:
            return found
        wanted, known = " / ".join(dict.fromkeys(filter(None, names))), list(self.models)
        near = difflib.get_close_matches(wanted, known, n=MOST_NAMES, cutoff=0.5) if len(known) > MOST_NAMES else known
        listed = ", ".join(near[:MOST_NAMES]) or "no similar name"
        raise UsageError(f"--prices {self.source}: no price for the model {wanted!r}; the table has: {listed}")


def read_prices(source: str) -> PriceTable:
    """Read a table of prices from a YAML or JSON file, or from the package ``litellm``.

    Raises:
        DataError: the file cannot be read or has the wrong form; the message names the key.
        MissingOptionalDependencyError: ``litellm`` is not installed.
    """
    if source != LITELLM:
        return _read_file(source)
    # Without this, the package downloads a newer table when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        table: Mapping[str, Any] = importlib.import_module(LITELLM).model_cost
    except ImportError as error:
        raise MissingOptionalDependencyError(
            "--prices litellm: the package is not installed: pip install litellm, or give a file of prices"
        ) from error
    models = {name: made for name, entry in table.items() if (made := _of_litellm(entry)) is not None}
    return PriceTable(models, source="litellm.model_cost")


@dataclass(frozen=True, slots=True)
class _File:
    """Content of a file of prices."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    models: dict[str, Price]
    currency: str = "USD"


def _read_file(path: str) -> PriceTable:
    from pydantic import TypeAdapter, ValidationError

    try:
        content = load_bounded(read_plain_text(Path(path).expanduser()))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"--prices: cannot read {path}: {error}") from error
    except yaml.YAMLError as error:
        raise DataError(f"--prices: {path} is neither YAML nor JSON: {yaml_mistake(error)}") from error
    if not isinstance(content, Mapping) or not isinstance(content.get("models"), Mapping) or not content["models"]:
        raise DataError(
            f"--prices: {path} needs a mapping `models:` of names to prices ({UNIT}), such as "
            "{currency: USD, models: {my-model: {input: 2.5, output: 10}}}"
        )
    named = {str(name): price for name, price in content["models"].items()}
    try:
        found = TypeAdapter(_File).validate_python({**content, "models": named})
    except ValidationError as error:
        raise DataError(f"--prices: {path}: {_problem(error)}") from error
    for name, price in found.models.items():
        for key in (one.name for one in fields(price)):
            value = getattr(price, key)
            if value is not None and not (math.isfinite(value) and value >= 0):
                place = f"--prices: {path}: models.{name}.{key}"
                raise DataError(f"{place}: a price is a number from 0 on ({UNIT}); got {value}")
    return PriceTable(found.models, found.currency, path)


def _problem(error: ValidationError) -> str:
    """Describe the first mistake. Unknown keys come before missing ones, and are shown with the most similar key."""
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != "unexpected_keyword_argument")
    place, key = ".".join(map(str, first["loc"])), str(first["loc"][-1])
    if first["type"] != "unexpected_keyword_argument":
        return f"{place}: {first['msg']}"
    known = [one.name for one in fields(Price if len(first["loc"]) > 1 else _File)]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
    return f"{place}: unknown key {key!r}: did you mean {near!r}? Valid keys: {', '.join(known)}"


def _of_litellm(entry: Mapping[str, Any]) -> Price | None:
    """Read an entry of litellm's table; ``None`` if it lacks the prices of input and output."""
    given: dict[str, float] = {}
    for name, (key, factor) in _LITELLM_NAMES.items():
        value = entry.get(key)
        if isinstance(value, int | float) and math.isfinite(value) and value >= 0:
            given[name] = float(value) * factor
    if "input" not in given or "output" not in given:
        return None
    batched = entry.get("input_cost_per_token_batches")
    if isinstance(batched, int | float) and given["input"] > 0 and batched >= 0:
        given["batch"] = float(batched) * MILLION / given["input"]
    return Price(**given)
