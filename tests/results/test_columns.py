from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.results import load
from lmms_eval.results.columns import Columns, column_names, value_of
from tests.cases import for_each
from tests.results.runs import sample, write_run


def test_a_data_frame_has_typed_columns_and_a_row_for_each_sample(tmp_path: Path) -> None:
    frame = load(write_run(tmp_path)).to_pandas()
    assert len(frame) == 4
    kinds = {name: str(frame[name].dtype).lower() for name in ("doc_id", "acc", "doc.year", "input_tokens", "graded")}
    assert kinds.pop("doc_id").startswith("string")
    assert kinds == {"acc": "float64", "doc.year": "int64", "input_tokens": "int64", "graded": "float64"}
    assert frame["doc.year"].isna().tolist() == [False, False, False, True]
    assert list(frame["doc.tags"][1]) == ["t", "1"]
    assert frame["graded.kind"].tolist()[:3] == ["x", "y", "x"]
    assert "judge" not in frame
    assert frame[frame["outcome"] == "scored"]["score"].mean() == 0.5
    assert load(tmp_path).task("quiz").to_pandas().equals(frame)


def test_a_run_without_samples_gives_an_empty_frame(tmp_path: Path) -> None:
    assert load(write_run(tmp_path, [])).to_pandas().shape == (0, 0)


@for_each(
    ("values", "kind", "plain"),
    [
        ([1, None, 2], "integer", [1, None, 2]),
        ([1, 2.5], "number", [1.0, 2.5]),
        ([True, None], "boolean", [True, None]),
        ([True, 1], "text", ["True", "1"]),
        (["a", 1], "text", ["a", "1"]),
        ([2**70], "text", [str(2**70)]),
        ([["a"], []], "texts", [["a"], []]),
        ([[1, 2.5]], "numbers", [[1.0, 2.5]]),
        ([["a"], "b"], "json", ['["a"]', '"b"']),
        ([{"a": 1}], "json", ['{"a":1}']),
        (["\ud800"], "text", ["?"]),
    ],
)
def test_kinds_of_columns(values: list[Any], kind: str, plain: list[Any]) -> None:
    columns = Columns({})
    for value in values:
        columns.see({"x": value})
    assert columns.kinds == {"x": kind}
    assert [columns.plain({"x": value})["x"] for value in values] == plain


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3),
    max_leaves=5,
)


@given(st.lists(_VALUES, max_size=6))
def test_any_values_make_a_column(values: list[Any]) -> None:
    import pyarrow

    columns = Columns({})
    for value in values:
        columns.see({"x": value})
    columns.kinds = {name: kind for name, kind in columns.kinds.items() if kind != "nothing"}
    rows = [columns.plain({"x": value}) for value in values]
    table = pyarrow.RecordBatch.from_pylist(rows, schema=columns.schema())
    assert table.num_columns == len(columns.kinds)


def test_metrics_that_are_called_like_columns_keep_a_name_of_their_own(tmp_path: Path) -> None:
    rows = [sample(0, score=0.25)]
    run = load(write_run(tmp_path, rows, {**_document(), "higher_is_better": {"quiz": {"acc": True, "score": True}}}))
    frame = run.to_pandas()
    assert (frame["score"][0], frame["acc"][0], frame["metric.score"][0]) == (0.0, 0.0, 0.25)


def test_every_name_gives_its_value(tmp_path: Path) -> None:
    one = load(write_run(tmp_path)).task("quiz").at(1)
    assert {name for name in column_names(one) if value_of(one, name) is None} == {
        "reason", "judge", "drew", "reasoning_tokens", "thoughts", "blank",
    }  # fmt: skip
    assert value_of(one, "tokens") == 13
    assert value_of(one, "nothing.of.the.kind") is None


def _document() -> dict[str, Any]:
    from tests.results.runs import document

    return document()
