from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import ItemError, MediaError
from lmms_eval.tasks.nextqa import utils
from tests.cases import for_each

DOC = {"video": 7, "qid": 3, "question": " why ", "answer": 1} | {
    f"a{number}": f" thing {number} " for number in range(5)
}


def test_options_lose_their_blanks_and_no_instruction_follows() -> None:
    assert utils.doc_to_text(DOC) == "why\nA. thing 0\nB. thing 1\nC. thing 2\nD. thing 3\nE. thing 4"


def test_letters_and_texts_of_options() -> None:
    assert utils.process_results(DOC, ["(B)"]) == {"exact_match": True}
    assert utils.process_results(DOC, ["to me it looks like thing 1"]) == {"exact_match": True}
    assert utils.process_results(DOC, ["(E)"]) == {"exact_match": False}


@for_each("answer", [5, -1, None, "B"])
def test_an_answer_that_is_no_option_is_named(answer: object) -> None:
    with pytest.raises(ItemError, match="nextqa: column 'answer'"):
        utils.process_results(DOC | {"answer": answer}, ["A"])


def test_a_video_is_found_with_either_ending(tmp_path: Path) -> None:
    settings = {"data_root": str(tmp_path)}
    with pytest.raises(MediaError, match=r"NExTVideo/7\.mp4"):
        utils.doc_to_visual(DOC, settings)
    video = tmp_path / "nextqa" / "NExTVideo" / "7.MP4"
    video.parent.mkdir(parents=True)
    video.touch()
    assert utils.doc_to_visual(DOC, settings) == [str(video)]
