"""Comparison of a finishing run with an earlier run's samples (``--baseline``).

Interval and p come from the paired t-test, as in the lmms-eval family. ``lmms-eval compare`` reports more on the same
runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger
from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.outcome import Status
from lmms_eval.compare.differences import sequential
from lmms_eval.compare.matching import PairedColumn, Shared, share
from lmms_eval.compare.readers.samples import read_lines
from lmms_eval.compare.runs import MetricColumn, TaskRows
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.looks import looked_interval, stop_mark
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError
from lmms_eval.results.baseline import SIGNIFICANT, BaselineRow, PairedScores
from lmms_eval.results.facts import EarlyStop, early_stop_of, has_unequal_chances, read_document
from lmms_eval.results.journals import FileSamples
from lmms_eval.results.sample import SampleKeys
from lmms_eval.stats.interval import GENERALISED, range_of_scores
from lmms_eval.utils.names import task_of_part
from lmms_eval.utils.numbers import SHARES, ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_LEAST = 2
"""Fewest documents that both runs must have scored."""


def check_baseline(path: Path) -> None:
    """Check that a samples file can be read to its end.

    Raises:
        DataError: the file is missing, or a line is not a sample.
    """
    read_rows(path, "baseline", (BaselineRow("", ""),))


def compare_baseline(result: TaskResult, store: RunStore, path: Path, name: str) -> dict[str, PairedScores]:
    """Compare every number of a task that is a mean over documents, by ``METRIC,FILTER``.

    Rows with fewer than two documents that have a number in both runs are left out.

    Args:
        result: the task of this run.
        store: the journal of this run.
        path: the baseline's samples file.
        name: the baseline's name in the table.

    Raises:
        DataError: the samples file cannot be read, or its documents differ (``doc_hash``).
    """
    import numpy as np

    means = {f"{one.metric},{one.filter}": one for one in result.metrics if one.scale > 0 and one.value is not None}
    wanted = [BaselineRow(one.metric, one.filter) for one in means.values()]
    if not means:
        return {}
    # The results file of the same run states whether the task stopped early.
    stamp, mark, part = path.stem.partition("_samples_")
    task = task_of_part(part)
    results = path.with_name(f"{stamp}_results.json")
    document = read_document(results) if mark and results.is_file() else None
    if isinstance(document, dict) and has_unequal_chances(document, task):
        logger.warning(
            "{}: no comparison with {}, whose documents --sample N:neyman drew with unequal chances", task, path
        )
        return {}
    earlier_stop = early_stop_of(document, task) if isinstance(document, dict) else None
    earlier_rows = read_rows(path, result.task.name, wanted, result.task.score_key)
    earlier_rows = structs.replace(earlier_rows, early_stop=earlier_stop)
    shared = share(_current(result, store, means), earlier_rows, ("this run", name))
    found = {}
    for key, metric in means.items():
        earlier = shared.second.columns.get(key)
        if earlier is None:
            continue
        current = shared.first.columns[key].scores[shared.first_rows]
        baseline = earlier.scores[shared.second_rows]
        has_both = np.isfinite(current) & np.isfinite(baseline)
        if has_both.sum() >= _LEAST:
            paired = _paired(metric, current[has_both].tolist(), baseline[has_both].tolist(), name)
            if earlier_stop is not None:
                paired = _followed(paired, metric, shared, (current, baseline))
            elif result.early_stop is not None:
                paired = _stopped(paired, metric, _by_document(shared.second, key))
            else:
                paired = _with_missing(paired, metric, shared, (current, baseline))
            found[key] = paired
    return found


def baseline_scores(path: Path, row: BaselineRow, score_key: str) -> dict[int, float]:
    """Read the scores of a metric and filter pipeline from a samples file, by document.

    Raises:
        DataError: the file is missing, or a line is not a sample.
    """
    return _by_document(read_rows(path, "baseline", [row], score_key), str(row))


def _by_document(task: TaskRows, key: str) -> dict[int, float]:
    column = task.columns.get(key)
    scores = () if column is None else column.scores.tolist()
    return {int(one): score for one, score in zip(task.ids, scores, strict=False) if math.isfinite(score)}


def _stopped(paired: PairedScores, metric: MetricResult, baseline: Mapping[int, float]) -> PairedScores:
    """Return the comparison of a task that stopped early, with the interval that holds at every look.

    It has no p-value: no test is valid for a number of documents that depends on the scores.
    """
    unit = 100.0 if paired.unit == "percent" else 1.0
    looked, interval = metric.looked, None
    scaled = {doc_id: metric.scale * score for doc_id, score in baseline.items()}
    if looked is not None and all(score in looked.part.within for score in scaled.values()):
        part = structs.replace(looked.part, baseline=scaled, anchors=None)
        interval = looked_interval([structs.replace(looked, part=part)])
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return replace(
        paired,
        ci_lower=None if low is None else unit * low / metric.scale,
        ci_upper=None if high is None else unit * high / metric.scale,
        pvalue=None,
        estimand=None if interval is None else interval.estimand,
    )


def _followed(
    paired: PairedScores, metric: MetricResult, shared: Shared, scores: tuple[NDArray[float64], NDArray[float64]]
) -> PairedScores:
    """Return the comparison with a baseline that stopped early, with an interval that holds whenever it stopped."""
    column = PairedColumn(
        shared.first.task, metric.metric, metric.filter, shared, *scores, _range_of_documents(metric), True, True
    )
    found, stop = sequential(column, CompareOptions()).interval, shared.second.early_stop
    assert stop is not None  # of the baseline
    unit = 100.0 if paired.unit == "percent" else 1.0
    low, high = (None, None) if isinstance(found, stats.NoInterval) else (unit * found.low, unit * found.high)
    mark = stop_mark(stop.asked, stop.of)
    estimand = None if isinstance(found, stats.NoInterval) else found.estimand
    return replace(paired, ci_lower=low, ci_upper=high, pvalue=None, baseline_early=mark, estimand=estimand)


def _range_of_documents(metric: MetricResult) -> ScoreRange:
    within = metric.certainty.score_range
    return ScoreRange(within.low / metric.scale, within.high / metric.scale)


def _with_missing(
    paired: PairedScores, metric: MetricResult, shared: Shared, scores: tuple[NDArray[float64], NDArray[float64]]
) -> PairedScores:
    """Add what a significant difference depends on, if it does not hold for all scores of documents without one.

    As in ``lmms-eval compare``, these get the scores that speak most against the difference.
    """
    import numpy as np

    if paired.pvalue is None or paired.pvalue >= SIGNIFICANT:
        return paired
    known = np.concatenate([side[np.isfinite(side)] for side in scores]).tolist()
    within = range_of_scores(known, _range_of_documents(metric))
    column = PairedColumn(shared.first.task, metric.metric, metric.filter, shared, *scores, within, True, True)
    expected = column.expected
    missing = int(expected.sum()) - paired.n
    if not missing:
        return paired
    completed = column.completed(favours_first=paired.difference < 0)
    if completed is not None:
        against = stats.paired_ttest(*(side[expected].tolist() for side in completed))
        if against.mean_diff * paired.difference > 0 and against.p_value < SIGNIFICANT:
            return paired
    documents = "1 document" if missing == 1 else f"{missing:,} documents"
    return replace(paired, depends=f"depends on {documents} without a score")


def read_rows(
    path: Path, task: str, wanted: Sequence[BaselineRow], score_key: str = "score", option: str = "--baseline"
) -> TaskRows:
    """Read some columns of an earlier run's samples file. ``option`` names the file in messages.

    Raises:
        DataError: the file is missing, or a line is not a sample.
    """
    if not path.is_file():
        raise DataError(f"{option} {path}: no such file; give a samples file (JSONL) of an earlier run")
    try:
        return read_lines(FileSamples(path), task, SampleKeys(score_key), wanted=wanted).rows
    except DataError as error:
        raise DataError(f"{option} {error}") from error


def _current(result: TaskResult, store: RunStore, means: Mapping[str, MetricResult]) -> TaskRows:
    """Return the rows of the finishing run, from its journal."""
    import numpy as np

    ids: list[str] = []
    statuses: list[Status] = []
    hashes: list[str | None] = []
    scores: dict[str, list[float]] = {key: [] for key in means}
    for record in store.scores(result.task.name, result.doc_ids):
        numbers = {
            f"{metric},{score['filter']}": stats.item_number(value, result.task.score_key)
            for score in record.get("scores", ())
            for metric, value in score["metrics"].items()
        }
        ids.append(str(record["doc_id"]))
        statuses.append(_status(record))
        hashes.append(record.get("doc_hash") or None)
        for key, column in scores.items():
            number = numbers.get(key)
            column.append(math.nan if number is None else float(number))
    columns = {key: MetricColumn(one.metric, one.filter, np.array(scores[key])) for key, one in means.items()}
    stop = result.early_stop
    early = None if stop is None else EarlyStop(stop.asked, stop.of, stop.order, stop.rule)
    return TaskRows(result.task.name, ids, statuses, columns, hashes, early_stop=early)


def _status(record: Mapping[str, Any]) -> Status:
    if "failed" in record:
        return "failed"
    return "unscored" if any(score.get("status") == "unscored" for score in record.get("scores", ())) else "scored"


def _paired(metric: MetricResult, current: list[float], baseline: list[float], name: str) -> PairedScores:
    within = metric.certainty.score_range
    width = (within.high - within.low) / metric.scale
    is_known = within != stats.ANY_NUMBER
    is_percent = within == ScoreRange(0.0, metric.scale) if is_known else all(x in SHARES for x in current + baseline)
    unit = 100.0 if is_percent else 1.0
    paired = stats.paired_ttest(current, baseline)
    spreads = paired.se_diff > 0
    return PairedScores(
        baseline=name,
        unit="percent" if is_percent else "",
        baseline_score=unit * math.fsum(baseline) / len(baseline),
        difference=unit * paired.mean_diff,
        ci_lower=unit * max(paired.ci_lower, -width) if spreads else None,
        ci_upper=unit * min(paired.ci_upper, width) if spreads else None,
        pvalue=paired.p_value if math.isfinite(paired.t_stat) else None,
        n=paired.n,
        estimand=GENERALISED if spreads else None,
    )
