from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils import Collator, Grouper, Reorderer, chunks

REQUESTS = st.lists(
    st.tuples(st.text(max_size=5), st.sampled_from([{"t": 1, "until": ["a"]}, {"until": ["a"], "t": 1}, {"t": 2}])),
    max_size=30,
)


@given(REQUESTS, st.integers(0, 7), st.booleans())
def test_collator_restores_the_order(requests: list[tuple[str, dict[str, object]]], n: int, grouping: bool) -> None:
    collator = Collator(requests, lambda request: -len(request[0]), grouping=grouping)
    results = []
    for batch in collator.get_batched(n=n):
        assert batch
        assert n == 0 or len(batch) <= n
        if grouping:
            assert all(request[1] == batch[0][1] for request in batch)
        results += [request[0] + "!" for request in batch]
    assert collator.get_original(results) == [request[0] + "!" for request in requests]


def test_collator_sorts_groups_and_takes_a_size_function() -> None:
    requests = [("a", 0), ("bbb", 0), ("cc", 0)]
    collator = Collator(requests, lambda request: -len(request[0]), lambda request: request[1], grouping=True)
    assert [[r[0] for r in b] for b in collator.get_batched(n=2)] == [["bbb", "cc"], ["a"]]
    batches = list(collator.get_batched(n=1, batch_fn=lambda start, items: 1 if start == 0 else len(items)))
    assert [len(batch) for batch in batches] == [1, 2]
    assert len(collator) == 3


def test_collator_groups_by_unhashable_values() -> None:
    function = object()
    requests = [("a", {"stop": {"x"}, "f": function}), ("b", {"f": function, "stop": {"x"}}), ("c", {"stop": {"y"}})]
    assert [len(b) for b in Collator(requests, len, grouping=True).get_batched(n=9)] == [2, 1]


def test_missing_results_are_noticed() -> None:
    collator = Collator([("a", 0), ("b", 0)], len)
    list(collator.get_batched(n=1))
    with pytest.raises(ValueError, match="1 results for 2"):
        collator.get_original(["x"])


@given(st.lists(st.integers()))
def test_reorderer_and_grouper_restore_the_order(items: list[int]) -> None:
    reorderer = Reorderer(items, lambda item: -item)
    assert reorderer.get_reordered() == sorted(items, reverse=True)
    assert reorderer.get_original(reorderer.get_reordered()) == items
    grouper = Grouper(items, lambda item: item % 3)
    assert grouper.get_original(grouper.get_grouped()) == items


@given(st.lists(st.integers()), st.integers(1, 5))
def test_chunks(items: list[int], n: int) -> None:
    pieces = list(chunks(items, n))
    assert [item for piece in pieces for item in piece] == items
    assert all(len(piece) == n for piece in pieces[:-1])
