"""Summaries of what a model saw."""

from __future__ import annotations

import statistics
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.engine.outcomes import SeenMedia, spread

PICTURE = {"type": "image", "width": 64, "height": 48, "processed": [56, 42], "tokens": 12}
FILM = {"type": "video", "width": 32, "height": 24, "frames": [0, 5, 10], "times": [0.0, 0.5, 1.0], "fps": 2.0}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_spread_is_of_all_values(values: list[int]) -> None:
    found = spread(Counter(values))
    assert found == {"min": min(values), "median": statistics.median(values), "max": max(values)}


def test_counts_are_of_documents_and_sizes_of_media() -> None:
    seen = SeenMedia()
    seen.add([{"value": "a", "media": [PICTURE, PICTURE]}])
    seen.add([{"value": "a"}, {"value": "b", "media": [PICTURE, FILM]}])
    seen.add([{"value": "a"}])
    found = seen.summary()
    assert found["documents"] == 2
    assert found["pictures"] == {"min": 1, "median": 1.5, "max": 2}
    assert found["frames"] == {"min": 3, "median": 3, "max": 3} and found["fps"]["median"] == 2.0
    assert found["width"] == {"min": 32, "median": 64, "max": 64} and found["processed_width"]["max"] == 56
    assert found["tokens"] == {"min": 24, "median": 24, "max": 24}, "a sum with an unknown part is unknown"
    assert "sounds" not in found


def test_without_media_there_is_nothing_to_tell() -> None:
    seen = SeenMedia()
    seen.add([{"value": "a"}])
    assert seen.summary() == {}


def test_tasks_are_joined() -> None:
    first, second = SeenMedia(), SeenMedia()
    first.add([{"media": [PICTURE]}])
    second.add([{"media": [FILM]}])
    both = (first + second).summary()
    assert both["documents"] == 2 and both["width"] == {"min": 32, "median": 48, "max": 64}
