"""Rates are those of what was watched."""

from __future__ import annotations

from lmms_eval.results.follow import Pace


def test_rates_are_those_of_the_last_minute() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.rates() is None
    for second in range(200):
        now[0] = float(second)
        pace.see(done=10 * min(second, 100), tokens=70 * min(second, 100))
        if second == 1:
            assert pace.rates() is None  # too early
        if second == 50:
            assert pace.rates() == (10.0, 70.0)
    assert pace.rates() == (0.0, 0.0)  # nothing came for more than a minute
