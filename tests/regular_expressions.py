"""The regular expressions of the package, and texts on which a careless one takes quadratic time or worse."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lmms_eval

PACKAGE = Path(lmms_eval.__file__).parent
_PARSER: Any = __import__("re._parser", fromlist=["parse"])
_CALLS = frozenset({"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
_FLAG_PLACE = {"sub": 4, "subn": 4, "split": 3}
RUNS = (" ", "\n", "a", "1")
"""Of what runs are made, beside the characters of the expression itself."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression where it stands."""

    where: str
    """``file:line``, the file below the package."""
    pattern: str | bytes
    flags: int
    methods: frozenset[str]
    """How it is applied; of a compiled one all that its module does with the name."""


@dataclass(frozen=True, slots=True)
class Found:
    """All of the package."""

    expressions: tuple[Expression, ...]
    dynamic: frozenset[str]
    """``file:function`` of those whose text is made while the program runs."""


def find() -> Found:
    """Read every module of the package; none is imported."""
    expressions: list[Expression] = []
    dynamic: set[str] = set()
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    used = _methods(texts.values())
    trees = {path: ast.parse(text) for path, text in texts.items() if re.search(r"\bre\s*\.", text)}
    for path, tree in trees.items():
        constants = _constants(tree)
        name = path.relative_to(PACKAGE).as_posix()
        for call, target, function in _calls(tree):
            text = _text(call.args[0], constants)
            if text is None:
                dynamic.add(f"{name}:{function}")
                continue
            kind = call.func.attr  # type: ignore[attr-defined]
            methods = {kind} if kind != "compile" else used.get(target) or {"search"}
            expressions.append(Expression(f"{name}:{call.lineno}", text, _flags(call, kind), frozenset(methods)))
    return Found(tuple(expressions), frozenset(dynamic))


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str]]:
    """``re.X(...)`` with the name that it is assigned to and the function around it."""
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    targets = {
        id(node.value): node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr)) if attr in _CALLS:
                around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
                yield node, targets.get(id(node), ""), around[-1].name if around else ""


_USES = re.compile(rf"(?<![\w.])([A-Za-z_]\w*)\.({'|'.join(_CALLS)})\b")


def _methods(texts: Iterable[str]) -> dict[str, set[str]]:
    """What is called on each name, in any module: a name used twice is tested in both ways."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for name, method in _USES.findall(text):
            found.setdefault(name, set()).add(method)
    return found


def _constants(tree: ast.Module) -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                text = _text(value, found)
                if text is not None:
                    found[name] = text
    return found


def _text(node: ast.expr, constants: Mapping[str, str | bytes]) -> Any:
    """The text of an expression that does not depend on the run; ``None`` for any other."""
    match node:
        case ast.Constant(value=str() | bytes() as text):
            return text
        case ast.Name(id=name):
            return constants.get(name)
        case ast.JoinedStr(values=parts):
            texts = [_text(part.value if isinstance(part, ast.FormattedValue) else part, constants) for part in parts]
            return None if None in texts else "".join(texts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _text(left, constants), _text(right, constants)
            return None if first is None or second is None else first + second
    return None


def _flags(call: ast.Call, kind: str) -> int:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    place = _FLAG_PLACE.get(kind, 1 if kind == "compile" else 2)
    given += call.args[place : place + 1]
    names = {node.attr for flag in given for node in ast.walk(flag) if isinstance(node, ast.Attribute)}
    return int(sum(getattr(re, name) for name in names))


def attacks(expression: Expression, size: int) -> Iterator[str]:
    """Texts of about ``size`` characters: beginnings of what it matches, repeated, and with long runs behind them."""
    pattern = expression.pattern if isinstance(expression.pattern, str) else expression.pattern.decode("latin-1")
    beginnings, runs = {""}, set(RUNS)
    for longest in (False, True):
        pieces = list(_words(_pieces(_PARSER.parse(pattern, expression.flags), longest)))
        beginnings |= {"".join(pieces[:end]) for end in range(1, len(pieces) + 1)}
        runs |= {piece for piece in pieces if len(piece) == 1}
    for beginning in sorted(beginnings):
        if beginning:
            yield beginning * (size // len(beginning)) + "\0"
        for run in sorted(runs):
            yield beginning + run * size + "\0"


def _words(pieces: Iterable[str]) -> Iterator[str]:
    """Letters that stand together as one piece."""
    word = ""
    for piece in pieces:
        if piece.isalpha() and word:
            word += piece
        else:
            if word:
                yield word
            word = piece
    yield word


def _pieces(parsed: Any, longest: bool) -> Iterator[str]:
    """An example of what a pattern matches, piece by piece; of a repetition two rounds, or the fewest."""
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                yield chr(argument)
            case "ANY" | "NOT_LITERAL":
                yield "b" if argument == ord("a") else "a"
            case "IN":
                yield _member(argument)
            case "BRANCH":
                yield from _pieces(argument[1][-1 if longest else 0], longest)
            case "SUBPATTERN":
                yield from _pieces(argument[-1], longest)
            case "ATOMIC_GROUP":
                yield from _pieces(argument, longest)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = argument
                for _ in range(min(high, max(low, 2)) if longest else low):
                    yield from _pieces(inner, longest)


_CATEGORIES: Mapping[str, str] = MappingProxyType(
    {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a", "CATEGORY_NOT_SPACE": "a"}
)


def _member(argument: Any) -> str:
    """A character of a set."""
    kind, value = str(argument[0][0]), argument[0][1]
    if kind == "NEGATE":
        return next(each for each in "abcdefgh-. " if (kind, ord(each)) not in argument[1:])
    if kind == "RANGE":
        return chr(value[0])
    return chr(value) if kind == "LITERAL" else _CATEGORIES.get(str(value), "-")


class TooSlow(AssertionError):
    """The block took more processor time than it may."""


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise ``TooSlow`` in the block when it has used so much processor time; also inside a regular expression.

    The garbage collector waits meanwhile: a full collection of a large test process takes longer than the block may.
    """

    def ring(*_: Any) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    collects = gc.isenabled()
    before = signal.signal(signal.SIGVTALRM, ring)
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if collects:
            gc.enable()
        signal.signal(signal.SIGVTALRM, before)


def ends_within(seconds: float, run: Callable[[str], object], text: str, tries: int = 3) -> bool:
    """Whether one of some tries takes no more processor time: other threads of the process count into each of them."""
    for _ in range(tries):
        try:
            with ended_after(seconds):
                run(text)
        except TooSlow:
            continue
        return True
    return False


def apply(expression: Expression, method: str) -> Callable[[str], object]:
    """The expression as the package uses it."""
    compiled: Any = re.compile(expression.pattern, expression.flags)
    encode = isinstance(expression.pattern, bytes)

    def run(text: str) -> object:
        subject: Any = text.encode("latin-1", "replace") if encode else text
        if method in ("sub", "subn"):
            return compiled.sub(subject[:0], subject)
        if method == "finditer":
            return sum(1 for _ in compiled.finditer(subject))
        return getattr(compiled, method)(subject)

    return run
