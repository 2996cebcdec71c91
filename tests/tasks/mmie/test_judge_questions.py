from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.interleaved import InterleavedText, generated_image
from lmms_eval.api.judging import Verdict
from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.api.outcome import Estimate, Unscored
from lmms_eval.engine.records import ImageFolder
from lmms_eval.errors import MediaError
from lmms_eval.tasks.mmie import judge_questions, utils
from lmms_eval.tasks.mmie.data.records import Segment
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts, built_in
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import View, ViewedPicture, as_text
from tests.painting import png

PICTURE = ViewedPicture(Image.new("RGB", (2, 2)))
VIEW = View(("q <image>\n", "Image-0: ", PICTURE, "\n"), ("r\n",))


def verdict(text: str | None, name: str = "mmie", error: str | None = None) -> Verdict:
    return Verdict(name, text, text is not None, "jury", error=error)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.json").write_text("[]")
    (tmp_path / "images").mkdir()
    for name in "abcde":
        (tmp_path / "images" / f"{name}.png").write_bytes(png(ord(name)))
    return tmp_path


def document(images: str = "a", category: str = "SA") -> dict[str, Any]:
    question = [
        {"text": "See?" if number == 0 else None, "image": f"images/{name}.png"} for number, name in enumerate(images)
    ]
    return {
        "id": f"{category}-1", "position": 0, "category": category, "field": "Art", "subfield": "Sea",
        "question": question, "gt_answer": [{"text": "Reference", "image": None}],
    }  # fmt: skip


def painted(tmp_path: Path, *parts: str | int) -> InterleavedText:
    """Numbers are pictures."""
    store = ImageFolder(tmp_path / "stored")
    made = [part if isinstance(part, str) else generated_image(png(part)) for part in parts]
    for part in made:
        if not isinstance(part, str):
            store.keep(part, part.data or b"")
    return InterleavedText(store.located(made))


def options(folder: Path, **more: Any) -> dict[str, Any]:
    return {"data_root": str(folder), **more}


def test_segments_of_an_answer(tmp_path: Path) -> None:
    answer = painted(tmp_path, "Step 1\n\n", 1, 2, "\n\nStep <image>a kite</image> 2\n", 3, " \n", "end")
    found = judge_questions.answer_segments(answer)
    assert [segment.text for segment in found] == ["Step 1", None, "Step (picture: a kite) 2", "end"]
    assert [segment.image is not None for segment in found] == [True, True, True, False]
    assert all(Path(str(segment.image)).is_file() for segment in found[:3])
    assert judge_questions.answer_segments("") == (Segment(""),)
    assert judge_questions.answer_segments(painted(tmp_path, 1))[0].text is None
    assert judge_questions.described(answer) == 1


def test_the_judge_sees_pictures_of_question_and_answer_in_order(folder: Path) -> None:
    answer = painted(folder, "One", 1, "Two", 2, "Three", 3, "Four")
    (question,) = utils.doc_to_judge(document(), [answer], options(folder))
    parts = question.build_messages().messages[0].content
    pictures = [part.url for part in parts if isinstance(part, ChatImageContent)]
    text = "".join(part.text if isinstance(part, ChatTextContent) else "<P>" for part in parts)
    assert pictures[0] == str(folder / "images" / "a.png") and len(pictures) == 3
    assert "See?\nImage-0: <P>\n" in text and "One\nImage-1: <P>\nTwo\nImage-2: <P>\n" in text
    assert "Three" not in text and "Reference" not in text
    (uncut,) = utils.doc_to_judge(document(), [answer], options(folder, view="full_text"))
    shown = "".join(
        part.text for part in uncut.build_messages().messages[0].content if isinstance(part, ChatTextContent)
    )
    assert "Three" in shown and "Four" in shown
    (reasoned,) = utils.doc_to_judge(document(category="MSR"), ["x"], options(folder))
    assert "Reference" in str(reasoned.build_messages())


def test_scores_and_what_has_none(folder: Path) -> None:
    def value(*verdicts: Verdict, images: str = "a") -> Any:
        given = {item.name: item for item in verdicts}
        made = utils.process_results(document(images), ["an answer"], given, options(folder))
        assert set(made) == {"mmie_judge", "mmie_judge_strict", "judged", "answers"}
        assert made["mmie_judge_strict"] == {key: made["judged"][key] or 0 for key in ("score", "outcome")}
        repeats.append(made["judged"]["repeats"])
        return made["mmie_judge"]

    repeats: list[list[int | None]] = []
    assert value(verdict("### Feedback\ngood\n### Score\n4")) == {"score": 4, "outcome": "scored"}
    assert value(verdict("### Score\nnone")) == {"score": None, "outcome": "unparsable"}
    assert value(verdict("### Score\n7"))["outcome"] == "unparsable"
    assert value(verdict("### Score\n4"), verdict("### Score 5", "mmie~2"), verdict("?", "mmie~3"))["score"] == 4
    assert repeats == [[], [], [], [4, 5, None]]
    assert value() == Unscored("no judge: give --judge_model")
    assert value(verdict(None, error="timeout: too slow")) == Unscored("the judge gave no reply: timeout: too slow")
    assert value(verdict("### Score\n4"), images="abcde") == Unscored("skipped: 5 pictures, more than 4")


def test_skipped_samples_are_not_asked_about(folder: Path) -> None:
    assert utils.doc_to_judge(document("abcde"), ["x"], options(folder)) == []
    assert len(utils.doc_to_judge(document("abcde"), ["x"], options(folder, max_images=5))) == 1
    assert len(utils.doc_to_judge(document("abcd"), ["x"], options(folder))) == 1


def test_missing_pictures_are_counted_or_fail(folder: Path) -> None:
    sample = utils.process_results(document("ax"), ["y"], {}, options(folder))["judged"]
    assert sample["missing_images"] == 1
    with pytest.raises(MediaError, match=r"images/x.png is not there"):
        utils.process_results(document("ax"), ["y"], {}, options(folder, strict_images=True))
    with pytest.raises(MediaError, match=r"images/x.png is not there"):
        utils.doc_to_messages(document("ax"), options(folder, strict_images=True))


def test_the_record_for_the_script(folder: Path) -> None:
    answer = painted(folder, "One", 1)
    record = utils.process_results(document("ax"), [answer], {}, options(folder))["answers"]
    assert [segment["image"] for segment in record["question"]] == ["images/a.png", "images/x.png"]
    assert record["answer"][0]["text"] == "One" and Path(record["answer"][0]["image"]).is_file()
    assert record["gt_answer"] == [{"text": "Reference", "image": None}]


def test_settings_reach_the_view(folder: Path) -> None:
    settings = Settings(data_root=str(folder), view="full_text", max_images=2)
    view = judge_questions.view_of(document("abc"), (Segment("x"),), settings)
    assert len(view.images) == 2 and view.lost_images == 1 and not view.is_skipped


def test_aggregates() -> None:
    values = [{"score": 4, "outcome": "scored"}, {"score": None, "outcome": "unparsable"}]
    assert utils.aggregate_official(values) == Estimate(4.0)
    strict = [
        {"score": 4, "outcome": "scored"},
        {"score": 0, "outcome": "unparsable"},
        {"score": 0, "outcome": "skipped"},
    ]
    assert utils.aggregate_strict(strict).value == pytest.approx(4 / 3)
    assert utils.aggregate_strict(strict[2:]) == Estimate(None)


def test_the_prompt_in_its_order() -> None:
    def shown(view: View, category: str, reference: str | None, prompts: JudgeTexts) -> str:
        return as_text(judge_questions.judge_pieces(view, category, reference, prompts))

    prompts = JudgeTexts({"SA": "S\n", "PBL": "P\n", "MSR": "M\n"}, "It is ", "x")
    body = "### Question\nq <image>\nImage-0: <image>\n\n### Answer\nr\n"
    assert shown(VIEW, "SA", "ref", prompts) == f"S\n{body}\n### Feedback\n"
    assert shown(VIEW, "MSR", "ref", prompts) == f"M\n{body}\n### Correct Answer\nIt is ref\n### Feedback\n"
    assert shown(VIEW, "MSR", None, prompts).endswith("### Correct Answer\nIt is \n### Feedback\n")


def test_the_question_is_one_turn_with_the_pictures_in_their_places() -> None:
    question = judge_questions.judge_question(VIEW, "SA", None, built_in())
    (message,) = question.build_messages().messages
    first, picture, rest = message.content
    assert message.role == "user"
    assert isinstance(first, ChatTextContent)
    assert first.text.endswith("q <image>\nImage-0: ")
    assert isinstance(picture, ChatImageContent)
    assert picture.url is PICTURE.value
    assert rest.text == "\n\n### Answer\nr\n\n### Feedback\n"
    assert question.accepts("### Score\n3")
    assert not question.accepts("### Score\n9")
    assert question.generation == {"max_new_tokens": 1024, "do_sample": False, "temperature": 0}
    assert all(
        isinstance(piece, ViewedPicture) or piece
        for piece in judge_questions.judge_pieces(View((), ()), "SA", None, built_in())
    )


def test_what_is_no_picture_is_refused_before_any_judge_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    for value in (str(tmp_path / "a.png"), str(tmp_path), str(tmp_path / "none.png")):
        question = judge_questions.judge_question(View((ViewedPicture(value),), ()), "SA", None, built_in())
        with pytest.raises(MediaError):
            question.build_messages()
