from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.utils import (
    baseline_display_name,
    get_sample_size,
    pattern_match,
    sanitize_long_string,
    sanitize_model_name,
    shard_indices,
)
from lmms_eval.utils.names import counted, file_part, task_of_part
from tests.cases import for_each


@given(st.integers(0, 60), st.integers(1, 7), st.none() | st.integers(0, 70), st.integers(0, 70))
def test_shards_deal_out_every_document_once(n: int, world: int, limit: int | None, offset: int) -> None:
    shards = shard_indices(n, world, limit, offset)
    end = n if limit is None else min(n, offset + limit)
    assert len(shards) == world
    assert sorted(index for shard in shards for index in shard) == list(range(offset, end))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_counted() -> None:
    assert [counted(number, "run") for number in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]


@given(st.text())
def test_names_of_tasks_in_file_names_are_safe_and_readable_again(name: str) -> None:
    part = file_part(name)
    assert not set(part) & set('"<>:/|\\?*\n')
    assert task_of_part(part) == name


@given(st.text())
def test_model_names_are_safe_folder_names(name: str) -> None:
    assert not set(sanitize_model_name(name)) & set('"<>:/|\\?*[]')


@given(st.text(), st.integers(2, 50))
def test_long_strings_keep_their_ends(text: str, length: int) -> None:
    short = sanitize_long_string(text, length)
    assert short == text if len(text) <= length else len(short) == length + 3 and short.endswith(text[-1])


@given(st.integers(0, 1000), st.floats())
def test_sample_size_is_a_count_or_a_usage_error(n: int, limit: float) -> None:
    try:
        size = get_sample_size(n, limit)
    except UsageError:
        assert limit != limit or limit in (float("inf"), float("-inf")) or limit < 0
        return
    assert size is None or (isinstance(size, int) and (limit >= 1 or size <= n))


@for_each("limit", [-0.5, -2, float("nan"), float("inf")])
def test_other_limits_are_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="limit"):
        get_sample_size(10, limit)


def test_patterns_tell_case_apart() -> None:
    assert pattern_match("A*", ["ab", "Ab"]) == ["Ab"]
    assert pattern_match([], ["a"]) == []


def test_shards_refuse_negatives() -> None:
    with pytest.raises(UsageError, match="shards"):
        shard_indices(3, 0)


def test_a_baselines_stem_has_at_most_30_characters() -> None:
    assert baseline_display_name(f"/a/{'x' * 40}.jsonl") == "x" * 30
    assert baseline_display_name(f"{'x' * 30}.jsonl") == "x" * 30
    assert baseline_display_name("y" * 40) == "y" * 40


@for_each(
    ("baseline", "shown"),
    [
        ("hf://only", "hf://only"), ("hf://", "hf://"), ("hf://user/repo", "user/repo"),
        ("hf://user/repo/a/b.jsonl", "user/repo"), ("hf://user/repo:x", "user/repo:x"), ("other:task", "other:task"),
        ("other", "other"), (":task", ":task"), ("a:b:c", "a:b:c"), ("qwen25vl:mme", "qwen25vl"),
    ],
)  # fmt: skip
def test_a_baseline_that_is_no_preset_stays_whole(baseline: str, shown: str) -> None:
    assert baseline_display_name(baseline) == shown
    if not baseline.startswith("hf://"):
        name = baseline.partition(":")[0]
        assert baseline_display_name(baseline, {name}) == name
        assert baseline_display_name(baseline, ()) == baseline
