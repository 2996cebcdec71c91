"""Windows over the tokens of a long text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.request import Response, Usage
from lmms_eval.models.windows import context_length, prefix_token, rolling_windows, scored_windows, summed
from tests.cases import for_each


class Tokenizer:
    def __init__(self, bos: int | None = None, eos: int | None = None, length: float | None = None) -> None:
        self.bos_token_id, self.eos_token_id, self.model_max_length = bos, eos, length


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20))
def test_every_token_is_predicted_once_after_those_before_it(count: int, length: int, context: int) -> None:
    context = min(context, length)
    whole = [0, *range(1, count + 1)]
    predicted = []
    for number, (given_tokens, continuation) in enumerate(rolling_windows(whole[1:], 0, length, context)):
        assert len(given_tokens) <= length
        first = continuation[0]
        before = given_tokens[: len(given_tokens) - len(continuation) + 1]
        assert before == whole[first - len(before) : first] and before
        assert number == 0 or (len(given_tokens) == length and len(before) >= context)
        assert given_tokens == whole[first - len(before) : continuation[-1]]
        predicted += continuation
    assert predicted == whole[1:]


def test_a_window_of_the_whole_text() -> None:
    assert scored_windows([5, 6, 7], 1, 3) == [([1], [5, 6, 7])]
    assert scored_windows([5, 6, 7, 8], 1, 3) == [([1], [5, 6, 7]), ([5, 6, 7], [8])]
    assert scored_windows([], 1, 3) == []


@for_each("context", [0, 4])
def test_a_context_that_leaves_nothing_to_predict(context: int) -> None:
    with pytest.raises(ValueError, match="a window of 3 tokens cannot have a context of"):
        list(rolling_windows([1, 2], 0, 3, context))


def test_the_token_before_a_text() -> None:
    assert [prefix_token(Tokenizer(bos, 2)) for bos in (0, None)] == [0, 2]
    assert prefix_token(Tokenizer()) is None


@for_each(("stated", "length"), [(512, 512), (None, 2048), (int(1e30), 2048)])
def test_the_context_length_of_a_tokenizer(stated: float | None, length: int) -> None:
    assert context_length(Tokenizer(length=stated)) == length


def part(name: str, value: float, is_greedy: bool = True, tokens: int | None = 3) -> Response:
    return Response(name, loglikelihood=value, is_greedy=is_greedy, usage=Usage(tokens, 0), batch=("a", "b"))


def test_windows_add_up() -> None:
    whole = summed("r", [part("r#0", -1.5), part("r#1", -2.0, is_greedy=False)])
    assert (whole.request_id, whole.loglikelihood, whole.is_greedy, whole.usage) == ("r", -3.5, False, Usage(6, 0))
    assert whole.batch == ("a", "b")
    unknown = summed("r", [part("r#0", -1.5, tokens=None)]).usage
    assert unknown is None
    nothing = summed("r", [])
    assert (nothing.loglikelihood, nothing.is_greedy, nothing.usage) == (0.0, True, Usage(0, 0))


def test_a_window_that_fails_fails_the_text() -> None:
    whole = summed("r", [part("r#0", -1.5), Response.failure("r#1", "out_of_memory", "no room")])
    assert whole.request_id == "r" and whole.error is not None and whole.error.message == "no room"
