"""A data set's language predictions by the reference's scorer, as results for the result table."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from lmms_eval.tasks.general_bench.data.scanning import scan
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.levels.results import LevelResult
from lmms_eval.tasks.general_bench.nlp.processor import installed_tokenizer, process_folder


class LanguageScores(Struct, frozen=True):
    """Scores of the language tasks below a data set's folders."""

    results: tuple[LevelResult, ...]
    problems: tuple[str, ...]
    files: int
    """Prediction files below the folders of language tasks."""
    tokenizer: str
    """Tokenizer of BLEU: ``treebank`` with NLTK's release, or ``fallback``."""


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
        found = process_folder(root, name, tokenizer.tokens)
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
            for task in found.results
        ]
        problems += found.problems
    files = sum((folder / name).is_file() for folder in folders)
    return LanguageScores(tuple(results), tuple(problems), files, tokenizer.label)
