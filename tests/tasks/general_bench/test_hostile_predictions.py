"""Whatever a prediction is, it is an answer or none: it never fails its item, and never raises."""

from __future__ import annotations

import json
import time
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.data.documents import item_of
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.scoring import score_item
from lmms_eval.tasks.general_bench.settings import Settings
from lmms_eval.tasks.general_bench.summary import combine
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import OPTIONS, rows
from tests.tasks.general_bench.test_demo import IDS

ASKED = {**OPTIONS, "media_answers": "ask"}
MOST_SECONDS = 20
NAN, HUGE = float("nan"), 10**400
DEEP = json.loads("[" * 400 + "]" * 400)
HOSTILE: tuple[Any, ...] = (
    True, 5, -1, 1e308, NAN, HUGE, "", " ", "x" * 200_000, "\0", "\ud800", "/dev/zero", "/", "..", "annotation.json",
    [], [[]], [[1]], [[1, 2, 3, "a"]], [[NAN] * 4], [[1e308] * 4], [[-5, -5, 0, 0]], [[HUGE, 0, 1, 1]], [None] * 5,
    ["x"] * 5, [["a", "b"]], DEEP, {}, {"mask": 5}, {"size": [48, 64], "counts": "!!"}, {"size": "x", "counts": []},
    {"size": [10**9, 10**9], "counts": [10**18]}, {"size": [48, 64], "counts": [-1, 5]}, {"transcript": 5},
    [{"box": [1, 2], "label": 5, "score": NAN}], [[[1, 2]]], [[1, 1, 2, 2, 3, 3]] * 30_000, "nan", "1e999",
    {"audio": "/dev/zero", "text": None}, {"path": "/etc/passwd"}, [{"mask": {"size": [1, 1], "counts": [2]}}],
)  # fmt: skip


@for_each("name", IDS)
def test_no_prediction_fails_its_item(name: str) -> None:
    item = item_of(rows(name, ASKED)[0], Settings.of(ASKED))
    measure = registry.measure_for(item.facts, item.form)
    context, begin, outcomes = Settings.of(ASKED).context, time.monotonic(), []
    for prediction in HOSTILE:
        try:
            outcome = score_item(item, prediction, measure, context)
        except NotEvaluated:  # a sound without its transcript needs a recogniser
            continue
        assert outcome.status != "failed", (repr(prediction)[:80], outcome.note)
        json.dumps(outcome.as_record(), allow_nan=False)
        outcomes.append(outcome)
    try:
        score = combine(item.facts, measure, outcomes)
    except NotEvaluated:
        score = None
    assert score is None or not score.withheld, score
    assert time.monotonic() - begin < MOST_SECONDS
