"""Expressions that select samples: ``application == 'Perception' and score < 1``.

    choice     = both { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | "(" choice ")" | comparison
    comparison = column ( operator value | ["not"] "in" "(" value { "," value } ")" | "is" ["not"] "missing" )
    operator   = "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "startswith" | "endswith"
    value      = number | text | "true" | "false" | column

``and``, ``or``, ``not`` and brackets mean what they mean in Python: ``ast`` parses them, with a name in the place of
each comparison. Nothing is executed as code.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.errors import UsageError

Lookup = Callable[[str], Any]
"""Returns the value of a column; ``None`` if it is missing."""
MAX_DEPTH = 50
"""Depth of nested brackets and ``not``."""
MAX_LENGTH = 10_000
"""Characters of an expression."""
_TOKEN = re.compile(
    r"(?P<number>[-+]?\.?\d[\w.+-]*)|(?P<name>[^\W\d][\w.@/-]*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign>==|!=|<=|>=|[<>(),])"
)
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TEXT_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "contains": operator.contains, "startswith": str.startswith, "endswith": str.endswith,
}  # fmt: skip
_WORDS = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false", *_TEXT_TESTS})


class WhereError(UsageError):
    """An expression that cannot be parsed, or an unknown column. ``position`` counts characters from 1."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        near = text[position - 1 : position + 19]
        place = f"at character {position} ({near!r})" if near else "at its end"
        super().__init__(f"--where: {place}: {problem}")
        self.position = position


class _Column(Struct, frozen=True):
    name: str
    position: int


class _Test(Struct, frozen=True):
    """A comparison of a column with values; false if a side is missing."""

    column: _Column
    word: str
    values: tuple[Any, ...] = ()
    is_negated: bool = False

    def holds(self, lookup: Lookup) -> bool:
        found = _known(lookup(self.column.name))
        if self.word == "missing":
            return (found is None) != self.is_negated
        if found is None:
            return False
        values = (_known(lookup(value.name)) if isinstance(value, _Column) else value for value in self.values)
        return any(value is not None and _compare(self.word, found, value) for value in values) != self.is_negated


class Where(Struct, frozen=True):
    """A parsed expression."""

    text: str
    _tree: ast.expr
    """``and``, ``or`` and ``not`` over names. A name is an underscore and the number of a test."""
    _tests: tuple[_Test, ...]
    _columns: tuple[_Column, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the expression uses."""
        return tuple(dict.fromkeys(column.name for column in self._columns))

    def holds(self, lookup: Lookup) -> bool:
        """Return whether a sample matches. A comparison with a missing value is false."""
        return _holds(self._tree, self._tests, lookup)

    def check(self, known: Collection[str], refused: Mapping[str, str] | None = None) -> None:
        """Check that all columns exist.

        Args:
            known: names of the existing columns.
            refused: columns that cannot be used here, with the reasons.

        Raises:
            WhereError: a column does not exist; the message names a similar one.
        """
        for column in self._columns:
            if column.name not in known:
                if refused and column.name in refused:
                    raise WhereError(self.text, column.position, f"{column.name!r} is {refused[column.name]}")
                near = difflib.get_close_matches(column.name, list(known), 1, 0.4)
                hint = f"; nearest: {near[0]}" if near else f"; there are: {', '.join(sorted(known))[:300]}"
                raise WhereError(self.text, column.position, f"no column {column.name!r}{hint}")


def _holds(node: ast.expr, tests: Sequence[_Test], lookup: Lookup) -> bool:
    match node:
        case ast.BoolOp(op=ast.Or()):
            return any(_holds(part, tests, lookup) for part in node.values)
        case ast.BoolOp(op=ast.And()):
            return all(_holds(part, tests, lookup) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _holds(node.operand, tests, lookup)
        case ast.Name():
            return tests[int(node.id[1:])].holds(lookup)
    raise TypeError(f"an expression holds no {type(node).__name__}")


def parse_where(text: str) -> Where:
    """Parse an expression. Raises ``WhereError`` with the position of the mistake."""
    if len(text) > MAX_LENGTH:
        raise WhereError(text, MAX_LENGTH + 1, f"an expression has {MAX_LENGTH} characters at most")
    return _Reader(text).read()


class _Token(Struct, frozen=True):
    kind: str
    """``number``, ``name``, ``quoted``, ``text``, ``sign`` or ``end``."""
    text: str
    position: int


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        found = _TOKEN.match(text, place)
        if found is None:
            problem = "write == for equality" if text[place] == "=" else "a column, number, text or operator is needed"
            problem = "this quote is not closed" if text[place] in "'\"`" else problem
            raise WhereError(text, place + 1, problem)
        kind = str(found.lastgroup)
        if kind == "number" and (_number(found[0]) is None or "_" in found[0]):
            raise WhereError(text, place + 1, "this is not a number; texts need quotes")
        yield _Token("text" if kind in ("single", "double") else kind, found[kind], place + 1)
        place = found.end()
    yield _Token("end", "", len(text) + 1)


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self._place = list(_tokens(text)), 0
        self._columns: list[_Column] = []

    @property
    def next(self) -> _Token:
        return self._tokens[self._place]

    def read(self) -> Where:
        tests: list[_Test] = []
        source: list[str] = []
        opened: list[str] = []  # brackets and negations without their ends
        while True:
            if len(opened) >= MAX_DEPTH:
                raise self.error(f"more than {MAX_DEPTH} nested brackets and negations")
            if word := self.takes("not", "("):
                source.append(word)
                opened.append(word)
                continue
            source.append(f"_{len(tests)}")
            tests.append(self.comparison())
            while opened and (opened[-1] == "not" or self.takes(")")):
                source += ")" if opened.pop() == "(" else ""
            if not (word := self.takes("and", "or")):
                break
            source.append(word)
        if opened or self.next.kind != "end":
            raise self.error("')' is needed here" if opened else "'and', 'or' or the end is needed here")
        tree = ast.parse(" ".join(source), mode="eval").body
        return Where(self._text, tree, tuple(tests), tuple(self._columns))

    def error(self, problem: str) -> WhereError:
        return WhereError(self._text, self.next.position, problem)

    def takes(self, *words: str) -> str:
        """Take the next token if it is one of these words or signs."""
        token = self.next
        word = token.text.lower() if token.kind == "name" else token.text
        if token.kind not in ("name", "sign") or word not in words:
            return ""
        self._place += 1
        return word

    def need(self, word: str) -> None:
        if not self.takes(word):
            raise self.error(f"{word!r} is needed here")

    def comparison(self) -> _Test:
        column = self.column()
        if self.takes("is"):
            is_negated = bool(self.takes("not"))
            self.need("missing")
            return _Test(column, "missing", is_negated=is_negated)
        if self.takes("in"):
            return _Test(column, "==", self.values())
        if self.takes("not"):
            self.need("in")
            return _Test(column, "==", self.values(), is_negated=True)
        word = self.takes("==", "!=", *_ORDERS, *_TEXT_TESTS)
        if not word:
            raise self.error("a comparison is needed here: ==, !=, <, <=, >, >=, in (...), contains, is missing")
        return _Test(column, word, (self.value(),))

    def values(self) -> tuple[Any, ...]:
        self.need("(")
        values = [self.value()]
        while self.takes(","):
            values.append(self.value())
        self.need(")")
        return tuple(values)

    def column(self) -> _Column:
        token = self.next
        if token.kind != "quoted" and (token.kind != "name" or token.text.lower() in _WORDS):
            raise self.error("the name of a column is needed here (`...` if it holds spaces)")
        self._place += 1
        self._columns.append(_Column(token.text, token.position))
        return self._columns[-1]

    def value(self) -> Any:
        token = self.next
        if token.kind == "text":
            self._place += 1
            return token.text
        if token.kind == "number":
            self._place += 1
            return float(token.text)
        if word := self.takes("true", "false"):
            return word == "true"
        return self.column()


def _known(value: Any) -> Any:
    """Return the value; ``None`` for NaN, which counts as missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _compare(word: str, found: Any, value: Any) -> bool:
    if word == "==":
        return _equal(found, value)
    if word == "!=":
        return not _equal(found, value)
    if word in _TEXT_TESTS:
        if word == "contains" and isinstance(found, list | tuple):
            return any(_equal(one, value) for one in found)
        return _TEXT_TESTS[word](_text(found), _text(value))
    if isinstance(found, str) and isinstance(value, str):
        return _ORDERS[word](found, value)
    left, right = _number(found), _number(value)
    return left is not None and right is not None and _ORDERS[word](left, right)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal. A number equals its text, since ids of documents are texts."""
    if isinstance(one, bool | int | float) and isinstance(other, bool | int | float):
        return one == other
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or a list nested too deeply
        return ""


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool | int | float):
        return value
    try:
        number = float(value) if isinstance(value, str) and len(value) < 400 else math.nan
    except ValueError:
        return None
    return None if math.isnan(number) else number
