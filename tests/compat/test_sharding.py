from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.helpers import create_iterator


@given(st.integers(0, 40), st.integers(1, 5), st.none() | st.integers(0, 50), st.integers(0, 50))
def test_every_item_goes_to_one_rank(count: int, world_size: int, limit: int | None, offset: int) -> None:
    dealt = [list(create_iterator(range(count), rank, world_size, limit, offset)) for rank in range(world_size)]
    end = count if limit is None else min(count, offset + limit)
    assert sorted(item for items in dealt for item in items) == list(range(offset, end))
    assert all(items == list(range(offset + rank, end, world_size)) for rank, items in enumerate(dealt))
