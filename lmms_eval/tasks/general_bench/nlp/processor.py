"""The reference's scorer of language tasks, for the profile ``reference`` (General-Bench specification §5.1, §7).

Its faults are kept: the metric follows from the annotation's type, items without a prediction are left out of the
average, a null prediction is the text ``None`` (and wrong), scores are fractions, and one value of the wrong kind drops
the whole task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.linguistic import nltk_version, open_linguistics
from lmms_eval.tasks.general_bench.data.annotations import ANNOTATION
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.data.scanning import scan
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.levels.registering import LevelResult
from lmms_eval.tasks.general_bench.measures import text_math
from lmms_eval.tasks.general_bench.measures.code_bleu import code_bleu
from lmms_eval.tasks.general_bench.measures.contract import mean
from lmms_eval.tasks.general_bench.nlp.types import Metric, reference_of, type_of
from lmms_eval.tasks.general_bench.settings import PREDICTIONS

Tokenize = Callable[[str], list[str]]
_VALUE_KEYS = ("prediction", "prediction_final")
"""Keys of a prediction. The first existing one counts."""
_NULL = "None"
"""The text of a null prediction."""
_UNUSABLE = (ValueError, OverflowError, RecursionError)
"""Errors for absurd values: numbers too large to sum or to print, lists nested too deeply."""


_Pair = tuple[Any, Any]
"""Prediction and reference of an item."""


def installed_tokenizer(nltk_data: str | None = None) -> tuple[str, Tokenize]:
    """Return the tokenizer for BLEU, and its name for the record of a run, because the scores depend on it.

    It gives NLTK's words (``treebank``, with its version) if its sentence model is installed, else white-space tokens
    (``fallback``), as the reference does.
    """
    try:
        words = open_linguistics(nltk_data).words
    except NotEvaluated:
        return "fallback", text_math.fallback_tokens
    return f"treebank (NLTK {nltk_version()})", words


def process(annotation: Any, predictions: Any, tokenize: Tokenize) -> LevelResult | None:
    """Score a task as the reference does. Return ``None`` if no item has both a reference and a prediction.

    Items without a prediction or a reference are not in the average.

    Args:
        annotation: content of ``annotation.json``.
        predictions: content of ``prediction.json``; the reference takes the list form only.
        tokenize: words for BLEU (``installed_tokenizer``).

    Raises:
        DataError: something has not the shape that the type needs; the reference then skips the task.
        NotEvaluated: a package is missing.
    """
    if not isinstance(annotation, Mapping):
        raise DataError(f"the annotation is {annotation!r:.80}; an object with task, type and data is expected")
    data, name = annotation.get("data"), annotation.get("task") or ""
    if not isinstance(data, list) or not isinstance(name, str):
        raise DataError("the annotation needs a list `data` and a text `task`")
    metric = type_of(annotation.get("type")).metric
    try:
        answers = _answers(predictions)
        pairs: list[_Pair] = []
        for item in data:
            if not isinstance(item, Mapping):
                raise DataError(f"an item is {item!r:.80}, no object")
            answer = answers.get(id_key(item.get("id")))
            reference = reference_of(annotation.get("type"), item)
            if answer is not None and reference is not None:
                pairs.append((answer, reference))
        score = _SCORES[metric](pairs, tokenize) if pairs else None
    except _UNUSABLE as error:
        raise DataError(f"a value cannot be scored: {error}") from error
    if score is None:
        return None
    return LevelResult(
        name, metric, score, LANGUAGE, "comprehension", items_scored=len(pairs), items_expected=len(data)
    )


def process_folder(
    dataset: Path, prediction_name: str = PREDICTIONS, tokenize: Tokenize = text_math.fallback_tokens
) -> tuple[list[LevelResult], list[str]]:
    """Score every task of ``<dataset>/nlp`` (in any case).

    Returns the scored tasks, sorted by folder, and the reasons why others have no score.

    Raises:
        DataError: there is no ``nlp`` folder.
        UsageError: the name of the prediction files is a path.
    """
    if Path(prediction_name).name != prediction_name:
        raise UsageError(f"{prediction_name!r} is a path: give the bare name of the prediction files")
    try:
        homes = [path for path in sorted(dataset.iterdir()) if path.name.upper() == LANGUAGE and path.is_dir()]
        folders = [path for home in homes for path in sorted(home.iterdir()) if path.is_dir()]
    except OSError as error:
        raise DataError(f"{dataset} cannot be read: {error.strerror or error}") from error
    if not homes:
        raise DataError(f"{dataset}: no folder nlp with the language tasks in it; name the folder of the data set")
    results: list[LevelResult] = []
    problems: list[str] = []
    for folder in folders:
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
        "ACC": lambda pairs, _: mean([text_math.exact_match(*pair) for pair in pairs]),
        "F1": lambda pairs, _: mean([text_math.token_f1(_text(found), _f1_texts(wanted)) for found, wanted in pairs]),
        "ROUGE-1": lambda pairs, _: mean([_best(partial(text_math.rouge, kind="rouge1"), *pair) for pair in pairs]),
        "BLEU-1": lambda pairs, tokenize: mean(
            [
                _best(lambda text, wanted: text_math.sentence_bleu(tokenize(text), tokenize(wanted), 1), *pair)
                for pair in pairs
            ]
        ),
        "CodeBLEU": lambda pairs, _: code_bleu(
            [_text(found) for found, _ in pairs], [_text(wanted) for _, wanted in pairs]
        ),
        "Micro-F1": lambda pairs, _: text_math.micro_f1(
            [text_math.micro_f1_counts(*map(_text, pair)) for pair in pairs]
        ),
        "MAE": lambda pairs, _: text_math.mean_absolute_error(pairs),
    }
)


def _best(score: Callable[[str, str], float], prediction: Any, reference: Any) -> float:
    """Return the best score over the references, or 0 without references."""
    found = _text(prediction)
    return max((score(found, wanted) for wanted in _texts(reference)), default=0.0)


def _text(value: Any) -> str:
    """Return a text unchanged, and a number as Python writes it."""
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(f"{value!r:.80} found where a text or a number is expected")


def _texts(value: Any) -> list[str]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _f1_texts(reference: Any) -> list[str]:
    """Return the texts of a reference of F1. As for exact match, a single number is not a text."""
    return _texts(reference) if isinstance(reference, list) else text_math.reference_texts(reference)


def score_language(
    dataset: Path, name: str, predictions: int
) -> tuple[tuple[LevelResult, ...], tuple[str, ...], tuple[str, ...]]:
    """Score the language tasks below a data set's folder, or below the sets in it, as the reference does.

    ``predictions`` is the number of all prediction files. Returns scores, problems and warnings. Raises ``DataError``
    if there is no such folder.
    """
    tokenizer, words = installed_tokenizer()
    folders = [folder.path for folder in scan(dataset)[0] if folder.modality == LANGUAGE]
    results: list[LevelResult] = []
    problems: list[str] = []
    for root in sorted({folder.parent.parent for folder in folders}):
        found, faults = process_folder(root, name, words)
        results += found
        problems += faults
    warnings = [f"BLEU counts the words of the tokenizer {tokenizer}"]
    others = predictions - sum((folder / name).is_file() for folder in folders)
    if others:
        warnings.append(f"profile reference scores language tasks only: {others} files of predictions are left out")
    return tuple(results), tuple(problems), tuple(warnings)
