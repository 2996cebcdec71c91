from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.request import GeneratedImage, Response, Thoughts
from lmms_eval.errors import UsageError
from lmms_eval.filters.reasoning import (
    THOUGHT_TAGS,
    parse_reasoning_tags_config,
    split_thoughts,
    strip_reasoning_tags,
    thoughts_apart,
    without_box_marks,
)
from tests.cases import for_each

ONE_PAIR = [("<think>", "</think>")]
TAGGED = st.lists(st.sampled_from(["<think>", "</think>", "a", " b ", "\n"]), max_size=12).map("".join)


@given(TAGGED)
def test_stripping_twice_changes_nothing(text: str) -> None:
    once = strip_reasoning_tags(text, ONE_PAIR)
    assert strip_reasoning_tags(once, ONE_PAIR) == once


@given(TAGGED)
def test_no_closed_thought_is_left(text: str) -> None:
    opening, found, rest = strip_reasoning_tags(text, ONE_PAIR).partition("<think>")
    assert not found or "</think>" not in rest
    assert found or "</think>" not in opening


def stripped_step_by_step(text: str, opening: str, closing: str) -> str:
    """The rule as it is written: what a removal joins together is looked at again."""
    while (start := text.find(opening)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            return text.strip()
        text = text[:start] + text[end + len(closing) :]
    return text.rpartition(closing)[2].strip()


@given(
    st.lists(st.sampled_from(["<a>", "</a>", "<", "a", ">", "/a>", "<a", "aa", "b"]), max_size=20).map("".join),
    st.sampled_from([("<a>", "</a>"), ("a", "b"), ("a", "a"), ("aa", "b"), ("<a>", "a"), ("a", "<a>")]),
)
def test_one_pass_gives_what_the_steps_give(text: str, pair: tuple[str, str]) -> None:
    assert strip_reasoning_tags(text, [pair]) == stripped_step_by_step(text, *pair)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert strip_reasoning_tags(text) == strip_reasoning_tags(text).strip()


def test_equal_tags() -> None:
    assert strip_reasoning_tags("|x|y", [("|", "|")]) == "y"


@given(st.text(max_size=30))
def test_configuration_is_pairs_or_a_usage_error(text: str) -> None:
    try:
        pairs = parse_reasoning_tags_config(cli_value=text)
    except UsageError:
        return
    assert pairs is None or all(opening and closing for opening, closing in pairs)


@for_each("value", ['[["a", ""]]', '[["a"]]', '["ab"]', "5", '{"a": 1}', "[[1, 2]]", "true", "[" * 99999])
def test_other_json_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="reasoning tags"):
        parse_reasoning_tags_config(cli_value=value)


def test_the_task_beats_the_command_line() -> None:
    assert parse_reasoning_tags_config("none", '[["<r>", "</r>"]]') == [("<r>", "</r>")]
    assert parse_reasoning_tags_config('[["<r>", "</r>"]]', False) is None
    assert parse_reasoning_tags_config("NULL") is None


ANSWERS = [
    ("<think>a</think>b", ("a", True), "b"),
    ("a</think>b", ("a", True), "b"),  # the chat template opened it
    ("<think>a", ("a", False), ""),
    (" <think>a</think>\n<think>b</think> x<think>c</think>y", ("a</think>\n<think>b", True), " x<think>c</think>y"),
    ("x<think>c</think>y", None, "x<think>c</think>y"),
    ("<think>a<think>b</think>c</think>d", ("a<think>b</think>c", True), "d"),
    ("analysisfoo assistantfinalbar", ("foo ", True), "bar"),
    ("analysis of the picture", None, "analysis of the picture"),
    ("[THINK]u[/THINK]v", ("u", True), "v"),
    ("◁think▷u◁/think▷v", ("u", True), "v"),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>42",
     ("hm<|end|><|start|>assistant", True), "42"),
    ("plain", None, "plain"),
]  # fmt: skip


@for_each(("text", "thought", "answer"), ANSWERS)
def test_thoughts_at_the_start_are_apart_from_the_answer(
    text: str, thought: tuple[str, bool] | None, answer: str
) -> None:
    thoughts, rest = split_thoughts(text)
    assert rest == answer
    assert (None if thoughts is None else (thoughts.text, thoughts.is_finished)) == thought


def test_a_prompt_that_opens_the_thought_leaves_an_unfinished_one() -> None:
    thoughts, answer = split_thoughts("no tag at all", is_opened=True)
    assert answer == ""
    assert thoughts is not None
    assert not thoughts.is_finished


PIECES = st.sampled_from(
    [tag for pair in THOUGHT_TAGS for tag in pair] + ["a", " ", "\n", "analysis", "assistantfinal"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.booleans())
def test_thoughts_and_answer_together_are_what_was_written(text: str, is_opened: bool) -> None:
    thoughts, answer = split_thoughts(text, is_opened=is_opened)
    if thoughts is None:
        assert answer == text
    elif thoughts.opening or thoughts.closing:
        assert thoughts.before(answer) == text
    else:  # the prompt opened it, and nothing closed it
        assert (thoughts.text, answer) == (text, "")


def test_a_response_without_thoughts_stays_itself() -> None:
    for response in (
        Response("r", text="plain"),
        Response("r", text=""),
        Response("r", loglikelihood=-1.0),
        Response("r", rounds=("<think>a</think>b",)),
        Response.failure("r", "timeout", "late"),
        Response("r", text="b", thoughts=Thoughts("a")),
        Response("r", text="", thoughts=Thoughts("a", is_finished=False)),
    ):
        assert thoughts_apart(response) is response


def test_recorded_responses_are_read_with_the_tags_of_today() -> None:
    said = Response("r", text="<hm>a</hm>b")
    assert thoughts_apart(said) is said
    found = thoughts_apart(said, [*THOUGHT_TAGS, ("<hm>", "</hm>")])
    assert (found.text, found.thoughts) == ("b", Thoughts("a", "<hm>", "</hm>"))
    assert thoughts_apart(found) == thoughts_apart(found, ()) == said
    apart = Response("r", text="b", thoughts=Thoughts("a"))
    assert thoughts_apart(apart, ()) is apart


def test_thoughts_before_a_picture() -> None:
    picture = GeneratedImage("0" * 64, "image/png")
    finished = Response.interleaved("r", ["<think>", "a</think>b", picture, "<think>c"])
    found = thoughts_apart(finished)
    assert (found.text, found.parts, found.thoughts) == (
        "b<think>c", ("b", picture, "<think>c"), Thoughts("a", "<think>", "</think>"),
    )  # fmt: skip
    assert thoughts_apart(found) is found
    drawn = Response.interleaved("r", ["<think>a", picture])
    assert thoughts_apart(drawn) is drawn, "the picture is an answer"


@given(st.lists(PIECES, max_size=12).map("".join))
def test_taking_thoughts_apart_twice_changes_nothing(text: str) -> None:
    once = thoughts_apart(Response("r", text=text))
    assert thoughts_apart(once) == once
    thoughts, answer = once.thoughts, once.text or ""
    if thoughts is None:
        assert answer == text
    else:  # one that is not finished may begin with a closing tag
        assert text in (thoughts.before(answer), thoughts.text)


def test_marks_of_a_final_answer_go_and_what_they_enclose_stays() -> None:
    assert without_box_marks("So <|begin_of_box|>B<|end_of_box|>.") == "So B."
    assert without_box_marks("<|begin_of_box|>B") == "B"
    for text in ("B", "<answer>B</answer>", "<|end_of_box|>"):
        assert without_box_marks(text) == text
