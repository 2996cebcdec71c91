import json

import pytest

from lmms_eval.tasks.mmie.judge_prompts import built_in
from lmms_eval.tasks.mmie.standalone import read_input, sample_rows, summary
from lmms_eval.tasks.mmie.view import ViewedPicture


def record(name, n_images=0, **more):
    question = [{"text": f"q{number}", "image": f"{number}.png"} for number in range(n_images)]
    gold = [{"text": "g", "image": None}]
    return {"id": name, "question": question, "answer": "a", "model": "m", "gt_answer": gold, **more}


def find(image):
    return image if image == "gone.png" else ViewedPicture(image)


CONTENT = [
    record("SA-0"), record("SA-0", field="Literature"), record("XX"), record("MSR-1", 5),
    record("PBL-1", question=[{"text": "q", "image": "gone.png"}]), {"id": "SA-9"},
    record("MSR-2", gt_answer=None, answer=[{"text": "a", "image": f"{n}.png"} for n in range(4)]),
]  # fmt: skip


def read(**options):
    return read_input(CONTENT, "f", find, **options)


def test_what_is_judged_skipped_and_refused():
    data = read()
    assert [data.samples[index].key for index in data.to_judge] == [
        ('"SA-0"', 0), ('"SA-0"', 1), ('"PBL-1"', 0), ('"MSR-2"', 0)
    ]  # fmt: skip
    assert [sample.id for sample in data.skipped] == ["MSR-1"]
    assert [(problem.position, problem.id) for problem in data.problems] == [(2, "XX"), (5, "SA-9")]
    assert data.n_records == 7


def test_strict_images_fail_the_record():
    data = read(strict_images=True)
    assert [problem.position for problem in data.problems] == [2, 4, 5]
    assert "gone.png" in data.problems[1].message


def test_a_sample_without_category_has_no_question():
    sample = read().samples[2]
    with pytest.raises(LookupError, match="XX"):
        sample.question(built_in())


def test_every_record_comes_out_once_and_is_named():
    data = read()
    feedback, failures = {0: "### Score\n4", 1: "none"}, {3: "timeout", 4: "media: damaged"}
    rows = sample_rows(data, feedback, failures)
    assert [(row["position"], row["outcome"], row["score"]) for row in rows] == [
        (0, "scored", 4), (1, "unparsable", None), (3, "skipped", None), (4, "unscored", None)
    ]  # fmt: skip
    found = summary(data, rows, failures)
    assert len(rows) + len(found["failed"]) == found["records"] == 7
    assert found["categories"]["AVG"]["n"] == 4
    assert found["categories"]["AVG"]["official"] == 4.0
    assert found["categories"]["AVG"]["strict_mean"] == 1.0
    assert found["fields"]["Literature"]["unparsable"] == 1
    assert [one["id"] for one in found["failed"]] == ["XX", "SA-9", "MSR-2"]
    assert found["skipped"] == [{"position": 3, "id": "MSR-1", "reason": "5 pictures"}]
    assert found["cut"] == [{"position": 6, "id": "MSR-2", "texts": 1, "images": 1}]
    assert found["missing_images"] == [{"position": 4, "id": "PBL-1", "images": ["gone.png"]}]
    assert found["unscored"] == [{"position": 4, "id": "PBL-1", "reason": "timeout"}]
    assert [one["position"] for one in found["unparsable"]] == [1]
    assert len(found["warnings"]) == 2
    assert json.loads(json.dumps(found)) == found
