from __future__ import annotations

import json

from lmms_eval.api.judging import Verdict
from lmms_eval.api.request import Usage
from tests.cases import for_each


@for_each(
    "verdict",
    [
        Verdict("rating", "7", True, "jury", "ab12", ("7",), Usage(3, 2, None)),
        Verdict("rating", "?", False, "jury", "ab12", ("!", "?"), None, None, {"frames_per_video": 8}),
        Verdict("rating", None, False, "jury", error="timeout: too slow"),
    ],
)
def test_a_verdict_survives_its_record(verdict: Verdict) -> None:
    assert Verdict.from_record(json.loads(json.dumps(verdict.as_record()))) == verdict
