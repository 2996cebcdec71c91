import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.conversions.structures import MAX_SPANS, read_structure
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


@for_each(
    ("text", "expected"),
    [
        ("so {'a': 1} it is", {"a": 1}),
        ('{"a": true, "b": null}', {"a": True, "b": None}),
        ("{'a': true, 'it': \"isn't\"}", {"a": True, "it": "isn't"}),
        ("{'a': (1, 2), 3: {4}}", {"a": (1, 2), 3: {4}}),
        ('{"a": "[1, 2]"}', {"a": [1, 2]}),
        ("{'a': '[1, 2]'}", {"a": "[1, 2]"}),
        ("{'a': 1} then [2]", [2]),
        ("[1, 2] and [3]", []),
        ("[1, {'a': ']'}, 2]", [1, {"a": "]"}, 2]),
        ("nothing", {}),
        ("[nothing", []),
        ('```json\n{"a":\n1}\n```', {"a": 1}),
    ],
)
def test_reads(text: str, expected: Any) -> None:
    assert read_structure(text) == expected


def test_the_first_answer_line_counts_and_only_that_line() -> None:
    assert read_structure("Answer: {'a': 1}\nAnswer: {'a': 2}") == {"a": 1}
    assert read_structure('Answer: {\n"a": 1\n}') == {}
    assert read_structure("Answer:\n\n{'a': 1}") == {"a": 1}
    assert read_structure("**Answer: {'a': 1}**\n{'b': 2}") == {"a": 1}
    assert read_structure(" Answer: {'a': 1}\n{'b': 2}") == {"b": 2}


def test_a_fence_for_json_with_comments_is_read() -> None:
    assert read_structure("{'a': 1} ```jsonc\n{'b': 2}\n``` {'c': 3}") == {"b": 2}


def test_the_python_literal_wins_over_json() -> None:
    assert read_structure('{"a": "\\/"}') == {"a": "\\/"}


def test_only_the_last_candidates_are_tried() -> None:
    assert read_structure("{'a': 1}" + "{x}" * (MAX_SPANS - 1)) == {"a": 1}
    assert read_structure("{'a': 1}" + "{x}" * MAX_SPANS) == {}


@FUZZ
@given(reply_text)
def test_never_raises(text: str) -> None:
    assert isinstance(read_structure(text), dict | list | set)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text("abc xyz", max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@FUZZ
@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), json_values, min_size=1, max_size=4))
def test_finds_a_dictionary_in_prose(value: dict[str, Any]) -> None:
    assert read_structure(f"I think:\n{json.dumps(value, indent=1)}\nThat is all.") == value
    assert read_structure(f"reasons\nAnswer: {value!r}") == value


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        read_structure(NASTY[name])


@for_each(
    ("text", "line", "whole"),
    [
        ("Answer: {\n'a': 1}", {}, {"a": 1}),
        ("Answer: [1,\n2]", [], [1, 2]),
        ("Answer:\n```json\n{'a': 1}\n```", {}, {"a": 1}),
        ("**Answer:**\n{'a': 1}", {}, {"a": 1}),
        ("Answer: {'a': 1}\n{'b': 2}", {"a": 1}, {"b": 2}),
        ("The Answer: {\n'a': 1}", {"a": 1}, {"a": 1}),
        ("{'b': 2}\nAnswer: {'a':\n1}", {}, {"a": 1}),
    ],
)
def test_the_whole_answer_may_be_read(text: str, line: Any, whole: Any) -> None:
    assert read_structure(text) == line
    assert read_structure(text, whole_answer=True) == whole
