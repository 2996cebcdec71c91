import time

from lmms_eval.tasks.general_bench.prompts.replies import json_values
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import MEGABYTE


@for_each(
    ("text", "values"),
    [
        ('```json\n[[1, 2, 3, 4, "a"]]\n```', [[[1, 2, 3, 4, "a"]]]),
        ("First [1], then [2, [3]].", [[2, [3]], [1]]),
        ('{"boxes": [[1, 2, 3, 4]]}', [{"boxes": [[1, 2, 3, 4]]}]),
        ("[[1, 2, 3, 4, 'it'], None,]", [[[1, 2, 3, 4, "it"], None]]),
        ('["a ] b", "c [ d"]', [["a ] b", "c [ d"]]),
        ('["a \\" ] b"]', [['a " ] b']]),
        ('a 5" pipe [1, 2]', [[1, 2]]),
        ("[see the note: [[1, 2]]", [[[1, 2]]]),
        ("a] } { [1]", [[1]]),
        ("[1 } 2]", []),
        ("[NaN], [Infinity], [1e999]", []),
        ("[12345678901234567890]", []),
        ("nothing", []),
        ("", []),
    ],
)
def test_lists_and_objects_in_a_text(text, values):
    assert list(json_values(text)) == values


def test_a_list_that_was_cut_short_has_its_complete_entries():
    assert next(json_values('Here: [[1, 2, 3, 4, "a"], [5, 6, 7, 8, "b"], [9, 1')) == [
        [1, 2, 3, 4, "a"],
        [5, 6, 7, 8, "b"],
    ]
    assert next(json_values('[{"frame": 1}, {"fra')) == [{"frame": 1}]


def test_an_open_bracket_after_the_answer_changes_nothing():
    assert list(json_values("[[1, 2]] [see")) == [[[1, 2]]]


@for_each(
    "piece",
    [
        "[",
        "[]",
        "[1]",
        '"\\"',
        "[1,",
        '{"a":',
        "]",
        '"[',
        "[1] [",
        "[None,'",
        "[9",
        ",",
        "\\",
        "\n[",
        '"',
        "{'a': [1], ",
    ],
)
def test_a_long_reply_takes_no_more_than_seconds(piece):
    start = time.process_time()
    count = sum(1 for _ in json_values(piece * (MEGABYTE // len(piece))))
    assert count <= 51
    assert time.process_time() - start < 20


def test_deep_nesting_is_no_crash():
    assert list(json_values("[" * 100_000 + "]" * 100_000)) == []
