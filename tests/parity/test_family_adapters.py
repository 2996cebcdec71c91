"""The adapters of what task folders of the family import, on vectors of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases import for_each
from tests.parity.replay import line_state

FILTERS, MEDIA, TRACKER = (f"family_functions/{stem}.jsonl" for stem in ("filters", "media_resolver", "config_tracker"))


def record(function: str, *args: Any, **others: Any) -> dict[str, Any]:
    return {"function": function, "args": list(args), "kwargs": {}, **others}


QUESTION = "Which one?\nA. teal!\nB. (old) rose"


@for_each(
    ("path", "content", "state"),
    [
        (
            FILTERS,
            record("RegexFilter", [["xyz", "y"]], kwargs={"regex_pattern": "(k?)(l?)"}, raises="IndexError"),
            "family_filter_without_a_group_falls_back",
        ),
        (
            FILTERS,
            record("RegexFilter", [["#### 7"]], kwargs={"group_select": 4, "fallback": "-"}, raises="IndexError"),
            "family_filter_without_a_group_falls_back",
        ),
        (FILTERS, record("RegexFilter", [["#### 7"]], kwargs={"nope": 1}, raises="TypeError"), "passed"),
        (FILTERS, record("RegexFilter", [["#### 7"]], expected=[["8"]]), "failed"),
        (
            FILTERS,
            record("SimpleMultiChoiceRegexFilter", [["old rose"]], [QUESTION], expected=["old rose"]),
            "family_option_texts_are_cleaned",
        ),
        (FILTERS, record("SimpleMultiChoiceRegexFilter", [["B."]], [QUESTION], expected=["B"]), "passed"),
        (FILTERS, record("SimpleMultiChoiceRegexFilter", [["B."]], [QUESTION], expected=["A"]), "failed"),
        (FILTERS, record("SimpleMultiChoiceRegexFilter", [["red"]], ["A. red\nB. blue"], expected=["red"]), "failed"),
        (FILTERS, record("SimpleMultiChoiceRegexFilter", [[]], [QUESTION], raises="IndexError"), "passed"),
        (
            MEDIA,
            record("resolve_media_reference", ["hf/ds/c.d.mp4"], "c.d", kwargs={"cache_dir": "ds"}, expected="c.d"),
            "family_dotted_names_have_extensions",
        ),
        (
            MEDIA,
            record("resolve_media_reference", ["hf/ds/c.mp4"], "d", kwargs={"cache_dir": "ds"}, expected="d"),
            "passed",
        ),
        (
            MEDIA,
            record("resolve_media_reference", ["hf/ds/c.mp4"], "c.mp4", kwargs={"cache_dir": "ds"}, expected="c.mp4"),
            "failed",
        ),
        (
            TRACKER,
            record("GeneralConfigTracker._get_model_name", {"engine": "e", "model_name": "n"}, expected=""),
            "family_arguments_may_be_a_mapping",
        ),
        (TRACKER, record("GeneralConfigTracker._get_model_name", {"batch_size": 1}, expected=""), "passed"),
        (TRACKER, record("GeneralConfigTracker._get_model_name", "model=m", expected="n"), "failed"),
    ],
)
def test_records_are_judged_by_what_they_hold(tmp_path: Path, path: str, content: dict[str, Any], state: str) -> None:
    assert line_state(tmp_path, path, content) == state
