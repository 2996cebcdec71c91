"""Instructions are followed as the answer stands (strict), or in one of its readings (loose)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.ifeval.instructions import RULES
from lmms_eval.tasks.ifeval.utils import over_instructions, process_results, readings
from tests.cases import for_each
from tests.tasks.linguistic_kit import NLTK_DATA, needs_nltk_data

SETTINGS = {"nltk_data": str(NLTK_DATA)}


def followed(name: str, answer: str, **stated: Any) -> bool:
    doc = {"instruction_id_list": [name], "kwargs": [stated]}
    (held,) = process_results(doc, [answer], SETTINGS)["inst_level_strict_acc"]
    return bool(held)


@for_each(
    ("name", "stated", "right", "wrong"),
    [
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "*** a *** b ***", "a *** *** b"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "lamp"},
            "one\n\n\"Lamp's light",
            "one\n\n\n\nlamp",
        ),
        ("keywords:existence", {"keywords": ["lamp", "riv.r"]}, "LAMP River", "lamp"),
        ("keywords:forbidden_words", {"forbidden_words": ["lamp"]}, "lamps", "a LAMP."),
        ("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "less than"}, "A b", "aba"),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[[a] b] [c]", "[a\n] [b]"),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "p. p. s. more", "P.S. more"),
        ("detectable_content:postscript", {"postscript_marker": "N.B."}, "n.b. more", "nxbx"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n\n  - b", "* a\n** b\n"),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "*a* and * *"),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "SECTION", "num_sections": 2},
            "SECTION 1\nx\nSECTION 2\ny",
            "SECTION one, SECTION 2",
        ),
        ("detectable_format:json_format", {}, '```JSON\n{"a": [1]}\n```', "{a: 1}"),
        ("detectable_format:title", {}, "<<Title>>", "<< >>"),
        ("combination:two_responses", {}, "******one\n******\ntwo", "same ****** same"),
        ("combination:repeat_prompt", {"prompt_to_repeat": " Say hi."}, "say HI. Hi!", "Hi!"),
        ("startend:end_checker", {"end_phrase": "That is all. "}, 'x that is ALL."', "That is all. No."),
        ("startend:quotation", {}, '"a"', '"'),
    ],
)
def test_each_kind_of_instruction_has_its_rule(name: str, stated: Mapping[str, Any], right: str, wrong: str) -> None:
    assert followed(name, right, **stated)
    assert not followed(name, wrong, **stated)


@needs_nltk_data
def test_sentences_and_capital_words_are_those_of_nltk() -> None:
    assert followed(
        "length_constraints:number_sentences", "Dr. Who came. He left.", num_sentences=3, relation="less than"
    )
    assert followed(
        "change_case:capital_word_frequency", "NASA and ESA-1 met.", capital_frequency=2, capital_relation="at least"
    )


def test_languages_are_told_alike_every_time() -> None:
    pytest.importorskip("langdetect", reason="langdetect is not installed")
    german = "Das ist ein deutscher Satz mit vielen Worten, der gut zu erkennen ist."
    assert followed("language:response_language", german, language="de")
    assert not followed("language:response_language", german, language="en")
    assert followed("language:response_language", "1234 5678", language="de")  # no language can be told
    assert len({followed("language:response_language", "in die ja", language="de") for _ in range(20)}) == 1


def test_a_reading_without_the_first_line_counts_loosely() -> None:
    doc = {"instruction_id_list": ["startend:quotation", "punctuation:no_comma"], "kwargs": [{}, {}]}
    scored = process_results(doc, ['Sure, here:\n*"quoted"*'], SETTINGS)
    assert scored["inst_level_strict_acc"] == [False, False]
    assert scored["inst_level_loose_acc"] == [True, True]
    assert scored["prompt_level_loose_acc"] is True


def test_there_are_at_most_eight_readings() -> None:
    assert len(readings("*a*\n*b*\n*c*\n*d*")) == 8
    assert readings("plain") == ["plain", ""]


def test_an_empty_answer_follows_nothing() -> None:
    assert not followed("punctuation:no_comma", "")
    doc = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [None]}
    assert process_results(doc, ["a,\nb,"], SETTINGS)["prompt_level_loose_acc"] is False


@for_each(
    ("doc", "named"),
    [
        ({"instruction_id_list": ["unknown:thing"], "kwargs": [{}]}, "unknown:thing"),
        ({"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": []}]}, "'keywords'"),
        ({"instruction_id_list": ["keywords:existence"], "kwargs": []}, "'kwargs' holds 0"),
        (
            {
                "instruction_id_list": ["length_constraints:number_words"],
                "kwargs": [{"num_words": 1, "relation": "about"}],
            },
            "'about'",
        ),
    ],
)
def test_a_document_that_states_too_little_fails(doc: Mapping[str, Any], named: str) -> None:
    with pytest.raises(ItemError, match=named):
        process_results(doc, ["x"], SETTINGS)


STATED = {
    "num_words": 1, "num_sentences": 1, "relation": "at least", "num_paragraphs": 1, "nth_paragraph": 1,
    "first_word": "a", "keywords": ["a"], "forbidden_words": ["a"], "keyword": "a", "frequency": 1, "letter": "a",
    "let_frequency": 1, "let_relation": "at least", "num_placeholders": 1, "postscript_marker": "P.S.",
    "num_bullets": 1, "num_highlights": 1, "section_spliter": "Part", "num_sections": 1, "prompt_to_repeat": "a",
    "end_phrase": "a", "capital_frequency": 1, "capital_relation": "at least", "language": "en",
}  # fmt: skip
PACKAGED = ("language:", "change_case:", "length_constraints:number_sentences")


@for_each("piece", ["\n", "[", "<<", "* ", "p.", '"', "[" * 50 + "\n", "日本語", " "])
def test_answers_of_a_hundred_thousand_characters_take_no_time(piece: str) -> None:
    answer = (piece * 100_000)[:100_000] + "x"
    names = [name for name in RULES if not name.startswith(PACKAGED)]
    started = time.process_time()
    process_results({"instruction_id_list": names, "kwargs": [STATED] * len(names)}, [answer], SETTINGS)
    assert time.process_time() - started < 5


def test_the_share_is_one_over_all_instructions() -> None:
    assert over_instructions([[True, False], [True], [False, False, True]]).value == 0.5
    assert over_instructions([]).value is None
