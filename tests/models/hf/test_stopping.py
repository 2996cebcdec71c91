import pytest
import torch

from lmms_eval.models.hf.stopping import Ending, StopOnText, cut_at, find_ending


class LetterTokenizer:
    """Token n is the n-th letter; 0 is special."""

    def decode(self, ids, skip_special_tokens, clean_up_tokenization_spaces):
        return "".join("_abcdefghij"[i] for i in ids if i or not skip_special_tokens)


def test_rows_stop_on_their_own():
    stopper = StopOnText(LetterTokenizer(), ["bc", "dd"], prompt_length=2, skip_special_tokens=True)
    assert stopper(torch.tensor([[2, 3, 1, 2], [0, 1, 4, 4]]), None).tolist() == [False, True]
    assert stopper(torch.tensor([[2, 3, 1, 2, 3], [0, 1, 4, 4, 0]]), None).tolist() == [True, True]
    assert stopper.stopped_at == {1: 2, 0: 3}


def test_a_stop_string_in_the_prompt_does_not_count():
    stopper = StopOnText(LetterTokenizer(), ["bc"], prompt_length=3, skip_special_tokens=True)
    assert stopper(torch.tensor([[1, 2, 3, 1]]), None).tolist() == [False]


def test_long_answers_are_looked_at_through_a_window():
    stopper = StopOnText(LetterTokenizer(), ["j"], prompt_length=0, skip_special_tokens=True)
    assert stopper(torch.tensor([[1] * 500 + [10]]), None).tolist() == [True]


@pytest.mark.parametrize(
    ("ids", "stopped_at", "expected"),
    [
        ([5, 6, 2, 0, 0], None, Ending([5, 6], 3, True)),
        ([5, 6, 7], None, Ending([5, 6, 7], 3, False)),
        ([5, 6, 7, 8], 2, Ending([5, 6], 2, True)),
        ([2, 0], None, Ending([], 1, True)),
        ([5, 2, 0, 0], 4, Ending([5], 2, True)),
    ],
)
def test_find_ending(ids, stopped_at, expected):
    assert find_ending(ids, {2}, stopped_at) == expected


def test_cut_at_the_earliest():
    assert cut_at("one two three", ["three", "two"]) == "one "
    assert cut_at("one", ["x"]) == "one"
    assert cut_at("one", []) == "one"
