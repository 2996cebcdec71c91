import pytest

from lmms_eval.utils import reported
from lmms_eval.utils.reported import forget_reported, offer


def test_sums_are_read_and_forgotten_and_empty_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "_TOTALS", {})
    sums = {"calls": 3}
    offer("usage", lambda: sums, sums.clear)
    offer("throughput", dict, lambda: None)
    assert reported.reported() == {"usage": {"calls": 3}}
    forget_reported()
    assert reported.reported() == {}
