from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.utils.prompt_variants import (
    PromptVariant,
    option_letters,
    parse_variants,
    relabelled,
    variants_text,
    with_letters,
)
from tests.cases import for_each

FILE = """
own: false
variants:
  - {name: terse, post_prompt: "\\nOne word."}
  - name: numbers
    system_prompt: ""
    option_labels: [1, 2, 3]
"""


def test_a_file_is_read_once_and_its_text_takes_its_place(tmp_path: Path) -> None:
    file = tmp_path / "v.yaml"
    file.write_text(FILE)
    text = variants_text(str(file))
    file.unlink()
    found = parse_variants(text)
    assert not found.has_own
    assert found.variants == (
        PromptVariant("terse", post_prompt="\nOne word."),
        PromptVariant("numbers", system_prompt="", option_labels=("1", "2", "3")),
    )
    assert variants_text(text) == text == variants_text({"own": False, "variants": [
        {"name": "terse", "post_prompt": "\nOne word."},
        {"name": "numbers", "system_prompt": "", "option_labels": ["1", "2", "3"]},
    ]})  # fmt: skip


def test_the_digest_is_of_the_changes_alone() -> None:
    one, other = PromptVariant("a", pre_prompt="x"), PromptVariant("b", pre_prompt="x")
    assert one.digest == other.digest != PromptVariant("a", post_prompt="x").digest
    assert PromptVariant("a", pre_prompt="").digest != PromptVariant("a").digest


@for_each(
    "content, said",
    [
        ([], "no variants"),
        (None, "no variants"),
        ({"variants": []}, "no variants"),
        ({"variant": [{"name": "a", "pre_prompt": "x"}]}, "unknown key 'variant'"),
        ({"own": "no", "variants": [{"name": "a", "pre_prompt": "x"}]}, "own: 'no'"),
        (["terse"], "variant 1: 'terse' is not a mapping"),
        ([{"name": "a", "prompt": "x"}], "variant 1: unknown key 'prompt'; it takes name, pre_prompt"),
        ([{"name": "a", "pre_prompt": "x"}, {"name": "a", "pre_prompt": "y"}], "2 variants are called 'a'"),
        ([{"pre_prompt": "x"}], "name None is no name"),
        ([{"name": "as given", "pre_prompt": "x"}], "name 'as given' is no name"),
        ([{"name": "no-media", "pre_prompt": "x"}], "'no-media' is the name of a control"),
        ([{"name": "a/b", "pre_prompt": "x"}], "is no name"),
        ([{"name": "a"}], r"variant 1 \(a\): changes nothing"),
        ([{"name": "a", "pre_prompt": 3}], "pre_prompt is 3; give a text"),
        ([{"name": "a", "option_labels": ["1"]}], "two or more different labels"),
        ([{"name": "a", "option_labels": ["x", "X"]}], "two or more different labels"),
        ([{"name": "a", "option_labels": "1234"}], "two or more different labels"),
        ([{"name": "a", "option_labels": ["(1)", "(2)"]}], "two or more different labels"),
    ],
)
def test_mistakes_are_one_line(content: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        variants_text({"variants": content} if content is None else content)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml: the file cannot be read"):
        variants_text(str(tmp_path / "absent.yaml"))
    (tmp_path / "v.yaml").write_text("- {name: a\n")
    with pytest.raises(UsageError, match=r"v\.yaml: line 2"):
        variants_text(str(tmp_path / "v.yaml"))
    with pytest.raises(UsageError, match="--prompt_variants"):
        variants_text("[{")


def test_only_the_labels_of_option_lines_change() -> None:
    text = "A. Who is a B?\nOptions:\nA. a cat\n (B) a dog\nC: A. of both\nAnswer with A, B or C."
    assert relabelled(text, ["1", "2", "3"]) == (
        "A. Who is a B?\nOptions:\n1. a cat\n (2) a dog\n3: A. of both\nAnswer with A, B or C."
    )
    assert relabelled("No options here.\nA. alone", ["1", "2"]) == "No options here.\nA. alone"
    assert [match["letter"] for match in option_letters(text)] == ["A", "B", "C"]
    with pytest.raises(UsageError, match="2 labels for 3 options"):
        relabelled(text, ["1", "2"])


@for_each(
    "answer, expected",
    [
        ("2", "B"),
        (" (2) ", " (B) "),
        ("2. a dog with 3 legs", "B. a dog with 3 legs"),
        ("**3**", "**C**"),
        ("1\nsince 2 is wrong", "A\nsince 2 is wrong"),
        ("There are 2 dogs and 3 cats. The answer is 1.", "There are 2 dogs and 3 cats. The answer is A."),
        ("Answer: (3)", "Answer: (C)"),
        ("The answer is option 2", "The answer is option B"),
        ("Option 3 is the right choice here.", "Option C is the right choice here."),
        ("The answer is clear: choice 1", "The answer is clear: choice A"),
        ("so \\boxed{2}", "so \\boxed{B}"),
        ("1. look 2. think. Answer: 3", "1. look 2. think. Answer: C"),
        ("2 dogs", "2 dogs"),
        ("12", "12"),
        ("B", "B"),
        ("", ""),
        ("<think>2. no, answer is 1</think>3", "<think>2. no, answer is 1</think>C"),
    ],
)
def test_the_stated_label_becomes_the_tasks_letter(answer: str, expected: str) -> None:
    assert with_letters(answer, ["1", "2", "3"], [("<think>", "</think>")]) == expected


def test_labels_that_are_letters_are_exchanged_at_once() -> None:
    assert with_letters("B", ["B", "A"]) == "A"
    assert with_letters("(a) yes", ["a", "b"]) == "(A) yes"
    assert with_letters("The answer is b", ["a", "b"]) == "The answer is B"
