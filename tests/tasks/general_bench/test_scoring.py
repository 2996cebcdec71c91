from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench import scoring
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.scoring import MISSING, ItemOutcome
from tests.cases import for_each
from tests.tasks.general_bench.toy_measures import (
    BARE,
    MEAN,
    MISSED,
    facts_of,
    item,
    measure,
    raises,
)


def test_an_answer_has_the_state_that_the_measure_gives() -> None:
    assert scoring.score_item(item(), "gold", MEAN, Context()) == ItemOutcome(1, "answered", 100.0)
    assert scoring.score_item(item(), "other", MEAN, Context()) == ItemOutcome(1, "answered", 0.0)


@for_each(("prediction", "note"), [(MISSING, "no prediction"), (None, "no prediction"), ([], "no text")])
@for_each(("by", "state"), [(MEAN, 0.0), (MISSED, 10.0), (BARE, None)])
def test_no_usable_answer(prediction: Any, note: str, by: Measure, state: Any) -> None:
    found = scoring.score_item(item(), prediction, by, Context())
    assert (found.status, found.state) == ("unanswered" if prediction == [] else "absent", state)
    assert note in found.note


def test_a_reply_in_another_form_is_no_answer() -> None:
    found = scoring.score_item(item(), {"reply": "I see no boxes"}, MEAN, Context())
    assert (found.status, found.state) == ("unanswered", 0.0)
    assert "not in the form" in found.note and "I see no boxes" in found.note


def test_an_empty_text_is_an_answer() -> None:
    assert scoring.score_item(item(), "", MEAN, Context()).status == "answered"


def test_a_measure_of_a_mean_may_have_another_state_for_no_answer() -> None:
    by = measure(is_mean=True, unanswered=lambda _item, _context: -5.0)
    assert scoring.score_item(item(), MISSING, by, Context()).state == -5.0


@for_each("error", [DataError("the mask is damaged"), ZeroDivisionError("by zero"), KeyError("x")])
def test_what_the_answer_cannot_help_fails_the_item(error: Exception) -> None:
    found = scoring.score_item(item(), "gold", measure(state=raises(error)), Context())
    assert (found.status, found.state) == ("failed", None)
    assert str(error) in found.note


@for_each("error", [DataError("the mask is damaged"), ValueError("no shape")])
def test_a_reference_that_has_no_state_without_answer_fails_the_item(error: Exception) -> None:
    found = scoring.score_item(item(), MISSING, measure(unanswered=raises(error)), Context())
    assert found.status == "failed" and str(error) in found.note
    with pytest.raises(NotEvaluated):
        scoring.score_item(item(), MISSING, measure(unanswered=raises(NotEvaluated("scipy"))), Context())


def test_what_is_absent_is_no_failure() -> None:
    with pytest.raises(NotEvaluated, match="weights"):
        scoring.score_item(item(), "gold", measure(state=raises(NotEvaluated("weights"))), Context())


def test_closed_set_items_are_not_evaluated() -> None:
    for prediction in ("gold", MISSING):
        with pytest.raises(NotEvaluated, match="closed set"):
            scoring.score_item(item(None), prediction, MEAN, Context())


def test_what_is_generated_may_need_no_reference() -> None:
    made = facts_of("clip_score", "generation")
    assert scoring.score_item(item(None, made), 3.0, BARE, Context()).state == 3.0
    by = measure(state=raises(DataError("no reference picture")))
    with pytest.raises(NotEvaluated, match=r"closed set.*no reference picture"):
        scoring.score_item(item(None, made), "x", by, Context())


def test_an_outcome_survives_json() -> None:
    outcome = ItemOutcome("é", "unanswered", [1, {"a": None}], "why")
    assert ItemOutcome.from_record(json.loads(json.dumps(outcome.as_record()))) == outcome
