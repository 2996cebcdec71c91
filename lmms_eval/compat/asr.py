"""Word error rates of speech recognition as task files of the family compute them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar

from lmms_eval.compat.helpers import require_package
from lmms_eval.errors import ArgumentError
from lmms_eval.metrics.speech import remove_sp as remove_sp
from lmms_eval.metrics.speech import without_punctuation
from lmms_eval.metrics.text import levenshtein_distance

TOKENIZERS = {
    "none": "tokenizer_none.NoneTokenizer",
    "13a": "tokenizer_13a.Tokenizer13a",
    "intl": "tokenizer_intl.TokenizerV14International",
    "zh": "tokenizer_zh.TokenizerZh",
    "ja-mecab": "tokenizer_ja_mecab.TokenizerJaMecab",
    "char": "tokenizer_char.TokenizerChar",
}
"""Name to module and class of ``sacrebleu.tokenizers``; a module is imported when its tokenizer is made."""
Normalizer = Callable[[str], str]


class EvaluationTokenizer:
    """sacrebleu's tokenizer, and after it: no punctuation, single characters, lower case.

    The type is ``none``, ``13a``, ``intl``, ``zh``, ``ja-mecab`` (needs MeCab) or ``char``; any other is an
    ``ArgumentError``. ``punctuation_removal`` drops tokens that consist of punctuation. ``character_tokenization``
    makes every character a token, with blanks as ``SPACE_ESCAPE``.
    """

    SPACE: ClassVar[str] = " "
    SPACE_ESCAPE: ClassVar[str] = "▁"

    def __init__(
        self,
        tokenizer_type: str = "13a",
        lowercase: bool = False,
        punctuation_removal: bool = False,
        character_tokenization: bool = False,
    ) -> None:
        if tokenizer_type not in TOKENIZERS:
            raise ArgumentError(f"tokenizer_type is {tokenizer_type!r}; give one of {', '.join(TOKENIZERS)}")
        self.tokenizer_type, self.lowercase = tokenizer_type, lowercase
        self.punctuation_removal, self.character_tokenization = punctuation_removal, character_tokenization
        module, _, name = TOKENIZERS[tokenizer_type].rpartition(".")
        self.tokenizer: Normalizer = getattr(importlib.import_module(f"sacrebleu.tokenizers.{module}"), name)()

    @classmethod
    def remove_punctuation(cls, sent: str) -> str:
        """Drop empty tokens, and those that consist of characters of the Unicode category P."""
        return without_punctuation(sent)

    def tokenize(self, sent: str) -> str:
        """Return the tokens, joined by blanks."""
        text = self.tokenizer(sent)
        if self.punctuation_removal:
            text = self.remove_punctuation(text)
        if self.character_tokenization:
            text = self.SPACE.join(text.replace(self.SPACE, self.SPACE_ESCAPE))
        return text.lower() if self.lowercase else text


def compute_wer(  # noqa: PLR0913 - the signature that task files call
    refs: Sequence[str],
    hyps: Sequence[str],
    language: str,
    *,
    yue_languages: Collection[str] = (),
    english_languages: Collection[str] = (),
    chinese_languages: Collection[str] = (),
    char_languages: Collection[str] = (),
    yue_converter: Callable[[str, str], str] | None = None,
    english_normalizer: Normalizer | None = None,
    chinese_normalizer: Normalizer | None = None,
    basic_normalizer: Normalizer | None = None,
) -> float:
    """Return the word error rate of a corpus: edits over items of the references, a ratio.

    ``yue_converter(text, "zh-cn")`` converts texts of ``yue_languages``, and the English normaliser those of
    ``english_languages``. Then the Chinese normaliser is applied to texts of ``chinese_languages``, and the basic one
    to all others. Lower case and the removal of punctuation follow. Items are words, or characters in
    ``char_languages``.

    Args:
        refs: the true transcripts.
        hyps: the model's transcripts, in the same order; surplus ones are ignored.
        language: the language of all transcripts.

    Raises:
        IndexError: there are fewer transcripts than references.
        ZeroDivisionError: no reference has an item, so the rate is not defined.
    """
    chosen: list[Normalizer | None] = []
    if language in yue_languages and yue_converter is not None:
        convert = yue_converter
        chosen.append(lambda text: convert(text, "zh-cn"))
    chosen.append(english_normalizer if language in english_languages else None)
    chosen.append(chinese_normalizer if language in chinese_languages else basic_normalizer)
    if len(hyps) < len(refs):
        raise IndexError(f"compute_wer: {len(hyps)} transcripts for {len(refs)} references; give one for each")
    normalizers = [normalize for normalize in chosen if normalize is not None]
    tokenizer = EvaluationTokenizer("none", lowercase=True, punctuation_removal=True)

    def items(text: str) -> Sequence[str]:
        for normalize in normalizers:
            text = normalize(text)
        words = tokenizer.tokenize(text).split()
        return "".join(words) if language in char_languages else words

    edits = length = 0
    for reference, transcript in zip(refs, hyps, strict=False):
        wanted = items(reference)
        edits += levenshtein_distance(wanted, items(transcript))
        length += len(wanted)
    if not length:
        raise ZeroDivisionError(f"compute_wer: no word in {len(refs)} references, so there is no error rate")
    return edits / length


def zhconv_convert(text: str, target: str) -> str:
    """Convert Chinese to a variant such as ``zh-cn``, phrase by phrase (package zhconv).

    Raises ``MissingOptionalDependencyError`` if zhconv is not installed.
    """
    require_package("zhconv", "asr", "Chinese conversion")
    import zhconv

    return str(zhconv.convert(text, target))
