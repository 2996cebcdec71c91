from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.general_bench import submission
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.submission import dumps, read_predictions
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import SET, copied

DEFECTS = "nlp_code_defect_detection"
SIGNS = "image_comprehension_traffic_signs_detection"


def predictions(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "prediction.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    records = [{"id": "a", "prediction": "x"}, {"id": 2, "prediction": [[1, 2, 3, 4]]}, {"id": 3, "prediction": None}]
    values = {'"a"': "x", "2": [[1, 2, 3, 4]], "3": None}
    plain = read_predictions(predictions(tmp_path, records))
    assert plain == (values, [])
    whole = {"task": "Ball Tracking", "skill": "V-1", "type": "comprehension", "data": records}
    assert read_predictions(predictions(tmp_path, whole)) == (values, [])
    assert read_predictions(predictions(tmp_path, []))[0] == {}


def test_word_problems(tmp_path: Path) -> None:
    records = [
        {"id": 1, "prediction_steps": "s", "prediction_final": "4"},
        {"id": 2, "prediction_final": "4", "prediction": "5"},
    ]
    assert read_predictions(predictions(tmp_path, records))[0] == {"1": "4", "2": "5"}


def test_repeated_ids_and_faulty_records(tmp_path: Path) -> None:
    records = [
        {"id": 1, "prediction": "a"}, {"id": "1", "prediction": "b"}, {"id": 1.0, "prediction": "c"},
        {"id": True, "prediction": "d"}, "text", {"prediction": "e"}, {"id": [1], "prediction": "f"}, {"id": 7},
    ]  # fmt: skip
    found, problems = read_predictions(predictions(tmp_path, records))
    assert found == {"1": "c", '"1"': "b", "true": "d"}
    assert [problem.split("prediction.json: ")[1] for problem in problems] == [
        "record 4 is passed over: it is 'text', no object with `id` and `prediction`",
        "record 5 is passed over: it has no `id`",
        "record 6 is passed over: the id [1] is no text or number",
        "record 7 is passed over: id 7 has no `prediction`",
        "the id 1 occurs more than once: the last one counts",
    ]


def test_many_faulty_records_are_told_shortly(tmp_path: Path) -> None:
    _, problems = read_predictions(predictions(tmp_path, [3] * 1000))
    assert len(problems) == 21 and problems[-1] == "... and 980 more of them"


@for_each(
    ("content", "message"),
    [
        ("3", r"a list of \{id, prediction\}, or an object"),
        ({"data": {"1": "a"}}, r"or an object with such a list as `data`"),
        ({"a": "b"}, r"or an object with such a list"),
        ('[{"id": 1, "predic', "no complete JSON file"),
        ([{"model": "m", "task": "AudioQA", "metric": "accuracy", "score": "0.5"}], "holds results .* not predictions"),
    ],
)
def test_files_that_hold_no_predictions(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"prediction\.json.*{message}"):
        read_predictions(predictions(tmp_path, content))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    records = [{"id": 1, "prediction": "né \ud800 题"}, {"id": "x", "prediction_steps": "s", "prediction_final": "4"}]
    file = tmp_path / "new" / "prediction.json"
    write_whole(file, dumps(records))
    assert json.loads(file.read_bytes()) == records
    assert read_predictions(file)[0] == {"1": "né \ud800 题", '"x"': "4"}
    text = file.read_text(encoding="utf-8")
    assert text.startswith('[\n  {\n    "id": 1,\n    "prediction": "né \\ud800 题"')
    write_whole(file, dumps(records, "object", task="T", skill="S", type="generation"))
    assert json.loads(file.read_bytes()) == {"task": "T", "skill": "S", "type": "generation", "data": records}
    assert list(json.loads(dumps([], "object"))) == ["task", "skill", "type", "data"]
    with pytest.raises(DataError, match="cannot be written"):
        write_whole(file / "below", dumps(records))


def test_keys_of_ids() -> None:
    keys = [id_key(one) for one in ("1", 1, "true", True, 1.5, False, 0, "", "é")]
    assert len(set(keys)) == len(keys)
    assert id_key(1) == id_key(1.0)
    for wrong in (None, [], {}, float("nan"), float("inf"), 10**5000):
        with pytest.raises(DataError):
            id_key(wrong)


def task(name: str, root: Path, **options: Any) -> Any:
    kwargs = {"data_root": str(root), **options}
    return SimpleNamespace(describe=lambda: {"dataset_name": name}, prompts=SimpleNamespace(kwargs=kwargs))


def args(out: Path | None, model_args: str = "") -> Any:
    return SimpleNamespace(output_path=None if out is None else str(out), model="toy", model_args=model_args)


def records(*predictions: Any) -> list[dict[str, Any]]:
    """In another order than that of the annotation."""
    made = [{"place": place, "record": {"id": place, "prediction": one}} for place, one in enumerate(predictions)]
    return made[1:] + made[:1]


def test_beside_the_annotation(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    boxes = [[[1, 2, 3, 4, "é"]], [], "no list"]
    path = submission.write_task(records(*boxes), args(None), task(SIGNS, root, predictions="beside"))
    assert path == (root / SET / "image/comprehension/Sign-Detection/prediction.json").resolve()
    assert json.loads(path.read_text("utf-8")) == [{"id": n, "prediction": one} for n, one in enumerate(boxes)]
    assert "é" in path.read_text("utf-8")


def test_a_name_of_its_own_for_each_model(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    for place in ("beside", "output"):
        made = task(SIGNS, root, predictions=place, prediction_name="toy.json")
        path = submission.write_task(records([], [], []), args(tmp_path / "out"), made)
        assert path is not None and path.name == "toy.json"
    assert not (root / SET / "image/comprehension/Sign-Detection/prediction.json").exists()


def test_the_object_that_submissions_have(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    path = submission.write_task(
        records(1), args(tmp_path / "out", "model=Org/Toy"), task(SIGNS, root, prediction_form="object")
    )
    assert path is not None
    expected = tmp_path / "out" / "general_bench" / "Org__Toy" / "Image" / "comprehension" / "Sign-Detection"
    assert path == (expected / "prediction.json").resolve()
    content = json.loads(path.read_text("utf-8"))
    assert list(content) == ["task", "skill", "type", "data"]
    assert (content["task"], content["type"]) == ("Traffic Signs Detection", "comprehension")
    assert "Detection" in content["skill"]
    assert read_predictions(path)[0] == {"0": 1}


def test_language_tasks_have_no_paradigm(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    path = submission.write_task(records("0"), args(tmp_path / "out"), task(DEFECTS, root))
    assert path == (tmp_path / "out" / "general_bench" / "toy" / "NLP" / "Defects" / "prediction.json").resolve()


def test_no_place_for_them(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    assert submission.write_task(records("0"), args(None), task(DEFECTS, root)) is None
    assert not list(root.rglob("prediction.json"))


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    (tmp_path / "out").write_text("a file")
    with pytest.raises(DataError, match=r"prediction\.json cannot be written"):
        submission.write_task(records("0"), args(tmp_path / "out"), task(DEFECTS, root))


def test_replies_that_are_no_text_of_unicode(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    path = submission.write_task(records("\ud800", "ok"), args(tmp_path / "out"), task(DEFECTS, root))
    assert path is not None
    assert read_predictions(path)[0] == {"0": "\ud800", "1": "ok"}
