"""The kinds of instructions: what a document states about one → a check of texts.

The checks are of linear cost in the text, whatever a model writes, but for the expressions that documents state.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.linguistic import open_linguistics

INSTALL_HINT = "the language of texts needs the package langdetect: pip install 'lmms_eval[metrics]'"
_SEED = 0


def is_language(text: str, language: str) -> bool:
    """Return whether a text is written in a language, by its code; true if no language can be detected.

    Raises:
        NotEvaluated: the package is not installed.
    """
    detector = _detectors().create()
    try:
        detector.append(text)
        return bool(detector.detect() == language)
    except _undetectable():
        return True


@functools.cache
def _detectors() -> Any:
    """The package's profiles of all its languages, and a seed of our own: without one its verdicts are random."""
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError as error:
        raise NotEvaluated(INSTALL_HINT) from error
    factory = DetectorFactory()
    factory.load_json_profile([path.read_text("utf-8") for path in sorted(Path(PROFILES_DIRECTORY).iterdir())])
    factory.seed = _SEED
    return factory


def _undetectable() -> type[Exception]:
    from langdetect.lang_detect_exception import LangDetectException

    found: type[Exception] = LangDetectException
    return found


Check = Callable[[str], bool]


class Instruction(Struct, frozen=True):
    """One instruction of a document."""

    name: str
    stated: Mapping[str, Any]
    """Arguments that the column ``kwargs`` has for it, without empty values."""
    nltk_data: str | None
    """The folder of ``--nltk_data``."""

    def value(self, key: str) -> Any:
        """Return what is stated.

        Raises:
            ItemError: it is not. The benchmark's own checker draws a value at random then, which no answer could know.
        """
        if key not in self.stated:
            raise ItemError(f"ifeval: column 'kwargs' states no {key!r} for the instruction {self.name!r}")
        return self.stated[key]

    def amount(self, key: str, relation: str = "relation") -> Callable[[int], bool]:
        """Return the check of a count: less than, or at least, what is stated.

        Raises:
            ItemError: one of the two is not stated, or the relation is neither.
        """
        bound, name = self.value(key), self.value(relation)
        if name not in ("less than", "at least"):
            raise ItemError(
                f"ifeval: column 'kwargs' holds {relation} {name!r} for {self.name!r}: it must be less than or at least"
            )
        return lambda count: count < bound if name == "less than" else count >= bound


def _existence(stated: Instruction) -> Check:
    keywords = stated.value("keywords")
    return lambda text: all(re.search(keyword, text, re.IGNORECASE) for keyword in keywords)


def _forbidden(stated: Instruction) -> Check:
    words = stated.value("forbidden_words")
    return lambda text: not any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in words)


def _frequency(stated: Instruction) -> Check:
    keyword, holds = stated.value("keyword"), stated.amount("frequency")
    return lambda text: holds(len(re.findall(keyword, text, re.IGNORECASE)))


def _letter_frequency(stated: Instruction) -> Check:
    letter, holds = stated.value("letter").lower(), stated.amount("let_frequency", "let_relation")
    return lambda text: holds(text.lower().count(letter))


def _number_words(stated: Instruction) -> Check:
    holds = stated.amount("num_words")
    return lambda text: holds(len(re.findall(r"\w+", text)))


def _number_sentences(stated: Instruction) -> Check:
    holds, split = stated.amount("num_sentences"), open_linguistics(stated.nltk_data).sentences
    return lambda text: holds(len(split(text)))


def _parts(pieces: list[str]) -> list[str] | None:
    """Return the pieces that are not blank; ``None`` if one between others is."""
    if any(not piece.strip() for piece in pieces[1:-1]):
        return None
    return [piece.strip() for piece in pieces if piece.strip()]


def _number_paragraphs(stated: Instruction) -> Check:
    wanted = stated.value("num_paragraphs")

    def check(text: str) -> bool:
        parts = _parts(text.split("***"))
        return parts is not None and len(parts) == wanted

    return check


def _first_word(stated: Instruction) -> Check:
    wanted, place, word = stated.value("num_paragraphs"), int(stated.value("nth_paragraph")), stated.value("first_word")

    def check(text: str) -> bool:
        paragraphs = text.split("\n\n")
        count = sum(1 for paragraph in paragraphs if paragraph.strip())
        if count != wanted or place > count or not paragraphs[place - 1].strip():
            return False
        first = paragraphs[place - 1].split()[0].lstrip("'").lstrip('"')
        return bool(re.split(r"""[.,?!'"]""", first, maxsplit=1)[0].lower() == word.lower())

    return check


def _language(stated: Instruction) -> Check:
    language = stated.value("language")
    return lambda text: is_language(text, language)


def _number_placeholders(stated: Instruction) -> Check:
    """A placeholder reaches from a bracket to the next closing one on the line (``\\[.*?\\]``)."""
    wanted = stated.value("num_placeholders")
    return lambda text: sum("[" in part for line in text.split("\n") for part in line.split("]")[:-1]) >= wanted


_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}


def _postscript(stated: Instruction) -> Check:
    marker = stated.value("postscript_marker")
    if (spaced := _POSTSCRIPTS.get(marker)) is not None:
        return lambda text: spaced.search(text.lower()) is not None
    return lambda text: marker.lower() in text.lower()


_BULLETS = (re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE), re.compile(r"^[^\S\n]*-.*$", re.MULTILINE))


def _number_bullets(stated: Instruction) -> Check:
    wanted = stated.value("num_bullets")
    return lambda text: sum(len(pattern.findall(text)) for pattern in _BULLETS) == wanted


def _number_highlights(stated: Instruction) -> Check:
    wanted = int(stated.value("num_highlights"))

    def check(text: str) -> bool:
        marked = re.findall(r"\*([^\n*]*)\*", text) + re.findall(r"\*\*([^\n*]*)\*\*", text)
        return sum(bool(content.strip()) for content in marked) >= wanted

    return check


def _sections(stated: Instruction) -> Check:
    splitter, wanted = stated.value("section_spliter"), stated.value("num_sections")
    return lambda text: len(re.split(rf"\s?{splitter}\s?\d+\s?", text)) - 1 >= wanted


_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def _is_json(text: str) -> bool:
    body = text.strip()
    for fence in _FENCES:
        body = body.removeprefix(fence)
    try:
        json.loads(body.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _has_title(text: str) -> bool:
    """Return whether a line holds ``<<`` and, after it, ``>>``, with more than marks and blanks between them."""
    lines = (line[line.find("<<") : line.rfind(">>")] for line in text.split("\n") if "<<" in line and ">>" in line)
    return any(line.strip("<>").strip() for line in lines)


def _is_two_responses(text: str) -> bool:
    parts = _parts(text.split("******"))
    return parts is not None and len(parts) == 2 and parts[0] != parts[1]


def _repeats(stated: Instruction) -> Check:
    prompt = stated.value("prompt_to_repeat").strip().lower()
    return lambda text: text.strip().lower().startswith(prompt)


def _ends(stated: Instruction) -> Check:
    phrase = stated.value("end_phrase").strip().lower()
    return lambda text: text.strip().strip('"').lower().endswith(phrase)


def _is_quoted(text: str) -> bool:
    stripped = text.strip()
    return len(stripped) > 1 and stripped[0] == stripped[-1] == '"'


def _capital_words(stated: Instruction) -> Check:
    holds, words = stated.amount("capital_frequency", "capital_relation"), open_linguistics(stated.nltk_data).words
    return lambda text: holds(sum(word.isupper() for word in words(text)))


def _plain(check: Check) -> Callable[[Instruction], Check]:
    """Make the rule of an instruction that states nothing further."""
    return lambda _: check


RULES: Mapping[str, Callable[[Instruction], Check]] = MappingProxyType(
    {
        "punctuation:no_comma": _plain(lambda text: "," not in text),
        "length_constraints:number_words": _number_words,
        "length_constraints:number_sentences": _number_sentences,
        "length_constraints:number_paragraphs": _number_paragraphs,
        "length_constraints:nth_paragraph_first_word": _first_word,
        "keywords:existence": _existence,
        "keywords:forbidden_words": _forbidden,
        "keywords:frequency": _frequency,
        "keywords:letter_frequency": _letter_frequency,
        "language:response_language": _language,
        "detectable_content:number_placeholders": _number_placeholders,
        "detectable_content:postscript": _postscript,
        "detectable_format:number_bullet_lists": _number_bullets,
        "detectable_format:constrained_response": _plain(lambda text: any(answer in text for answer in _ANSWERS)),
        "detectable_format:number_highlighted_sections": _number_highlights,
        "detectable_format:multiple_sections": _sections,
        "detectable_format:json_format": _plain(_is_json),
        "detectable_format:title": _plain(_has_title),
        "combination:two_responses": _plain(_is_two_responses),
        "combination:repeat_prompt": _repeats,
        "startend:end_checker": _ends,
        "startend:quotation": _plain(_is_quoted),
        "change_case:capital_word_frequency": _capital_words,
        "change_case:english_capital": _plain(lambda text: text.isupper() and is_language(text, "en")),
        "change_case:english_lowercase": _plain(lambda text: text.islower() and is_language(text, "en")),
    }
)
"""The rule of each instruction by its id."""
