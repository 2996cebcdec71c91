"""Thoughts and stop strings of engines that write, token by token, what a script says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Request, Response
from tests.models.hf.support import answers, ask
from tests.models.offline.engines import Recorder, Writer
from tests.models.offline.support import FAKES, build
from tests.models.scripted import CHAT, THINKS, save_tokenizer

pytest.importorskip("transformers", reason="transformers is not installed")

THOUGHT = "First, A?\n\nNo. B\nis right."
SPECIAL = ("[THINK]", "[/THINK]")
FORMS = {
    "plain": ("plain", "{a}"),
    "inline": ("plain", "<think>{t}</think>\n\n{a}"),
    "opened": ("opens", "{t}</think>\n\n{a}"),
    "special tokens": ("special", "[THINK]{t}[/THINK]{a}"),
}
ONE_LINE = ("plain", "<think>B, since C is not.</think>\n\n{a}")
THINKING = tuple(form for form in FORMS if form != "plain")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Folders with tokenizers, and these, by name."""
    root = tmp_path_factory.mktemp("tokenizers")
    made = {"plain": (CHAT, ()), "opens": (THINKS, ()), "special": (CHAT, SPECIAL)}
    return {name: (root / name, save_tokenizer(root / name, *of)) for name, of in made.items()}


Say = Callable[..., list[Response]]


@pytest.fixture(params=FAKES)
def say(request: pytest.FixtureRequest, folders: dict[str, tuple[Path, Any]], seen: Recorder) -> Any:
    """Asks an engine that writes a text in a form."""

    def asked(form: str, answer: str, *requests: Request, **arguments: Any) -> list[Response]:
        folder, tokenizer = folders[FORMS[form][0]]
        seen.writer = Writer(tokenizer, lambda _: FORMS[form][1].format(t=THOUGHT, a=answer))
        model = build(request.param, str(folder), num_concurrent=1, **arguments)
        try:
            found: dict[int, Response] = answers(model, requests or [ask(0, "What?", max_new_tokens=200)])
        finally:
            model.close()
        return [found[number] for number in sorted(found)]

    return asked


def stops_sent(seen: Recorder) -> list[bool]:
    return [bool(call["sampling"].get("stop")) for call in seen.calls]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("until", [[], ["\n\n", "C"]], ids=str)
def test_every_form_of_thoughts_gives_one_answer(say: Say, form: str, until: list[str]) -> None:
    (got,) = say(form, "The answer is B.\n\nC D", ask(0, "What?", max_new_tokens=200, until=until))
    text = "The answer is B." if until else "The answer is B.\n\nC D"
    assert (got.text or "").strip() == text
    assert (got.finish_reason, got.ended_by) == ("stop", "\n\n" if until else None)
    assert got.usage is not None
    if form == "plain":
        assert got.thoughts is None
        return
    assert got.thoughts is not None and got.thoughts.is_finished
    assert got.thoughts.text == THOUGHT
    assert 10 < (got.usage.reasoning_tokens or 0) < (got.usage.output_tokens or 0)


@pytest.mark.parametrize("form", THINKING)
@pytest.mark.parametrize("until", [[], ["\n\n"]], ids=str)
def test_a_thought_that_the_limit_cuts_off_leaves_no_answer(say: Say, form: str, until: list[str]) -> None:
    (got,) = say(form, "B", ask(0, "What?", max_new_tokens=13, until=until))
    assert (got.text, got.finish_reason) == ("", "length")
    assert got.thoughts is not None and not got.thoughts.is_finished
    assert got.usage is not None and got.usage.reasoning_tokens == got.usage.output_tokens == 13


def test_a_model_that_is_not_known_to_think_gets_stops_until_it_does(say: Say, seen: Recorder) -> None:
    requests = [ask(number, f"What is {number}?", max_new_tokens=200, until=["\n"]) for number in range(3)]
    assert [got.text for got in say("plain", "B\nC", *requests)] == ["B"] * 3
    assert stops_sent(seen) == [True] * 3
    seen.calls.clear()
    assert [(got.text or "").strip() for got in say("inline", "B\nC", *requests)] == ["B"] * 3
    assert stops_sent(seen) == [True, False, False, False], "the first is asked again, the others without stops"


def test_a_model_whose_prompt_opens_a_thought_gets_no_stops(say: Say, seen: Recorder) -> None:
    (got,) = say("opened", "B\nC", ask(0, "What?", max_new_tokens=200, until=["\n"]))
    assert (got.text or "").strip() == "B"
    assert stops_sent(seen) == [False]


def test_a_stop_in_the_white_space_behind_a_thought_ends_nothing(
    say: Say, seen: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMS, "one line", ONE_LINE)
    (got,) = say("one line", "B\n\nD", ask(0, "What?", max_new_tokens=200, until=["\n\n"]))
    assert ((got.text or "").strip(), got.ended_by) == ("B", "\n\n")
    assert stops_sent(seen) == [True, False]


def test_plain_texts_keep_their_stops(say: Say, seen: Recorder) -> None:
    implied = replace(ask(0, "What?", max_new_tokens=200), implied_stop="\n\n")
    (got,) = say("plain", "B\n\nC", implied)
    assert (got.text, got.ended_by) == ("B\n\nC", None), "never of a chat"
    others = [replace(implied, id=f"task/{number}") for number in range(3)]
    plain = say("inline", "B\n\nC", *others, chat_template="none")
    assert [(got.text or "").strip() for got in plain] == ["B"] * 3
    assert stops_sent(seen) == [False] + [True, False] * 3, "what is completed next need not think"


def test_a_task_may_ask_for_its_thoughts(say: Say) -> None:
    keeping = cast("Any", SimpleNamespace(thought_tags=()))
    asked = replace(ask(0, "What?", max_new_tokens=200, until=["\n"]), task=keeping)
    assert say("inline", "B\nC", asked)[0].text == f"<think>{THOUGHT}</think>\n\nB"
    assert say("special tokens", "B\nC", asked)[0].text == f"[THINK]{THOUGHT}[/THINK]B"


def test_special_tokens_that_are_no_tags_stay_out_of_the_answer(say: Say, seen: Recorder) -> None:
    assert say("special tokens", "<s>B[THINK].")[0].text == "B."
    shown = ask(0, "What?", max_new_tokens=200, skip_special_tokens=False)
    assert say("special tokens", "<s>B.", shown)[0].text == "<s>B."
    say("plain", "B")
    skipped = [call["sampling"].get("skip_special_tokens", True) for call in seen.calls]
    assert skipped == [False, False, True]
