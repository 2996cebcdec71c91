from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils.concurrency import AdaptiveConfig, LatencyWindow, compute_p95, decide, requests_before_decision

CONFIGS = st.builds(
    AdaptiveConfig, st.integers(-5, 300), st.integers(-5, 300), st.floats(-1, 60), st.floats(-1, 3), st.floats(-1, 3),
    st.floats(-1, 3),
)  # fmt: skip


@given(CONFIGS)
def test_sanitising_twice_changes_nothing(config: AdaptiveConfig) -> None:
    once = config.sanitized()
    assert once.sanitized() == once
    assert 1 <= once.min_concurrency <= once.max_concurrency


@given(CONFIGS, st.data())
def test_the_decision_stays_within_the_limits(config: AdaptiveConfig, data: st.DataObject) -> None:
    config = config.sanitized()
    current = data.draw(st.integers(config.min_concurrency, config.max_concurrency))
    total = data.draw(st.integers(0, 50))
    window = LatencyWindow(
        total,
        data.draw(st.integers(0, total)),
        data.draw(st.integers(0, total)),
        data.draw(st.lists(st.floats(0, 100), max_size=20)),
    )
    decision = decide(current, window, config)
    assert config.min_concurrency <= decision.next_concurrency <= config.max_concurrency
    if decision.should_reduce:
        assert decision.next_concurrency <= current


def test_down_on_limits_up_when_well() -> None:
    config = AdaptiveConfig()
    assert decide(10, LatencyWindow(100, 0, 6, [1.0]), config).next_concurrency == 7
    assert decide(10, LatencyWindow(100, 0, 0, [1.0]), config).next_concurrency == 11
    assert decide(10, LatencyWindow(100, 0, 1, [1.0]), config).next_concurrency == 10
    assert requests_before_decision(1) == 4
    assert requests_before_decision(9) == 9


@given(st.lists(st.floats(0, 100), min_size=1))
def test_most_values_lie_at_or_below_the_95th_percentile(values: list[float]) -> None:
    found = compute_p95(values)
    assert found in values
    assert sum(value <= found for value in values) >= int(0.95 * (len(values) - 1)) + 1


def test_no_value_has_the_percentile_0() -> None:
    assert compute_p95([]) == 0.0
