"""``--anchors``: numbers that earlier runs predict for each document, fixed before the run and kept in its folder.

A running score with anchors is the mean anchor plus the mean of (number − anchor) over what was asked. Its interval
holds whatever the anchors are, as long as they do not depend on the random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from loguru import logger
from msgspec import Struct

from lmms_eval.compare.baseline import read_rows
from lmms_eval.compare.runs import TaskRows
from lmms_eval.engine.headline import Anchors, HeadlinePart, RandomOrder
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import DataError, UsageError
from lmms_eval.models.replay import NO_HASH
from lmms_eval.models.task_access import document_hash_of
from lmms_eval.results.baseline import BaselineRow, BaselineSamples
from lmms_eval.results.facts import early_stop_of, read_document
from lmms_eval.stats.earlier import LEAST_RUNS, Prediction, best_prediction
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.lines import read_sealed, sealed
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.names import task_of_part

ANCHORS = "anchors.json"
"""File of the run's folder."""
HASHED = 200
"""Number of documents of each task and run whose content is compared."""
_MOST_Z = 3.5


def read_anchors(
    option: str, parts: Iterable[HeadlinePart], plans: Mapping[str, TaskPlan], order: RandomOrder
) -> dict[str, Anchors]:
    """Predict the numbers of all documents from earlier runs; returns anchors by ``HeadlinePart.key``.

    Args:
        option: value of ``--anchors``.
        parts: the numbers that need anchors.
        plans: the tasks by name.
        order: random order of this run's documents.

    Raises:
        DataError: a run has no samples of a task, no scores of its shared documents, other documents, or scores outside
            the range; or it stopped early in the same random order.
        UsageError: no number of the run takes anchors.
    """
    wanted = {part.key: part for part in parts if part.baseline is None}
    if not wanted:
        raise UsageError(
            "--anchors: no number of this run has an interval before the end that anchors could make narrower; leave "
            "it out"
        )
    names = tuple(dict.fromkeys(comma_list(option)))
    found: dict[str, Anchors] = {}
    used: set[str] = set()
    for key, part in wanted.items():
        scores = {name: _scores_of(name, part, plans[part.task], order) for name in names}
        runs = {name: one for name, one in scores.items() if one is not None}
        if not runs:
            raise DataError(f"--anchors {option}: no samples of task {part.task}; give runs of it with --log_samples")
        used.update(runs)
        known = len({doc_id for one in runs.values() for doc_id in one})
        made = best_prediction([*runs.values()], plans[part.task].doc_ids)
        found[key] = Anchors(tuple(runs), made.shares, known, made.fit, made.r_squared)
        logger.info(
            "{}: anchors for {:,} of {:,} documents from {}: {}",
            part.task, known, plans[part.task].requested, ", ".join(runs), _how(made, len(runs)),
        )  # fmt: skip
    for name in names:
        if name not in used:
            raise DataError(
                f"--anchors {name}: no samples of {', '.join(dict.fromkeys(part.task for part in wanted.values()))}; "
                "give a run of these tasks with --log_samples"
            )
    return found


def _how(made: Prediction, runs: int) -> str:
    """Describe how the earlier scores were combined."""
    if made.r_squared is None or made.of_mean is None:
        return "one run alone, so its mean is used"
    if made.fit != "mean":
        return f"{made.fit} fit with an R² of {made.r_squared:.2f} over held-out runs (mean: {made.of_mean:.2f})"
    why = f"a fit needs {LEAST_RUNS} runs" if runs < LEAST_RUNS else "no fit was better"
    return f"mean with an R² of {made.r_squared:.2f} over held-out runs; {why}"


def _scores_of(name: str, part: HeadlinePart, plan: TaskPlan, order: RandomOrder) -> dict[int, float] | None:
    """Return a run's scores of this run's documents as shares of the range; ``None`` without samples of the task."""
    option = f"--anchors {name}"
    file = BaselineSamples(name, name).file(part.task)
    if file is None:
        return None
    _, mark, task = file.stem.partition("samples_")
    if mark and task_of_part(task) != part.task:
        raise DataError(f"{option}: {file.name} has the samples of {task_of_part(task)}, not of {part.task}")
    row = BaselineRow(part.metric, part.filter)
    rows = read_rows(file, part.task, [row], part.score_key, "--anchors")
    asked = {str(doc_id): doc_id for doc_id in plan.doc_ids}
    places = {asked[one]: place for place, one in enumerate(rows.ids) if one in asked}
    if not places:
        raise DataError(
            f"{option}: {file} has no sample of the {plan.requested:,} documents of {part.task} that this run asks"
        )
    _check_documents(f"{option}: {file}", plan, rows, places)
    _check_order(f"{option}: {file}", plan, places, order, _seed_of_stop(file, part.task))
    column = rows.columns.get(str(row))
    numbers = {} if column is None else {doc: float(column.scores[place]) for doc, place in places.items()}
    scores = {doc: part.scale * number for doc, number in numbers.items() if math.isfinite(number)}
    if not scores:
        raise DataError(f"{option}: {file} has no {row} of any document of {part.task} that this run asks")
    outside = next((doc for doc, score in scores.items() if score not in part.within), None)
    if outside is not None:
        raise DataError(
            f"{option}: {file} has {scores[outside]:g} for document {outside} of {part.task}, whose {part.metric} lies "
            f"from {part.within}"
        )
    width = part.within.high - part.within.low
    return {doc: (score - part.within.low) / width for doc, score in scores.items()}


def _check_documents(where: str, plan: TaskPlan, rows: TaskRows, places: Mapping[int, int]) -> None:
    """Compare the content of some documents, at even distances.

    Raises:
        DataError: a document has another content than in the earlier run.
    """
    shared = [*places]
    for doc_id in shared[:: max(1, len(shared) // HASHED)]:
        recorded = None if rows.hashes is None else rows.hashes[places[doc_id]]
        now = document_hash_of(plan.task, doc_id) if recorded and recorded not in NO_HASH else ""
        if now and now != recorded:
            raise DataError(
                f"{where}: document {doc_id} of {plan.task.name} has another content there (doc_hash): the data "
                "have changed since; give a run over the same data"
            )


def _seed_of_stop(file: Path, task: str) -> str | None:
    """Return the random order's seed of a run that stopped early; ``None`` if it did not, as far as known."""
    stamp, mark, _ = file.stem.partition("_samples_")
    results = file.with_name(f"{stamp}_results.json")
    document = read_document(results) if mark and results.is_file() else None
    stop = early_stop_of(document, task) if isinstance(document, dict) else None
    return None if stop is None else [*stop.order.split(":"), ""][1]


def _check_order(
    where: str, plan: TaskPlan, places: Mapping[int, int], order: RandomOrder, stopped_seed: str | None
) -> None:
    """Check that the documents of an earlier run are not the first ones of this run's random order.

    Anchors that are better for the first documents would make the interval too narrow. Without the run's results, this
    is tested by the ranks of its documents (Mann and Whitney 1947).

    Raises:
        DataError: they are.
    """
    ordered = order.of(plan)
    n, left = len(places), len(ordered) - len(places)
    ranks = sum(rank for rank, doc_id in enumerate(ordered) if doc_id in places) - n * (n - 1) / 2
    z = (n * left / 2 - ranks) / math.sqrt(n * left * (n + left + 1) / 12) if left else 0.0
    if left and (stopped_seed == str(order.seed) or z > _MOST_Z):
        raise DataError(
            f"{where}: that run stopped early in this run's random order, so that its scores would be known for the "
            "first documents only; give a whole run, or another first number of --seed"
        )


class KeptAnchors(Struct, frozen=True):
    """Anchors of a run, as its folder keeps them."""

    option: str
    anchors: Mapping[str, Anchors]

    def write(self, folder: Path) -> None:
        """Write the file. Raises ``JournalError`` if that is impossible."""
        columns: dict[str, Any] = {
            key: {
                "runs": list(one.runs),
                "known": one.known,
                "digest": one.digest,
                "shares": [*one.shares.items()],
                "fit": one.fit,
                "cross_validated": one.cross_validated,
            }
            for key, one in self.anchors.items()
        }
        content = sealed(orjson.dumps({"option": self.option, "columns": columns}))
        write_atomically(folder / ANCHORS, content)

    @classmethod
    def read(cls, folder: Path) -> KeptAnchors | None:
        """Read the anchors of a run; ``None`` if it has none.

        Raises:
            UsageError: the file is damaged.
        """
        file = folder / ANCHORS
        if not file.is_file():
            return None
        record = read_sealed(file)
        if record is None:
            raise UsageError(f"{file} is damaged, so the anchors of this run are unknown; begin it anew elsewhere")
        columns = {
            key: Anchors(
                tuple(one["runs"]),
                {int(doc): float(share) for doc, share in one["shares"]},
                one["known"],
                one.get("fit", "mean"),
                one.get("cross_validated"),
            )
            for key, one in record["columns"].items()
        }
        return cls(record["option"], columns)


def kept_anchors(
    option: str, anchors: Mapping[str, Anchors], folder: Path, is_first_start: bool
) -> Mapping[str, Anchors]:
    """Keep the anchors in the run's folder, and return those of the run's first start.

    Args:
        option: value of ``--anchors``.
        anchors: anchors that were just read.
        folder: the run's folder.
        is_first_start: the run has asked nothing yet.

    Raises:
        UsageError: the run began without anchors, or with those of other runs, or for other numbers.
        JournalError: the file cannot be written.
    """
    kept = KeptAnchors.read(folder)
    if kept is None:
        if not is_first_start:
            raise UsageError(
                f"--anchors {option}: this run began without them ({folder}), and anchors must be fixed before the "
                "first answer; leave it out, or give another --output_path"
            )
        KeptAnchors(option, anchors).write(folder)
        return anchors
    if kept.option != option or not anchors.keys() <= kept.anchors.keys():
        raise UsageError(
            f"--anchors {option}: this run began with those of {kept.option} for {', '.join(kept.anchors)} ({folder}), "
            "and anchors must be fixed before the first answer; give the same option, or another --output_path"
        )
    for key, one in anchors.items():
        if kept.anchors[key].digest != one.digest:
            logger.warning("{}: the runs of --anchors have changed; the anchors of the first start are used", key)
    return kept.anchors
