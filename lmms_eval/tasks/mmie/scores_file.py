"""Files of scores by sample, from a run, another judge or people, and their agreement.

These forms are read: CSV or a workbook with the columns ``id`` and ``score`` (and optionally ``position``, which
distinguishes records of one id), a JSON list of such objects, and the result file of ``main.py``, where the judge's
replies are read if it has no scores. Samples without a score are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval import stats
from lmms_eval.errors import DataError
from lmms_eval.stats.labelled import LabelledMean, labelled_mean
from lmms_eval.tasks._task_utils.labels import Label, drawn_strata, label_rows, read_labels, score_of
from lmms_eval.tasks._task_utils.submissions import csv_text
from lmms_eval.tasks.mmie.scoring import HIGHEST, LOWEST, SCORES, valid_score
from lmms_eval.tasks.mmie.summary import percent

COLUMNS = (
    "id", "position", "category", "field", "subfield", "outcome", "score", "answer_chars", "answer_images",
    "lost_texts", "lost_images", "missing_images", "undrawn", "reason",
)  # fmt: skip
Key = tuple[str, int | None]


def scores_csv(samples: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a CSV file with a row for each sample."""
    rows = ([sample.get(column, "") for column in COLUMNS] for sample in samples)
    return csv_text([COLUMNS, *rows]).encode("utf-8", "replace")


def read_scores(path: Path) -> dict[Key, float]:
    """Read scores by id and position (``None`` if the file has none).

    Raises:
        DataError: the file cannot be read, has another form, a score that is not a number from 0 to 6, or two scores of
            one sample.
    """
    found: dict[Key, float] = {}
    for where, row in _rows(path):
        score = _score(row, where)
        if score is None:
            continue
        stated = row.get("position")
        try:
            position = None if stated in (None, "") else int(str(stated))
        except ValueError:
            raise DataError(f"{where}: the position {stated!r} is no whole number") from None
        key = str(row["id"]), position
        if key in found:
            raise DataError(f"{where}: a second score of {row['id']!r}; give a column position where ids occur twice")
        found[key] = score
    return found


def find_score(scores: Mapping[Key, float], sample: Mapping[str, Any]) -> float | None:
    """Return the score of a sample, by id and position, else by the id alone."""
    return scores.get((sample["id"], sample["position"]), scores.get((sample["id"], None)))


def compare_judges(first: Path, second: Path) -> dict[str, float | None]:
    """Measure the agreement of two judges about the same answers; undefined measures are ``None``.

    ``n`` is the number of samples that both have scored. Raises ``DataError`` as ``read_scores``.
    """
    one, other = read_scores(first), read_scores(second)
    both = [key for key in one if key in other]
    left, right = [one[key] for key in both], [other[key] for key in both]
    return {
        "n": len(both),
        "only_first": len(one) - len(both),
        "only_second": len(other) - len(both),
        "mean_first": sum(left) / len(left) if left else None,
        "mean_second": sum(right) / len(right) if right else None,
        "weighted_kappa": stats.weighted_kappa(left, right),
        "krippendorff_alpha": stats.krippendorff_alpha(list(zip(left, right, strict=True))),
        "pearson": stats.pearson(left, right),
    }


def planned(path: Path) -> list[Label]:
    """Return the rows of a file that states the probability of each sample; empty for any other file.

    Raises ``DataError`` if the file cannot be used.
    """
    states = any(isinstance(row, Mapping) and row.get("probability") not in (None, "") for _, row in label_rows(path))
    return read_labels(path) if states else []


def calibration(
    samples: Sequence[Mapping[str, Any]], human: Mapping[Key, float], plan: Sequence[Label] = ()
) -> dict[str, Any]:
    """Compare the judge with people over the samples that both have scored, and correct the mean for its bias.

    Args:
        samples: all samples of the task.
        human: people's scores, as ``read_scores`` returns them.
        plan: the rows of the same file if it states probabilities (``planned``), which then weight the scores.

    Raises:
        DataError: the file is not the whole plan of these samples.
    """
    scored = [(sample["score"], find_score(human, sample)) for sample in samples if sample["score"] is not None]
    judged = [score for score, known in scored if known is None]
    judge_of_both = [score for score, known in scored if known is not None]
    human_of_both = [known for _, known in scored if known is not None]
    agreement = stats.human_agreement(judge_of_both, human_of_both)
    corrected = _weighted(samples, plan) if plan else stats.corrected_mean(judged, judge_of_both, human_of_both, SCORES)
    around = None if corrected is None else corrected.interval
    return {
        "human_scores": len(human),
        "n": agreement.n,
        "pearson": agreement.pearson,
        "cosine": agreement.cosine,
        "mse": agreement.mse,
        "mae": agreement.mae,
        "bias": agreement.bias,
        "corrected": None
        if corrected is None
        else {
            "mean": corrected.value,
            "percent": percent(corrected.value),
            "stderr": corrected.stderr,
            "interval": [around.low, around.high] if isinstance(around, stats.Interval) else None,
            "weight": corrected.weight,
        },
    }


def _weighted(samples: Sequence[Mapping[str, Any]], plan: Sequence[Label]) -> LabelledMean | None:
    judge: dict[Hashable, float] = {}
    for sample in samples:
        if sample["score"] is not None:
            judge[sample["id"], sample["position"]] = sample["score"]
    by_id = {key[0]: key for key in judge if isinstance(key, tuple)}
    mine = [label for label in plan if (label.id, label.position) in judge or label.position is None]
    if not mine:
        return None
    keys = [(label.id, label.position) if label.position is not None else by_id.get(label.id) for label in mine]
    return labelled_mean(math.fsum(judge.values()) / len(judge), drawn_strata(mine, keys, judge), SCORES)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for where, row in label_rows(path):
        if not isinstance(row, Mapping) or "id" not in row or not ("score" in row or "gpt_feedback" in row):
            raise DataError(f"{where}: needs id and score")
        yield where, row


def _score(row: Mapping[str, Any], where: str) -> float | None:
    if "score" not in row:
        found = valid_score(str(row["gpt_feedback"] or ""))
        return None if found is None else float(found)
    score = score_of(row["score"], where)
    if score is not None and not LOWEST <= score <= HIGHEST:
        raise DataError(f"{where}: the score {score:g} does not lie between {LOWEST} and {HIGHEST}")
    return score
