"""The table of bad input to General-Bench: what is spoilt, what is said, what becomes of the task's score."""

from __future__ import annotations

from typing import Any

from tests.faults.general_bench_kit import (
    DEFECTS,
    FLOOD,
    RAIN,
    SPEECH,
    Bad,
    changed,
    cut,
    gone,
    junk,
    second_folder,
    unknown_task,
    with_results,
    written,
)

NAN = float("nan")


def without_id(content: Any) -> None:
    del content["data"][1]["id"]


def without_prediction(records: Any) -> None:
    del records[0]["prediction"]


ACCURACY = {"task_name": "Code Defect Detection", "metric": "ACC"}
FROM_RESULTS = {"-p": "scores.json"}
DAMAGED = [
    Bad("annotation_cut_short", cut(f"{DEFECTS}/annotation.json"), ("annotation.json is no complete JSON",), DEFECTS),
    Bad("annotation_without_head", written(f"{DEFECTS}/annotation.json", "{"), ("no complete JSON",), DEFECTS, ""),
    Bad(
        "data_is_no_list",
        changed(f"{DEFECTS}/annotation.json", lambda content: content.update(data={})),
        ("`data` is an object; a list of items is expected",),
        DEFECTS,
        "",
    ),
    Bad(
        "task_is_no_text",
        changed(f"{DEFECTS}/annotation.json", lambda content: content.update(task=5)),
        ("`task` is a number; text is expected",),
        DEFECTS,
        "",
    ),
    Bad(
        "no_items",
        changed(f"{DEFECTS}/annotation.json", lambda content: content.update(data=[])),
        ("annotation.json: no items in it",),
        DEFECTS,
    ),
    Bad(
        "item_is_no_object",
        changed(f"{DEFECTS}/annotation.json", lambda content: content["data"].append(5)),
        ("1 of 4 items failed", "an item is 5, no object"),
        DEFECTS,
    ),
    Bad(
        "item_without_id",
        changed(f"{RAIN}/annotation.json", without_id),
        ("1 of 3 items failed", "has no `id`"),
        RAIN,
    ),
    Bad(
        "output_of_another_type",
        changed(f"{FLOOD}/annotation.json", lambda content: content["data"][0].update(output={"mask": {"a": 1}})),
        ("1 of 3 items failed", "Flood-Segmentation, item 0: the reference"),
        FLOOD,
    ),
    Bad(
        "path_that_leads_out",
        changed(f"{RAIN}/annotation.json", lambda content: content["data"][0]["output"].update(image_file="../../x")),
        ("item 0", "'../../x' leads out of the task's folder"),
        RAIN,
    ),
    Bad(
        "an_id_twice",
        changed(f"{DEFECTS}/annotation.json", lambda content: content["data"][2].update(id="q0")),
        ('the id "q0" is that of an earlier item, too',),
        DEFECTS,
        "scored",
    ),
    Bad(
        "reference_missing",
        gone(f"{RAIN}/images/clean1.png"),
        ("1 of 3 items failed", "clean1.png' is not there"),
        RAIN,
    ),
    Bad("reference_damaged", junk(f"{RAIN}/images/clean1.png"), ("clean1.png is no readable picture",), RAIN),
    Bad("mask_missing", gone(f"{FLOOD}/images/mask1.png"), ("item 1: 'images/mask1.png' is not there",), FLOOD),
    Bad(
        "an_item_without_reference",
        changed(f"{FLOOD}/annotation.json", lambda content: content["data"][1].update(output=None)),
        ("1 of 3 items failed", "item 1: it has no reference answer"),
        FLOOD,
    ),
    Bad("two_folders_of_a_row", second_folder, ("both hold the task 'Code Defect Detection': the latter is taken",)),
    Bad("unknown_task", unknown_task, ("Odd/annotation.json: unknown task 'Basket Weaving'; did you mean",)),
]
PREDICTED = [
    Bad(
        "predictions_cut_short",
        cut(f"{DEFECTS}/prediction.json", 10),
        ("prediction.json is no complete JSON",),
        DEFECTS,
    ),
    Bad(
        "predictions_are_no_list",
        written(f"{DEFECTS}/prediction.json", '{"data": {"q0": {"prediction": 1}}}'),
        ("a list of {id, prediction}, or an object with such a list as `data`, is expected",),
        DEFECTS,
    ),
    Bad(
        "results_under_the_name",
        written(f"{SPEECH}/prediction.json", '[{"model": "m", "task": "t", "metric": "WER", "score": "0.5"}]'),
        ("prediction.json: 't' (WER): unknown task 't'",),
        SPEECH,
        "",
    ),
    Bad(
        "record_is_no_object",
        changed(f"{DEFECTS}/prediction.json", lambda records: [*records, 7]),
        ("record 3 is passed over: it is 7",),
        DEFECTS,
        "scored",
    ),
    Bad(
        "record_without_prediction",
        changed(f"{DEFECTS}/prediction.json", without_prediction),
        ('record 0 is passed over: id "q0" has no `prediction`',),
        DEFECTS,
        "partially answered",
    ),
    Bad(
        "an_id_of_no_item",
        changed(f"{FLOOD}/prediction.json", lambda records: records[1].update(id="1")),
        ('1 predictions are of no item (ids "1"); 1 and "1" are two ids',),
        FLOOD,
        "partially answered",
    ),
    Bad(
        "an_id_predicted_twice",
        changed(f"{DEFECTS}/prediction.json", lambda records: [*records, records[0]]),
        ('the id "q0" occurs more than once: the last one counts',),
        DEFECTS,
        "scored",
    ),
]
UNANSWERED = [
    Bad(
        "no_records",
        written(f"{DEFECTS}/prediction.json", "[]"),
        ("0 of 3 items answered", "no prediction"),
        DEFECTS,
        "unanswered",
        3,
    ),
    Bad(
        "predicted_file_missing",
        gone(f"{RAIN}/made/1.png"),
        ("2 of 3 items answered, the others count as wrong", "item 1: the predicted file 'made/1.png' is not there"),
        RAIN,
        "partially answered",
        3,
    ),
    Bad(
        "predicted_file_damaged",
        cut(f"{RAIN}/made/1.png", 100),
        ("2 of 3 items answered", "made/1.png is no readable picture"),
        RAIN,
        "partially answered",
        0,
    ),
    Bad(
        "predicted_device",
        changed(f"{RAIN}/prediction.json", lambda records: records[0].update(prediction="/dev/zero")),
        ("2 of 3 items answered", "/dev/zero is no file"),
        RAIN,
        "partially answered",
        0,
    ),
    Bad(
        "prediction_of_another_type",
        changed(f"{FLOOD}/prediction.json", lambda records: records[1].update(prediction=5)),
        ("2 of 3 items answered", "item 1: the prediction is no mask"),
        FLOOD,
        "partially answered",
        0,
    ),
]
RESULTS = [
    Bad(
        "score_nan",
        with_results({**ACCURACY, "score": NAN}),
        ("'Code Defect Detection' (ACC): nan is no finite number",),
        flags=FROM_RESULTS,
    ),
    Bad("score_infinite", with_results({**ACCURACY, "score": "inf"}), ("(ACC)", "no"), flags=FROM_RESULTS),
    Bad(
        "score_negative",
        with_results({**ACCURACY, "score": -3}),
        ("-3.0 is outside the range of ACC (0 to 100)",),
        flags=FROM_RESULTS,
    ),
    Bad("score_is_text", with_results({**ACCURACY, "score": "good"}), ("'good' is no number",), flags=FROM_RESULTS),
    Bad(
        "task_twice",
        with_results({**ACCURACY, "score": 1}, {**ACCURACY, "score": 2}),
        ("given twice, as 1 and 2; neither is taken",),
        flags=FROM_RESULTS,
    ),
    Bad(
        "unknown_metric",
        with_results({**ACCURACY, "metric": "Magic", "score": 3}),
        ("unknown metric 'Magic'",),
        flags=FROM_RESULTS,
    ),
    Bad(
        "metric_of_another_task",
        with_results({**ACCURACY, "metric": "FID", "score": 3}),
        ("Code Defect Detection", "FID"),
        flags=FROM_RESULTS,
    ),
    Bad(
        "unknown_task_of_a_result",
        with_results({"task_name": "Basket", "metric": "ACC", "score": 3}),
        ("unknown task 'Basket'",),
        flags=FROM_RESULTS,
    ),
    Bad(
        "result_without_metric",
        with_results({"task_name": "Time Series", "score": 3}),
        ("scores.json, entry 0: no metric in it",),
        flags=FROM_RESULTS,
    ),
]
