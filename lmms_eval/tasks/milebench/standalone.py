"""Scores the predictions of a data set and writes the authors' files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import indented_json, write_whole
from lmms_eval.tasks.milebench.reference import Reference
from lmms_eval.tasks.milebench.scoring.model import DatasetResult, SampleScore, aggregate
from lmms_eval.tasks.milebench.scoring.samples import score_sample
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, summarise

EVAL, SCORES, EXTRACTED = "eval.json", "eval_score.json", "pred_with_extracted.json"
FIXED = "eval_fixed.json"
"""Our file: the scores by the fixed rules, counts, and the fingerprint of the predictions."""
SOURCE, SUMMARY = "pred_sha256", "summary"
"""Keys of that file."""
_SHOWN = 5
_SUMMARISED = ("score", "fixed", "sequence", "metric", "n_images", "step", "fixed_step")


class JudgedPrediction(Struct, frozen=True):
    """A prediction with its sample's annotation and score."""

    record: Mapping[str, Any]
    sample: Mapping[str, Any]
    score: SampleScore


class JudgedDataset(Struct, frozen=True):
    """A data set's predictions, judged, in the order of the prediction file."""

    where: str
    """The prediction file, for messages."""
    result: DatasetResult
    judged: tuple[JudgedPrediction, ...]
    n_samples: int
    """Number of samples in the annotation."""
    variant: str = ""
    """``adversarial``, or empty."""
    warnings: tuple[str, ...] = ()

    @property
    def coverage(self) -> float:
        """The share of the annotation's samples that are scored."""
        return self.result.n_scored / self.n_samples

    @property
    def failures(self) -> tuple[SampleScore, ...]:
        return tuple(judged.score for judged in self.judged if judged.score.error is not None)

    def failure_text(self) -> str:
        """Return the failed samples with their errors; empty if none failed."""
        lines = [f"sample {score.sample_id}: {score.error}" for score in self.failures[:_SHOWN]]
        more = len(self.failures) - len(lines)
        return "; ".join(lines) + (f"; and {more} more" if more else "")


def evaluate_dataset(
    reference: Reference, where: str, predictions: Sequence[tuple[int, Mapping[str, Any]]], allow_partial: bool = False
) -> JudgedDataset:
    """Judge all predictions of a data set.

    Args:
        reference: the annotation.
        where: the prediction file, for messages.
        predictions: its records with their samples' numbers.
        allow_partial: leave out missing samples, skip predictions of unknown samples, and use the last of several
            predictions for one sample, each with a warning.

    Raises:
        DataError: without ``allow_partial``, the predictions are not exactly one for each sample.
    """
    by_number: dict[int, Mapping[str, Any]] = {}
    repeated: list[int] = []
    for number, record in predictions:
        if number in by_number:
            repeated.append(number)
        by_number[number] = record
    mismatch = []
    for numbers, what in (
        ([number for number in reference.samples if number not in by_number], "without a prediction"),
        ([number for number in by_number if number not in reference.samples], "unknown"),
        (repeated, "predicted repeatedly"),
    ):
        if numbers:
            shown = ", ".join(map(str, numbers[:_SHOWN])) + (", ..." if len(numbers) > _SHOWN else "")
            mismatch.append(f"{len(numbers)} of {len(reference.samples)} samples {what} ({shown})")
    if mismatch and not allow_partial:
        raise DataError(
            f"{where} does not fit {reference.where}: {'; '.join(mismatch)}; --allow_partial scores what is there"
        )
    judged = tuple(
        JudgedPrediction(
            record,
            sample,
            score_sample(reference.facts, sample, record.get("pred_response"), record.get("gt_response")),
        )
        for number, record in by_number.items()
        if (sample := reference.samples.get(number)) is not None
    )
    if not judged:
        raise DataError(f"{where} has no prediction for any sample of {reference.where}")
    result = aggregate(reference.facts, [one.score for one in judged])
    notes = (*mismatch, *_notes(judged))
    return JudgedDataset(where, result, judged, len(reference.samples), reference.variant, notes)


def _notes(judged: Sequence[JudgedPrediction]) -> Iterator[str]:
    """Report where the prediction file's gold answer, which the authors' script uses, differs from the annotation's."""
    other = [
        one.score.sample_id
        for one in judged
        if "response" in one.sample and str(one.sample["response"]) != one.record.get("gt_response")
    ]
    if other:
        yield (
            f"{len(other)} gt_response differ from the annotation, first in sample {other[0]}: official scores follow "
            "the prediction file, fixed scores the annotation"
        )
    noted = [one.score for one in judged if one.score.note]
    if noted:
        yield f"{len(noted)} samples, first {noted[0].sample_id}: {noted[0].note}"


def write_evaluation(evaluation: JudgedDataset, folder: Path, source: str) -> None:
    """Write the authors' files, and ours, into the folder of the predictions.

    ``source`` is the fingerprint of the predictions, which the collector compares. Raises ``DataError`` if a file
    cannot be written.
    """
    result = evaluation.result
    fixed = {
        **result.as_fixed(),
        "samples": evaluation.n_samples,
        SOURCE: source,
        SUMMARY: summary(evaluation).as_dict() if result.n_scored else None,
    }
    files = {SCORES: indented_json(score_records(evaluation)), FIXED: indented_json(fixed)}
    if any(one.score.normalised for one in evaluation.judged):
        files[EXTRACTED] = indented_json([extracted_record(one) for one in evaluation.judged])
    files[EVAL] = json.dumps(result.as_eval())  # written last, so that the others are complete if it exists
    for name, text in files.items():
        write_whole(folder / name, text, survives_power_loss=False)


def summary(evaluation: JudgedDataset) -> DatasetSummary:
    """Summarise the scored samples, at least one, for the report."""
    return summarise(
        [
            {
                **{name: getattr(one.score, name) for name in _SUMMARISED},
                "no_answer": int(one.score.is_empty),
                "needle_depth": one.sample.get("depth"),
                "needle_length": one.sample.get("length"),
            }
            for one in evaluation.judged
            if one.score.error is None
        ],
        evaluation.result.name,
        evaluation.variant,
    )


def score_records(evaluation: JudgedDataset) -> list[dict[str, str]]:
    """Return the content of ``eval_score.json``; failed samples have no record."""
    return [
        {"id": str(one.record["sample_id"]), "score": reported(one.score.score)}
        for one in evaluation.judged
        if one.score.score is not None
    ]


def reported(score: int | float) -> str:
    """``0`` or ``1``; ROUGE to three decimals."""
    return str(score) if isinstance(score, int) else str(round(score, 3))


def extracted_record(judged: JudgedPrediction) -> dict[str, Any]:
    """An entry of ``pred_with_extracted.json``; a failed sample keeps its texts, with nothing extracted."""
    record, instance, normalised = judged.record, judged.sample["task_instance"], judged.score.normalised
    texts: dict[str, Any] = {"choice_list": instance["choice_list"]}
    if normalised is not None:
        answer, reference, choices = normalised
        texts = {"gt_response": reference, "pred_response": answer, "choice_list": list(choices)}
    return {
        **record,
        "image": instance["images_path"],
        **texts,
        "image_quantity_level": judged.sample["image_quantity_level"],
        "extracted": judged.score.extracted,
        "result": judged.score.score,
    }
