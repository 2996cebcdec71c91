from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.tasks.controls.derangement import derangement


@given(st.sets(st.integers(0, 10_000), min_size=2, max_size=60), st.integers(0, 2**32), st.data())
def test_every_document_gets_another_one_and_each_is_given_once(
    chosen: set[int], seed: int, data: st.DataObject
) -> None:
    documents = sorted(chosen)
    media = {one: data.draw(st.integers(0, 4)) for one in documents}
    donors = derangement(documents, seed, media)
    assert sorted(donors) == sorted(donors.values()) == documents
    assert all(one != donor for one, donor in donors.items())
    most = max(Counter(media.values()).values())
    alike = sum(media[one] == media[donor] for one, donor in donors.items())
    assert alike == max(0, 2 * most - len(documents))  # no permutation has fewer
    assert derangement(documents[::-1], seed, media) == donors


def test_the_seed_changes_who_gives() -> None:
    media = {one: one for one in range(50)}
    assert derangement(range(50), 0, media) != derangement(range(50), 1, media)


def test_one_document_has_no_donor() -> None:
    with pytest.raises(UsageError, match="one document alone"):
        derangement([3], 0, {3: "a"})
