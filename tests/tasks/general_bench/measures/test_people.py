import json

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.people import MEASURES, read_ratings
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import CONTEXT, an_item

BY_NAME = {measure.name: measure for measure in MEASURES}
TASKS = {
    "mos": "DailyTalkGeneration",
    "user_preference": "Portrait Video Style Transfer",
    "e_accuracy": "PianoToOrchestrationGeneration",
}
ROWS = [("daily talk generation", 7, 3), ("DailyTalkGeneration", 7, 4.5), ("DailyTalk Gen", "8", 5), ("other", 7, 1)]


def written(path, rows):
    keyed = [dict(zip(("task", "id", "rating"), row, strict=True)) for row in rows]
    match path.suffix:
        case ".csv":
            path.write_text("rating,id,task,rater\n" + "".join(f"{r},{i},{t},x\n" for t, i, r in rows))
        case ".json":
            path.write_text(json.dumps(keyed))
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n\n" for row in keyed), encoding="utf-8-sig")
    return Context(ratings=path)


def item(tmp_path, name="mos", id=7):
    (tmp_path / "p.wav").touch()
    return an_item(tmp_path, TASKS[name], form="audio", id=id)


@for_each("suffix", [".csv", ".json", ".jsonl"])
def test_raters_of_an_item_are_averaged(tmp_path, suffix):
    context = written(tmp_path / f"r{suffix}", ROWS[:2])
    assert BY_NAME["mos"].state("p.wav", item(tmp_path), context) == 3.75
    assert BY_NAME["mos"].value([3.75, 5]) == 4.375
    assert {task: {key: len(found) for key, found in items.items()} for task, items in
            read_ratings(context.ratings).items()} == {"dailytalkgeneration": {"7": 2}}  # fmt: skip


def test_tasks_by_short_name_and_ids_as_text(tmp_path):
    context = written(tmp_path / "r.json", ROWS[2:])
    assert BY_NAME["mos"].state("p.wav", item(tmp_path, id=8), context) == 5
    assert BY_NAME["mos"].state("p.wav", item(tmp_path, id="8"), context) == 5


def test_preferences_and_the_undefined_metric_are_in_percent(tmp_path):
    for name in ("user_preference", "e_accuracy"):
        context = written(tmp_path / f"{name}.csv", [(TASKS[name], 7, value) for value in (1, 0, 0.5, 1)])
        assert BY_NAME[name].state("p.wav", item(tmp_path, name), context) == 62.5
        assert BY_NAME[name].is_mean
    assert not BY_NAME["mos"].is_mean  # its least value is 1


@for_each("name", list(TASKS))
def test_without_ratings_it_is_not_evaluated_and_says_how(tmp_path, name):
    with pytest.raises(NotEvaluated, match="ratings=FILE"):
        BY_NAME[name].state("p.wav", item(tmp_path, name), CONTEXT)


def test_the_undefined_metric_says_that_it_is_undefined(tmp_path):
    with pytest.raises(NotEvaluated, match="without defining it"):
        BY_NAME["e_accuracy"].state("p.wav", item(tmp_path, "e_accuracy"), CONTEXT)


def test_ratings_of_other_tasks_or_items_do_not_do(tmp_path):
    context = written(tmp_path / "r.json", ROWS[:2])
    with pytest.raises(NotEvaluated, match="no rating of item 9"):
        BY_NAME["mos"].state("p.wav", item(tmp_path, id=9), context)
    with pytest.raises(NotEvaluated, match="no ratings of the task 'Portrait"):
        BY_NAME["user_preference"].state("p.wav", item(tmp_path, "user_preference"), context)


@for_each("value", [0.99, 5.01, -3])
def test_a_rating_off_the_scale_is_named_by_its_row(tmp_path, value):
    context = written(tmp_path / "r.csv", [*ROWS[:2], ("DailyTalkGeneration", 7, value)])
    with pytest.raises(DataError, match=r"r\.csv, rating 3: .* is no mos: 1 to 5"):
        BY_NAME["mos"].state("p.wav", item(tmp_path), context)


@for_each("name", ["user_preference", "e_accuracy"])
@for_each("value", [-0.1, 1.1, 54.6])
def test_a_share_is_between_0_and_1(tmp_path, name, value):
    context = written(tmp_path / f"{value}.csv", [(TASKS[name], 7, value)])
    with pytest.raises(DataError, match=f"is no {name}: 0 to 1"):
        BY_NAME[name].state("p.wav", item(tmp_path, name), context)


def test_rated_notes_may_stand_in_the_prediction(tmp_path):
    context = written(tmp_path / "r.json", [(TASKS["e_accuracy"], 7, 1)])
    piece = an_item(tmp_path, TASKS["e_accuracy"], form="notes")
    assert BY_NAME["e_accuracy"].state([[0, 1, 60]], piece, context) == 100
    with pytest.raises(UnreadableAnswer, match="no notes"):
        BY_NAME["e_accuracy"].state([], piece, context)


def test_a_missing_answer_is_wrong_even_if_it_is_rated(tmp_path):
    context = written(tmp_path / "r.json", ROWS)
    with pytest.raises(UnreadableAnswer, match="is not there"):
        BY_NAME["mos"].state({"path": "q.wav"}, item(tmp_path), context)


@for_each(
    ("name", "content", "message"),
    [
        ("r.csv", "task,id,rating\na,1,good\n", "rating 1: the rating 'good' is no number"),
        ("r.csv", "task,id,rating\na,1,3\na,2,nan\n", "rating 2: the rating 'nan' is no number"),
        ("r.csv", "task,rating\na,1\n", "rating 1: .* lacks one of task, id, rating"),
        ("r.csv", 'task,id,rating\n"a', "cannot be read as ratings"),
        ("r.json", '{"task": "a"}', "must be a list"),
        ("r.json", "[1]", "rating 1: 1 lacks"),
        ("r.json", "[" * 100_000, "cannot be read as ratings"),
        ("r.jsonl", "{}\n{", "cannot be read as ratings"),
        ("r.json", "", "is empty"),
        ("r.xlsx", "x", r"\.csv, \.json and \.jsonl"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_ratings(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv"):
        read_ratings(tmp_path / "none.csv")
