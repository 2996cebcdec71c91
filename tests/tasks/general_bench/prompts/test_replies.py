from __future__ import annotations

import json
from typing import Any

from lmms_eval.tasks.general_bench import utils
from lmms_eval.tasks.general_bench.prompts import replies
from lmms_eval.tasks.general_bench.settings import Settings
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import (
    CHOICES,
    DEFECTS,
    DEMO_SETTINGS,
    DETECTION,
    OPTIONS,
    PROBLEMS,
    SERIES,
    SPEECH,
    TRACKING,
    rows,
)


@for_each(
    ("name", "reply", "record"),
    [
        (DEFECTS, "There is No Defect here.", {"prediction": "0"}),
        (DEFECTS, "It leaks memory.", {"prediction": "1"}),
        (CHOICES, "The answer is B.", {"prediction": "B"}),
        (CHOICES, "no idea", {"prediction": "A"}),
        (PROBLEMS, "2+2. Final Answer: 4", {"prediction_steps": "2+2.", "prediction_final": "4"}),
        (SERIES, "[3.5, 4]", {"prediction": 3.5}),
        (SERIES, "about five", {"prediction": 0.0}),
        (DETECTION, "Here: [[1, 2, 3, 4]]", {"prediction": [[1, 2, 3, 4]]}),
    ],
)
def test_replies_as_records(name: str, reply: str, record: dict[str, Any]) -> None:
    doc = rows(name)[0]
    made = replies.record(doc, reply, DEMO_SETTINGS)
    assert made == {"id": json.loads(doc["item"])["id"], **record}


def test_mended_extraction_leaves_what_is_not_there_empty() -> None:
    fixed = Settings.of({**OPTIONS, "extraction": "fixed"})
    assert replies.record(rows(CHOICES)[0], "no idea", fixed)["prediction"] == ""
    assert replies.record(rows(CHOICES)[0], "Answer: (b).", fixed)["prediction"] == "B"
    assert replies.record(rows(SERIES)[0], "about five", fixed)["prediction"] == ""


@for_each("reply", ["", "\ud800", "[" * 5000, "answer" * 1000, "\x00"])
def test_no_reply_breaks_a_record(reply: str) -> None:
    for name in (DEFECTS, CHOICES, PROBLEMS, SERIES, DETECTION, TRACKING, SPEECH):
        assert "id" in replies.record(rows(name)[0], reply, DEMO_SETTINGS)


def test_what_is_scored_of_a_record() -> None:
    assert replies.prediction({"prediction": "a", "prediction_final": "b"}) == "a"
    assert replies.prediction({"prediction_steps": "a", "prediction_final": "b"}) == "b"
    assert replies.prediction({"id": 1}) is None


def test_a_model_names_no_files() -> None:
    doc = rows("image_comprehension_flood_area_segmentation")[0]
    assert replies.record(doc, "images/mask0.png", DEMO_SETTINGS)["prediction"] == {"reply": "images/mask0.png"}
    found = json.loads(utils.gold(doc, DEMO_SETTINGS))
    assert found["size"] == [48, 64] and sum(found["counts"]) == 48 * 64 and sum(found["counts"][1::2]) == 14 * 12
    assert replies.record(doc, json.dumps(found), DEMO_SETTINGS)["prediction"] == found
