from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.models.model_utils.concurrency_control import (
    AdaptiveConcurrencyConfig,
    AdaptiveConcurrencyDecision,
    decide_next_concurrency,
    extract_text_prefix_from_chat_messages,
    make_prefix_hash,
    parse_bool,
)
from tests.cases import for_each

CONFIG = AdaptiveConcurrencyConfig.from_raw("2", 16, "15", 0.1, 0.7, 0.05)


def test_nothing_asked_changes_nothing() -> None:
    decision = decide_next_concurrency(
        current_concurrency=1, total_requests=0, failed_requests=0, rate_limited_requests=0, latencies=[], config=CONFIG
    )
    assert decision == AdaptiveConcurrencyDecision(1, 1, 0.0, 0.0, 0.0, False)


@given(st.integers(1, 64), st.integers(1, 50), st.lists(st.floats(0, 100)))
def test_never_below_the_minimum(current: int, total: int, latencies: list[float]) -> None:
    decision = decide_next_concurrency(
        current_concurrency=current,
        total_requests=total,
        failed_requests=0,
        rate_limited_requests=0,
        latencies=latencies,
        config=CONFIG,
    )
    assert CONFIG.min_concurrency <= decision.next_concurrency <= max(current, CONFIG.max_concurrency)


@given(st.text(), st.integers(-3, 300))
def test_any_text_can_be_hashed(text: str, chars: int) -> None:
    assert make_prefix_hash(text, chars) == make_prefix_hash(text[: max(1, chars)], str(chars))


def test_characters_that_are_none_are_dropped() -> None:
    assert make_prefix_hash("a\ud800b") == make_prefix_hash("ab")


@given(st.lists(st.text()), st.integers(1, 20))
def test_the_prefix_is_that_of_the_joined_texts(texts: list[str], chars: int) -> None:
    messages = [{"content": [{"type": "text", "text": text}]} for text in texts]
    assert extract_text_prefix_from_chat_messages(messages, chars) == "".join(texts)[:chars]


@for_each(("value", "wanted"), [(" YES ", True), (2, False), ("y", False), (None, False)])
def test_truth_is_one_of_four_texts(value: object, wanted: bool) -> None:
    assert parse_bool(value) is wanted
