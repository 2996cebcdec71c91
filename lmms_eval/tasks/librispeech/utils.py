"""LibriSpeech: read books to be written down; word errors over a whole split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.speech import (
    Normaliser,
    basic_normaliser,
    british_spellings,
    english_normaliser,
    installed_spellings,
    words,
)
from lmms_eval.metrics.text import levenshtein_distance
from lmms_eval.tasks._task_utils.estimates import ratio
from lmms_eval.tasks._task_utils.question import Doc, doc_to_audio, framed
from lmms_eval.tasks._task_utils.scoring_data import depends_on

_QUESTION = "Please recognize the speech and only output the recognized content:"
_ENGLISH = "en"


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:  # noqa: ARG001
    """Return the question, the same for all recordings, in its frame."""
    return framed(_QUESTION, lmms_eval_specific_kwargs)


@depends_on(lambda _: installed_spellings())
def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return transcript and reference; the documents of the long recordings have a column ``transcript`` alone.

    Raises:
        NotEvaluated: the document is in English, and the package that holds Whisper's spellings is not installed.
        DataError: that package's list is damaged.
    """
    answer = results[0].strip()
    if "gt" not in doc:
        row = {"gt": doc["transcript"], "pred": answer, "task": f"asr_{_ENGLISH}"}
    else:
        row = {"gt": doc["gt"], "pred": answer, "source": doc["source"], "task": doc["task"]}
    if _language(row) == _ENGLISH:
        british_spellings()
    return {"wer": row}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the words in error per 100 words of the references, over all documents that have a reference.

    Raises:
        NotEvaluated: a document is in English, and the package that holds Whisper's spellings is not installed.
    """
    counted = [result for result in results if result["gt"].strip()]
    normalisers = {language: _normaliser(language) for language in {_language(result) for result in counted}}
    errors, totals = [], []
    for result in counted:
        wanted, found = (words(normalisers[_language(result)](result[key])) for key in ("gt", "pred"))
        errors.append(levenshtein_distance(wanted, found))
        totals.append(len(wanted))
    made = ratio(errors, totals, 100)
    n_left_out = len(results) - len(counted)
    notes = (f"left_out: {n_left_out} documents have an empty reference",) if n_left_out else ()
    return Estimate(made.value, made.stderr, notes=notes)


def _language(result: Mapping[str, Any]) -> str:
    return str(result["task"][4:])


def _normaliser(language: str) -> Normaliser:
    return english_normaliser() if language == _ENGLISH else basic_normaliser()


librispeech_doc_to_audio = doc_to_audio
librispeech_doc_to_text = doc_to_text
librispeech_process_result = process_results
librispeech_wer = aggregate
"""The names of these functions in other task folders of the family."""
