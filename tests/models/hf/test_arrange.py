from lmms_eval.api.messages import ChatMessages
from lmms_eval.models.hf.inputs import append_prompt, interleave


def chat(*parts, role="user"):
    """Texts, and numbers for pictures."""
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": part} for part in parts
    ]
    return ChatMessages(messages=[{"role": role, "content": content}]).messages


def parts_of(message):
    return [part.text if part.type == "text" else part.url for part in message.content]


def test_pictures_move_to_the_marks_that_name_them():
    (message,) = interleave(chat(10, 20, 30, "See <image 2> and <image1>. End"))
    assert parts_of(message) == [30, "See ", 20, " and ", 10, ". End"]


def test_marks_without_pictures_and_second_marks_stay():
    (message,) = interleave(chat(10, "<image 1><image 1> <image 7>"))
    assert parts_of(message) == [10, "<image 1> <image 7>"]
    (message,) = interleave(chat(10, "nothing named"))
    assert parts_of(message) == [10, "nothing named"]


def test_the_same_picture_twice_is_two_pictures():
    (message,) = interleave(chat(10, 10, "<image 2>"))
    assert parts_of(message) == [10, 10]


def test_the_prompt_goes_behind_the_last_text_of_the_user():
    messages = [*chat("a", 1, "b", 2), *chat("prefix", role="assistant")]
    assert [parts_of(message) for message in append_prompt(messages, "!")] == [["a", 1, "b!", 2], ["prefix"]]
    assert parts_of(messages[0]) == ["a", 1, "b", 2], "the task's own messages are left alone"
    assert parts_of(append_prompt(chat(1), "!")[0]) == [1, "!"]
    assert append_prompt(chat("a", role="system"), "!") == chat("a", role="system")
