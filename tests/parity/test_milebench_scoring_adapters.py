"""The replay of MileBench's vectors takes what is right and refuses what was tampered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases import for_each
from tests.parity.replay import states, verdicts, write_json, write_lines, write_text
from tests.parity.vectors import PASSED, Verdict, deviates

CASE = "milebench/score_cases/any_name"
RULE = "milebench_damaged_result_is_an_error"
BROKEN, TEXT = "m1/DocVQA/eval.json", "m1/TQA/eval.json"


def collection(root: Path, refused: list[str] | None, deviation: str = "", expected: tuple[str, ...] = ()) -> None:
    """Two unusable results and a good one, and what the case wants of them."""
    write_text(root / CASE / "outputs" / BROKEN, '{"Accuracy": 0.')
    write_json(root, f"{CASE}/outputs/{TEXT}", {"Accuracy": "high"})
    write_json(root, f"{CASE}/outputs/m1/ALFRED/eval.json", {"Rouge-L f": 0.5})
    case: dict[str, Any] = {"models": ["m1"], "exit_code": 0}
    if refused is not None:
        case["wanted"] = {"refused": refused}
    write_json(root, f"{CASE}/case.json", case | ({"deviation": deviation} if deviation else {}))
    for name in expected:
        write_text(root / CASE / name, "what the reference wrote")


def test_a_refused_collection_counts_under_its_rule_for_each_recorded_file(tmp_path: Path) -> None:
    collection(tmp_path, [BROKEN, TEXT], RULE, ("expected.result.csv", "expected.result.json"))
    assert verdicts(tmp_path) == [deviates(RULE)] * 2


def test_a_refused_collection_without_a_rule_is_one_that_passed(tmp_path: Path) -> None:
    collection(tmp_path, [TEXT])
    assert verdicts(tmp_path) == [PASSED]


def test_the_error_must_name_every_file_that_is_wanted(tmp_path: Path) -> None:
    collection(tmp_path, [BROKEN, "m1/ALFRED/eval.json"], RULE)
    (found,) = verdicts(tmp_path)
    assert found.state == "failed" and "ALFRED" in found.detail


def test_a_refusal_that_nobody_wants_fails(tmp_path: Path) -> None:
    collection(tmp_path, None)
    assert states(tmp_path) == ["failed"]


def test_a_collection_that_ought_to_be_refused_fails_if_it_is_not(tmp_path: Path) -> None:
    write_json(tmp_path, f"{CASE}/outputs/m1/TQA/eval.json", {"Accuracy": 1})
    write_json(tmp_path, f"{CASE}/case.json", {"models": ["m1"], "exit_code": 0, "wanted": {"refused": [TEXT]}})
    assert states(tmp_path) == ["failed"]


def line_verdict(root: Path, path: str, record: dict[str, Any]) -> Verdict:
    write_lines(root, path, record)
    (verdict,) = verdicts(root)
    return verdict


FILE_CASES = "milebench/units/file_cases.jsonl"
FULL_STOPS = "." * 33


def file_case(ids: tuple[Any, ...], texts: tuple[str, ...], case: str = "any name") -> dict[str, Any]:
    """Open-ended samples of which the reference could make nothing."""
    samples = [
        {
            "sample_id": int(number),
            "response": "p",
            "image_quantity_level": "Few",
            "task_instance": {"images_path": ["a", "b"]},
        }
        for number in ids
    ]
    same = {"image": ["x"], "question": "", "gt_response": "p", "gen_model_id": "m", "gen_kwargs": {}}
    return {
        "case": case,
        "dataset": "IEdit",
        "annotation": {"meta_data": {"question_type": "open-ended"}, "data": samples},
        "predictions": [
            {"sample_id": number, "pred_response": text, **same} for number, text in zip(ids, texts, strict=True)
        ],
        "result": {"error": "ValueError", "wrote_eval": False},
    }


@for_each(
    ("ids", "texts", "rule"),
    [
        (("1", "2"), ("p", "q"), "milebench_digit_ids_are_accepted"),
        ((1, 2, 3), ("p", FULL_STOPS, "q"), "milebench_no_sentence_is_zero"),
    ],
)
def test_a_file_at_which_the_reference_stops_is_known_by_its_content(
    tmp_path: Path, ids: tuple[Any, ...], texts: tuple[str, ...], rule: str
) -> None:
    assert line_verdict(tmp_path, FILE_CASES, file_case(ids, texts)) == deviates(rule)


@for_each("name", ["string ids in predictions", "open-ended prediction is 33 full stops"])
def test_a_name_alone_makes_no_deviation(tmp_path: Path, name: str) -> None:
    """Nothing is wrong with this file, so that the recorded error is one of the vector."""
    assert line_verdict(tmp_path, FILE_CASES, file_case((1, 2), ("p", "q"), name)).state == "failed"


def test_a_file_that_stays_damaged_when_its_ids_are_numbers_is_refused(tmp_path: Path) -> None:
    record = file_case(("1", "2"), ("p", "q"))
    record["predictions"].pop()
    assert line_verdict(tmp_path, FILE_CASES, record) == PASSED


def test_a_single_text_without_a_sentence_is_known_by_its_content(tmp_path: Path) -> None:
    path = "milebench/units/rouge_l.jsonl"
    assert line_verdict(tmp_path, path, {"pred": FULL_STOPS, "gold": "p", "error": "AnyError"}) == deviates(
        "milebench_no_sentence_is_zero"
    )
    assert line_verdict(tmp_path, path, {"pred": "p", "gold": "p", "error": "ValueError"}).state == "failed"
