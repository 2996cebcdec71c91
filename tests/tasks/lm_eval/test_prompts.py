"""Tests of ``lmms_eval.tasks.lm_eval.prompts``."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.tasks.lm_eval.prompts import needs_blank
from lmms_eval.tasks.yaml.prompts import RenderError
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import CHOSEN, ROWS, asked, opened, turns

CHAT = TaskOptions(apply_chat_template=True)


def test_a_newline_at_the_end_of_a_template_stays(tmp_path: Path) -> None:
    task = opened(tmp_path, {"description": "Answer.\n\n", "doc_to_text": "{{q}}\n"})
    assert asked(task)[0].context == "Answer.\n\nsky\n"


def test_without_a_chat_template_the_prompt_is_one_text(tmp_path: Path) -> None:
    options = TaskOptions(system_instruction="Be brief.", num_fewshot=1)
    task = opened(
        tmp_path, {"description": "Colours:", "gen_prefix": "It is", "fewshot_config": {"sampler": "first_n"}},
        options=options,
    )  # fmt: skip
    (request,) = asked(task, 1)
    text = "Be brief.\n\nColours:sky? It is blue\n\ngrass? It is"
    assert request.context == text
    assert turns(request) == [("user", text)] and request.build_messages().is_plain


def test_a_conversation_has_the_examples_as_turns_unless_they_are_joined(tmp_path: Path) -> None:
    changes = {"description": "Colours.", "fewshot_config": {"sampler": "first_n"}}
    task = opened(tmp_path / "a", changes, options=TaskOptions(apply_chat_template=True, num_fewshot=1))
    expected = [("system", "Colours."), ("user", "sky?"), ("assistant", "blue"), ("user", "grass?")]
    assert turns(asked(task, 1)[0]) == expected and not asked(task, 1)[0].build_messages().is_plain
    joined = TaskOptions(apply_chat_template=True, num_fewshot=1, fewshot_as_multiturn=False)
    other = opened(tmp_path / "b", changes, options=joined)
    assert turns(asked(other, 1)[0]) == [("system", "Colours."), ("user", "sky? blue\n\ngrass?")]
    assert task.fingerprint()["config"] != other.fingerprint()["config"]


def test_a_prefix_of_the_answer_is_a_turn_to_be_continued(tmp_path: Path) -> None:
    task = opened(tmp_path, {**CHOSEN, "gen_prefix": "It is"}, options=CHAT)
    requests = asked(task)
    assert turns(requests[0]) == [("user", "sky?"), ("assistant", "It is")]
    assert [request.continuation_after(has_template=False) for request in requests] == [" red", " blue"]


def test_choices_as_questions_keep_examples_and_description(tmp_path: Path) -> None:
    changes = {
        **CHOSEN, "description": "Sense:\n", "doc_to_text": "label", "doc_to_target": "q",
        "fewshot_config": {"sampler": "first_n"},
    }  # fmt: skip
    plain = opened(tmp_path / "a", changes, options=TaskOptions(num_fewshot=1))
    first, second = asked(plain, 1)
    assert turns(first) == [("user", "Sense:\nblue sky\n\ngreen")] and first.continuation == " grass"
    assert second.context == "Sense:\nblue sky\n\nblue"
    chat = opened(tmp_path / "b", changes, options=TaskOptions(num_fewshot=1, apply_chat_template=True))
    expected = [("system", "Sense:\n"), ("user", "blue"), ("assistant", "sky"), ("user", "blue")]
    assert turns(asked(chat, 1)[1]) == expected


def test_media_precede_the_question(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("one.png", "two.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    rows = [
        {"q": "<image> and <image>", "a": "x", "first": str(tmp_path / "one.png"), "other": str(tmp_path / "two.png")}
    ]
    code = "def second(doc):\n    return [doc['other']]\n"
    task = opened(tmp_path, {"doc_to_image": ["first", Function("utils.second")]}, code, rows=rows)
    (message,) = asked(task)[0].build_messages().messages
    assert [part.type for part in message.content] == ["image", "image", "text"]
    assert message.content[-1].text == "<image> and <image>?"  # type: ignore[union-attr]
    listed = opened(tmp_path / "b", {"doc_to_image": "{{[first, other]}}"}, rows=rows)
    assert [part.type for part in asked(listed)[0].build_messages().messages[0].content] == ["image", "image", "text"]
    wrong = opened(tmp_path / "c", {"doc_to_image": "picture"}, rows=rows)
    with pytest.raises(RenderError, match=r"doc_to_image: 'picture': there is no such column"):
        asked(wrong)[0].build_messages()


@for_each(
    ("value", "text"), [(1, "blue"), ([1, 0], "blue"), ("blue", "blue"), (["blue"], "blue"), ([0], "red"), (9, "9")]
)
def test_the_answer_of_an_example(tmp_path: Path, value: Any, text: str) -> None:
    rows = [{**ROWS[0], "answer": value}, *({**row, "answer": value} for row in ROWS[1:])]
    task = opened(tmp_path, {**CHOSEN, "doc_to_target": "answer"}, rows=rows)
    assert task.prompts.example(task.documents[0])[1] == text


def test_draws_follow_one_generator_and_do_not_depend_on_the_order_of_questions(tmp_path: Path) -> None:
    options = TaskOptions(num_fewshot=2, fewshot_seed=7)
    rows = [{"q": f"q{number}", "a": str(number)} for number in range(8)]
    data = {"training_split": "test", "fewshot_split": "test"}
    forwards = opened(tmp_path / "a", data, options=options, rows=rows)
    prompts = [asked(forwards, number)[0].context for number in range(8)]
    again = opened(tmp_path / "b", data, options=options, rows=rows)
    assert [asked(again, number)[0].context for number in reversed(range(8))] == prompts[::-1]
    drawing, expected = random.Random(7), []
    for number in range(
        8
    ):  # the stated split is the evaluated one: one more is drawn, and the document itself left out
        drawn = [one for one in drawing.sample(range(8), 3) if one != number][:2]
        expected.append("".join(f"q{one}? {one}\n\n" for one in drawn) + f"q{number}?")
    assert prompts == expected


def test_a_question_that_may_be_its_own_example_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = {"fewshot_config": {"sampler": "first_n"}}
    task = opened(tmp_path / "a", first, options=TaskOptions(num_fewshot=1))
    assert asked(task)[0].context == "sky? blue\n\nsky?"
    assert "a question may be one of its own examples: both are from the split 'test'" in caplog.text
    caplog.clear()
    other = opened(tmp_path / "b", {**first, "fewshot_split": "test"}, options=TaskOptions(num_fewshot=1))
    assert asked(other)[0].context == "grass? green\n\nsky?" and not caplog.text


@for_each(
    ("changes", "message"),
    [
        ({"fewshot_config": {"sampler": "balanced"}}, "sampler 'balanced'; valid are default, first_n"),
        ({"fewshot_config": {"samples": 3}}, "samples must be a list of documents"),
        ({"fewshot_config": {"samples": []}}, "num_fewshot 2: there are only 0 documents"),
    ],
)
def test_examples_that_cannot_be_drawn(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        opened(tmp_path, changes, options=TaskOptions(num_fewshot=2))


def test_the_assembly_of_all_combinations(tmp_path: Path) -> None:
    """Blanks are put exactly where neither side of a joint has white space."""
    cases = itertools.product(("", "Now", "Now "), ("{{q}}", "{{q}}\n"), (" ", "", "\n"), ("Say", "Say\n", ""))
    for number, (description, question, delimiter, prefix) in enumerate(cases):
        changes = {
            "description": description, "doc_to_text": question, "target_delimiter": delimiter, "gen_prefix": prefix,
            "fewshot_config": {"sampler": "first_n"},
        }  # fmt: skip
        task = opened(tmp_path / str(number), changes, options=TaskOptions(num_fewshot=1))
        made = asked(task, 1)[0].context
        shown = question.replace("{{q}}", "sky")
        after = delimiter if not prefix or not shown.endswith("\n") else ""
        answer = f"{prefix}{' ' if prefix == 'Say' else ''}blue"
        ends = question.replace("{{q}}", "grass")
        between = delimiter if prefix and not ends.endswith("\n") else ""
        assert made == f"{description}{shown}{after}{answer}\n\n{ends}{between}{prefix}", (number, made)


def test_a_blank_is_needed_between_words_only() -> None:
    assert needs_blank("a", "b") and not needs_blank("a ", "b") and not needs_blank("a", " b")
    assert not needs_blank("", "b") and needs_blank("a", "")
