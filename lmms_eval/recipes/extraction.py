"""Rules that read an answer as a model's authors, or the tool that they name, read it.

Each rule is a function of what the model wrote, thoughts included, and of the question. It never draws at random. If
the source asks its judge, the rule returns ``None``, and so does it if the source falls back on a random option.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct, field

from lmms_eval.errors import UnknownNameError, UsageError
from lmms_eval.filters.reasoning import ANSWER_MARKS, BOX_MARKS, between
from lmms_eval.metrics.answers import is_contained
from lmms_eval.metrics.math_answers import MAX_NUMBER_CHARS, latex_number
from lmms_eval.metrics.vqa import without_punctuation
from lmms_eval.utils.answer_reading import (
    NOTHING,
    OPTION_TEXT,
    WHOLE_ANSWER,
    WORD_ALONE,
    note_letter,
    note_reading,
)


class AskedQuestion(Struct, frozen=True):
    """The question whose answer a rule reads."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Texts of the options by letter; empty for an open question."""
    truth: str = ""
    """The reference answer: a letter, or the text of an open question."""


class ReadingRule(Struct, frozen=True):
    """A way to read answers."""

    name: str
    about: str
    """What it does, in a sentence."""
    read: Callable[[str, AskedQuestion], str | None]
    """Returns the read answer; ``None`` if the source asks its judge about it."""
    is_right: Callable[[str, AskedQuestion], bool] | None = None
    """Decides on a read answer; ``None`` if the benchmark's own metric scores it."""


UNREADABLE = "Z"
"""A refusal. It is no option, and counts as wrong."""
_REFUSALS = ("I'm sorry, but without the image provided", "Cannot determine the answer")
_BLANKS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_LAST_WORDS = 5
"""Number of words at the end of an answer that may hold the letter."""
_ARTICLE = 3
"""``A`` is an option in answers of at most this many words; in longer ones it may be an article."""
_ANSWER_IS = re.compile(r"answer is (?:\*\*)?([A-D])\b")
OTHER_ANSWERS = "Other Answers"


def after_thoughts(text: str) -> str:
    """Return the text after the last ``</think>``; the whole text, stripped, without the mark."""
    return text.rpartition("</think>")[2].strip()


def _letter_in(text: str, options: Mapping[str, str], accepts: Callable[[str, list[str]], bool]) -> str | None:
    """Return the letter if one kind of option letter is among the words, or a refusal; ``None`` without any."""
    if any(refusal in text for refusal in _REFUSALS):
        note_reading("refusal")
        return UNREADABLE
    words = text.translate(_BLANKS).split()
    found = [letter for letter in options if letter in words]
    if len(found) == 1 and accepts(found[0], words):
        note_letter(WORD_ALONE, text, *found)
        return found[0]
    return UNREADABLE if not found and UNREADABLE in words else None


def _option_in(text: str, options: Mapping[str, str]) -> str | None:
    """Return the letter of the option whose text is in the answer, if it is the only one."""
    found = [letter for letter, option in options.items() if option and is_contained(option, text)]
    note_reading(OPTION_TEXT if found else NOTHING, *found)
    return found[0] if len(found) == 1 else None


def _qwen_choice(text: str, question: AskedQuestion) -> str | None:
    answer = after_thoughts(text)
    if not question.options:
        return _reference(answer, question)
    return _letter_in(answer, question.options, _is_no_article) or _option_in(answer, question.options)


def _is_no_article(letter: str, words: list[str]) -> bool:  # noqa: ARG001 - an A among the words is enough
    return "A" not in words or len(words) <= _ARTICLE


def _kit_choice(text: str, question: AskedQuestion) -> str | None:
    options = question.options
    if not options:
        return _reference(text, question)
    if letter := _letter_in(text, options, _is_near_the_end):
        return letter
    if (stated := _ANSWER_IS.search(text)) and stated[1] in options:
        note_letter("letter after a phrase", text, stated[1])
        return stated[1]
    return None if len(text) > 2 * sum(map(len, options.values())) else _option_in(text, options)


def _is_near_the_end(letter: str, words: list[str]) -> bool:
    return words.index(letter) > len(words) - _LAST_WORDS


def _reference(text: str, question: AskedQuestion) -> str | None:
    """Return the answer to a question without options if it is the reference; choice rules know no other answer."""
    note_reading(WHOLE_ANSWER)
    return text.strip() if _is_reference(text, question) else None


def _is_reference(text: str, question: AskedQuestion) -> bool:
    said, truth = (one.strip().rstrip(".").casefold() for one in (text, question.truth))
    return bool(said) and said == truth


def is_letter(read: str, question: AskedQuestion) -> bool:
    """Return whether a letter is the reference; without options, whether a text is it."""
    return read == question.truth.strip() if question.options else _is_reference(read, question)


def _as_choice(question: AskedQuestion) -> AskedQuestion:
    """Return an open question of MMMU as the choice between its reference and anything else."""
    return AskedQuestion({"A": question.truth, "B": OTHER_ANSWERS}, "A")


def _qwen_mmmu(text: str, question: AskedQuestion) -> str | None:
    return _qwen_choice(text, question if question.options else _as_choice(question))


def _is_right_in_mmmu(read: str, question: AskedQuestion) -> bool:
    return is_letter(read, question if question.options else _as_choice(question))


_CLOSE = 1e-6
_DECIMALS = 9
_NAMES = re.compile(r"\\(?!(?:[dt]?frac|cdot|times|div|left|right|text|mbox|[,;!])(?![a-zA-Z]))[a-zA-Z]+")
"""A command of LaTeX that is no arithmetic: the source reads neither roots nor names of numbers."""


def _qwen_mathvision(text: str, question: AskedQuestion) -> str | None:
    if question.options:
        return _qwen_choice(text, question)
    answer = after_thoughts(text)
    note_reading(WHOLE_ANSWER)
    return answer if is_equal(answer, question.truth) else None


def _is_right_in_mathvision(read: str, question: AskedQuestion) -> bool:
    return is_letter(read, question) if question.options else is_equal(read, question.truth)


def is_equal(one: str, other: str) -> bool:
    """Return whether two answers are the same text in lower case, or numbers within 1e-6.

    Numbers are arithmetic in Python's form or in LaTeX. Raises ``NotEvaluated`` if the package that reads LaTeX is not
    installed.
    """
    if one.strip().lower() == other.strip().lower():
        return bool(one.strip())
    first = _number(one)
    second = None if first is None else _number(other)
    return first is not None and second is not None and abs(first - second) < _CLOSE


def _number(text: str) -> float | None:
    text = text.strip()
    if len(text) > MAX_NUMBER_CHARS or _NAMES.search(text):
        return None
    found = _arithmetic(text.replace(",", "").rpartition("=")[2].strip())
    return latex_number(text, _DECIMALS) if found is None else found


_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)


def _arithmetic(text: str) -> float | None:
    """Return the value of numbers with the four operations; ``None`` for any other text."""
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> float:
    """Return the value of a node. Raises ``ValueError`` if it is not arithmetic."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        value = float(node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand) * (-1 if isinstance(node.op, ast.USub) else 1)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        value = _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    else:
        raise ValueError("no arithmetic")
    if not math.isfinite(value):
        raise ValueError("no number")
    return value


def _kit_yes_no(text: str, question: AskedQuestion) -> str | None:  # noqa: ARG001 - the form of all rules
    words = without_punctuation(text.lower()).split()
    said = [word for word in ("yes", "no") if word in words]
    note_reading(WORD_ALONE if said else NOTHING, *said)
    return said[0].capitalize() if len(said) == 1 else None


_NO_LETTERS = re.compile(r"(?:the )?(?:best |correct |final )?(?:answer|option)(?: is)?:?", re.IGNORECASE)
"""Phrases that are left out before the first capital from A to D is taken."""


def _kit_videomme(text: str, question: AskedQuestion) -> str | None:  # noqa: ARG001 - the form of all rules
    found = re.search("[ABCD]", _NO_LETTERS.sub("", text))
    note_reading("first capital" if found else NOTHING, *([found[0]] if found else ()))
    return found[0] if found else ""


def _is_mvbench(answer: str, question: AskedQuestion) -> bool:
    """Return whether the first word of an answer is in that of the right option, or the other way around."""
    said, _, _ = answer.lower().partition(" ")
    right = f"({question.truth.strip().lower()})"
    said = said.replace(".", "")
    return said in right or right in said


def _whole(text: str, question: AskedQuestion) -> str | None:  # noqa: ARG001 - the form of all rules
    note_reading(WHOLE_ANSWER)
    return text.strip()


def _scripts_mvbench(text: str, question: AskedQuestion) -> str | None:
    return (_whole(text, question) or "").removeprefix("Answer:").strip()


def _kit_mmmu_pro(text: str, question: AskedQuestion) -> str | None:  # noqa: ARG001 - the form of all rules
    for line in reversed(text.split("\n")):
        if line.strip().startswith("Answer:"):
            said = line.strip().removeprefix("Answer:")
            letters = [character for character in said if character.isalpha()]
            note_reading("last answer line", said)
            return letters[0] if len(letters) == 1 else said
    note_reading(WHOLE_ANSWER)
    return text


def boxed(text: str) -> tuple[str, bool] | None:
    r"""Return the content of the last ``\boxed{``, and whether its braces balance; ``None`` without a box."""
    begin = text.rfind("\\boxed{")
    if begin < 0:
        return None
    depth, begin = 1, begin + len("\\boxed{")
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[begin:at], True
    return text[begin:], False


def _box(text: str, question: AskedQuestion) -> str | None:
    found = boxed(text)
    if found is None or not found[1]:
        return _whole(text, question)
    note_reading("box", found[0])
    return found[0].strip()


def _box_to_the_end(text: str, question: AskedQuestion) -> str | None:
    found = boxed(text)
    return _whole(text, question) if found is None else found[0].strip()


def _line_after(*marks: str) -> Callable[[str, AskedQuestion], str | None]:
    """Return a rule that takes the rest of the line after the first of the marks that occurs."""

    def read(text: str, question: AskedQuestion) -> str | None:
        for mark in marks:
            if mark in text:
                said = text.partition(mark)[2].strip().split("\n")[0].strip()
                note_reading(f"line after {mark!r}", said)
                return said
        return _whole(text, question)

    return read


def _scripts_mmmu(text: str, question: AskedQuestion) -> str | None:
    text = text.strip()
    if not question.options or not text:
        return text
    if text[0] in question.options:
        note_letter("first character", text, text[0])
        return text[0]
    found = [letter for letter, option in question.options.items() if option and option in text]
    note_reading(OPTION_TEXT if found else NOTHING, *found)
    return found[0] if found else text


def _without(opening: str, closing: str, text: str) -> str:
    """Return the text without what each opening mark and the next closing one enclose; other marks stay."""
    kept, at = [], 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def _glm(*marks: tuple[str, str]) -> Callable[[str, AskedQuestion], str | None]:
    def read(text: str, question: AskedQuestion) -> str | None:  # noqa: ARG001 - the form of all rules
        said = _without("<think>", "</think>", text).strip()
        for pair in marks:
            said = between(said, pair)
        note_reading(WHOLE_ANSWER if said == text else "marked answer", said)
        return said

    return read


_KIMI = ("◁think▷", "◁/think▷")


def _kimi(text: str, question: AskedQuestion) -> str | None:
    before, closing, after = text.partition(_KIMI[1])
    if closing:
        return _whole(after, question)
    return "" if _KIMI[0] in before else _whole(text, question)


def _kimi_box(text: str, question: AskedQuestion) -> str | None:
    return _box(_kimi(text, question) or "", question)


_LETTER_AFTER_ANSWER = re.compile(r"Answer:\s*([A-I])(?![a-zA-Z])")


def _minicpm_choice(text: str, question: AskedQuestion) -> str | None:
    found = _LETTER_AFTER_ANSWER.findall(text)
    if not found:
        return _whole(text, question)
    note_letter("last letter after a phrase", text, *found)
    return str(found[-1])


def _minicpm_free(text: str, question: AskedQuestion) -> str | None:
    _, mark, said = text.partition("Answer:")
    if not mark:
        return _whole(text, question)
    note_reading("after a phrase", said.strip())
    return said.strip()


_THE_ANSWER_IS = re.compile(r"\bthe answer is:?", re.IGNORECASE)
_FINAL_ANSWER = re.compile(r"\bfinal answer(?: is)?:", re.IGNORECASE)


def _after(phrase: re.Pattern[str], has_thoughts: bool = False) -> Callable[[str, AskedQuestion], str | None]:
    """Return a rule that takes what follows the last match of a pattern."""

    def read(text: str, question: AskedQuestion) -> str | None:
        said = after_thoughts(text) if has_thoughts else text
        ends = [match.end() for match in phrase.finditer(said)]
        if not ends:
            return _whole(said, question)
        found = said[ends[-1] :].strip()
        note_reading("after a phrase", found)
        return found

    return read


_FINAL_LINE = _line_after("Final answer:", "Answer:")

RULES: Mapping[str, ReadingRule] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            ReadingRule(
                "qwen-evaluation/choice_rule",
                "the only letter among the words, else the only option whose text occurs, else the judge",
                _qwen_choice,
                is_letter,
            ),
            ReadingRule(
                "qwen-evaluation/mmmu",
                "the choice rule; an open question is a choice between its reference (A) and Other Answers (B)",
                _qwen_mmmu,
                _is_right_in_mmmu,
            ),
            ReadingRule(
                "qwen-evaluation/mathvision",
                "the choice rule; of an open question the whole answer if it equals the reference, else the judge",
                _qwen_mathvision,
                _is_right_in_mathvision,
            ),
            ReadingRule(
                "vlmevalkit/choice_rule",
                "the only letter among the words, if it is one of the last five, else the letter after a phrase, else "
                "the only option whose text occurs, else the judge",
                _kit_choice,
                is_letter,
            ),
            ReadingRule("vlmevalkit/yes_no_rule", "yes or no, if only one of them is among the words", _kit_yes_no),
            ReadingRule("vlmevalkit/videomme_letter", "the first capital from A to D", _kit_videomme, is_letter),
            ReadingRule("vlmevalkit/mvbench_check", "the first word, against the right letter", _whole, _is_mvbench),
            ReadingRule("vlmevalkit/mmmu_pro_cot", "the last line that begins with 'Answer:'", _kit_mmmu_pro),
            ReadingRule("vlmevalkit/qwen_boxed", "the last box, also one that is not closed", _box_to_the_end),
            ReadingRule("internvl/boxed", "the last box", _box),
            ReadingRule("internvl/mpo", "the line after 'Final answer:' or 'Answer:'", _FINAL_LINE),
            ReadingRule("internvl-scripts/mmmu", "the first character if it is an option's letter", _scripts_mmmu),
            ReadingRule("internvl-scripts/mathvista_quick", "the line after 'Final answer:' or 'Answer:'", _FINAL_LINE),
            ReadingRule("internvl-scripts/mvbench", "the first word, without 'Answer:'", _scripts_mvbench, _is_mvbench),
            ReadingRule(
                "glm/answer", "what <answer> and the box marks enclose, without thoughts", _glm(ANSWER_MARKS, BOX_MARKS)
            ),
            ReadingRule("glm/answer_without_box", "what <answer> encloses, without thoughts", _glm(ANSWER_MARKS)),
            ReadingRule("kimi/summary", "what follows the thoughts", _kimi),
            ReadingRule("kimi/summary+boxed", "the last box of what follows the thoughts", _kimi_box),
            ReadingRule("minicpm-v/choice", "the last letter after 'Answer:'", _minicpm_choice),
            ReadingRule("minicpm-v/free", "what follows 'Answer:'", _minicpm_free),
            ReadingRule("ovis2/answer", "what follows 'the answer is'", _after(_THE_ANSWER_IS)),
            ReadingRule(
                "ovis2.5/answer",
                "what follows 'Final answer:', without thoughts",
                _after(_FINAL_ANSWER, has_thoughts=True),
            ),
        )
    }
)


def rule(name: str) -> ReadingRule:
    """Return the rule of a name, or several rules in a row: ``FIRST | SECOND`` reads with both, in this order.

    Raises ``UsageError`` if there is no such rule, or one that decides on answers precedes another.
    """
    parts = [_known(part.strip()) for part in name.split("|")]
    for part in parts[:-1]:
        if part.is_right is not None:
            raise UsageError(f"extraction rule {name!r}: {part.name} decides on answers, so it must be the last one")
    if len(parts) == 1:
        return parts[0]

    def read(text: str, question: AskedQuestion) -> str | None:
        found: str | None = text
        for part in parts:
            if found is None:
                return None
            found = part.read(found, question)
        return found

    about = "; then ".join(part.about for part in parts)
    return ReadingRule(" | ".join(part.name for part in parts), about, read, parts[-1].is_right)


def _known(name: str) -> ReadingRule:
    if name not in RULES:
        raise UnknownNameError("extraction rule", name, RULES, "(a recipe's key 'extract')")
    return RULES[name]
