import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.batching import (
    Failed,
    HalvingRunner,
    RefusedError,
    RowLimit,
    Shape,
    is_full,
    is_out_of_memory,
    pick_batch,
)
from tests.cases import for_each


def batches_of(items, shape):
    waiting, batches = list(items), []
    while waiting:
        batch = pick_batch(waiting, shape)
        for item in batch:
            waiting.remove(item)
        batches.append(batch)
    return batches


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 50))), st.integers(1, 5), st.integers(1, 200))
def test_every_item_is_in_exactly_one_fitting_batch(items, rows, tokens):
    shape = Shape(lambda item: item[0], lambda item: item[1], rows, tokens)
    batches = batches_of(items, shape)
    assert sorted(item for batch in batches for item in batch) == sorted(items)
    for batch in batches:
        assert 1 <= len(batch) <= rows
        assert len({item[0] for item in batch}) == 1
        assert len(batch) == 1 or len(batch) * max(item[1] for item in batch) <= tokens


def test_the_first_with_its_like_in_length_longest_first():
    shape = Shape(lambda item: 0, lambda item: item, 2)
    assert batches_of([1, 9, 5, 7, 2], shape) == [[2, 1], [9, 7], [5]]
    assert pick_batch([5, 100, 6, 90, 4, 7], Shape(lambda item: 0, lambda item: item, 8, 22)) == [6, 5, 4]


def test_a_batch_is_full_when_nothing_can_be_added():
    shape = Shape(lambda item: item > 0, abs, 3, 20)
    assert is_full([1, 2, 3], [1, 2, 3], shape)
    assert not is_full([1, 2], [1, 2, -4], shape)
    assert is_full([10], [10, 11], shape)


def test_rows_are_doubled_until_memory_fills():
    limit = RowLimit(8, probes=True)
    limit.fitted(5, 0.1)
    assert limit.rows == 8, "a smaller batch proves nothing"
    limit.fitted(8, 0.1)
    limit.fitted(16, 0.3)
    limit.fitted(32, 0.5)
    limit.fitted(32, 0.1)
    assert limit.rows == 32, "one probe"
    other = RowLimit(8, probes=True)
    other.did_not_fit()
    other.fitted(8, 0.1)
    assert other.rows == 8
    for fixed in (RowLimit(8), RowLimit(8, probes=True)):
        fixed.fitted(8, None)
        fixed.fitted(8, 0.1)
        assert fixed.rows == 8


def run(work, items):
    seen = []
    runner = HalvingRunner(work, lambda: seen.append("release"))
    outcomes = list(runner.run(items, lambda batch: seen.append(len(batch))))
    return outcomes, seen, runner


def test_out_of_memory_halves_until_it_fits():
    def work(batch):
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [-item for item in batch]

    outcomes, seen, runner = run(work, [1, 2, 3, 4, 5])
    assert outcomes == [[-1, -2], [-3], [-4, -5]]
    assert seen == ["release", 5, "release", 3]
    assert runner.out_of_memory == 2


def test_what_never_fits_fails_alone():
    def work(batch):
        if 3 in batch:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        return list(batch)

    outcomes, _, _ = run(work, [1, 2, 3, 4])
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert [(item.item, item.kind) for item in failed] == [(3, "out_of_memory")]
    assert sorted(x for outcome in outcomes if isinstance(outcome, list) for x in outcome) == [1, 2, 4]


@for_each(
    ("error", "kind"),
    [
        (ValueError("bad picture"), "internal"),
        (ImportError("the image processor requires a package"), "internal"),
        (RefusedError("too long"), "bad_request"),
    ],
)
def test_an_item_that_raises_fails_alone(error, kind):
    def work(batch):
        if 2 in batch:
            raise error
        return list(batch)

    outcomes, seen, runner = run(work, [1, 2, 3])
    assert [1] in outcomes and [3] in outcomes
    assert [(item.item, item.kind) for item in outcomes if isinstance(item, Failed)] == [(2, kind)]
    assert seen == []
    assert runner.out_of_memory == 0


def test_a_lost_device_ends_the_run():
    def work(batch):
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.raises(ModelError, match="the device is lost"):
        run(work, [1, 2])


def test_other_exceptions_are_not_swallowed():
    def work(batch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(work, [1])


def test_is_out_of_memory():
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("HIP out of memory. Tried"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))
