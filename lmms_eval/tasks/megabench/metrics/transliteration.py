"""Texts in ASCII letters, as the benchmark compares names: ``Übergröße`` → ``ubergrosse``, ``北京`` → ``bei jing``.

The benchmark names the tables of Unidecode, a package under the GPL. Those here are of ``text-unidecode`` (Artistic
License), an older state of the same tables; the letters of Latin, Greek and Cyrillic, the kana and the signs that were
added or spelled anew since then are listed here. The benchmark's README says what still differs.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

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
    """The text in lower-case ASCII; what has no transliteration is left out, half surrogates too."""
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
