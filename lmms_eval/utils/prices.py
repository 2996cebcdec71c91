"""Prices of models: a table that the user gives, or litellm's where that package is installed."""

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

from lmms_eval.errors import DataError, MissingOptionalDependencyError, UsageError
from lmms_eval.utils.files import read_plain_text
from lmms_eval.utils.yaml_bounds import load_bounded

if TYPE_CHECKING:
    from pydantic import ValidationError

LITELLM = "litellm"
"""In place of a file: the table of the package of this name."""
UNIT = "currency per million tokens"
MILLION = 1_000_000
MOST_NAMES = 20
"""Models that a message names at most."""
_WILD = "*?["


@dataclass(frozen=True, slots=True)
class Spending:
    """Tokens and media for which a model's provider is paid."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Among the output tokens."""
    pictures: int = 0
    audio_seconds: float = 0.0
    untold: int = 0
    """Answers whose tokens nobody told."""
    unmeasured: int = 0
    """Sounds of which nobody knows how long they are, and videos that went out as a whole."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.pictures + other.pictures,
            self.audio_seconds + other.audio_seconds,
            self.untold + other.untold,
            self.unmeasured + other.unmeasured,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Price:
    """Price of one model: of a million tokens, of one picture, of a second of sound; none is negative."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    input: float
    output: float
    cached_input: float | None = None
    """Of input that the provider has cached. No back end tells how much that was, so it lowers no estimate."""
    reasoning: float | None = None
    """Of output tokens that are reasoning; that of any other output where it is not given."""
    image: float = 0.0
    audio_second: float = 0.0
    batch: float = 1.0
    """Factor for requests that go through a batch interface."""

    def knows(self, spent: Spending) -> bool:
        """Tell whether all that has a price was measured, the tokens apart."""
        return not spent.unmeasured or not (self.image or self.audio_second)

    def cost(self, spent: Spending, is_batch: bool = False) -> float:
        """Compute the price of what was spent, in the table's currency; all input counts as not cached."""
        thought = min(spent.reasoning_tokens, spent.output_tokens) if self.reasoning is not None else 0
        tokens = spent.input_tokens * self.input + (spent.output_tokens - thought) * self.output
        tokens += thought * (self.reasoning or 0.0)
        whole = tokens / MILLION + spent.pictures * self.image + spent.audio_seconds * self.audio_second
        return whole * (self.batch if is_batch else 1.0)


@dataclass(frozen=True, slots=True)
class Tariff:
    """The price that holds for a model, with its source."""

    price: Price
    currency: str
    source: str
    """File or package, and the entry in it."""
    is_batch: bool = False

    def cost(self, spent: Spending) -> float:
        return self.price.cost(spent, self.is_batch)

    def shown(self, amount: float) -> str:
        """An amount with its currency: two decimals, more of what is small."""
        decimals = 2 if amount >= 1 or amount == 0 else 4 if amount >= 0.01 else 6
        return f"{amount:,.{decimals}f} {self.currency}"


@dataclass(frozen=True, slots=True)
class Tariffs:
    """The prices of a run."""

    model: Tariff
    judge: Tariff | None = None
    """``None`` without a judge, and for one whose price the table does not have."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by name of the model; a name may hold the wildcards ``*``, ``?`` and ``[...]``."""

    models: Mapping[str, Price]
    currency: str = "USD"
    source: str = ""
    """The file, or the package."""

    def find(self, names: Sequence[str], is_batch: bool = False) -> Tariff | None:
        """Find the price of a model by its names, the surest one first; ``None`` if the table has none.

        An entry of exactly that name goes before wildcards, of which the longest one holds. A name of the form
        ``PROVIDER/NAME`` that is not found so is looked up without its provider.
        """
        given = [name for name in names if name]
        for name in (*given, *(name.rpartition("/")[2] for name in given if "/" in name)):
            fitting = [key for key in self.models if key == name or (_is_wild(key) and fnmatchcase(name, key))]
            if fitting:
                entry = max(fitting, key=lambda key: (key == name, len(key)))
                return Tariff(self.models[entry], self.currency, f"{self.source}: {entry}", is_batch)
        return None

    def price_of(self, names: Sequence[str], is_batch: bool = False) -> Tariff:
        """``find`` for who cannot do without.

        Raises:
            UsageError: the table has no price for the model; says for which it has.
        """
        found = self.find(names, is_batch)
        if found is not None:
            return found
        wanted, known = " / ".join(dict.fromkeys(filter(None, names))), list(self.models)
        near = difflib.get_close_matches(wanted, known, n=MOST_NAMES, cutoff=0.5) if len(known) > MOST_NAMES else known
        listed = ", ".join(near[:MOST_NAMES]) or "none of a similar name"
        raise UsageError(f"--prices {self.source}: no price for the model {wanted!r}; the table has: {listed}")


def _is_wild(name: str) -> bool:
    return any(sign in name for sign in _WILD)


def read_prices(source: str) -> PriceTable:
    """Read a table from a YAML or JSON file, or take litellm's (``litellm``).

    Raises:
        DataError: the file cannot be read or holds something else; the message names the key.
        MissingOptionalDependencyError: litellm's is wanted, and the package is not installed.
    """
    return litellm_prices() if source == LITELLM else _read_file(source)


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
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise DataError(f"--prices: {path} is neither YAML nor JSON: {place}{problem}") from error
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
        _check(price, f"--prices: {path}: models.{name}")
    return PriceTable(found.models, found.currency, path)


def _problem(error: ValidationError) -> str:
    """The first fault, unknown keys before absent ones, each with the valid key that is nearest to it."""
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != "unexpected_keyword_argument")
    place, key = ".".join(map(str, first["loc"])), str(first["loc"][-1])
    if first["type"] != "unexpected_keyword_argument":
        return f"{place}: {first['msg']}"
    known = [one.name for one in fields(Price if len(first["loc"]) > 1 else _File)]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
    return f"{place}: unknown key {key!r}: did you mean {near!r}? Valid keys: {', '.join(known)}"


def _check(price: Price, place: str) -> None:
    for one in fields(price):
        value = getattr(price, one.name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise DataError(f"{place}.{one.name}: a price is a number from 0 on ({UNIT}); got {value}")


_LITELLM_NAMES = {
    "input": ("input_cost_per_token", MILLION),
    "output": ("output_cost_per_token", MILLION),
    "cached_input": ("cache_read_input_token_cost", MILLION),
    "reasoning": ("output_cost_per_reasoning_token", MILLION),
    "image": ("input_cost_per_image", 1),
    "audio_second": ("input_cost_per_audio_per_second", 1),
}
"""Key of ours -> key of litellm's, and what makes ours of its number."""


def litellm_prices() -> PriceTable:
    """Take the table of the installed package; entries without a price for input and output are left out.

    Raises:
        MissingOptionalDependencyError: the package is not installed.
    """
    # The package would fetch a newer list from the network when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        table: Mapping[str, Any] = importlib.import_module(LITELLM).model_cost
    except ImportError as error:
        raise MissingOptionalDependencyError(
            "--prices litellm: the package is not installed: pip install litellm, or give a file of prices"
        ) from error
    models = {name: made for name, entry in table.items() if (made := _of_litellm(entry)) is not None}
    return PriceTable(models, source="litellm.model_cost")


def _of_litellm(entry: Mapping[str, Any]) -> Price | None:
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
