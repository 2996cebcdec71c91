from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.api.task import PipelineScore
from lmms_eval.engine.clusters import ClusterFinder, Clusters
from lmms_eval.engine.uncertainty import Certainty, errors_of
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.stats import Interval
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import aggregated, metric, scored

DIGEST = {"type": "image", "sha256": "aa"}


def record(
    doc_id: int, sent: Sequence[dict[str, Any]] = (), own: Sequence[str] = (), value: Any = 1.0, **doc: Any
) -> dict[str, Any]:
    answer = {"value": "said", "input": "asked", **({"media": list(sent)} if sent else {})}
    scores = [{"filter": "none", "filtered": "said", "metrics": {"acc": value}}]
    return {"doc_id": doc_id, "answers": [answer], "media": list(own), "doc": doc, "scores": scores}


def clusters_of(records: Sequence[dict[str, Any]], key: str | None = None, shots: int = 0) -> Clusters:
    finder = ClusterFinder(key, own_only=shots > 0)
    for one in records:
        finder.add(one)
    return finder.clusters()


def sizes(found: Clusters, count: int) -> list[int]:
    names = found.of(range(count))
    return [] if names is None else sorted(names.count(name) for name in dict.fromkeys(names))


@for_each(
    "first, again, other",
    [
        ({"sha256": "a", "path": "/1.png"}, {"sha256": "a", "path": "/2.png"}, {"sha256": "b", "path": "/1.png"}),
        ({"path": "/1.mp4"}, {"path": "/1.mp4"}, {"path": "/2.mp4"}),
        ({"url": "http://x/1"}, {"url": "http://x/1"}, {"url": "http://x/2"}),
        ({"name": "1.wav"}, {"name": "1.wav"}, {"name": "2.wav"}),
    ],
)
def test_documents_with_the_same_first_medium_form_a_cluster(
    first: dict[str, str], again: dict[str, str], other: dict[str, str]
) -> None:
    media = [{"type": "video", **one} for one in (first, again, other)]
    found = clusters_of([*(record(number, [medium]) for number, medium in enumerate(media)), record(3), record(4)])
    assert found.entry() == {
        "by": "first medium", "count": 4, "documents": 5, "effective": 25 / 7, "media": "sent_media",
    }  # fmt: skip
    assert (sizes(found, 5), found.described()) == ([1, 1, 1, 2], "4 videos (5 documents)")


def test_documents_without_a_common_medium_are_independent() -> None:
    for records in (
        [record(0), record(1)],
        [record(0, [DIGEST]), record(1, [{"type": "image", "sha256": "bb"}]), record(2)],
        [],
    ):
        found = clusters_of(records)
        assert found.entry() == {"by": "none", "count": len(records), "documents": len(records)}
        assert (found.of(range(3)), found.described()) == (None, "")


def test_pictures_of_examples_are_no_clusters() -> None:
    records = [record(number, [DIGEST], [f"{number // 2}.png"]) for number in range(4)]
    assert clusters_of(records, shots=2).entry() == {
        "by": "first medium", "count": 2, "documents": 4, "effective": 2.0, "media": "input_media",
    }  # fmt: skip


def test_questions_about_regions_drawn_on_one_picture_form_a_cluster() -> None:
    records = [
        record(number, [{"type": "image", "sha256": str(number)}], [f"{number // 2}.png"]) for number in range(4)
    ]
    found = clusters_of(records)
    assert (found.media, found.described()) == ("input_media", "2 pictures (4 documents)")


@for_each("in_value", [True, False])
def test_a_column_of_the_document_or_a_field_of_the_value_names_the_cluster(in_value: bool) -> None:
    records = []
    for number, name in enumerate([7, 7.0, "8", None]):
        held = {"group": name}
        records.append(record(number, [DIGEST], **({"value": {"score": 1.0, **held}} if in_value else held)))
    found = clusters_of(records, "group")
    assert found.entry() == {"by": "column group", "count": 3, "documents": 4, "effective": 16 / 6}
    assert (sizes(found, 4), found.described()) == ([1, 1, 2], "3 clusters by group (4 documents)")


def test_a_column_with_another_value_in_each_document_makes_them_independent() -> None:
    found = clusters_of([record(number, [DIGEST], id=number) for number in range(3)], "id")
    assert found.entry() == {"by": "column id", "count": 3, "documents": 3}
    assert found.of(range(3)) is None


def test_a_key_that_no_document_has_is_noted_and_the_first_medium_counts() -> None:
    found = clusters_of([record(number, [DIGEST]) for number in range(3)], "vdeo")
    assert (found.absent_key, found.by, found.count) == ("vdeo", "first medium", 1)


def answers(generator: np.random.Generator, clusters: int, share: float) -> list[float]:
    """Right or wrong answers to four questions about each picture, with intraclass correlation 0.5."""
    chances = generator.beta(share, 1 - share, clusters)
    return (generator.random((clusters, 4)) < chances[:, None]).astype(float).ravel().tolist()


def interval(name: str, values: Sequence[Any], clusters: Sequence[str] | None, draws: int = 400) -> Interval:
    entry = AGGREGATIONS[name]
    whole = entry.function()(list(values))
    found = errors_of(FakeTask(len(values)), metric("acc", entry.function(), name), values, whole, draws, clusters)
    assert found.certainty.interval is not None
    assert found.certainty.is_clustered is (clusters is not None)
    return found.certainty.interval


def test_intervals_over_pictures_hold_the_share_in_95_percent() -> None:
    generator, draws, share = np.random.default_rng(5), 300, 0.5
    names = [str(number // 4) for number in range(240)]
    over_documents = over_pictures = 0
    for _ in range(draws):
        scores = answers(generator, 60, share)
        plain, clustered = (interval("mean", scores, clusters) for clusters in (None, names))
        over_documents += plain.low <= share <= plain.high
        over_pictures += clustered.low <= share <= clustered.high
    assert over_documents / draws < 0.85  # 0.795 in 1,500 draws
    assert 0.92 <= over_pictures / draws <= 0.98  # 0.952


def test_intervals_of_a_median_over_pictures_hold_it() -> None:
    generator, draws, pictures = np.random.default_rng(6), 80, 25
    names = [str(number // 4) for number in range(4 * pictures)]
    held = [0, 0]
    for _ in range(draws):
        common = math.sqrt(0.5) * generator.normal(size=(pictures, 1))
        values = (common + math.sqrt(0.5) * generator.normal(size=(pictures, 4))).ravel().tolist()
        for place, clusters in enumerate((None, names)):
            found = interval("median", values, clusters, 200)
            held[place] += found.low <= 0.0 <= found.high
    assert held[1] / draws >= 0.88  # 0.93 to 0.96 in 300 draws, and 0.81 over documents
    assert held[0] / draws < held[1] / draws - 0.05


def test_errors_stay_those_of_documents() -> None:
    values = [float(number // 4 % 2) for number in range(40)]
    names = [str(number // 4) for number in range(40)]
    task, mean = FakeTask(40), metric("acc", AGGREGATIONS["mean"].function(), "mean")
    plain, clustered = (errors_of(task, mean, values, 0.5, 100, clusters) for clusters in (None, names))
    assert (plain.stderr, plain.clt, plain.clustered) == (clustered.stderr, clustered.clt, clustered.clustered)
    assert plain.certainty.spread is not None and clustered.certainty.spread is not None
    assert clustered.certainty.spread.error == pytest.approx(2 * plain.certainty.spread.error, rel=0.1)


def certainty(name: str, pairs: Sequence[tuple[int, int]], clusters: Sequence[str] | None) -> Certainty:
    entry = AGGREGATIONS[name]
    made = metric("acc", entry.function(), name)
    return errors_of(FakeTask(len(pairs)), made, pairs, 0.5, 100, clusters).certainty


def test_f1_and_correlations_are_over_clusters_too() -> None:
    pairs = [(1, 1), (1, 0), (0, 0), (0, 1)] * 100
    once = [str(number) for number in range(400)]
    four = [str(number // 8) for number in range(400)]
    plain, wide = (certainty("f1", sorted(pairs), clusters).interval for clusters in (once, four))
    assert plain is not None and wide is not None and wide.high - wide.low > 1.5 * (plain.high - plain.low)
    assert certainty("matthews_corrcoef", pairs, None).interval is not None
    few = certainty("matthews_corrcoef", pairs, [str(number // 10) for number in range(400)])
    assert few.no_interval == "n = 40 clusters, 40 of the rarest label: too few for a correlation"
    one = certainty("f1", pairs, ["a"] * 400)
    assert (one.interval, one.no_interval) == (None, "n = 1")


def test_a_task_about_one_picture_has_no_interval(tmp_path: Path) -> None:
    task = FakeTask(4)
    records = []
    for number in range(4):
        made = scored(task, number, PipelineScore("none", "said", {"acc": float(number % 2)}))
        records.append({**made, "media": ["only.png"]})
    result = aggregated(tmp_path, task, records)
    (found,) = result.metrics
    assert (found.value, found.interval, found.certainty.no_interval) == (0.5, None, "n = 1")
    assert result.clusters.entry() == {
        "by": "first medium", "count": 1, "documents": 4, "effective": 1.0, "media": "input_media",
    }  # fmt: skip
