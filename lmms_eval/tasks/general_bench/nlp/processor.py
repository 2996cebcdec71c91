"""The reference's scorer of language tasks, for the profile ``reference`` (General-Bench specification §5.1, §7).

Its faults are kept: the metric follows from the annotation's type, items without a prediction are left out of the
average, a null prediction is the text ``None`` (and wrong), scores are fractions, and one value of the wrong kind drops
the whole task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.linguistic import nltk_version, open_linguistics
from lmms_eval.tasks.general_bench.data.annotations import ANNOTATION
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.data.scanning import scan
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.levels.registering import LevelResult
from lmms_eval.tasks.general_bench.measures.code_bleu import code_bleu
from lmms_eval.tasks.general_bench.measures.text_math import (
    Counts,
    exact_match,
    fallback_tokens,
    mean_absolute_error,
    micro_f1,
    micro_f1_counts,
    reference_texts,
    rouge,
    sentence_bleu,
    token_f1,
)
from lmms_eval.tasks.general_bench.nlp.types import Metric, reference_of, type_of
from lmms_eval.tasks.general_bench.settings import PREDICTIONS

Tokenize = Callable[[str], list[str]]
_VALUE_KEYS = ("prediction", "prediction_final")
"""Keys of a prediction. The first existing one counts."""
_NULL = "None"
"""The text of a null prediction."""
_UNUSABLE = (ValueError, OverflowError, RecursionError)
"""Errors for absurd values: numbers too large to sum or to print, lists nested too deeply."""


class LeftOut(Struct, frozen=True):
    """An item that is not in the average."""

    id: str
    """Id of the item as JSON."""
    reason: Literal["no prediction", "no reference"]


class ProcessedTask(Struct, frozen=True):
    """Outcome of the scorer for a task."""

    task_name: str
    metric: Metric
    score: float
    """A fraction, or for an error (MAE) a number in the unit of the series."""
    task_type: str
    n_scored: int
    n_expected: int
    left_out: tuple[LeftOut, ...]


class WordTokenizer(Struct, frozen=True):
    """Tokenizer for BLEU. It is part of the record of a run, because the scores depend on it."""

    name: Literal["treebank", "fallback"]
    tokens: Tokenize

    @property
    def label(self) -> str:
        """The name, with NLTK's version if its words are used."""
        return f"{self.name} (NLTK {nltk_version()})" if self.name == "treebank" else self.name


_Pair = tuple[Any, Any]
"""Prediction and reference of an item."""


def installed_tokenizer(nltk_data: str | None = None) -> WordTokenizer:
    """Return NLTK's words if its sentence model is installed, else white-space tokens, as the reference does."""
    try:
        return WordTokenizer("treebank", open_linguistics(nltk_data).words)
    except NotEvaluated:
        return WordTokenizer("fallback", fallback_tokens)


def process(annotation: Any, predictions: Any, tokenize: Tokenize) -> ProcessedTask | None:
    """Score a task as the reference does. Return ``None`` if no item has both a reference and a prediction.

    Args:
        annotation: content of ``annotation.json``.
        predictions: content of ``prediction.json``; the reference takes the list form only.
        tokenize: words for BLEU (``installed_tokenizer``).

    Raises:
        DataError: something has not the shape that the type needs; the reference then skips the task.
        NotEvaluated: a package is missing.
    """
    try:
        return _process(annotation, predictions, tokenize)
    except _UNUSABLE as error:
        raise DataError(f"a value cannot be scored: {error}") from error


def process_folder(
    dataset: Path, prediction_name: str = PREDICTIONS, tokenize: Tokenize = fallback_tokens
) -> tuple[list[ProcessedTask], list[str]]:
    """Score every task of ``<dataset>/nlp`` (in any case).

    Returns the scored tasks, sorted by folder, and the reasons why others have no score.

    Raises:
        DataError: there is no ``nlp`` folder.
        UsageError: the name of the prediction files is a path.
    """
    if Path(prediction_name).name != prediction_name:
        raise UsageError(f"{prediction_name!r} is a path: give the bare name of the prediction files")
    results: list[ProcessedTask] = []
    problems: list[str] = []
    for folder in _task_folders(dataset):
        try:
            found = process(read_json(folder / ANNOTATION), read_json(folder / prediction_name), tokenize)
        except LmmsEvalError as error:
            problems.append(f"{folder.name}: {error}")
        except NotEvaluated as error:
            problems.append(f"{folder.name}: not evaluated: {error.reason}")
        else:
            if found is None:
                problems.append(f"{folder.name}: no item has both a reference and a prediction")
            else:
                results.append(found)
    return results, problems


def _task_folders(dataset: Path) -> list[Path]:
    try:
        homes = [path for path in sorted(dataset.iterdir()) if path.name.upper() == LANGUAGE and path.is_dir()]
        if homes:
            return [path for home in homes for path in sorted(home.iterdir()) if path.is_dir()]
    except OSError as error:
        raise DataError(f"{dataset} cannot be read: {error.strerror or error}") from error
    raise DataError(f"{dataset}: no folder nlp with the language tasks in it; name the folder of the data set")


def _process(annotation: Any, predictions: Any, tokenize: Tokenize) -> ProcessedTask | None:
    if not isinstance(annotation, Mapping):
        raise DataError(f"the annotation is {annotation!r:.80}; an object with task, type and data is expected")
    data, name = annotation.get("data"), annotation.get("task") or ""
    if not isinstance(data, list) or not isinstance(name, str):
        raise DataError("the annotation needs a list `data` and a text `task`")
    answers = _answers(predictions)
    pairs: list[_Pair] = []
    left_out: list[LeftOut] = []
    for item in data:
        if not isinstance(item, Mapping):
            raise DataError(f"an item is {item!r:.80}, no object")
        key = id_key(item.get("id"))
        prediction, reference = answers.get(key), reference_of(annotation.get("type"), item)
        if prediction is None:
            left_out.append(LeftOut(key, "no prediction"))
        elif reference is None:
            left_out.append(LeftOut(key, "no reference"))
        else:
            pairs.append((prediction, reference))
    if not pairs:
        return None
    metric = type_of(annotation.get("type")).metric
    return ProcessedTask(
        task_name=name,
        metric=metric,
        score=_SCORES[metric](pairs, tokenize),
        task_type="comprehension",
        n_scored=len(pairs),
        n_expected=len(data),
        left_out=tuple(left_out),
    )


def _answers(predictions: Any) -> dict[str, Any]:
    """Return predictions by id. The last record of an id counts; records without an id are skipped."""
    if not isinstance(predictions, list):
        raise DataError(f"a list of records is expected, not {predictions!r:.80}")
    found: dict[str, Any] = {}
    for record in predictions:
        if not isinstance(record, Mapping):
            raise DataError(f"a record is {record!r:.80}, no object")
        key = id_key(record.get("id"))
        for name in _VALUE_KEYS:
            if name in record:
                found[key] = _NULL if record[name] is None else record[name]
                break
    return found


_SCORES: Mapping[Metric, Callable[[Sequence[_Pair], Tokenize], float]] = MappingProxyType(
    {
        "ACC": lambda pairs, _: _mean([exact_match(*pair) for pair in pairs]),
        "F1": lambda pairs, _: _mean([token_f1(_text(found), _f1_texts(wanted)) for found, wanted in pairs]),
        "ROUGE-1": lambda pairs, _: _mean([_best(partial(rouge, kind="rouge1"), *pair) for pair in pairs]),
        "BLEU-1": lambda pairs, tokenize: _mean(
            [_best(lambda text, wanted: sentence_bleu(tokenize(text), tokenize(wanted), 1), *pair) for pair in pairs]
        ),
        "CodeBLEU": lambda pairs, _: code_bleu(
            [_text(found) for found, _ in pairs], [_text(wanted) for _, wanted in pairs]
        ),
        "Micro-F1": lambda pairs, _: micro_f1(
            sum((micro_f1_counts(*map(_text, pair)) for pair in pairs), Counts(0, 0, 0))
        ),
        "MAE": lambda pairs, _: mean_absolute_error(pairs),
    }
)


def _best(score: Callable[[str, str], float], prediction: Any, reference: Any) -> float:
    """Return the best score over the references, or 0 without references."""
    found = _text(prediction)
    return max((score(found, wanted) for wanted in _texts(reference)), default=0.0)


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)


def _text(value: Any) -> str:
    """Return a text unchanged, and a number as Python writes it."""
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(f"{value!r:.80} found where a text or a number is expected")


def _texts(value: Any) -> list[str]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _f1_texts(reference: Any) -> list[str]:
    """Return the texts of a reference of F1. As for exact match, a single number is not a text."""
    return _texts(reference) if isinstance(reference, list) else reference_texts(reference)


class LanguageScores(Struct, frozen=True):
    """Scores of the language tasks below a data set's folders."""

    results: tuple[LevelResult, ...]
    problems: tuple[str, ...]
    files: int
    """Prediction files below the folders of language tasks."""
    tokenizer: str
    """Tokenizer of BLEU: ``treebank`` with NLTK's version, or ``fallback``."""


def score_language(dataset: Path, name: str) -> LanguageScores:
    """Score the language tasks below a data set's folder, or below the sets in it, as the reference does.

    Raises:
        DataError: there is no such folder.
    """
    tokenizer = installed_tokenizer()
    folders = [folder.path for folder in scan(dataset).folders if folder.modality == LANGUAGE]
    results: list[LevelResult] = []
    problems: list[str] = []
    for root in sorted({folder.parent.parent for folder in folders}):
        processed, faults = process_folder(root, name, tokenizer.tokens)
        results += [
            LevelResult(
                task_name=task.task_name,
                metric=task.metric,
                score=task.score,
                modality=LANGUAGE,
                task_type=task.task_type,
                items_scored=task.n_scored,
                items_expected=task.n_expected,
            )
            for task in processed
        ]
        problems += faults
    files = sum((folder / name).is_file() for folder in folders)
    return LanguageScores(tuple(results), tuple(problems), files, tokenizer.label)
