import pytest

from lmms_eval.utils import reported
from lmms_eval.utils.reported import TotalsReporter, forget_reported, offer


def test_sums_are_read_and_forgotten_and_empty_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "_REPORTS", {})
    sums = {"calls": 3}
    offer("usage", TotalsReporter(lambda: sums, sums.clear))
    offer("throughput", TotalsReporter(dict, lambda: None))
    assert reported.reported() == {"usage": {"calls": 3}}
    forget_reported()
    assert reported.reported() == {}
