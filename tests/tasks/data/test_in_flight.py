from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.data.documents import Documents, RowsInFlight
from lmms_eval.tasks.data.sources import TableSource
from tests.cases import for_each


def row(text: str) -> dict[str, Any]:
    return {"text": text}


def test_a_row_is_kept_until_it_is_dropped() -> None:
    rows = RowsInFlight()
    kept = rows.keep("one", row("a"))
    assert rows.get("one") is kept
    rows.drop("one")
    rows.drop("one")
    assert rows.get("one") is None and len(rows) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5000), st.booleans())))
def test_the_bound_holds_and_the_oldest_go_first(steps: list[tuple[int, int, bool]]) -> None:
    rows, order = RowsInFlight(max_bytes=10_000), list[int]()
    for key, size, is_dropped in steps:
        if key in order:
            order.remove(key)
        if is_dropped:
            rows.drop(key)
        else:
            rows.keep(key, row("x" * size))
            order.append(key)
        kept = [key for key in order if rows.get(key) is not None]
        assert kept == order[len(order) - len(kept) :] and len(rows) == len(kept)
        assert sum(len(found.values["text"]) for key in kept if (found := rows.get(key))) <= 10_000
        assert kept or not order  # a row of at most 5,000 bytes has its place
        order = kept


def test_a_row_larger_than_everything_is_not_kept() -> None:
    rows = RowsInFlight(max_bytes=1000)
    rows.keep("large", row("x" * 5000))
    assert len(rows) == 0


@for_each("value", ["text", 1, None, [1, [2]], {"a": [1]}, [{"a": "b"}]])
def test_readers_may_change_their_copy(value: Any) -> None:
    documents = Documents(TableSource(pa.table({"plain": [1], "value": [None]}), []), rows=RowsInFlight())
    kept = {"plain": 1, "value": value}
    documents.take(0, kept)
    mine = documents[0]
    assert mine == kept
    if isinstance(mine["value"], list):
        mine["value"].append("mine")
    if isinstance(mine["value"], dict):
        mine["value"]["a"].append("mine")
    mine["plain"] = 2
    assert documents.stored(0) == kept == {"plain": 1, "value": value} and "mine" not in str(kept)


def test_many_threads() -> None:
    rows = RowsInFlight(max_bytes=50_000)

    def work(thread: int) -> None:
        for number in range(500):
            rows.keep((thread, number), row("x" * 100))
            rows.get((thread, number - 1))
            rows.drop((thread, number - 2))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) <= 8
