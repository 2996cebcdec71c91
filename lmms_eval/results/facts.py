"""Facts about tasks and groups in a results document of this project or of the lmms-eval family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from lmms_eval.engine.clusters import MediaKey
from lmms_eval.errors import DataError
from lmms_eval.metrics.table import METRICS
from lmms_eval.results.sample import SampleKeys, finite
from lmms_eval.storage.atomic import read_json
from lmms_eval.storage.codec import EACH, MisshapenError, shaped
from lmms_eval.utils.numbers import ScoreRange


class EarlyStop(Struct, frozen=True):
    """The early stop of a task or group, with intervals that hold at every look."""

    asked: int
    """Number of documents that count: the first ones of the random order."""
    of: int
    order: str
    """Name of the random order. Runs with the same order asked the same first documents."""
    rule: str


_COUNTS = (
    "requested", "scored", "unscored", "failed", "not_asked", "coverage", "answers", "truncated", "blank", "filtered",
    "repeated", "judge_unread",
)  # fmt: skip
_SHAPE: Mapping[str, Any] = {
    "clusters": {EACH: {"by": str, "count": int, "documents": int, "media": str}},
    "config": {},
    "configs": {EACH: {"metric_list": [{}]}},
    "early_stop": {EACH: {"asked": int, "of": int, "order": str, "rule": str, "interval": {}}},
    "group_subtasks": {EACH: [str]},
    "groups": {EACH: {}},
    "higher_is_better": {EACH: {EACH: bool}},
    "intervals": {EACH: {EACH: {"low": float, "high": float, "reason": str}}},
    "n-samples": {EACH: {}},
    "n-shot": {},
    "outcomes": {
        EACH: {
            "n": {EACH: float}, "reasons": {}, "shares": {EACH: float}, "wrote_files": [str],
            "partial": {EACH: {"value": float, "n": float, "interval": {"low": float, "high": float}}},
            **dict.fromkeys(_COUNTS, float),
        },
    },
    "packs": {EACH: dict.fromkeys(("pack", "version", "sha256", "files"), str)},
    "paired": {
        EACH: {EACH: {"unit": str, **dict.fromkeys(("difference", "ci_lower", "ci_upper", "pvalue"), float)}},
    },
    "results": {EACH: {}},
    "run_key": str,
    "sub_scores": {EACH: {}},
    "timing": {},
    "usage": {},
    "versions": {},
}  # fmt: skip
"""Types of the parts of a results document that readers use. Nothing is assumed about other parts."""


_BYPASSED = ("bypass", "extracted_answers")
_WRITTEN = ("submission", "predictions", "passthrough")
"""Names, or last words of names, of metrics whose aggregation writes a file and returns nothing."""
_NO_NUMBER = 999
"""What the aggregation ``bypass`` returns."""


def is_count(metric: str, value: object = None, aggregation: str = "") -> bool:
    """Return whether a metric counts documents instead of scoring them, so that it belongs in no row of scores.

    These are files of answers (``submission``, ``predictions``, ``coco_passthrough``), the number of scored documents
    (``scored``), and metrics of runs that score nothing (``bypass``). A task of another package may use such a name for
    a score: then its value is a number, for ``scored`` one with a fraction.

    Args:
        value: the metric's value in ``results``, if it is known.
        aggregation: the name of its aggregation, if it is known.
    """
    if metric in _BYPASSED or aggregation == "bypass":
        return True
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if metric == "scored":
        return number is None or number.is_integer()
    return metric.rpartition("_")[2] in _WRITTEN and number in (None, _NO_NUMBER)


_COUNTED: Mapping[str, str] = {
    "submission": "answers for submission",
    "passthrough": "answers for submission",
    "predictions": "stored predictions",
    "scored": "scored documents",
    "bypass": "answers, not scored",
    "extracted_answers": "extracted answers",
}


def count_label(metric: str) -> str:
    """Return the words for what such a metric counts, such as "answers for submission"."""
    return _COUNTED.get(metric) or _COUNTED.get(metric.rpartition("_")[2]) or "documents"


def read_document(path: Path) -> Any:
    """Read a JSON file and check the parts of a results document in it.

    Parts that are ``null`` instead of an object or a list are left out. Raises ``DataError`` if the file cannot be
    read, or a part has another type.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        return found
    try:
        return shaped(found, _SHAPE)
    except MisshapenError as error:
        raise DataError(f"{path}: {error}: the file is damaged, or not a results file") from error


def part_of(document: Mapping[str, Any], key: str, task: str | None = None) -> Mapping[str, Any]:
    """Return a mapping of the document, or its entry for a task; empty if it does not exist."""
    part = document.get(key)
    if task is not None and isinstance(part, Mapping):
        part = part.get(task)
    return part if isinstance(part, Mapping) else {}


def record_facts(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert ``run.json``, for a run without results, to the form of a results document."""
    tasks = state.get("tasks")
    if not isinstance(tasks, Mapping):
        return {}
    higher = {name: part_of(tasks, name).get("higher_is_better") for name in tasks}
    early = part_of(state, "early_stops")
    return {"configs": tasks, "higher_is_better": higher, "early_stop": early, "run_key": state.get("key")}


def sample_keys(document: Mapping[str, Any], task: str) -> SampleKeys:
    """Return how to read the samples of a task, with its metrics in the order of its list, then undeclared ones."""
    config = part_of(document, "configs", task)
    stated = config.get("metric_list")
    listed = [entry.get("metric") for entry in stated if isinstance(entry, Mapping)] if isinstance(stated, list) else []
    declared = part_of(document, "higher_is_better", task)
    returned = [name.rpartition(",")[0] for name in part_of(part_of(document, "outcomes", task), "n")]
    names = [name for name in (*listed, *declared, *returned) if isinstance(name, str) and name]
    score_key, cluster_key = config.get("score_key"), config.get("cluster_key")
    shots = None if "results" in document else config.get("num_fewshot")
    known = {*declared, *returned}
    return SampleKeys(
        score_key=score_key if isinstance(score_key, str) else "score",
        cluster_key=cluster_key if isinstance(cluster_key, str) else None,
        clusters=_clusters(part_of(document, "clusters", task)),
        own_media=shots > 0 or "control" in config if isinstance(shots, int) else None,
        metrics=tuple(dict.fromkeys(name for name in names if name in known)) if declared else (),
    )


def _clusters(entry: Mapping[str, Any]) -> Literal["column", "sent_media", "input_media", "none"] | None:
    """Return what the clusters are by a task's entry in ``clusters``; ``None`` if it has none."""
    count, documents = entry.get("count"), entry.get("documents")
    if not isinstance(count, int) or not isinstance(documents, int):
        return None
    if count >= documents:
        return "none"
    media: MediaKey | None = next((key for key in get_args(MediaKey) if key == entry.get("media")), None)
    return media or "column"


def has_unequal_chances(document: Mapping[str, Any], task: str) -> bool:
    """Return whether a task's documents were drawn with unequal chances, so that their plain mean is biased."""
    return part_of(document, "sampled", task).get("design") == "neyman"


def early_stop_of(document: Mapping[str, Any], task: str) -> EarlyStop | None:
    """Return the early stop of a task; ``None`` if it did not stop early."""
    found = part_of(document, "early_stop", task)
    asked, of = found.get("asked"), found.get("of")
    if not isinstance(asked, int) or not isinstance(of, int):
        return None
    return EarlyStop(asked, of, str(found.get("order", "")), str(found.get("rule", "")))


def aggregation_of(document: Mapping[str, Any], task: str, metric: str) -> str:
    """Return the name of a metric's aggregation; empty if it is not known."""
    known = METRICS.get(metric)
    return str(_metric(document, task, metric).get("aggregation") or (known.aggregation if known else ""))


def metric_range(document: Mapping[str, Any], task: str, metric: str) -> ScoreRange | None:
    """Return the range that the task states, else the range of a built-in metric that is averaged."""
    if "run_key" not in document:  # metrics of the family have the same names and other scales
        return None
    stated = _metric(document, task, metric).get("range")
    if isinstance(stated, list) and len(stated) == 2:
        low, high = finite(stated[0]), finite(stated[1])
        return ScoreRange(-math.inf if low is None else low, math.inf if high is None else high)
    known = METRICS.get(metric)
    return known.score_range if known and aggregation_of(document, task, metric) == "mean" else None


def _metric(document: Mapping[str, Any], task: str, metric: str) -> Mapping[str, Any]:
    """Return the entry of a metric in the task's list; empty if it does not exist."""
    entries = part_of(document, "configs", task).get("metric_list")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("metric") == metric:
            return entry
    return {}


def group_leaves(document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the leaf tasks of each group that has a number."""
    return {name: leaves_of(document, name) for name in part_of(document, "groups")}


def leaves_of(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the leaf tasks of a task or group; a task is its own leaf."""
    return tuple(dict.fromkeys(_leaves(document, name, ())))


def selected(document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the tasks and groups that were selected, each with the names of results below it, itself first."""
    below = part_of(document, "group_subtasks")
    inner = {str(child) for children in below.values() if isinstance(children, list) for child in children}
    tops = [name for name in part_of(document, "results") if name not in inner]
    return {name: tuple(dict.fromkeys(_below(document, name, ()))) for name in tops}


def _below(document: Mapping[str, Any], name: str, above: tuple[str, ...]) -> Iterator[str]:
    if name in above:
        return
    yield name
    children = part_of(document, "group_subtasks").get(name)
    for child in children if isinstance(children, list) else ():
        yield from _below(document, str(child), (*above, name))


def _leaves(document: Mapping[str, Any], name: str, above: tuple[str, ...]) -> Iterator[str]:
    children = part_of(document, "group_subtasks").get(name)
    if not isinstance(children, list) or not children or name in above:
        if name not in above and name in part_of(document, "configs"):
            yield name
        return
    for child in children:
        yield from _leaves(document, str(child), (*above, name))


def model_of(document: Mapping[str, Any]) -> str:
    """Return the model's name, or another field that identifies it."""
    named = (document.get(key) for key in ("model_name", "model_name_sanitized", "model_source"))
    return next((name for name in named if isinstance(name, str) and name), "")
