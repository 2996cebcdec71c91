import pytest

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatMessages
from lmms_eval.judges import JudgeOptions, ask, open_judge
from lmms_eval.judges.internvl.loading import generation_of


@pytest.fixture(scope="module")
def judge(remote_folder):
    return open_judge(JudgeOptions(f"internvl:{remote_folder}", None, {"trust_remote_code": True}, "cpu"))


def question(*parts, generation=None):
    messages = ChatMessages(messages=[{"role": "user", "content": list(parts)}])
    return JudgeQuestion("x", lambda: messages, bool, generation or {})


def text(value):
    return {"type": "text", "text": value}


def image(path):
    return {"type": "image", "url": path}


def test_pictures_stand_in_their_places_and_literal_placeholders_stay(judge, pictures):
    (verdict,) = ask(judge, [question(text("a <image> b "), image(pictures[0]), text(" c"))])
    assert verdict.text.split("[")[-1].startswith("2 ")


def test_one_failure_does_not_end_the_others(judge, pictures):
    found = ask(
        judge,
        [
            question(text("FAIL")),
            question(text("NUMBER")),
            question(image("/no/such.png")),
            question({"type": "video", "url": "v.mp4"}),
            question(image(pictures[1]), text("fine")),
        ],
    )
    assert "internal: chat raised KeyError" in found[0].error
    assert "malformed: chat gave a int" in found[1].error
    assert found[2].error.startswith("media: ")
    assert "media: " in found[3].error
    assert found[4].error is None


def test_options_of_chat():
    assert generation_of({}) == {"max_new_tokens": 1024, "do_sample": False}
    assert generation_of({"max_new_tokens": 5, "temperature": 0.7}) == {"max_new_tokens": 5, "do_sample": False}
    sampled = generation_of({"do_sample": True, "temperature": 0.7, "top_p": None})
    assert sampled == {"max_new_tokens": 1024, "do_sample": True, "temperature": 0.7}
