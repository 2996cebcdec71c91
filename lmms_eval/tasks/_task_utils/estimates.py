"""Results of a task from the scores of its documents: means with their errors, over all and by parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, SubScore

SubScores = Mapping[str, Mapping[str, SubScore]]


def mean(
    scores: Sequence[float],
    scale: float = 1.0,
    sub_scores: SubScores | None = None,
    clusters: Sequence[Hashable | None] = (),
    notes: Sequence[str] = (),
) -> Estimate:
    """Return the mean times ``scale`` with its standard error; no value for no scores.

    Args:
        scores: a number for each document.
        scale: 100 for a percentage.
        sub_scores: scores of parts of the documents.
        clusters: the subject that several documents share, such as a video; the error is then the clustered one. If
            some documents have none, all count as independent.
        notes: sentences about the number.
    """
    whole = part(scores, scale)
    if whole is None:
        return Estimate(None, notes=tuple(notes))
    stderr = whole.stderr
    scaled, clustered = tuple(scale * score for score in scores), None not in clusters and len(set(clusters)) > 1
    if clustered:
        stderr = scale * stats.clustered_stderr(scores, clusters)
    made = Estimate(whole.value, stderr, sub_scores=sub_scores or {}, notes=tuple(notes), scores=scaled, scale=scale)
    return replace(made, clusters=tuple(clusters)) if clustered else made


def part(scores: Sequence[float], scale: float = 1.0) -> SubScore | None:
    """Return the mean times ``scale`` with its standard error as a sub-score; ``None`` for no scores."""
    if not scores:
        return None
    stderr = scale * stats.mean_stderr(scores) if len(scores) > 1 else None
    return SubScore(scale * math.fsum(scores) / len(scores), len(scores), stderr)


def by(
    rows: Iterable[Mapping[str, Any]],
    key: str | Callable[[Mapping[str, Any]], Hashable],
    score: Callable[[Mapping[str, Any]], float],
    scale: float = 1.0,
) -> dict[str, SubScore]:
    """Return the means of rows by the value of ``key``, in order of first appearance."""
    divided: dict[str, list[float]] = {}
    for row in rows:
        name = row[key] if isinstance(key, str) else key(row)
        divided.setdefault(str(name), []).append(float(score(row)))
    return {name: found for name, scores in divided.items() if (found := part(scores, scale)) is not None}


def ratio(parts: Sequence[float], wholes: Sequence[float], scale: float = 1.0) -> Estimate:
    """Return the sum of ``parts`` over that of ``wholes``, times ``scale``; no value where the latter is 0.

    The error is that of the linearised ratio (Cochran 1977, "Sampling Techniques", 6.3).

    Args:
        parts: a number for each document, such as its errors.
        wholes: a number for each document, such as its words.
    """
    total, n = math.fsum(wholes), len(wholes)
    if not total:
        return Estimate(None)
    value = math.fsum(parts) / total
    squares = math.fsum((part - value * whole) ** 2 for part, whole in zip(parts, wholes, strict=True))
    stderr = scale * math.sqrt(squares * n / (n - 1)) / abs(total) if n > 1 else None
    return Estimate(scale * value, stderr)


def over_parts(parts: Mapping[str, SubScore], name: str, is_sum: bool = False, notes: Sequence[str] = ()) -> Estimate:
    """Return the plain mean of the parts' values, or their sum, with its standard error; no value without parts.

    The parts are independent samples, so their squared errors add up. A part of one document leaves the whole without
    an error.

    Args:
        parts: the parts' means.
        name: what divides the documents.
    """
    if not parts:
        return Estimate(None, notes=tuple(notes))
    share = 1.0 if is_sum else 1.0 / len(parts)
    errors = [one.stderr for one in parts.values()]
    stderr = share * math.hypot(*[error for error in errors if error is not None]) if None not in errors else None
    value = share * math.fsum(one.value for one in parts.values())
    return Estimate(value, stderr, sub_scores={name: dict(parts)}, notes=tuple(notes))


def rounded(made: Estimate, digits: int) -> Estimate:
    """Return an estimate with its value and sub-scores rounded, as some benchmarks do; errors are not rounded."""
    parts = {
        kind: {name: replace(one, value=round(one.value, digits)) for name, one in found.items()}
        for kind, found in made.sub_scores.items()
    }
    return replace(made, value=None if made.value is None else round(made.value, digits), sub_scores=parts)
