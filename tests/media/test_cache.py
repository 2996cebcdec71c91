from __future__ import annotations

from lmms_eval.media.originals import ByteLRU


def test_bounded_in_bytes_and_least_recently_used_goes_first() -> None:
    cache: ByteLRU[bytes] = ByteLRU(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert cache.get("b") is None
    assert cache.get("a") == b"1234" and cache.get("c") == b"1234"
    assert cache.nbytes == 8 and len(cache) == 2


def test_too_large_is_not_kept_and_replaces_nothing() -> None:
    cache: ByteLRU[bytes] = ByteLRU(4, len)
    cache.put("a", b"12")
    cache.put("big", b"12345")
    assert cache.get("big") is None and cache.get("a") == b"12"


def test_replacing_a_value_counts_it_once() -> None:
    cache: ByteLRU[bytes] = ByteLRU(10, len)
    cache.put("a", b"12345")
    cache.put("a", b"123")
    assert cache.nbytes == 3


def test_get_or_make_computes_once() -> None:
    calls: list[int] = []

    def make() -> bytes:
        calls.append(1)
        return b"x"

    cache: ByteLRU[bytes] = ByteLRU(10, len)
    assert cache.get_or_make("k", make) == cache.get_or_make("k", make) == b"x"
    assert len(calls) == 1
    assert (cache.hits, cache.misses) == (1, 1)


def test_clear() -> None:
    cache: ByteLRU[bytes] = ByteLRU(10, len)
    cache.put("b", b"12345")
    cache.clear()
    assert cache.nbytes == 0 and cache.get("b") is None
