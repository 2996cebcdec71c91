import torch

from lmms_eval.models.hf.answering import GeneratedEnding, StopOnText, find_ending
from lmms_eval.models.thoughts import ReadingRules, TagTokens
from tests.cases import for_each


class LetterTokenizer:
    """Token n is the n-th letter; 0 is special. Counts what it decodes."""

    def __init__(self):
        self.decoded = []

    def decode(self, ids, skip_special_tokens, clean_up_tokenization_spaces):
        self.decoded.append(len(ids))
        return "".join("_abcdefghij()\n."[i] for i in ids if i or not skip_special_tokens)


THINKS = (("(", ")"),)


def make(until, rows=1, prompt_length=0, tokenizer=None, **reading):
    readings = [ReadingRules(tuple(until), THINKS, **reading)] * rows
    return StopOnText(TagTokens(tokenizer or LetterTokenizer()), readings, prompt_length, skip_special_tokens=True)


def written(text):
    return ["_abcdefghij()\n.".index(letter) for letter in text]


def stopped_at(text, *until, **reading):
    """Number of tokens after which a row is stopped as it is written; ``None``: never."""
    stopper = make(until, **reading)
    for length in range(1, len(text) + 1):
        if bool(stopper(torch.tensor([written(text[:length])]))[0]):
            return length
    return None


def test_rows_stop_on_their_own():
    stopper = make(["bc", "dd"], rows=2, prompt_length=2)
    assert stopper(torch.tensor([[2, 3, 1, 2], [0, 1, 4, 4]]), None).tolist() == [False, True]
    assert stopper(torch.tensor([[2, 3, 1, 2, 3], [0, 1, 4, 4, 0]]), None).tolist() == [True, True]
    assert stopper.stopped_at == {1: 2, 0: 3}


def test_a_stop_string_in_the_prompt_does_not_count():
    assert make(["bc"], prompt_length=3)(torch.tensor([[1, 2, 3, 1]]), None).tolist() == [False]


def test_long_answers_are_looked_at_through_a_window():
    assert make(["j"])(torch.tensor([[1] * 500 + [10]]), None).tolist() == [True]


@for_each(
    ("text", "reading", "expected"),
    [
        ("ab\nc", {}, 3),
        ("(a\nb\n", {}, None),
        ("\n(a\nb", {}, 1),
        ("(a\nb)c\nd", {}, 7),
        ("(a\nb)\n\nc\nd", {}, 9),
        ("(a\n)(b\n)c\n", {}, 10),
        ("a\nb)c\n", {}, 2),
        ("a\nb)c\n", {"is_opened": True}, 6),
        ("a\nb", {"is_opened": True}, None),
        ("(a\nb)c\n", {"is_opened": True}, 7),
        ("ab(c\n", {}, 5),
        ("(a\nb)c\n", {"keeps_thoughts": True}, 7),
    ],
)
def test_stop_strings_end_the_answer_behind_the_thoughts(text, reading, expected):
    assert stopped_at(text, "\n", **reading) == expected


def test_each_row_is_inside_a_thought_of_its_own():
    stopper = make(["\n"], rows=3)
    rows = ["(a\nbb", "aa\nbb", "(a)\nb"]
    for length in range(1, 6):
        stopper(torch.tensor([written(row[:length]) for row in rows]))
    assert stopper.stopped_at == {1: 3}


def test_a_text_without_thoughts_is_decoded_by_its_window_alone():
    tokenizer = LetterTokenizer()
    stopper = make(["dd"], tokenizer=tokenizer)
    for length in range(1, 200):
        stopper(torch.tensor([[1] * length]))
    assert len(tokenizer.decoded) == 199
    assert max(tokenizer.decoded) == 2 + 4


def test_a_long_thought_full_of_stop_strings_is_decoded_as_a_whole_a_few_times():
    tokenizer = LetterTokenizer()
    stopper = make(["\n"], tokenizer=tokenizer)
    text = "(" + "ab\n" * 200 + ")c"
    for length in range(1, len(text) + 1):
        stopper(torch.tensor([written(text[:length])]))
    assert sum(length > 10 for length in tokenizer.decoded) <= 3
    assert stopper.stopped_at == {}


@for_each(
    ("ids", "stopped_at", "expected"),
    [
        ([5, 6, 2, 0, 0], None, GeneratedEnding([5, 6], 3, True)),
        ([5, 6, 7], None, GeneratedEnding([5, 6, 7], 3, False)),
        ([5, 6, 7, 8], 2, GeneratedEnding([5, 6], 2, True)),
        ([2, 0], None, GeneratedEnding([], 1, True)),
        ([5, 2, 0, 0], 4, GeneratedEnding([5], 2, True)),
    ],
)
def test_find_ending(ids, stopped_at, expected):
    assert find_ending(ids, {2}, stopped_at) == expected
