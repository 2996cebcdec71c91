from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.metrics.strings import ascii_letters
from tests.cases import for_each

BLOCKS = [  # first, last, name, and the digest of what Unidecode 1.4.0 (by which the benchmark scores) makes of each
    (0x0080, 0x024F, "Latin-1 and Latin Extended-A, -B", "f71112e74c69c83e"),
    (0x0250, 0x02AF, "phonetic letters", "a8f77b942ff1966e"),
    (0x0370, 0x03FF, "Greek", "9ce6cf5f03d5478a"),
    (0x0400, 0x052F, "Cyrillic", "2ca70ffe2c947e87"),
    (0x1C80, 0x1C8F, "Cyrillic Extended-C", "886760af89838162"),
    (0x1D00, 0x1DBF, "Phonetic Extensions", "c2a6d5d66bce4929"),
    (0x1E00, 0x1EFF, "Latin Extended Additional", "3ec705cc0a25b6a4"),
    (0x1F00, 0x1FFF, "Greek Extended", "c2f5bfe77363ae70"),
    (0x2C60, 0x2C7F, "Latin Extended-C", "0c2602211ebc40b0"),
    (0x2DE0, 0x2DFF, "Cyrillic Extended-A", "04d70fb8a9450566"),
    (0xA640, 0xA69F, "Cyrillic Extended-B", "bcd9c384fb266c0f"),
    (0xA720, 0xA7FF, "Latin Extended-D", "6aa98c2f92c03397"),
    (0xAB30, 0xAB6F, "Latin Extended-E", "078e111f7445a81c"),
    (0xFB00, 0xFB06, "ligatures", "36c4e34ab7009435"),
    (0xFF21, 0xFF5A, "full-width letters", "f940a6f87c42f808"),
    (0x4E00, 0x9FFF, "Chinese", "07540f729834a42a"),
    (0x3041, 0x30FE, "kana", "5b3318ddcb062fe3"),
    (0xAC00, 0xD7A3, "Hangul", "f7371be58c1ddca1"),
]


@for_each(("first", "last", "digest"), [(a, b, d) for a, b, _, d in BLOCKS], ids=[b[2] for b in BLOCKS])
def test_whole_blocks_are_spelled_as_the_benchmark_spells_them(first, last, digest):
    found = "\n".join(ascii_letters(chr(code)) for code in range(first, last + 1))
    assert hashlib.sha256(found.encode()).hexdigest()[:16] == digest


@for_each(
    ("text", "spelled"),
    [
        ("Übergröße", "ubergrosse"),
        ("Москва", "moskva"),
        ("объект Єва", "ob'ekt ieva"),
        ("Αθήνα", "athena"),
        ("北京", "bei jing "),
        ("ひつじ", "hitsuzi"),
        ("−5 ≤ x ≤ 20 ℃, ½", "-5 <= x <= 20 degc,  1/2"),
        ("𝐀ⓐ⒜ᵃ₂", "aa(a)a2"),
        ("[?] stays", "[?] stays"),
        ("half \ud83d pair\U0001f600\ue000", "half  pair"),
    ],
)
def test_texts(text, spelled):
    assert ascii_letters(text) == spelled


@given(st.text())
def test_the_spelling_is_ascii_and_lower_case_letter_by_letter(text):
    found = ascii_letters(text)
    assert found.isascii()
    assert found == found.lower() == "".join(map(ascii_letters, text))
