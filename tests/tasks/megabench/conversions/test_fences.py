from hypothesis import given

from lmms_eval.tasks.megabench.conversions.fences import Excerpt, FenceMode, extract_fence, extract_json_fence
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


@for_each(
    ("mode", "expected"),
    [("plain", "one\n  two"), ("ascii", "  one\n  two"), ("verbatim", "  one\n  two  ")],
)
def test_modes_differ_in_the_blanks_they_keep(mode: FenceMode, expected: str) -> None:
    assert extract_fence("see ```text\n\n  one\n  two  \n\n``` and ```b```", mode) == Excerpt(expected, True)


def test_the_tag_is_swallowed_even_before_content_on_its_line() -> None:
    assert extract_fence("```B```").text == ""
    assert extract_fence("```c++\nint x;\n```").text == "++\nint x;"
    assert extract_fence("```py x\ny```", "ascii").text == " x\ny"


def test_no_closing_fence_is_no_block() -> None:
    assert extract_fence("```python\nx") == Excerpt("```python\nx", False)


def test_blank_and_long_inputs_are_stripped_outside_plain_mode() -> None:
    assert extract_fence(" \n ", "ascii").text == ""
    assert extract_fence("a" * 10_001 + "  ", "verbatim").text == "a" * 10_001
    assert extract_fence("a  ", "verbatim").text == "a  "


def test_tags_of_json_blocks_begin_so_in_lower_case() -> None:
    assert extract_json_fence("```py\n1\n```\n```json\n{}\n```") == Excerpt("{}", True)
    assert extract_json_fence("[1] ```jsonc\n{}\n```") == Excerpt("c\n{}", True)
    assert extract_json_fence("```json5\n{}\n``` [1]").found
    assert not extract_json_fence("```JSON\n{}\n```").found
    assert not extract_json_fence("``` json\n{}\n```").found


@FUZZ
@given(reply_text)
def test_content_is_part_of_the_text(text: str) -> None:
    for mode in ("plain", "ascii", "verbatim"):
        fenced = extract_fence(text, mode)  # type: ignore[arg-type]
        assert fenced.text in text
        assert fenced.found <= (text.count("```") >= 2 or "``````" in text)


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        for mode in ("plain", "ascii", "verbatim"):
            extract_fence(NASTY[name], mode)  # type: ignore[arg-type]
        extract_json_fence(NASTY[name])
