"""The index of samples: what is left out because it can be told, and what stands in pieces."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from lmms_eval.viewer.chunks import (
    FEW_SAMPLES,
    FEW_VALUES,
    PER_NAMES,
    PER_ROWS,
    IndexColumn,
    PageChunks,
    TaskIndex,
)


def written(*columns: IndexColumn) -> dict[str, Any]:
    chunks = PageChunks()
    for name, content in TaskIndex(columns).pieces("0-0"):
        chunks.write(name, content)
    return {name: json.loads(text) for name, text in chunks.texts.items()}


def test_a_small_task_has_all_in_one_piece() -> None:
    pieces = written(
        IndexColumn("id", "texts", ["3", "4", "5"]),
        IndexColumn("answer", "texts", ["a", "", "c"]),
        IndexColumn("reason", "texts", ["", "", ""]),
        IndexColumn("status", "codes", ["scored", "scored", "scored"]),
        IndexColumn("m.kind", "codes", ["odd", None, "even"]),
        IndexColumn("latency", "numbers", [1.5, None, 2]),
    )
    assert list(pieces) == ["index-0-0"]
    assert pieces["index-0-0"]["columns"] == [
        {"key": "id", "kind": "texts", "from": 3},
        {"key": "answer", "kind": "texts", "all": ["a", "", "c"]},
        {"key": "reason", "kind": "texts", "empty": True},
        {"key": "status", "kind": "codes", "values": ["scored"], "same": True},
        {"key": "m.kind", "kind": "codes", "values": ["odd", "even"], "all": [0, -1, 1]},
        {"key": "latency", "kind": "numbers", "all": [1.5, None, 2]},
    ]


def test_a_large_task_stands_in_pieces() -> None:
    count = 2 * PER_NAMES + 1
    ids = [f"doc-{number}" for number in range(count)]
    values = [f"value {number % (FEW_VALUES + 1)}" for number in range(count)]
    pieces = written(IndexColumn("id", "texts", ids), IndexColumn("m.of many", "codes", values))
    index = pieces["index-0-0"]
    assert index["columns"] == [{"key": "id", "kind": "texts"}, {"key": "m.of many", "kind": "codes"}]
    assert pieces["rows-0-0-3"] == {"id": ids[3 * PER_ROWS : 4 * PER_ROWS]}
    assert [pieces["values-0-0-1"][code] for code in pieces["column-0-0-1-0"]] == values
    assert len(index["names"]) == 3
    assert index["names"][1] == sorted(ids)[PER_NAMES]


@example(["20000000000000000000"], 0)  # browsers round it
@example(["9007199254740993", "9007199254740994"], 0)
@given(st.lists(st.text(), min_size=1), st.integers(0, 3))
def test_ids_are_left_out_only_where_counting_tells_them(ids: list[str], first: int) -> None:
    entry = written(IndexColumn("id", "texts", ids))["index-0-0"]["columns"][0]
    if "from" in entry:
        assert ids == [str(number) for number in range(entry["from"], entry["from"] + len(ids))]
    counted = [str(number) for number in range(first, first + len(ids))]
    assert written(IndexColumn("id", "texts", counted))["index-0-0"]["columns"][0]["from"] == first


def test_what_a_page_holds_of_an_index_that_grows_stays_right() -> None:
    known: dict[str, int] = {}
    ids = [f"doc-{number}" for number in range(FEW_SAMPLES + 1)]

    def index(values: list[str]) -> TaskIndex:
        columns = [IndexColumn("id", "texts", ids[: len(values)]), IndexColumn("status", "codes", values, known)]
        return TaskIndex(columns, is_growing=True)

    early = index(["failed", *["scored"] * (FEW_SAMPLES - 1), "unscored"])
    later = index(["scored", *["scored"] * (FEW_SAMPLES - 1), "unscored"])
    told = early.content["columns"][1]["values"]
    assert [told[code] for code in later.column(1, 0)] == ["scored"] * FEW_SAMPLES + ["unscored"]
    assert early.content["names"] == later.content["names"] == [""]
    assert dict(zip(*later.names(0).values(), strict=True))[ids[7]] == 7
