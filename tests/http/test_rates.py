from __future__ import annotations

from lmms_eval.http.guard import MOST_CLIENTS, Rates, retry_after


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_empties_and_fills() -> None:
    clock = Clock()
    rates = Rates(3, 0.5, clock)
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 2.0]
    assert rates.take("b") == 0
    assert rates.wait_s("a") == 2.0
    clock.now = 2.0
    assert rates.wait_s("a") == 0
    assert [rates.take("a"), rates.take("a")] == [0, 2.0]
    clock.now = 1000.0
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 2.0]


def test_addresses_of_one_network_are_one_client() -> None:
    rates = Rates(1, 1.0, Clock())
    assert rates.take("2001:db8::1") == 0
    assert rates.take("2001:db8::2") == 1
    assert rates.take("2001:db8:0:1::1") == 0
    assert rates.take("192.0.2.1") == 0
    assert rates.take("::ffff:192.0.2.1") == 1


def test_memory_is_bounded() -> None:
    rates = Rates(1, 0.1, Clock())
    for number in range(MOST_CLIENTS + 10):
        rates.take(f"client {number}")
    assert len(rates._buckets) == MOST_CLIENTS
    assert rates.take("client 0") == 0


def test_waits_are_spelled_in_whole_seconds() -> None:
    assert [retry_after(one) for one in (0.1, 1.0, 1.2)] == ["1", "1", "2"]
