"""Interface of a metric: a state of each item, and a value over the states.

A state is a JSON value with all that the metric needs of one item (a score; counts; matched detections; an embedding).
The journal of a run keeps it, so that nothing is computed twice; intervals resample the states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.tasks.general_bench.items import Form, Item

State = Any
"""A JSON value (numbers may be NaN-free floats only; long vectors are lists of floats)."""


class Context(Struct, frozen=True):
    """Inputs of a measure in addition to the item; the same for all items of a run."""

    weights: Path | None = None
    """Folder with the weights of networks: a sub-folder or file for each, named as the measure documents."""
    download: bool = False
    """Whether missing weights may be downloaded from the hub."""
    device: str = "cpu"
    ratings: Path | None = None
    """File with people's ratings."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **options: Any) -> Context:
        """Return a copy with further options."""
        return replace(self, options={**self.options, **options})


class Measure(Struct, frozen=True):
    """The computation of a metric for a kind of task."""

    name: str
    """Unique name: the metric's key, with ``/variant`` if it has several measures."""
    form: Form
    """Form of prediction and reference."""
    state: Callable[[Any, Item, Context], State]
    """Makes the item's state from the prediction (as in ``prediction.json``), the item and the context.

    Raises ``UnreadableAnswer`` for a prediction that is not in the form (a missing predicted file too),
    ``NotEvaluated`` if weights, a program, a judge or ratings are absent (the whole task is not evaluated), any
    other ``LmmsEvalError`` for a damaged or missing reference or input (the item fails).
    """
    value: Callable[[Sequence[State]], float]
    """The task's number over at least one state, in the unit of the result table (``facts.metrics``)."""
    unanswered: Callable[[Item, Context], State] | None = None
    """Makes the state of an item without a usable answer, if the metric has one (all of its boxes missed). With
    ``None`` the answered items' mapped score is multiplied by their share."""
    is_mean: bool = False
    """Whether the value is the mean of the states, which are numbers in the unit of the table. An unanswered item
    counts 0 unless ``unanswered`` states otherwise. Only for metrics whose larger values are better and whose least
    value is 0."""
    is_costly: bool = False
    """Whether computing the value takes so long that it is not repeated for an interval."""
    needs: str = ""
    """Requirements other than Python and NumPy (packages, weights, programs, people), for the table of metrics."""
    checked: str = ""
    """How the implementation was checked, for the table of metrics."""


def mean(states: Sequence[State]) -> float:
    """Mean of numbers, at least one."""
    import math

    return math.fsum(states) / len(states)
