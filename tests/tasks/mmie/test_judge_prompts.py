import hashlib
import re

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatImageContent, ChatTextContent
from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.mmie import judge_prompts
from lmms_eval.tasks.mmie.judge_prompts import (
    JudgePrompts,
    built_in,
    judge_pieces,
    judge_question,
    judge_text,
    load_prompts,
)
from lmms_eval.tasks.mmie.view import Picture, View

PICTURE = Picture(Image.new("RGB", (2, 2)))
VIEW = View(("q <image>\n", "Image-0: ", PICTURE, "\n"), ("r\n",))
FILE = '''
"""A user's file."""
import os
os.abort()
SA_SYSTEM_PROMPT = """story
"""
PBL_SYSTEM_PROMPT: str = "how" "-to\\n" + "x"
MSR_PROMPT = OTHER = 'maths'
MSR_LEAD_IN = "It is "
'''


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "prompts.py"
        path.write_text(text)
        return path

    return write


def test_our_texts_ask_for_the_criteria_and_the_form():
    texts = built_in().systems
    for tag, first, second in (
        ("SA", "story", "Innovation"),
        ("PBL", "step", "practical"),
        ("MSR", "reasoning", "easy"),
    ):
        assert first in texts[tag]
        assert second in texts[tag]
        assert len(re.findall(r"^\d\. ", texts[tag], re.MULTILINE)) == 6
        assert texts[tag].index("### Feedback") < texts[tag].index("### Score")
        assert texts[tag].endswith("\n\n")
    assert "take off 1" in texts["SA"]
    assert "take off 1" in texts["PBL"]
    assert "take off" not in texts["MSR"]
    assert not built_in().is_official
    assert built_in().metric == "mmie_judge"


def test_the_prompt_in_its_order():
    prompts = JudgePrompts({"SA": "S\n", "PBL": "P\n", "MSR": "M\n"}, "It is ", "x")
    body = "### Question\nq <image>\nImage-0: <image>\n\n### Answer\nr\n"
    assert judge_text(VIEW, "SA", "ref", prompts) == f"S\n{body}\n### Feedback\n"
    assert judge_text(VIEW, "MSR", "ref", prompts) == f"M\n{body}\n### Correct Answer\nIt is ref\n### Feedback\n"
    assert judge_text(VIEW, "MSR", None, prompts).endswith("### Correct Answer\nIt is \n### Feedback\n")


def test_the_question_is_one_turn_with_the_pictures_in_their_places():
    question = judge_question(VIEW, "SA", None, built_in())
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
    assert all(isinstance(piece, Picture) or piece for piece in judge_pieces(View((), ()), "SA", None, built_in()))


def test_what_is_no_picture_is_refused_before_any_judge_is_asked(tmp_path):
    (tmp_path / "a.png").write_text("no picture")
    for value in (str(tmp_path / "a.png"), str(tmp_path), str(tmp_path / "none.png")):
        question = judge_question(View((Picture(value),), ()), "SA", None, built_in())
        with pytest.raises(MediaError):
            question.build_messages()


def test_a_users_texts_are_read_and_never_run(written):
    prompts = load_prompts(written(FILE))
    assert dict(prompts.systems) == {"SA": "story\n", "PBL": "how-to\nx", "MSR": "maths"}
    assert prompts.lead_in == "It is "
    assert prompts.metric == "mmie_judge"
    assert prompts.fingerprints()["SA"] == hashlib.sha256(b"story\n").hexdigest()


def test_only_the_official_fingerprints_make_the_published_metric(written, monkeypatch):
    prompts = load_prompts(written(FILE))
    monkeypatch.setattr(judge_prompts, "OFFICIAL", {tag: prompts.fingerprints()[tag] for tag in prompts.systems})
    assert prompts.is_official
    assert prompts.metric == "mmie_score"
    changed = load_prompts(written(FILE.replace("maths", "Maths")))
    assert changed.metric == "mmie_judge"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace("MSR_LEAD_IN", "LEAD"), "assigned to MSR_LEAD_IN at .*what stands between"),
        (FILE.replace("'maths'", "build()"), "assigned to MSR_PROMPT at"),
        (FILE.replace("'maths'", "5"), "assigned to MSR_PROMPT at"),
        ("def f(:", "cannot be parsed"),
        ("x = '\0'", "cannot be parsed"),
    ],
)
def test_what_is_refused(written, text, said):
    with pytest.raises(DataError, match=said):
        load_prompts(written(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_prompts(tmp_path / "none.py")
