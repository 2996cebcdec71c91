"""LibriSpeech: read books to be written down; word errors over a whole split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.speech import words
from lmms_eval.metrics.text import levenshtein_distance
from lmms_eval.metrics.whisper_text import (
    LIST_FILE,
    Normaliser,
    Spellings,
    basic_normaliser,
    english_normaliser,
    spellings,
)
from lmms_eval.tasks._task_utils.estimates import ratio
from lmms_eval.tasks._task_utils.media_files import hub_cache
from lmms_eval.tasks._task_utils.question import doc_to_audio, framed

Doc = Mapping[str, Any]
_QUESTION = "Please recognize the speech and only output the recognized content:"
_ENGLISH = "en"
_OWN_SPELLINGS = (
    "spellings: British spellings are made American by the packaged list of {count} common words, since Whisper's own "
    f"({LIST_FILE} of the repository openai/whisper-large-v3) is neither in --data_root nor in the hub's cache; words "
    "that only it has may count as errors"
)


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:  # noqa: ARG001
    """Return the question, the same for all recordings, in its frame."""
    return framed(_QUESTION, lmms_eval_specific_kwargs)


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return transcript and reference; the documents of the long recordings have a column ``transcript`` alone."""
    answer = results[0].strip()
    if "gt" not in doc:
        return {"wer": {"gt": doc["transcript"], "pred": answer, "task": f"asr_{_ENGLISH}"}}
    return {"wer": {"gt": doc["gt"], "pred": answer, "source": doc["source"], "task": doc["task"]}}


def aggregate(results: Sequence[Mapping[str, Any]], args: Any = None) -> Estimate:
    """Return the words in error per 100 words of the references, over all documents that have a reference.

    Raises:
        DataError: the file of Whisper's spellings is damaged.
    """
    spelled = spellings(_places(getattr(args, "data_root", None)))
    counted = [result for result in results if result["gt"].strip()]
    normalisers: dict[str, Normaliser] = {}
    errors, totals = [], []
    for result in counted:
        language = result["task"][4:]
        if language not in normalisers:
            normalisers[language] = _normaliser(language, spelled)
        wanted, found = (words(normalisers[language](result[key])) for key in ("gt", "pred"))
        errors.append(levenshtein_distance(wanted, found))
        totals.append(len(wanted))
    made = ratio(errors, totals, 100)
    return Estimate(made.value, made.stderr, notes=tuple(_notes(len(results) - len(counted), normalisers, spelled)))


def _normaliser(language: str, spelled: Spellings) -> Normaliser:
    return english_normaliser(spelled.pairs) if language == _ENGLISH else basic_normaliser()


def _notes(n_left_out: int, languages: Mapping[str, Normaliser], spelled: Spellings) -> Iterator[str]:
    if n_left_out:
        yield f"left_out: {n_left_out} documents have an empty reference"
    if _ENGLISH in languages and spelled.file is None:
        yield _OWN_SPELLINGS.format(count=f"{len(spelled.pairs):,}")


def _places(data_root: str | None) -> Iterator[Path]:
    """Files that may hold Whisper's spellings: below ``--data_root``, then in the hub's cache."""
    if data_root:
        root = Path(data_root).expanduser()
        yield from (root / LIST_FILE, root / "openai" / "whisper-large-v3" / LIST_FILE)
    yield from sorted(hub_cache().glob(f"models--openai--whisper-*/snapshots/*/{LIST_FILE}"))


librispeech_doc_to_audio = doc_to_audio
librispeech_doc_to_text = doc_to_text
librispeech_process_result = process_results
librispeech_wer = aggregate
"""The names under which other task folders of the family take these functions."""
