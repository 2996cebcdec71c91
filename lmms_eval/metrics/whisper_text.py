"""Transcripts as Whisper's authors normalise them before word errors are counted.

A. Radford et al., "Robust speech recognition via large-scale weak supervision", arXiv 2212.04356, 2022, appendix C. The
English rules need a list of British spellings with the American ones, which the authors publish with the tokenizer
(``normalizer.json``) and no package holds. In its absence a list of our own of common words takes its place.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lmms_eval.errors import DataError
from lmms_eval.metrics.speech import remove_sp
from lmms_eval.utils.task_files import read_table

LIST_FILE = "normalizer.json"
"""Name of the authors' list in the tokenizer's repository."""
_COMMON_WORDS = Path(__file__).with_name("spellings.tsv")
_MAX_BYTES = 2**20
_BRACKETS = re.compile(r"[<\[][^>\]]*(?:[>\]]|\Z)")
_PARENTHESES = re.compile(r"\([^)]+(?:\)|\Z)|\(\Z")
"""To the closing mark, or to the end of the text."""
Normaliser = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Spellings:
    """American spellings of British words."""

    pairs: Mapping[str, str]
    file: Path | None
    """The authors' list; ``None`` for the one of common words."""


def spellings(places: Iterable[Path]) -> Spellings:
    """Read the first file of the authors' list that is there, or else the packaged list of common words.

    Raises:
        DataError: the file is no list of spellings.
    """
    file = next((place for place in places if place.is_file()), None)
    return _packaged() if file is None else Spellings(_read(file), file)


def _read(file: Path) -> Mapping[str, str]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
        pairs = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as Whisper's list of spellings: {error}") from error
    if not isinstance(pairs, dict) or not all(isinstance(word, str) for word in pairs.values()):
        raise DataError(f"{file}: is no list of spellings: it must map words to words, as Whisper's {LIST_FILE} does")
    return pairs


@functools.cache
def _packaged() -> Spellings:
    return Spellings({row["british"]: row["american"] for row in read_table(_COMMON_WORDS)}, None)


def english_normaliser(pairs: Mapping[str, str]) -> Normaliser:
    """Make the normaliser of English transcripts: Whisper's English rules, and after them its basic ones.

    The latter drop what the former keep of ``$``, ``%`` and decimal points, on both sides alike.
    """
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer

    english, basic = EnglishTextNormalizer(pairs), BasicTextNormalizer()

    def normalise(text: str) -> str:
        text = _without_asides(remove_sp(text, "en"))
        with contextlib.suppress(ValueError):  # a number of more digits than Python converts: nobody ever said it
            text = english(text)
        return str(basic(_without_asides(text)))

    return normalise


def basic_normaliser() -> Normaliser:
    """Make the normaliser of transcripts in other languages: Whisper's basic rules."""
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer

    basic = BasicTextNormalizer()
    return lambda text: str(basic(_without_asides(remove_sp(text, ""))))


def _without_asides(text: str) -> str:
    """Remove what stands in brackets, then in parentheses, in linear time.

    The library's expressions for it, of which nothing is left to do then, take quadratic time for many opening marks
    that nothing closes. Those become another symbol: they end as blanks either way.
    """
    text = _BRACKETS.sub(lambda found: "" if found[0][-1] in ">]" else re.sub(r"[<\[]", "~", found[0]), text)
    return _PARENTHESES.sub(lambda found: "" if found[0][-1] == ")" else found[0].replace("(", "~"), text)
