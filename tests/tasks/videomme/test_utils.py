"""Video-MME: the prompt's settings, letters, parts by equality, videos and subtitles where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ItemError, MediaError
from lmms_eval.tasks.videomme.utils import (
    aggregate,
    doc_to_text_with_subtitles,
    doc_to_visual,
    process_results,
)
from tests.cases import for_each
from tests.media.draw import write_video

DOC: dict[str, Any] = {
    "videoID": "v1", "duration": "short", "domain": "Knowledge", "sub_category": "Law", "question_id": "001-1",
    "task_type": "Counting Problem", "question": "What?", "options": ["A. x", "B. y", "C. z", "D. w"], "answer": "B",
}  # fmt: skip
SUBTITLES = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\nline {n}\n\n" for n in range(4))


@for_each(
    ("answer", "letter"),
    [("B", "B"), ("(C) z", "C"), ("The answer is B, not D", "D"), ("", ""), ("我选B", "B"), ("x" * 100_000, ""),
     ("<think>D", "D"), ("E", "")],
)  # fmt: skip
def test_letters_are_read_by_the_family_rule(answer: str, letter: str) -> None:
    scored = process_results(DOC, [answer])["videomme_perception_score"]
    assert (scored["pred_answer"], scored["score"]) == (letter, float(letter == "B"))


def test_a_reference_answer_that_is_no_letter_fails_its_document() -> None:
    with pytest.raises(ItemError, match="column 'answer' holds 'y'"):
        process_results({**DOC, "answer": "y"}, ["B"])


def row(category: str, sub_category: str, answer: str, video: str = "v") -> dict[str, Any]:
    doc = {**DOC, "domain": category, "sub_category": sub_category, "videoID": video}
    scored: dict[str, Any] = process_results(doc, [answer])["videomme_perception_score"]
    return scored


def test_parts_of_one_name_do_not_mix_and_unknown_ones_are_counted() -> None:
    made = aggregate([row("Multilingual", "Law", "B"), row("Cooking", "Multilingual", "A", "w")])
    assert made.value == 50
    assert {name: part.value for name, part in made.sub_scores["category"].items()} == {
        "Multilingual": 100, "Cooking": 0,
    }  # fmt: skip
    assert made.sub_scores["sub_category"]["Multilingual"].value == 0
    assert made.notes == ("unknown_categories: 1 of 2 questions, counted, with rows of their own",)
    assert aggregate([]).value is None


def test_questions_about_one_video_are_no_independent_evidence() -> None:
    alike = aggregate([row("Knowledge", "Law", "B" if video % 2 else "A", str(video)) for video in range(8)] * 3)
    apart = aggregate([row("Knowledge", "Law", "B" if number % 2 else "A", str(number)) for number in range(24)])
    assert alike.stderr is not None
    assert apart.stderr is not None
    assert alike.stderr > 1.6 * apart.stderr


def test_subtitles_are_those_of_the_frames_that_a_model_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    settings = {"data_root": str(tmp_path), "frame_num": 2}
    with pytest.raises(MediaError, match=r"data/v1\.mp4 is not there"):
        doc_to_visual(DOC, settings)
    (tmp_path / "media" / "data").mkdir(parents=True)
    video = write_video(tmp_path / "media" / "data" / "v1.mp4", 40, 10)
    assert doc_to_visual(DOC, settings) == [str(video)]
    assert "below: \nNo subtitles available\nSelect" in doc_to_text_with_subtitles(DOC, settings)
    (tmp_path / "media" / "subtitle").mkdir()
    (tmp_path / "media" / "subtitle" / "v1.srt").write_text(SUBTITLES, "utf-8")
    assert "below: \nline 0\nSelect" in doc_to_text_with_subtitles(DOC, settings)
    assert "below: \nline 0\nline 1\nline 2\nline 3\n" in doc_to_text_with_subtitles(DOC, {**settings, "frame_num": 9})
