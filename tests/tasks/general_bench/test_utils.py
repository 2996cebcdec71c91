from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, NotEvaluated, Unscored, Withheld
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench import summary, utils
from lmms_eval.tasks.general_bench.facts import find_task
from tests.tasks.general_bench.data.kit import write_task
from tests.tasks.general_bench.demo_kit import OPTIONS, SET, copied, edit, rows

DEFECTS = "nlp_code_defect_detection"
SERIES = "nlp_time_series"
MASKS = "image_comprehension_flood_area_segmentation"
DETECTION = "image_comprehension_traffic_signs_detection"


def task(name: str, **options: Any) -> Any:
    """What aggregations see of a task."""
    kwargs = {**OPTIONS, **options}
    return SimpleNamespace(describe=lambda: {"dataset_name": name}, prompts=SimpleNamespace(kwargs=kwargs))


def states(name: str, metric: str, *replies: Any) -> list[dict[str, Any]]:
    """What scoring gives for replies to the first documents; ``None``: the gold one."""
    found = []
    for row, reply in zip(rows(name), replies, strict=False):
        text = utils.doc_to_gold(row, OPTIONS) if reply is None else reply
        found.append(utils.process_results(row, [text], lmms_eval_specific_kwargs=OPTIONS)[metric])
    return found


ARGS = SimpleNamespace(output_path=None, model="toy", model_args="")


def test_texts_and_targets() -> None:
    row = rows(DEFECTS)[0]
    assert json.loads(row["item"])["func"] in utils.doc_to_text(row, OPTIONS)
    assert utils.doc_to_target(row, OPTIONS) in ("0", "1")
    assert utils.doc_to_visual(rows(DETECTION)[0], OPTIONS)[0].size == (64, 48)
    assert utils.doc_to_messages(row, OPTIONS)[0]["role"] == "user"


def test_of_an_item_that_cannot_be_read_the_text_is_why(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Defects")
    edit(root / SET / "nlp/Defects/annotation.json", lambda content: content["data"].insert(0, "no object"))
    given = {"data_root": str(root)}
    row = rows(DEFECTS, given)[0]
    assert utils.doc_to_text(row, given) == row["problem"] != ""
    assert (utils.doc_to_target(row, given), utils.doc_to_gold(row, given)) == ("", "")
    with pytest.raises(DataError, match="no object"):
        utils.process_results(row, ["0"], lmms_eval_specific_kwargs=given)


def test_process_results() -> None:
    row = rows(DEFECTS)[1]
    found = utils.process_results(row, ["no defect"], lmms_eval_specific_kwargs=OPTIONS)
    assert found["predictions"] == {"place": 1, "record": {"id": "q1", "prediction": "0"}}
    state = found["accuracy"]
    assert (state["id"], state["status"], state["measure"], state["form"]) == ("q1", "answered", "accuracy", "text")
    assert state["state"] == state["score"] == 100.0 * (utils.doc_to_target(row, OPTIONS) == "0")


def test_an_unreadable_answer_counts_as_wrong() -> None:
    row = rows(MASKS)[0]
    found = utils.process_results(row, ["I see a shape."], lmms_eval_specific_kwargs=OPTIONS)["miou"]
    assert (found["status"], found["score"]) == ("unanswered", 0.0) and found["note"]


def test_a_missing_reference_fails_the_sample(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Flood-Segmentation")
    (root / SET / "image/comprehension/Flood-Segmentation/images/mask0.png").unlink()
    given = {"data_root": str(root)}
    with pytest.raises(DataError, match=r"mask0\.png"):
        utils.process_results(rows(MASKS, given)[0], ["[[1, 1, 9, 1, 9, 9]]"], lmms_eval_specific_kwargs=given)


def test_closed_sets_keep_predictions_and_have_no_score(tmp_path: Path) -> None:
    facts = find_task("Code Defect Detection")
    folder = tmp_path / "General-Bench-Closeset" / "nlp" / "D"
    write_task(folder, facts.name, [{"id": 4, "func": "f()", "target": None}], type="Code Defect Detection")
    given = {"data_root": str(tmp_path)}
    found = utils.process_results(rows(DEFECTS, given)[0], ["no defect"], lmms_eval_specific_kwargs=given)
    assert found["predictions"]["record"] == {"id": 4, "prediction": "0"}
    value = found["accuracy"]
    assert isinstance(value, Unscored) and "closed set" in value.reason


def test_the_judged_metric(tmp_path: Path) -> None:
    facts = find_task("Open-ended Audio Question Answering")
    folder = tmp_path / "General-Bench-Openset" / "audio" / "comprehension" / "Open"
    raw = {"id": 7, "input": {"audio_file": "a.wav", "prompt": "What?"}, "output": {"text": "a dog"}}
    write_task(folder, facts.name, [raw])
    given = {"data_root": str(tmp_path)}
    (row,) = rows(facts.id, given)
    without = utils.process_results(row, ["a dog barks"], lmms_eval_specific_kwargs=given)
    assert isinstance(without["gpt_score"], Unscored) and "--judge_model" in without["gpt_score"].reason
    (question,) = utils.doc_to_judge(row, ["a dog barks"], given)
    for reply, score in (("1", 100.0), ("0", 0.0), ("yes", 0.0)):
        verdicts = {question.name: Verdict(question.name, reply, accepted=True, model="jury")}
        judged = utils.process_results(row, ["a dog barks"], verdicts, given)["gpt_score"]
        assert (judged["status"], judged["score"]) == ("answered", score)
    lost = {question.name: Verdict(question.name, None, accepted=False, model="jury", error="timeout")}
    assert isinstance(utils.process_results(row, ["a dog barks"], lost, given)["gpt_score"], Unscored)


def test_aggregate_of_a_mean() -> None:
    values = states(DEFECTS, "accuracy", None, None, None)
    wrong = "defect" if utils.doc_to_target(rows(DEFECTS)[0], OPTIONS) == "0" else "no defect"
    values[0] = states(DEFECTS, "accuracy", wrong)[0]
    found = utils.aggregate(values, ARGS, task(DEFECTS, qwen={"x": 1}))
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(200 / 3)
    assert found.stderr == pytest.approx(100 / 3)
    details = found.details[summary.KEY]
    assert summary.TaskScore.from_dict(details).strict == found.value
    assert (details["model"], details["options"]) == ("toy", OPTIONS)
    json.dumps(details)


def test_aggregate_of_an_error() -> None:
    found = utils.aggregate(states(SERIES, "rmse", None, None, None), ARGS, task(SERIES))
    assert isinstance(found, Estimate) and (found.value, found.stderr) == (0.0, 0.0)


def test_aggregate_without_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    values = states(DEFECTS, "accuracy", None, None)

    def absent(*_: object) -> Any:
        raise NotEvaluated("no package codebleu")

    monkeypatch.setattr(summary, "combine", absent)
    found = utils.aggregate(values, ARGS, task(DEFECTS))
    assert isinstance(found, Withheld)
    assert (found.partial, found.reason) == (None, "not evaluated: no package codebleu")


def test_predictions_are_written_in_the_order_of_the_annotation(tmp_path: Path) -> None:
    args = SimpleNamespace(output_path=str(tmp_path), model="toy", model_args="")
    records = [{"place": place, "record": {"id": f"q{place}", "prediction": "1"}} for place in (2, 0, 1)]
    found = utils.aggregate_predictions(records, args, task(DEFECTS))
    (path,) = found.details["submission_files"]
    assert found.value is None
    assert Path(path) == (tmp_path / "general_bench" / "toy" / "NLP" / "Defects" / "prediction.json").resolve()
    assert [record["id"] for record in json.loads(Path(path).read_text())] == ["q0", "q1", "q2"]
    nothing = utils.aggregate_predictions(records, ARGS, task(DEFECTS))
    assert (nothing.value, nothing.details) == (None, {})
