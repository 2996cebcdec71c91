"""Comparisons of texts."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.conversions.fences import extract_fence
from lmms_eval.tasks.megabench.metrics.values import text_of

_FORMS = (range(0x1D2C, 0x1D6B), range(0x2000, 0x2C00), range(0x3200, 0x3400), range(0x1D400, 0x1D800))
"""Blocks of raised, lowered, letterlike, circled and mathematical forms of ASCII characters."""
_UNKNOWN = "[?]"
_SPELLED: Mapping[str, str] = MappingProxyType(
    {
        **dict(zip("ᴀᴃᴄᴅᴆᴇᴈᴉᴊᴋᴌᴍᴎᴏᴑᴓᴘᴙᴚᴛᴜᴝᴞᴟᴠᴡᴢ", "abcddeeijklmnoooprrtuuumvwz", strict=True)),
        **dict(zip("ᵬᵭᵮᵯᵰᵱᵲᵳᵴᵵᵶᵷᵽᶀᶁᶂᶃᶄᶅᶆᶇᶈᶉᶊᶌᶍᶎ", "bdfmnprrstzgpbdfgklmnprsvxz", strict=True)),
        **dict(zip("ⱠⱡⱢⱣⱤⱥⱦⱧⱨⱩⱪⱫⱬⱮⱯℲⅎ\u212bᵦᵧᵨᵩЪъ", "lllprathhkkzzmaffabgrf''", strict=True)),
        **dict(zip("ᴯᴲᴻᵄᵅᵋᵌᵎᵙᵚᵝᵞᵟᵠ", "benaaeeiumbgdf", strict=True)),
        **dict(zip("−∕∖∗∣∶∼⁎⁓⁒゠ー・⟨〈♯", "-/\\*|:~*~%=-*<<#", strict=True)),
        **dict.fromkeys("ẜẝẟ", ""),
        "ᴁ": "ae", "ᴂ": "ae", "ᴔ": "oe", "ᴕ": "ou", "ᴭ": "ae", "ᴽ": "ou", "ᵆ": "ae", "Є": "ie", "\u2126": "ohm",
        "し": "shi", "ち": "chi", "っ": "tsu", "つ": "tsu", "シ": "shi", "チ": "chi", "ッ": "tsu", "ツ": "tsu",
        "⟩": "> ", "〉": "> ", "≤": "<=", "≦": "<=", "≥": ">=", "≧": ">=", "₹": "rs", "₽": "r",
        "¼": " 1/4", "½": " 1/2", "¾": " 3/4", "℃": "degc", "℉": "degf", "№": "no. ", "™": "(tm)",
    }
)  # fmt: skip


def ascii_letters(text: str) -> str:
    """Return the text in lower-case ASCII, without characters that have no transliteration."""
    return text.lower() if text.isascii() else "".join(map(_spelling, text)).lower()


@functools.lru_cache(maxsize=65536)
def _spelling(character: str) -> str:
    from text_unidecode import unidecode

    if character in _SPELLED:
        return _SPELLED[character]
    if "\ud800" <= character <= "\udfff":
        return ""
    spelled = str(unidecode(character))
    if spelled and (character.isascii() or not spelled.startswith(_UNKNOWN)):
        return spelled
    if any(ord(character) in block for block in _FORMS):
        plain = unicodedata.normalize("NFKD", character)
        return plain if plain.isascii() else ""
    return ""


_LETTER_CHOICE = re.compile(r"\(?([A-Za-z])")
_IGNORED = str.maketrans("", "", " -\n\t.")
NEAR_THRESHOLD = 0.9


def exact_str_match(response: Any, truth: Any) -> float:
    """Equality of the texts; a one-letter truth matches any longer reply that starts with that letter."""
    response, truth = str(response), str(truth)
    if len(truth) == 1 and truth.isalpha() and len(response) > 1:
        letter = _LETTER_CHOICE.match(response)
        if letter is not None:
            response = letter.group(1)
    return float(response == truth)


def simple_str_match(response: Any, truth: Any) -> float:
    """``exact_str_match`` without spaces, hyphens, newlines, tabs, dots and case. The truth must be a text."""
    return exact_str_match(_simplified(str(response)), _simplified(text_of(truth)))


def exact_str_match_case_insensitive(response: Any, truth: Any) -> float:
    """``exact_str_match`` of the lower-cased texts."""
    if isinstance(truth, str) and not isinstance(response, str):
        return 0.0
    return exact_str_match(text_of(response).lower(), text_of(truth).lower())


def code_result_exact_str_match(response: Any, truth: Any) -> float:
    """Equality with the content of the truth's code block, blanks included."""
    return exact_str_match(response, extract_fence(text_of(truth), "verbatim").text)


def multi_ref_phrase(response: Any, truth: Any) -> float:
    """Match of any of the references in the truth by ``simple_str_match``."""
    references = str_to_list(text_of(truth).replace("，", ","))
    return float(any(simple_str_match(response, str(reference)) for reference in references))


def normalized_similarity_damerau_levenshtein(response: Any, truth: Any) -> float:
    """One minus the unrestricted Damerau-Levenshtein distance over the longer length."""
    if isinstance(truth, str) and not isinstance(response, str):
        return 0.0
    return _similarity(response, truth)


def near_str_match(response: Any, truth: Any) -> float:
    """The similarity of the transliterated texts without the articles *the* and *a*; 0 below 0.9."""
    if not (isinstance(response, str) and isinstance(truth, str)):
        return 0.0
    similarity = _similarity(_near_form(response), _near_form(truth))
    return 0.0 if similarity < NEAR_THRESHOLD else similarity


def _similarity(response: Any, truth: Any) -> float:
    from rapidfuzz.distance import DamerauLevenshtein

    return float(DamerauLevenshtein.normalized_similarity(response, truth))


def _near_form(text: str) -> str:
    words = [word for word in text.split(" ") if word.lower() not in {"the", "a"}]
    return ascii_letters(" ".join(words))


def _simplified(text: str) -> str:
    return text.translate(_IGNORED).lower()
