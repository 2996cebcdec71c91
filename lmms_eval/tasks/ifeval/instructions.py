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
    from langdetect.lang_detect_exception import LangDetectException

    try:
        detector.append(text)
        return bool(detector.detect() == language)
    except LangDetectException:
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

    def amount(self, key: str, relation: str) -> Callable[[int], bool]:
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


Need = str | tuple[str, str] | Callable[[Instruction], Any]


def _rule(check: Callable[..., bool], *needs: Need) -> Callable[[Instruction], Check]:
    """Make a rule from a check that takes a text and, for each need, what an instruction states.

    Args:
        check: the check.
        needs: keys of values; pairs of keys for an ``amount``; or functions of the instruction.
    """

    def rule(stated: Instruction) -> Check:
        values = [
            need(stated) if callable(need) else stated.amount(*need) if isinstance(need, tuple) else stated.value(need)
            for need in needs
        ]
        return lambda text: check(text, *values)

    return rule


def _parts(pieces: list[str]) -> list[str] | None:
    """Return the pieces that are not blank; ``None`` if one between others is."""
    if any(not piece.strip() for piece in pieces[1:-1]):
        return None
    return [piece.strip() for piece in pieces if piece.strip()]


def _has_paragraphs(text: str, wanted: Any) -> bool:
    parts = _parts(text.split("***"))
    return parts is not None and len(parts) == wanted


def _begins_paragraph(text: str, wanted: Any, place: int, word: str) -> bool:
    paragraphs = text.split("\n\n")
    count = sum(1 for paragraph in paragraphs if paragraph.strip())
    if count != wanted or place > count or not paragraphs[place - 1].strip():
        return False
    first = paragraphs[place - 1].split()[0].lstrip("'").lstrip('"')
    return bool(re.split(r"""[.,?!'"]""", first, maxsplit=1)[0].lower() == word.lower())


def _has_placeholders(text: str, wanted: Any) -> bool:
    """A placeholder reaches from a bracket to the next closing one on the line (``\\[.*?\\]``)."""
    return bool(sum("[" in part for line in text.split("\n") for part in line.split("]")[:-1]) >= wanted)


_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}


def _has_postscript(text: str, marker: str) -> bool:
    spaced = _POSTSCRIPTS.get(marker)
    return marker.lower() in text.lower() if spaced is None else spaced.search(text.lower()) is not None


_BULLETS = (re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE), re.compile(r"^[^\S\n]*-.*$", re.MULTILINE))


def _has_highlights(text: str, wanted: int) -> bool:
    marked = re.findall(r"\*([^\n*]*)\*", text) + re.findall(r"\*\*([^\n*]*)\*\*", text)
    return sum(bool(content.strip()) for content in marked) >= wanted


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


def _is_quoted(text: str) -> bool:
    stripped = text.strip()
    return len(stripped) > 1 and stripped[0] == stripped[-1] == '"'


RULES: Mapping[str, Callable[[Instruction], Check]] = MappingProxyType(
    {
        "punctuation:no_comma": _rule(lambda text: "," not in text),
        "length_constraints:number_words": _rule(
            lambda text, holds: holds(len(re.findall(r"\w+", text))), ("num_words", "relation")
        ),
        "length_constraints:number_sentences": _rule(
            lambda text, holds, split: holds(len(split(text))),
            ("num_sentences", "relation"),
            lambda stated: open_linguistics(stated.nltk_data).sentences,
        ),
        "length_constraints:number_paragraphs": _rule(_has_paragraphs, "num_paragraphs"),
        "length_constraints:nth_paragraph_first_word": _rule(
            _begins_paragraph, "num_paragraphs", lambda stated: int(stated.value("nth_paragraph")), "first_word"
        ),
        "keywords:existence": _rule(
            lambda text, keywords: all(re.search(keyword, text, re.IGNORECASE) for keyword in keywords), "keywords"
        ),
        "keywords:forbidden_words": _rule(
            lambda text, words: not any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in words),
            "forbidden_words",
        ),
        "keywords:frequency": _rule(
            lambda text, keyword, holds: holds(len(re.findall(keyword, text, re.IGNORECASE))),
            "keyword",
            ("frequency", "relation"),
        ),
        "keywords:letter_frequency": _rule(
            lambda text, letter, holds: holds(text.lower().count(letter)),
            lambda stated: stated.value("letter").lower(),
            ("let_frequency", "let_relation"),
        ),
        "language:response_language": _rule(is_language, "language"),
        "detectable_content:number_placeholders": _rule(_has_placeholders, "num_placeholders"),
        "detectable_content:postscript": _rule(_has_postscript, "postscript_marker"),
        "detectable_format:number_bullet_lists": _rule(
            lambda text, wanted: sum(len(pattern.findall(text)) for pattern in _BULLETS) == wanted, "num_bullets"
        ),
        "detectable_format:constrained_response": _rule(lambda text: any(answer in text for answer in _ANSWERS)),
        "detectable_format:number_highlighted_sections": _rule(
            _has_highlights, lambda stated: int(stated.value("num_highlights"))
        ),
        "detectable_format:multiple_sections": _rule(
            lambda text, splitter, wanted: len(re.split(rf"\s?{splitter}\s?\d+\s?", text)) - 1 >= wanted,
            "section_spliter",
            "num_sections",
        ),
        "detectable_format:json_format": _rule(_is_json),
        "detectable_format:title": _rule(_has_title),
        "combination:two_responses": _rule(_is_two_responses),
        "combination:repeat_prompt": _rule(
            lambda text, prompt: text.strip().lower().startswith(prompt),
            lambda stated: stated.value("prompt_to_repeat").strip().lower(),
        ),
        "startend:end_checker": _rule(
            lambda text, phrase: text.strip().strip('"').lower().endswith(phrase),
            lambda stated: stated.value("end_phrase").strip().lower(),
        ),
        "startend:quotation": _rule(_is_quoted),
        "change_case:capital_word_frequency": _rule(
            lambda text, holds, words: holds(sum(word.isupper() for word in words(text))),
            ("capital_frequency", "capital_relation"),
            lambda stated: open_linguistics(stated.nltk_data).words,
        ),
        "change_case:english_capital": _rule(lambda text: text.isupper() and is_language(text, "en")),
        "change_case:english_lowercase": _rule(lambda text: text.islower() and is_language(text, "en")),
    }
)
"""The rule of each instruction by its id."""
