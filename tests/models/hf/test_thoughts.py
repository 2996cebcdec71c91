"""Thoughts, stop strings and truncation of models that generate token by token what a script says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from lmms_eval.filters.reasoning import thoughts_apart
from tests.models.scripted import CHAT, THINKS, save_model, scripted

from .support import answers, ask, build

ANSWER = "The answer is B."
THOUGHT = "First, A?\n\nNo. B\nis right, since the picture shows it.\n\nSo B!"
SPECIAL = ("[THINK]", "[/THINK]")
CHANNELS = ("<|channel|>", "<|message|>", "<|start|>", "<|end|>")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Models by form."""
    root = tmp_path_factory.mktemp("scripted")
    return {
        "plain": save_model(root / "plain"),
        "opens": save_model(root / "opens", THINKS),
        "special": save_model(root / "special", CHAT, SPECIAL),
        "special_opens": save_model(root / "special_opens", CHAT + "[THINK]", SPECIAL),
        "channels": save_model(root / "channels", CHAT, CHANNELS),
    }


FORMS = {
    "plain": ("plain", "{a}"),
    "inline": ("plain", "<think>{t}</think>\n\n{a}"),
    "other tags": ("plain", "<|begin_of_thought|>{t}<|end_of_thought|>\n\n{a}"),
    "opened": ("opens", "{t}</think>\n\n{a}"),
    "opened, and the tag again": ("opens", "<think>{t}</think>\n\n{a}"),
    "special tokens": ("special", "[THINK]{t}[/THINK]{a}"),
    "opened by a special token": ("special_opens", "{t}[/THINK]{a}"),
    "channels": (
        "channels",
        "<|channel|>analysis<|message|>{t}<|end|><|start|>assistant<|channel|>final<|message|>{a}",
    ),
}


def written(form, answer=ANSWER):
    return FORMS[form][1].format(t=THOUGHT, a=answer)


def said(folders, form, text, *requests, **arguments):
    """Responses of a model that writes ``text``; to a question that begins with ``plain``, the answer alone."""
    model = build(folders[FORMS[form][0]], scripted(lambda prompt: text), **arguments)
    return list(answers(model, requests or [ask(0, "What?", max_new_tokens=200)]).values())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_thoughts_gives_one_answer(folders, form):
    (got,) = said(folders, form, written(form))
    assert (got.text.strip(), got.finish_reason, got.ended_by) == (ANSWER, "stop", None)
    if form == "plain":
        assert got.thoughts is None and got.usage.reasoning_tokens is None
        return
    assert got.thoughts.is_finished
    assert got.thoughts.text.startswith(THOUGHT)
    assert 15 < got.usage.reasoning_tokens < got.usage.output_tokens


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("beams", [1, 2])
def test_stop_strings_end_the_answer_and_no_thought(folders, form, beams):
    text = written(form, "Sure: B\nC! D") + " and on" * 9
    asked = ask(0, "What?", max_new_tokens=200, until=["\n", "!"], **({"num_beams": 2} if beams > 1 else {}))
    (got,) = said(folders, form, text, asked)
    assert (got.text.strip(), got.finish_reason, got.ended_by) == ("Sure: B", "stop", "\n")
    if beams == 1:
        (whole,) = said(folders, form, text)
        assert got.usage.output_tokens < whole.usage.output_tokens - 9, "it ends when the stop string is written"


@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
@pytest.mark.parametrize("options", [{}, {"until": ["\n\n"]}, {"num_beams": 2}], ids=str)
def test_a_thought_that_the_limit_cuts_off_leaves_no_answer(folders, form, options):
    (got,) = said(folders, form, written(form), ask(0, "What?", max_new_tokens=26, **options))
    assert (got.text, got.finish_reason) == ("", "length")
    assert not got.thoughts.is_finished
    assert THOUGHT.startswith(got.thoughts.text.strip())
    assert got.usage.reasoning_tokens == got.usage.output_tokens == 26


@pytest.mark.parametrize("form", ["inline", "opened", "special tokens"])
def test_a_thought_that_the_model_itself_leaves_open(folders, form):
    (got,) = said(folders, form, FORMS[form][1].format(t=THOUGHT, a="").split("</think>")[0].split("[/THINK]")[0])
    assert (got.text, got.finish_reason, got.thoughts.is_finished) == ("", "stop", False)


def test_rows_of_a_batch_think_by_themselves(folders):
    texts = {"one": "B\n\nC", "two": f"<think>{THOUGHT}</think>B\n\nC", "three": f"<think>{THOUGHT}" + " on" * 200}
    model = build(
        folders["plain"],
        scripted(lambda prompt: next(text for word, text in texts.items() if word in prompt)),
        batch_size=3,
    )
    asked = [ask(number, word, max_new_tokens=120, until=["\n\n"]) for number, word in enumerate(texts)]
    got = answers(model, asked)
    assert [got[number].text for number in range(3)] == ["B", "B", ""]
    assert [got[number].finish_reason for number in range(3)] == ["stop", "stop", "length"]
    assert [got[number].thoughts is None for number in range(3)] == [True, False, False]


def test_the_delimiter_of_examples_is_a_stop_of_plain_prompts_alone(folders):
    asked = replace(ask(0, "What?", max_new_tokens=200), implied_stop="\n\n")
    text = "One.\n\nTwo."
    (chat,) = said(folders, "plain", text, asked)
    assert (chat.text, chat.ended_by) == (text, None)
    begun = replace(asked, build_messages=lambda: _begun("Well,"))
    assert said(folders, "plain", text, begun)[0].text == text, "an answer that is continued is a chat too"
    (plain,) = said(folders, "plain", text, asked, chat_template="none")
    assert (plain.text, plain.ended_by, plain.finish_reason) == ("One.", "\n\n", "stop")
    stated = replace(asked, generation={**asked.generation, "until": ["T"]}, implied_stop="")
    assert said(folders, "plain", text, stated, chat_template="none")[0].text == "One.\n\n"


def _begun(text):
    from lmms_eval.api.messages import ChatMessages

    turns = [{"role": "user", "content": [{"type": "text", "text": "What?"}]}]
    return ChatMessages(messages=[*turns, {"role": "assistant", "content": [{"type": "text", "text": text}]}])


def test_a_plain_prompt_that_ends_with_an_opening_tag_opens_a_thought(folders):
    (got,) = said(
        folders, "plain", "Hm.\n\nHm", ask(0, "Think. <think>\n", until=["\n\n"], max_new_tokens=50),
        chat_template="none",
    )  # fmt: skip
    assert (got.text, got.thoughts.text, got.thoughts.is_finished) == ("", "Hm.\n\nHm", False)


@pytest.mark.parametrize(
    ("form", "expected"),
    [("inline", "<think>{t}</think>\n\nB"), ("opened", "{t}</think>\n\nB"), ("special tokens", "[THINK]{t}[/THINK]B")],
)
def test_a_task_may_ask_for_its_thoughts(folders, form, expected):
    asked = replace(ask(0, "What?", max_new_tokens=200, until=["\n"]), task=SimpleNamespace(thought_tags=()))
    (got,) = said(folders, form, written(form, "B\nC"), asked)
    assert (got.text, got.thoughts, got.finish_reason) == (expected.format(t=THOUGHT), None, "stop")
    assert got.usage.reasoning_tokens > 15
    cut = replace(asked, generation={"max_new_tokens": 9})
    (got,) = said(folders, form, written(form), cut)
    assert got.thoughts is None and got.text and got.finish_reason == "length"


def test_a_task_may_have_tags_of_its_own(folders):
    asked = replace(
        ask(0, "What?", max_new_tokens=200, until=["\n"]), task=SimpleNamespace(thought_tags=(("<r>", "</r>"),))
    )
    (got,) = said(folders, "inline", f"<r>{THOUGHT}</r>B\nC", asked)
    assert (got.text, got.thoughts.text) == ("B", THOUGHT)


def test_special_tokens_that_are_no_tags_stay_out_of_the_answer(folders):
    for text in ("<s>B<pad>.", "[THINK]x[/THINK]<s>B<pad>.", "[THINK]x[/THINK]B[THINK].", "B[/THINK]."[:1] + "."):
        (got,) = said(folders, "special tokens", text)
        assert got.text == "B."
    (got,) = said(folders, "special tokens", "<s>B", ask(0, "What?", skip_special_tokens=False))
    assert got.text == "<s>B"


@pytest.mark.parametrize("beams", [1, 3])
def test_how_an_answer_ended_does_not_depend_on_beams(folders, beams):
    options = {"num_beams": beams} if beams > 1 else {}
    for limit, expected in ((8, "length"), (11, "stop"), (30, "stop")):
        (got,) = said(folders, "plain", "0123456789", ask(0, "What?", max_new_tokens=limit, **options))
        assert (limit, got.finish_reason, got.text) == (limit, expected, "0123456789"[:limit])


def test_hidden_special_tokens_are_found_for_a_tokenizer_without_any():
    from lmms_eval.models.thoughts import special_tokens

    assert special_tokens(SimpleNamespace()) == {}


@pytest.mark.parametrize(
    ("form", "token", "text"),
    [
        ("plain", "###", "{t}###\n\n{a}"),
        ("plain", "</think>", "{t}</think>\n\n{a}"),
        ("special tokens", "[/THINK]", "[THINK]{t}[/THINK] {a}"),
        ("plain", "###", "{t}### perhaps ###\n{a}"),
    ],
)
def test_the_answer_begins_after_the_stated_token(folders, form, token, text):
    (got,) = said(folders, form, text.format(t=THOUGHT, a=ANSWER), think_end_token=token)
    assert got.text == ANSWER
    assert got.thoughts.is_finished and got.thoughts.text.startswith(THOUGHT)
    assert thoughts_apart(got) == got, "a task's own tags change nothing"
    assert got.usage.reasoning_tokens > 15


def test_the_token_may_be_a_number(folders):
    model = build(folders["special"], scripted(lambda prompt: f"{THOUGHT}[/THINK]{ANSWER}"))
    number = model.loaded.tokenizer.convert_tokens_to_ids("[/THINK]")
    (got,) = said(folders, "special tokens", f"{THOUGHT}[/THINK] {ANSWER}", think_end_token=str(number))
    assert got.text == ANSWER


@pytest.mark.parametrize("text", [ANSWER, f"  {ANSWER}"])
def test_an_answer_without_the_token_is_whole(folders, text):
    (got,) = said(folders, "plain", text, think_end_token="###")
    assert got.text == text and got.thoughts is None
