"""Files of any content are read or refused; values of any kind never break a sample."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.results import load
from lmms_eval.results.audit import audit, audit_text
from lmms_eval.results.breakdown import breakdown, breakdown_text
from lmms_eval.results.columns import Columns, column_names, row_of, value_of
from lmms_eval.results.facts import sample_keys
from lmms_eval.results.sample import OWN_KEYS, Sample, SampleKeys
from lmms_eval.results.sample_text import sample_text, samples_table
from lmms_eval.storage.lines import sealed
from tests.cases import for_each
from tests.results.runs import KEY, STAMP, document, write_record, write_run

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("score"), one, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from([*sorted(OWN_KEYS), "acc", "graded", "acc_fixed"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=4), one, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=12), st.sampled_from([(), ("acc", "graded")]))
def test_samples_of_any_values_are_shown_and_become_rows(record: dict[str, Any], metrics: tuple[str, ...]) -> None:
    sample = Sample("quiz", record, SampleKeys("score", metrics))
    assert sample_text(sample)
    assert samples_table([sample])
    for name in column_names(sample):
        value_of(sample, name)
    columns = Columns()
    columns.see(row_of(sample))
    assert set(columns.plain(row_of(sample))) == set(columns.kinds)


@given(st.lists(st.binary(max_size=20) | st.dictionaries(_KEYS, _JSON, max_size=9).map(orjson.dumps), max_size=5))
def test_any_samples_file_is_read_or_refused(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_run(Path(folder), [])
        (Path(folder) / f"{STAMP}_samples_quiz.jsonl").write_bytes(b"\n".join(lines))
        run = load(path)
        task = run.task("quiz")
        assert len(task) == len(list(task.samples()))
        assert audit_text(audit(run, task))
        assert breakdown_text(breakdown(load(path), task))


_RECORDS = st.dictionaries(
    st.sampled_from(["task", "doc_id", "answers", "scores", "failed", "key", "id", "text", "doc", "usage", "media"]),
    _JSON,
)


@given(st.lists(_RECORDS, max_size=4), st.binary(max_size=30))
def test_any_record_of_a_run_is_read_or_refused(records: list[dict[str, Any]], torn: bytes) -> None:
    lines = b"".join(sealed(orjson.dumps({"task": "quiz", "doc_id": 1, **record})) for record in records) + torn
    with tempfile.TemporaryDirectory() as folder:
        run = write_record(Path(folder) / ".runs" / KEY)
        for name in ("scores-0.jsonl", "responses-0.jsonl"):
            (run / name).write_bytes(lines)
        try:
            found = load(folder)
            for sample in found.samples():
                assert sample_text(sample)
        except DataError as error:
            refused = str(error)
        else:
            return
    assert refused


@given(st.dictionaries(st.sampled_from(sorted(document())), _JSON, max_size=6))
def test_any_results_document_is_read_or_refused(parts: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_run(Path(folder), None, document(**parts))
        try:
            found = load(path)
        except DataError as error:
            refused = str(error)
        else:
            assert isinstance(found.name, str)
            assert len(list(found.samples())) in (0, 4)
            return
    assert refused


@for_each("media", [None, [], "1.png", {"0": "x"}, [None], [["x"]], [{}], [{"sha256": None}], [3.5]])
def test_media_of_any_form_name_a_cluster_or_none(media: Any) -> None:
    keys = SampleKeys(clusters="sent_media")
    found = Sample("quiz", {"doc_id": 7, "sent_media": media}, keys).cluster
    assert found == ("3.5" if media == [3.5] else "document 7")
    assert Sample("quiz", {"doc_id": 7, "sent_media": media}).cluster is None


@for_each(
    "entry, clusters",
    [
        ({"by": "none", "count": 4, "documents": 4}, "none"),
        ({"by": "column video", "count": 2, "documents": 4}, "column"),
        ({"by": "first medium", "count": 2, "documents": 4, "media": "sent_media"}, "sent_media"),
        ({"by": "first medium"}, None),
        (None, None),
    ],
)
def test_the_results_state_how_clusters_are_read(entry: Any, clusters: str | None) -> None:
    assert sample_keys({"clusters": {"quiz": entry}}, "quiz").clusters == clusters
