from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.asr import compute_wer
from lmms_eval.errors import UsageError
from lmms_eval.metrics.aggregations import wer as rate
from lmms_eval.metrics.speech import wer

TEXTS = st.lists(st.sampled_from(["a", "B", "b", "c,", ",", "!?", "\n"]), max_size=8).map(" ".join)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_the_rate_is_that_of_task_files(pairs: list[tuple[str, str]]) -> None:
    truths, transcripts = [truth for truth, _ in pairs], [transcript for _, transcript in pairs]
    try:
        wanted = compute_wer(truths, transcripts, "de")
    except ZeroDivisionError:
        wanted = None
    try:
        found = rate([wer([truth], [transcript]) for truth, transcript in pairs])
    except UsageError:
        found = None
    assert found == wanted


def test_the_nearest_reference_counts() -> None:
    assert wer(["one two three", "two"], ["two three"]) == (1, 3)
    assert wer(["", "two"], ["two"]) == (0, 1)
