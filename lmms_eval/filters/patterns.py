"""The built-in filters: selection, mapping and extraction of answers (harness specification §12.2)."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from lmms_eval.api.filter import Filter
from lmms_eval.errors import ArgumentError, PatternError, UsageError
from lmms_eval.filters.reasoning import ANSWER_MARKS, BOX_MARKS, DEFAULT_TAGS, TagPairs, between, strip_reasoning_tags
from lmms_eval.utils.answer_reading import BEFORE_STOP, LETTER_ALONE, NOTHING, OPTION_TEXT, note_reading

_NUMBER_AFTER_HASHES = r"#### (\-?[0-9\.\,]+)"
_MATCHES = {0: "first match", -1: "last match"}
"""Names of the matches in the audit."""


class TakeFirst(Filter):
    """The first answer, or empty text if there is no answer."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [answers[0] if answers else "" for answers in resps]


class TakeFirstK(Filter):
    """The first ``k`` answers.

    Raises ``UsageError`` if ``k`` is not an integer of at least 1, or if a document has fewer answers.
    """

    def __init__(self, k: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise UsageError(f"filter take_first_k: k is {k!r}; give a number of at least 1")
        self.k = k

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        fewest = min((len(answers) for answers in resps), default=self.k)
        if fewest < self.k:
            raise UsageError(
                f"filter take_first_k: wants {self.k} answers of each document but one has {fewest};"
                f" set repeats to at least {self.k}"
            )
        return [list(answers[: self.k]) for answers in resps]


class MajorityVote(Filter):
    """A list with the most common answer (the first one on ties), or an empty list if there are no answers."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer for answer, _ in Counter(answers).most_common(1)] for answers in resps]


class LowercaseFilter(Filter):
    """Lower case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.lower() for answer in answers] for answers in resps]


class UppercaseFilter(Filter):
    """Upper case."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[answer.upper() for answer in answers] for answers in resps]


class WhitespaceFilter(Filter):
    """Drops one leading space of each answer."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[("" if answer is None else str(answer)).removeprefix(" ") for answer in answers] for answers in resps]


class MapFilter(Filter):
    """Each answer becomes its value in ``mapping_dict``, or ``default_value`` if it is not a key.

    Subclasses in task files read these attributes. Raises ``ArgumentError`` if ``mapping_dict`` is not a mapping.
    """

    def __init__(self, mapping_dict: Mapping[Hashable, Any] | None = None, default_value: Any = None) -> None:
        super().__init__()
        given = {} if mapping_dict is None else mapping_dict
        if not isinstance(given, Mapping):
            raise ArgumentError(f"filter map: mapping_dict is a {type(given).__name__}; give a mapping")
        self.mapping_dict, self.default_value = dict(given), default_value

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[self.mapping_dict.get(answer, self.default_value) for answer in answers] for answers in resps]


class StripThinkingFilter(Filter):
    """Removes the thoughts of reasoning models (``lmms_eval.filters.reasoning``)."""

    def __init__(self, tag_pairs: TagPairs | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tag_pairs = DEFAULT_TAGS if tag_pairs is None else tag_pairs
        strip_reasoning_tags("", self.tag_pairs)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[strip_reasoning_tags(answer, self.tag_pairs) for answer in answers] for answers in resps]


class MarkedAnswerFilter(Filter):
    """Takes what ``<answer>`` and ``<|begin_of_box|>`` enclose with their closing marks; other answers stay."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[between(between(_text(answer), ANSWER_MARKS), BOX_MARKS) for answer in answers] for answers in resps]


def _compiled(pattern: str, filter_name: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise PatternError(f"filter {filter_name}: regular expression {pattern!r}: {error}") from error


def _text(answer: Any) -> str:
    return "" if answer is None else str(answer)


def _find(pattern: re.Pattern[str], text: str, group_select: int) -> str | None:
    """Return match number ``group_select``, or its first group that is not empty; ``None`` if there is no match."""
    matches = pattern.findall(text)
    if not -len(matches) <= group_select < len(matches):
        return None
    match = matches[group_select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), None)
    return match.strip() if match is not None else None


class RegexFilter(Filter):
    """Each answer becomes what the pattern finds in it, or ``fallback``.

    ``group_select`` is the number of the match (−1: the last). Subclasses in task files read the attributes
    ``regex_pattern``, ``regex`` (compiled), ``group_select`` and ``fallback``. Raises ``PatternError`` if the pattern
    is not a valid regular expression.
    """

    def __init__(
        self, regex_pattern: str = _NUMBER_AFTER_HASHES, group_select: int = 0, fallback: str = "[invalid]"
    ) -> None:
        super().__init__()
        self.regex_pattern, self.regex = regex_pattern, _compiled(regex_pattern, "regex")
        self.group_select, self.fallback = group_select, fallback

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        found = [[_find(self.regex, _text(answer), self.group_select) for answer in answers] for answers in resps]
        for text in (text for texts in found for text in texts):
            if text is None:
                note_reading(NOTHING)
            else:
                note_reading(_MATCHES.get(self.group_select, f"match {self.group_select}"), text)
        return [[self.fallback if text is None else text for text in texts] for texts in found]


class PunctuationTable(dict[int, int | None]):
    """A table for ``str.translate`` that deletes the Unicode category P. It fills itself when used."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code))[0] == "P" else code
        return self[code]


class ReducingRegexFilter(RegexFilter):
    """Finds a pattern in an answer; subclasses fall back to a search in a reduced form of the answer.

    The reduced form lacks what ``regexes_to_ignore`` match, one after the other. With ``ignore_case`` it is in lower
    case, and with ``ignore_punctuation`` it has no punctuation. The other arguments are those of ``RegexFilter``.
    """

    punct_tbl: ClassVar[Mapping[int, int | None]] = PunctuationTable()

    def __init__(
        self,
        regex_pattern: str = _NUMBER_AFTER_HASHES,
        group_select: int = 0,
        fallback: str = "[invalid]",
        ignore_case: bool = False,
        ignore_punctuation: bool = False,
        regexes_to_ignore: Sequence[str] | None = None,
    ) -> None:
        super().__init__(regex_pattern, group_select, fallback)
        self.ignore_case, self.ignore_punctuation = ignore_case, ignore_punctuation
        self.regexes_to_ignore = regexes_to_ignore
        self._ignored = [_compiled(pattern, "multi_choice_regex") for pattern in regexes_to_ignore or []]

    def filter_ignores(self, st: str) -> str:
        """Return the reduced form of a text."""
        for pattern in self._ignored:
            st = pattern.sub("", st)
        st = st.lower() if self.ignore_case else st
        return st.translate(self.punct_tbl) if self.ignore_punctuation else st


class MultiChoiceRegexFilter(ReducingRegexFilter):
    """Finds the chosen option as ``(A)``: by the pattern, else by an option's text, else by a letter after a colon.

    The document needs ``choices``. Texts of options are searched for in their reduced form, in the reduced answer.
    """

    def _options(self, doc: Any) -> tuple[dict[str, str], re.Pattern[str] | None, re.Pattern[str]]:
        """Return the letter of each option by its reduced text, and the patterns of these texts and of a letter after a
        colon."""
        choices = doc.get("choices") if isinstance(doc, Mapping) else None
        if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
            raise UsageError("filter multi_choice_regex: the document has no list 'choices'")
        names = [chr(ord("A") + index) for index in range(len(choices))]
        letters = {
            self.filter_ignores(str(choice).strip()): f"({name})" for name, choice in zip(names, choices, strict=True)
        }
        letters.pop("", None)
        by_text = re.compile("|".join(map(re.escape, letters))) if letters else None
        return letters, by_text, re.compile(rf":\s*({'|'.join(map(re.escape, names))})")

    def _choose(
        self, answer: Any, letters: Mapping[str, str], by_text: re.Pattern[str] | None, after_colon: re.Pattern[str]
    ) -> str:
        text = _text(answer)
        found = _find(self.regex, text, self.group_select)
        if found:
            note_reading(_MATCHES.get(self.group_select, f"match {self.group_select}"), found)
            return found
        if by_text is not None:
            found = _find(by_text, self.filter_ignores(text), self.group_select)
            if found:
                note_reading(OPTION_TEXT, found)
                return letters.get(found, found)
        found = _find(after_colon, text, self.group_select)
        if not found:
            note_reading(NOTHING)
            return self.fallback
        note_reading("letter after a colon", found)
        return f"({found})"

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        if len(resps) != len(docs):
            raise UsageError(f"filter multi_choice_regex: {len(resps)} lists of answers for {len(docs)} documents")
        chosen = []
        for answers, doc in zip(resps, docs, strict=True):
            options = self._options(doc)
            chosen.append([self._choose(answer, *options) for answer in answers])
        return chosen


class OptionLetterFilter(Filter):
    """The capital letter before a full stop at the start of an answer (``B. a red kite``), else the answer itself."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - interface
        return [[_option_letter(_text(answer)) or answer for answer in answers] for answers in resps]


def _option_letter(answer: str) -> str:
    start = answer.lstrip()[:2]
    if start[:1] in string.ascii_uppercase and start[1:] == ".":
        note_reading(BEFORE_STOP, start[0])
        return start[0]
    if len(letter := answer.strip()) == 1 and letter in string.ascii_letters:
        note_reading(LETTER_ALONE, letter)
    else:
        note_reading(NOTHING)
    return ""
