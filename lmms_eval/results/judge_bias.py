"""Effects of length and position of the answers on the scores of a judge (``docs/judges.md``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval import stats
from lmms_eval.api.judging import SECOND_READING
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.store import RunStore
from lmms_eval.judges.prompts import NO_SCORES, parse_comparative
from lmms_eval.results.certainty import BiasShare, JudgeBiasEntry, LengthSlope, PositionEntry, plain
from lmms_eval.results.controls import DocumentScores, document_scores
from lmms_eval.results.human import HumanScores
from lmms_eval.stats.association import Slope, SlopeData, slope
from lmms_eval.utils.numbers import SHARES

COMPARES = "compares"
"""Key of the details of a judge's question that compares two answers: their names, in the order of the prompt."""
NO_MEAN = "the score is withheld, or is no mean over documents"


def judge_biases(
    results: Sequence[TaskResult], store: RunStore, human: Mapping[str, HumanScores]
) -> dict[str, dict[str, Any]]:
    """Measure the bias of the judge in each judged task, as ``judge_bias`` of the results document.

    Args:
        results: the tasks of the run.
        store: their records.
        human: people's scores by task.
    """
    found = {}
    for result in results:
        name = result.task.name
        if result.task.has_judged_scores and not result.task.control_of:
            entry = _biases(result, store, human.get(name))
            if entry is not None:
                found[name] = plain(entry)
    return found


def _biases(result: TaskResult, store: RunStore, human: HumanScores | None) -> JudgeBiasEntry | None:
    """Return the biases in a task; ``None`` if no document was judged."""
    lengths: dict[int, float] = {}
    compared: dict[int, list[_Comparison]] = {}
    for record in store.scores(result.task.name, result.plan.doc_ids):
        if any(SECOND_READING not in (verdict.get("details") or {}) for verdict in record.get("judge") or ()):
            lengths[record["doc_id"]] = _length(record)
            if made := list(_comparisons(record)):
                compared[record["doc_id"]] = made
    if not lengths:
        return None
    metric = result.metrics[0]
    row = f"{metric.metric},{metric.filter}"
    scores = next((one for key, one in document_scores(result, store).items() if str(key) == row), None)
    entry = JudgeBiasEntry(metric=row, length=LengthSlope(slope=None, correlation=None, low=None, high=None, n=0))
    if scores is None or scores.strata:
        entry.length.reason = NO_MEAN
    else:
        known = [doc_id for doc_id in scores.by_document if doc_id in lengths]
        entry.length = _of_length(_documents(scores, lengths, known))
        if human is not None:
            labelled = [doc_id for doc_id in known if doc_id in human.labelled]
            entry.length_given_human = _of_length(_documents(scores, lengths, labelled, human))
    if compared:
        entry.position = _of_position(result, compared)
    return entry


def _length(record: Mapping[str, Any]) -> float:
    """Return the binary logarithm of an answer's characters without thoughts, as the mean over repeats."""
    logs = [math.log2(max(1, _characters(answer.get("value")))) for answer in record["answers"]]
    return math.fsum(logs) / len(logs) if logs else 0.0


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


def _documents(
    scores: DocumentScores, lengths: Mapping[int, float], known: Sequence[int], human: HumanScores | None = None
) -> SlopeData:
    names = scores.named(known)
    clusters = None
    if names is not None:  # a document without a cluster is one of its own
        clusters = [doc_id if name is None else name for doc_id, name in zip(known, names, strict=True)]
    return SlopeData(
        scores=[scores.by_document[doc_id] for doc_id in known],
        property=[lengths[doc_id] for doc_id in known],
        control=None if human is None else [human.labelled[doc_id][0] for doc_id in known],
        weights=None if human is None else [human.labelled[doc_id][1] for doc_id in known],
        clusters=clusters,
    )


def _of_length(documents: SlopeData) -> LengthSlope:
    n = len(documents.scores)
    found = slope(documents) if n > 1 else stats.NoInterval(f"n = {n}")
    made = LengthSlope(slope=None, correlation=None, low=None, high=None, n=n)
    if not isinstance(found, Slope):
        made.reason = found.reason
        return made
    made.slope, made.correlation = found.value, found.correlation
    if isinstance(found.interval, stats.Interval):
        made.low, made.high, made.method = found.interval.low, found.interval.high, found.interval.method
    else:
        made.reason = found.interval.reason
    return made


_Comparison = tuple[tuple[str, str], float]
"""Names of the first and second answer, and 1 if the judge preferred the first, 0 the second, else ½."""


def _comparisons(record: Mapping[str, Any]) -> Iterator[_Comparison]:
    """Yield the comparisons in a document's verdicts. Further askings of a question (``NAME~2``) do not count."""
    for verdict in record["judge"]:
        names = (verdict.get("details") or {}).get(COMPARES)
        if not isinstance(names, list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
            continue
        if not verdict.get("accepted") or "~" in verdict["name"]:
            continue
        first, second = pair = parse_comparative(verdict.get("text") or "")
        if pair != NO_SCORES:
            yield (names[0], names[1]), 0.5 if first == second else float(first > second)


def _of_position(result: TaskResult, found: Mapping[int, Sequence[_Comparison]]) -> PositionEntry:
    """Return how often the judge preferred the first answer, from the comparisons by document."""
    changed = {doc_id: share for doc_id, made in found.items() if (share := _changed(made)) is not None}
    used = {doc_id: found[doc_id] for doc_id in changed} if changed else found
    first = {doc_id: math.fsum(share for _, share in made) / len(made) for doc_id, made in used.items()}
    orders = sorted({names for made in found.values() for names, _ in made})
    entry = PositionEntry(
        orders=[list(names) for names in orders],
        documents=len(found),
        both_orders=len(changed),
        first=_share(result, first),
    )
    if changed:
        entry.changed = _share(result, changed)
    return entry


def _changed(made: Sequence[_Comparison]) -> float | None:
    """Return 1 if a document's verdict changed with the order of the answers, else 0; ``None`` without both orders."""
    for number, (names, share) in enumerate(made):
        for others, other in made[number + 1 :]:
            if others == names[::-1]:
                return float(share != 1 - other)
    return None


def _share(result: TaskResult, values: Mapping[int, float]) -> BiasShare:
    numbers = list(values.values())
    mean = math.fsum(numbers) / len(numbers)
    names = result.clusters.of(list(values))
    spread = (
        stats.MeanSpread.of_scores(numbers, SHARES)
        if names is None
        else stats.MeanSpread.clustered(
            numbers, [doc_id if name is None else name for doc_id, name in zip(values, names, strict=True)]
        )
    )
    interval = stats.score_interval(mean, spread, SHARES)
    if isinstance(interval, stats.Interval):
        return BiasShare(value=mean, low=interval.low, high=interval.high, n=len(numbers), method=interval.method)
    return BiasShare(value=mean, low=None, high=None, n=len(numbers), reason=interval.reason)


def bias_lines(biases: Mapping[str, Any], task: str = "", only_clear: bool = False) -> list[str]:
    """Return sentences about the part ``judge_bias`` of the results.

    Args:
        biases: the part.
        task: only this task.
        only_clear: leave out slopes whose interval contains 0 or that have none.
    """
    lines = []
    for name, entry in biases.items():
        if task in ("", name):
            metric = str(entry["metric"]).partition(",")[0]
            for key, given in (("length", ""), ("length_given_human", " at equal human scores")):
                found = entry.get(key)
                if found and (_is_clear(found) or not only_clear):
                    lines.append(f"{name}: {_length_text(metric, given, found)}")
            if position := entry.get("position"):
                lines.append(f"{name}: {_position_text(position)}")
    return lines


def _is_clear(found: Mapping[str, Any]) -> bool:
    return found["low"] is not None and (found["low"] > 0 or found["high"] < 0)


def _length_text(metric: str, given: str, found: Mapping[str, Any]) -> str:
    if found["slope"] is None:
        return f"judge's {metric} by length of the answer{given}: none ({found['reason']})"
    text = (
        f"judge's {metric} changes by {found['slope']:+.4f} with each doubling of the answer's length{given}, "
        f"{_ends(found, '+.4f')}, correlation {found['correlation']:+.2f}, {found['n']} documents"
    )
    return f"{text}; longer answers may be better ones" if _is_clear(found) and not given else text


def _position_text(found: Mapping[str, Any]) -> str:
    first = found["first"]
    text = f"the judge prefers the first answer in {first['value']:.1%}, {_ends(first, '.1%')}"
    if changed := found.get("changed"):
        return (
            f"in {changed['value']:.1%} of {changed['n']} documents, {_ends(changed, '.1%')}, the judge's preference "
            f"changes with the order of the answers; over both orders {text}"
        )
    orders = found["orders"]
    names = f"always {orders[0][0]}" if len({order[0] for order in orders}) == 1 else "one order for each document"
    return f"{text}, of {first['n']} documents; {names}, so this holds quality and position together"


def _ends(found: Mapping[str, Any], form: str) -> str:
    if found["low"] is None:
        return f"no interval ({found['reason']})"
    return f"CI95 [{found['low']:{form}}, {found['high']:{form}}]"
