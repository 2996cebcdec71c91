"""Word errors of transcripts."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, UsageError
from lmms_eval.metrics.text import levenshtein_distance


def without_punctuation(text: str) -> str:
    """Drop empty tokens and tokens of characters of the Unicode category P; blanks separate tokens."""
    tokens = text.split(" ")
    return " ".join(token for token in tokens if any(unicodedata.category(one)[0] != "P" for one in token))


def remove_sp(text: str, language: str, *, puncs: str = "!,.?;:", no_space_languages: Collection[str] = ()) -> str:
    """Remove special tokens ``<|…|>`` and superfluous white space from a transcript.

    Texts of ``no_space_languages`` lose all white space. The marks ``puncs`` (in the syntax of a regular expression's
    character class) lose one blank before them.
    """
    text = re.sub(r"\s+", " ", "\n".join(without_spans(line, "<|", "|>", " ") for line in text.split("\n")))
    text = re.sub(f" ?([{puncs}])", r"\1", text).lstrip(" ")
    return re.sub(r"\s+", "", text) if language in no_space_languages else text


def without_spans(text: str, opening: str, closing: str, instead: str = "") -> str:
    """Replace each text from an opening mark to the next closing one, in linear time."""
    pieces, at = [], 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        pieces.append(text[at:start])
        at = end + len(closing)
    return instead.join([*pieces, text[at:]])


def wer(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[int, int]:
    """(edits, words of the reference) for the aggregation of that name, against the nearest of several references.

    Words are compared in lower case; those of punctuation alone do not count. Raises ``UsageError`` without a reference
    or a prediction.
    """
    if not references or not predictions:
        raise UsageError("metric 'wer': needs at least one reference and one prediction")
    transcript = words(predictions[0])
    wanted = [words(reference) for reference in references]
    pairs = [(levenshtein_distance(one, transcript), len(one)) for one in wanted]
    return min(pairs, key=lambda pair: pair[0] / max(1, pair[1]))


def word_error_rate(references: Sequence[str], predictions: Sequence[str]) -> float:
    """Σ edits / Σ words of the references, of whole texts as they are (``wer`` of the package ``evaluate``).

    Case and punctuation count. White space of one character that is no blank separates no words.
    """
    golds, answers = ([_blank_words(text) for text in texts] for texts in (references, predictions))
    edits = sum(levenshtein_distance(gold, answer) for gold, answer in zip(golds, answers, strict=True))
    return edits / max(1, sum(map(len, golds)))


def _blank_words(text: str) -> list[str]:
    return [word for word in _SEVERAL_SPACES.sub(" ", text).strip().split(" ") if word]


def words(text: Any) -> list[str]:
    """Return the words of a transcript in lower case, without those of punctuation alone."""
    return without_punctuation(str(text)).lower().split()


INSTALL_HINT = (
    "English transcripts need Whisper's list of British spellings, in the package whisper-normalizer: "
    "pip install 'lmms_eval[asr]'"
)
_PACKAGE = "whisper_normalizer"
_LIST = Path("normalizers", "english.json")
_SEVERAL_SPACES = re.compile(r"\s\s+")
_BRACKETS = re.compile(r"[<\[][^>\]]*(?:[>\]]|\Z)")
_PARENTHESES = re.compile(r"\([^)]+(?:\)|\Z)|\(\Z")
"""To the closing mark, or to the end of the text."""
Normaliser = Callable[[str], str]


@functools.cache
def british_spellings() -> Mapping[str, str]:
    """Read the American spellings of British words, as Whisper's authors list them.

    The package is found but not imported: its list alone is needed. Raises ``NotEvaluated`` if it is not installed, and
    ``DataError`` if its list is missing or damaged.
    """
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotEvaluated(INSTALL_HINT)
    file = Path(found.submodule_search_locations[0], _LIST)
    try:
        pairs = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as a list of spellings: {error}; install the package again") from error
    if not isinstance(pairs, dict) or not pairs or not all(isinstance(word, str) for word in pairs.values()):
        raise DataError(f"{file}: is no list of spellings: it must map words to words; install the package again")
    return pairs


def installed_spellings() -> str:
    """Return the release of the package that holds the spellings, for ``depends_on``; empty without it."""
    try:
        return f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def english_normaliser() -> Normaliser:
    """Make the normaliser of English transcripts: Whisper's English rules, and after them its basic ones.

    The basic rules remove the ``$``, ``%`` and decimal points that the English rules keep, on both sides alike. Raises
    as ``british_spellings`` does.
    """
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer

    english, basic = EnglishTextNormalizer(british_spellings()), BasicTextNormalizer()

    def normalise(text: str) -> str:
        text = _without_asides(remove_sp(text, "en"))
        with contextlib.suppress(ValueError):  # a number of more digits than Python converts
            text = english(text)
        return str(basic(_without_asides(text)))

    return normalise


def basic_normaliser() -> Normaliser:
    """Make the normaliser of transcripts in other languages: Whisper's basic rules."""
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer

    basic = BasicTextNormalizer()
    return lambda text: str(basic(_without_asides(remove_sp(text, ""))))


def _without_asides(text: str) -> str:
    """Remove text in brackets, then text in parentheses, in linear time.

    The library's own expressions take quadratic time for many opening marks without closing ones; after this they have
    nothing left to do. Such opening marks become another symbol: they end as blanks either way.
    """
    text = _BRACKETS.sub(lambda found: "" if found[0][-1] in ">]" else re.sub(r"[<\[]", "~", found[0]), text)
    return _PARENTHESES.sub(lambda found: "" if found[0][-1] == ")" else found[0].replace("(", "~"), text)
