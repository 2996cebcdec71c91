"""The interface of a metric: a state for each item, and a value for all states.

A state is a JSON value with everything that the metric needs of one item (a score, counts, matched detections, an
embedding). The journal of a run keeps it, so that nothing is computed twice. Intervals resample the states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.errors import ConfigError
from lmms_eval.tasks.general_bench.items import Form, Item

State = Any
"""A JSON value (numbers may be NaN-free floats only; long vectors are lists of floats)."""


class Context(Struct, frozen=True):
    """The inputs of a measure in addition to the item. They are the same for all items of a run."""

    weights: Path | None = None
    """Folder with the weights of networks: a sub-folder or file for each, with the name that the measure documents."""
    download: bool = False
    """Whether missing weights may be downloaded from the hub."""
    device: str = "cpu"
    ratings: Path | None = None
    """File with people's ratings."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **options: Any) -> Context:
        """Return a copy with further options."""
        return replace(self, options={**self.options, **options})

    def choice(self, name: str, default: str, other: str) -> str:
        """Return an option that has one of two values. Raises ``ConfigError`` if it has another value."""
        value = self.options.get(name, default)
        if value not in (default, other):
            raise ConfigError(f"{name}: {value!r} is neither {default!r} nor {other!r}")
        return str(value)


class Measure(Struct, frozen=True):
    """The computation of a metric for a kind of task."""

    name: str
    """Unique name: the metric's key, followed by ``/variant`` if it has several measures."""
    form: Form
    """Form of the prediction and of the reference."""
    state: Callable[[Any, Item, Context], State]
    """Return the item's state from the prediction (as in ``prediction.json``), the item and the context.

    Raises ``UnreadableAnswer`` for a prediction that is not in the form (a missing predicted file too),
    ``NotEvaluated`` if weights, a program, a judge or ratings are missing (the whole task is not evaluated), any
    other ``LmmsEvalError`` for a damaged or missing reference or input (the item fails).
    """
    value: Callable[[Sequence[State]], float]
    """Return the task's number from at least one state, in the unit of the result table (``metrics.tsv``)."""
    unanswered: Callable[[Item, Context], State] | None = None
    """Return the state of an item without a usable answer, if the metric has one (all of its boxes missed). If it is
    ``None``, the mapped score of the answered items is multiplied by their share.
    """
    is_mean: bool = False
    """Whether the value is the mean of the states, which are numbers in the unit of the table. An unanswered item
    counts 0 unless ``unanswered`` gives it a state. Set it only if larger values are better and the least value is 0.
    """
    is_costly: bool = False
    """Whether the value takes so long to compute that intervals do not repeat it."""
    needs: str = ""
    """What the measure needs in addition to NumPy (packages, weights, programs, people), for the table of metrics."""
    checked: str = ""
    """How the implementation was checked, for the table of metrics."""


def mean(states: Sequence[State]) -> float:
    """Return the mean of at least one number."""
    return math.fsum(states) / len(states)


def by_class(states: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values that states have for each class."""
    found: dict[str, list[Any]] = {}
    for state in states:
        for label, value in state.items():
            found.setdefault(label, []).append(value)
    return found
