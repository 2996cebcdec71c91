"""Outcome of an item's prediction: the state by its measure, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.items import Item, MissingAnswer, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State

Status = Literal["answered", "unanswered", "absent", "failed"]
"""``absent``: the prediction or its file is missing. It counts as unanswered and is reported separately."""
MISSING = object()
"""Marks a missing prediction."""
REPLY = "reply"
"""Key of a prediction that is a model's text although its task requires another form."""
ABSENT = "no prediction"
"""The note of an item without a prediction."""


class ItemOutcome(Struct, frozen=True):
    """The outcome of one item."""

    id: Any
    status: Status
    state: State = None
    """The item's state. For an unanswered item, the metric's state for it, or ``None``."""
    note: str = ""

    def as_record(self) -> dict[str, Any]:
        return {"id": self.id, "status": self.status, "state": self.state, "note": self.note}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ItemOutcome:
        return cls(record["id"], record["status"], record["state"], record["note"])


def score_item(item: Item, prediction: Any, measure: Measure, context: Context) -> ItemOutcome:
    """Score the prediction of an item, a JSON value or ``MISSING``.

    Raises ``NotEvaluated`` if the task cannot be evaluated here; closed-set items are not.
    """
    if item.reference is None and item.facts.paradigm != "generation":
        raise NotEvaluated("closed set: the items have no reference answer")
    if prediction is MISSING or prediction is None:
        return _unanswered(item, measure, context, ABSENT, "absent")
    if isinstance(prediction, Mapping) and prediction.keys() == {REPLY}:
        note = f"{item.where}: the reply is not in the form that is asked for: {str(prediction[REPLY])[:80]!r}"
        return _unanswered(item, measure, context, note)
    try:
        return ItemOutcome(item.id, "answered", measure.state(prediction, item, context))
    except MissingAnswer as error:
        return _unanswered(item, measure, context, str(error), "absent")
    except UnreadableAnswer as error:
        return _unanswered(item, measure, context, str(error))
    except LmmsEvalError as error:
        if item.reference is None:
            raise NotEvaluated(f"closed set: the items have no reference ({error})") from error
        return ItemOutcome(item.id, "failed", note=str(error))
    except NotEvaluated:
        raise
    except Exception as error:  # noqa: BLE001 - measures call libraries on what a model wrote: one item fails
        return ItemOutcome(item.id, "failed", note=failure_note(error, measure))


def _unanswered(
    item: Item, measure: Measure, context: Context, note: str, status: Status = "unanswered"
) -> ItemOutcome:
    state = 0.0 if measure.is_mean else None
    if measure.unanswered is not None:
        try:
            state = measure.unanswered(item, context)
        except NotEvaluated:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            return ItemOutcome(item.id, "failed", note=failure_note(error, measure))
    return ItemOutcome(item.id, status, state, note)


def failure_note(error: Exception, measure: Measure) -> str:
    """Describe an error that the answer did not cause, with the measure's name unless the error is ours."""
    own = isinstance(error, LmmsEvalError)
    return str(error) if own else f"measure {measure.name}: {type(error).__name__}: {error}"
