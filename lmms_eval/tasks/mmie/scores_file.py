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

from msgspec import Struct

from lmms_eval import stats
from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json, replacing
from lmms_eval.tasks.mmie.scoring import HIGHEST, LOWEST, SCORES, read_score
from lmms_eval.tasks.mmie.summary import percent
from lmms_eval.utils.files import read_plain_text

COLUMNS = (
    "id", "position", "category", "field", "subfield", "outcome", "score", "answer_chars", "answer_images",
    "lost_texts", "lost_images", "missing_images", "undrawn", "reason",
)  # fmt: skip
Key = tuple[str, int | None]


class JudgeComparison(Struct, frozen=True):
    """Agreement of two files of scores of the same answers. Undefined measures are ``None``."""

    n: int
    """Number of samples that both have scored."""
    only_first: int
    only_second: int
    mean_first: float | None
    mean_second: float | None
    weighted_kappa: float | None
    krippendorff_alpha: float | None
    pearson: float | None


def write_scores(samples: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write a row for each sample. Raises ``OSError``."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(samples)
    with replacing(path) as file:
        file.write(text.getvalue().encode("utf-8", "replace"))


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


def compare_judges(first: Path, second: Path) -> JudgeComparison:
    """Measure the agreement of two judges about the same answers.

    Raises:
        DataError: as ``read_scores``.
    """
    one, other = read_scores(first), read_scores(second)
    both = [key for key in one if key in other]
    left, right = [one[key] for key in both], [other[key] for key in both]
    return JudgeComparison(
        n=len(both),
        only_first=len(one) - len(both),
        only_second=len(other) - len(both),
        mean_first=sum(left) / len(left) if left else None,
        mean_second=sum(right) / len(right) if right else None,
        weighted_kappa=stats.weighted_kappa(left, right),
        krippendorff_alpha=stats.krippendorff_alpha(list(zip(left, right, strict=True))),
        pearson=stats.pearson(left, right),
    )


def calibration(samples: Sequence[Mapping[str, Any]], human: Mapping[Key, float]) -> dict[str, Any]:
    """Compare the judge with people over the samples that both have scored, and correct the mean for its bias."""
    judge_of_both: list[float] = []
    human_of_both: list[float] = []
    judged: list[float] = []
    for sample in samples:
        known = find_score(human, sample)
        if sample["score"] is None:
            continue
        if known is None:
            judged.append(sample["score"])
        else:
            judge_of_both.append(sample["score"])
            human_of_both.append(known)
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
        reading = read_score(str(row["gpt_feedback"] or ""))
        return float(reading.score) if reading.counted and reading.score is not None else None
    if row["score"] in (None, ""):
        return None
    try:
        score = float(row["score"])
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {row['score']!r} is no number") from None
    if not LOWEST <= score <= HIGHEST:
        raise DataError(f"{where}: the score {score:g} does not lie between {LOWEST} and {HIGHEST}")
    return score
