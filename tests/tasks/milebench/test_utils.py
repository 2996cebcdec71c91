from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.milebench import data, utils
from tests.cases import for_each
from tests.tasks.milebench import made

MEMORY_MB = 24
"""What the messages of 109 pictures may add to the memory of a process: they stay on disk."""


def docs(root: Path, name: str, **settings: Any) -> tuple[list[Any], dict[str, Any]]:
    given = {"data_root": str(root), **settings}
    return list(data.documents(name, given).rows), given


def shape(messages: list[dict[str, Any]]) -> list[Any]:
    (turn,) = messages
    return [part["text"] if part["type"] == "text" else part["type"] for part in turn["content"]]


def test_chat_models_get_pictures_in_their_places(tmp_path: Path) -> None:
    rows, given = docs(made.write(tmp_path, "OCR-VQA", counts=(2,)), "OCR-VQA")
    messages = utils.doc_to_messages(rows[0], given)
    found = shape(messages)
    assert found[:4] == ["Look at all pictures and answer.\nPages: ", "image", "image", found[3]]
    assert "<" not in "".join(part for part in found if part != "image") and found[3].endswith("\nYour answer is: ")
    files = [part["url"] for part in messages[0]["content"] if part["type"] == "image"]
    assert files == [str(tmp_path / "OCR-VQA" / "images" / name) for name in rows[0]["images_path"]]
    assert utils.doc_to_text(rows[0], given).count("<image>") == 2
    assert [image.size for image in utils.doc_to_visual(rows[0], given)] == [(16, 12), (16, 12)]


def test_order_of_the_text_or_of_the_list(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(2,))
    made.edit(tmp_path / "TQA" / "TQA.json", context="{image#2} then {image#1}?")
    for mode, order in (("official", (0, 1)), ("index", (1, 0))):
        rows, given = docs(tmp_path, "TQA", prompt_mode=mode)
        shown = [
            Path(p["url"]).name for p in utils.doc_to_messages(rows[0], given)[0]["content"] if p["type"] == "image"
        ]
        assert shown == [rows[0]["images_path"][place] for place in order]


def test_a_context_that_is_too_long_loses_its_front(tmp_path: Path) -> None:
    made.write(tmp_path, "TextNeedleInAHaystack", counts=(9,))
    rows, given = docs(
        tmp_path, "TextNeedleInAHaystack", max_context_len=60, n_tokens_per_image=10, tokenizer="words"
    )  # fmt: skip
    found = shape(utils.doc_to_messages(rows[0], given))
    assert found.count("image") < 9 and found[0].startswith("Look at all pictures")
    assert found[-1].endswith("What is the secret number?")
    record = utils.process_results(rows[0], ["?"], given)["predictions"]
    assert len(record["image"]) == found.count("image") and record["n_images"] == 9


def test_a_missing_or_damaged_picture_fails_its_sample(tmp_path: Path) -> None:
    rows, given = docs(made.write(tmp_path, "TQA", counts=(2,)), "TQA")
    file = tmp_path / "TQA" / "images" / rows[0]["images_path"][0]
    file.write_bytes(b"no picture")
    with pytest.raises(MediaError, match=file.name):
        utils.doc_to_messages(rows[0], given)
    file.unlink()
    with pytest.raises(MediaError, match=file.name):
        utils.doc_to_messages(rows[0], given)


def test_sheets_are_drawn_where_there_are_none(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(3,))
    rows, given = docs(tmp_path, "TQA", combine_image=1)
    messages = utils.doc_to_messages(rows[0], given)
    assert shape(messages)[0] == "image" and "<Image 3> " in shape(messages)[1]
    assert messages[0]["content"][0]["url"].size == (1600, 1600)
    (visual,) = utils.doc_to_visual(rows[0], given)
    assert visual.tobytes() == messages[0]["content"][0]["url"].tobytes()
    folder = tmp_path / "TQA" / "combined_1_images"
    folder.mkdir()
    Image.new("RGB", (5, 4)).save(folder / "0-0.jpg")
    assert utils.doc_to_messages(rows[0], given)[0]["content"][0]["url"] == str(folder / "0-0.jpg")
    assert utils.doc_to_visual(rows[0], given)[0].size == (5, 4)


def test_several_sheets_by_index(tmp_path: Path) -> None:
    rows, given = docs(made.write(tmp_path, "TQA", counts=(3,)), "TQA", combine_image=2, prompt_mode="index")
    sizes = [
        part["url"].size for part in utils.doc_to_messages(rows[0], given)[0]["content"] if part["type"] == "image"
    ]
    assert sizes == [(1600, 800), (800, 800)]
    with pytest.raises(DataError, match="2 sheets"):
        utils.doc_to_text(rows[0], {**given, "prompt_mode": "official"})


def test_named_sheets_that_nobody_made(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(3,))
    made.edit(tmp_path / "TQA" / "TQA.json", combined_1_images=["other.jpg"])
    rows, given = docs(tmp_path, "TQA", combine_image=1)
    with pytest.raises(DataError, match=r"there is no sheet TQA/combined_1_images/other\.jpg"):
        utils.doc_to_messages(rows[0], given)


@for_each(
    ("name", "reply", "score", "fixed"),
    [
        ("TQA", "", 0.0, 0.0),
        ("MMCoQA", "It said {response}.", 1.0, 1.0),
        ("MMCoQA", "x{response}x", 1.0, 0.0),
        ("TextNeedleInAHaystack", "{response}", 1.0, 1.0),
        ("TextNeedleInAHaystack", "The number {response} it is", 1.0, 1.0),
        ("CLEVR-Change", "nothing at all", 0.0, 0.0),
    ],
)
def test_scores(tmp_path: Path, name: str, reply: str, score: float, fixed: float) -> None:
    rows, given = docs(made.write(tmp_path, name, counts=(2,)), name)
    found = utils.process_results(rows[0], [reply.format(**rows[0])], given)
    metric = "rouge_l" if name == "CLEVR-Change" else "accuracy"
    assert set(found) == {metric, f"{metric}_fixed", "predictions"}
    record = found["predictions"]
    assert (found[metric], found[f"{metric}_fixed"]) == (record["score"], record["fixed"]) == (score, fixed)
    assert record["no_answer"] == int(not reply) and record["level"] == "Few"


def test_needles_tell_their_place(tmp_path: Path) -> None:
    rows, given = docs(made.write(tmp_path, "ImageNeedleInAHaystack"), "ImageNeedleInAHaystack")
    records = [utils.process_results(row, [row["response"]], given)["predictions"] for row in rows]
    assert [(record["needle_depth"], record["needle_length"]) for record in records] == [(0, 2), (0.5, 5), (1, 8)]


def test_a_reference_that_is_no_option_fails_its_sample(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(2,))
    made.edit(tmp_path / "TQA" / "TQA.json", response="something else")
    rows, given = docs(tmp_path, "TQA")
    with pytest.raises(DataError, match=r"TQA, sample 0: .*not one of the"):
        utils.process_results(rows[0], ["A"], given)


def task(**settings: Any) -> Any:
    described = {"dataset_name": "TQA", "lmms_eval_specific_kwargs": settings, "generation_kwargs": {"n": 1}}
    return SimpleNamespace(describe=lambda: described)


def test_the_run_writes_its_predictions(tmp_path: Path) -> None:
    rows, given = docs(made.write(tmp_path / "data", "TQA"), "TQA")
    records = [utils.process_results(row, [utils.doc_to_gold(row)], given)["predictions"] for row in rows]
    args = SimpleNamespace(output_path=str(tmp_path / "out"), model="toy", model_args="")
    estimate = utils.aggregate_predictions(records, args, task(adversarial=True, combine_image=1))
    file = tmp_path / "out" / "milebench" / "toy-adv-combined_1" / "TQA" / "pred.json"
    assert estimate.value is None and estimate.details["submission_files"] == [str(file)]
    written = json.loads(file.read_text("utf-8"))
    assert [item["gt_response"] for item in written] == [row["response"] for row in rows]
    assert all(item["gen_kwargs"] == {"n": 1} and item["gen_model_id"] == "toy" for item in written)
    assert str(tmp_path) not in file.read_text("utf-8")
    assert all((tmp_path / "data" / image).is_file() for item in written for image in item["image"])
    details = estimate.details["milebench"]
    assert details["dataset"] == "TQA" and details["variant"]
    nothing = utils.aggregate_predictions(records, SimpleNamespace(output_path=None), task())
    assert "submission_files" not in nothing.details and nothing.details["milebench"]["dataset"] == "TQA"
    assert utils.aggregate_predictions([], args, task()).details == {}


def test_the_pictures_of_a_sample_stay_on_disk(tmp_path: Path) -> None:
    made.write(tmp_path, "SlideVQA", counts=(109,), size=(1024, 768))
    code = f"""
import resource
from lmms_eval.media import header
from lmms_eval.tasks.milebench import data, utils
given = {{"data_root": {str(tmp_path)!r}}}
rows = data.documents("SlideVQA", given).rows
small = dict(rows[0], images_path=rows[0]["images_path"][:1])
utils.doc_to_messages(small, given)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
content = utils.doc_to_messages(rows[0], given)[0]["content"]
assert sum(part["type"] == "image" for part in content) == 109
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < MEMORY_MB
