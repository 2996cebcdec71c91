"""Names, live numbers and tables that trackers are told."""

from __future__ import annotations

from typing import Any

from lmms_eval.engine.live import MeanSoFar, ProgressLook
from lmms_eval.trackers.content import evenly, live_step, name_of_file, results_of, run_name
from tests.cases import for_each

STAMP = "20261123_101112"


@for_each(
    ("model", "arguments", "name"),
    [
        ("openai", "model=gpt", f"openai_model=gpt_{STAMP}"),
        ("openai", "", f"openai_{STAMP}"),
        ("openai", f"model={'x' * 90}", f"openai_model={'x' * 11}_{STAMP}"),
        ("hf", "api_key=canary-1234,pretrained=a/b", f"hf_api_key=[REDACTED],pr_{STAMP}"),
    ],
)
def test_the_name_keeps_its_date_within_forty_characters(model: str, arguments: str, name: str) -> None:
    assert run_name(model, arguments, STAMP) == name
    assert len(name) <= 40


def test_names_of_files_are_plain() -> None:
    assert name_of_file("../samples of <b>é") == ".._samples_of__b__"


def test_live_scores_are_told_as_they_change() -> None:
    look = ProgressLook(5, 9, 1, 70, 2.5, {"a": MeanSoFar(0.5, 4), "b": MeanSoFar(1.0, 1)})
    step = live_step(look, {"a": MeanSoFar(0.5, 4)})
    assert step.documents == 5
    assert step.values == {
        "live/documents": 5, "live/failed": 1, "live/tokens": 70, "live/documents_per_second": 2.5,
        "live/b/score": 1.0, "live/b/n": 1,
    }  # fmt: skip


def document(**entries: dict[str, Any]) -> dict[str, Any]:
    return {"results": entries, "versions": {"t": 1.0}, "n-shot": {"t": 2}, "configs": {}, "config": {}}


def test_pipelines_keep_their_names_and_absent_numbers_are_absent() -> None:
    entry = {
        "alias": " - t", "acc,none": 0.5, "acc_stderr,none": 0.1, "acc,strict": None, "acc_stderr,strict": "N/A",
        "nan,none": float("nan"), "state": "withheld",
    }  # fmt: skip
    found = results_of(document(t=entry), 6, "r.json")
    assert found.scalars == {"t/acc": 0.5, "t/acc_stderr": 0.1}
    assert found.texts["t/state"] == "withheld"
    rows = found.tables["evaluation/eval_results"].rows
    assert rows == ((" - t", "1.0", "none", "2", "acc", 0.5, 0.1), (" - t", "1.0", "strict", "2", "acc", None, None))
    assert "evaluation/group_eval_results" not in found.tables


def test_a_group_without_a_number_has_no_row() -> None:
    told = {**document(g={" ": " ", "alias": "g"}), "groups": {"g": {" ": " ", "alias": "g"}}}
    found = results_of(told, 0, "r.json")
    assert found.scalars == {}
    assert found.texts == {"g/alias": "g"}
    assert found.tables["evaluation/group_eval_results"].rows == ()


def test_of_many_some_are_taken_evenly() -> None:
    assert evenly(range(5), 10) == [0, 1, 2, 3, 4]
    assert evenly(range(1000), 4) == [0, 250, 500, 750]
