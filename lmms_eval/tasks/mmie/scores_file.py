"""Files of scores by sample, from a run, another judge or people, and their agreement.

Three forms are read: CSV with the columns ``id`` and ``score`` (and optionally ``position``, which distinguishes
records of one id), a JSON list of such objects, and the result file of ``main.py``, where the judge's replies are
read if it has no scores. Samples without a score are skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval import stats
from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.submissions import csv_text
from lmms_eval.tasks.mmie.scoring import HIGHEST, LOWEST, SCORES, valid_score
from lmms_eval.tasks.mmie.summary import percent
from lmms_eval.utils.files import read_plain_text

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
    for number, row in enumerate(_rows(path)):
        where = f"{path}, row {number + 1}"
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


def calibration(samples: Sequence[Mapping[str, Any]], human: Mapping[Key, float]) -> dict[str, Any]:
    """Compare the judge with people over the samples that both have scored, and correct the mean for its bias."""
    scored = [(sample["score"], find_score(human, sample)) for sample in samples if sample["score"] is not None]
    judged = [score for score, known in scored if known is None]
    judge_of_both = [score for score, known in scored if known is not None]
    human_of_both = [known for _, known in scored if known is not None]
    agreement = stats.human_agreement(judge_of_both, human_of_both)
    corrected = stats.corrected_mean(judged, judge_of_both, human_of_both, SCORES)
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
            "interval": None if around is None else [around.low, around.high],
            "weight": corrected.weight,
        },
    }


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix.lower() == ".csv":
        try:
            content: Any = list(csv.DictReader(io.StringIO(read_plain_text(path, "utf-8-sig"), newline="")))
        except (OSError, ValueError, csv.Error) as error:
            raise DataError(f"{path} cannot be read as CSV: {error}") from error
    else:
        content = read_json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: a list of scores is needed, not a {type(content).__name__}")
    for number, row in enumerate(content):
        if not isinstance(row, Mapping) or "id" not in row or not ("score" in row or "gpt_feedback" in row):
            raise DataError(f"{path}, row {number + 1}: needs id and score")
        yield row


def _score(row: Mapping[str, Any], where: str) -> float | None:
    if "score" not in row:
        found = valid_score(str(row["gpt_feedback"] or ""))
        return None if found is None else float(found)
    if row["score"] in (None, ""):
        return None
    try:
        score = float(row["score"])
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {row['score']!r} is no number") from None
    if not LOWEST <= score <= HIGHEST:
        raise DataError(f"{where}: the score {score:g} does not lie between {LOWEST} and {HIGHEST}")
    return score
