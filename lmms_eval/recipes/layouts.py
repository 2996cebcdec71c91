"""Layouts: the messages of a document, written as templates over its named fields.

A layout is data. Its templates are Jinja's in a sandbox, without calls. Their only variables are the fields of
:class:`Fields`. In addition to some of Jinja's filters they have ``lettered``, ``marked``, ``numbered`` and the test
``chinese``.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from lmms_eval.errors import ItemError
from lmms_eval.utils.template import sandbox

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Kind = Literal["image", "video", "frame"]
MEDIUM = "{{ media }}"
TEXT = "{{ text }}"
FILTERS = (
    "capitalize", "default", "first", "join", "last", "length", "list", "lower", "regex_replace", "replace", "reverse",
    "trim", "upper",
)  # fmt: skip
"""Filters that templates may use, in addition to those defined here."""
NOT_PART: Mapping[str, str] = MappingProxyType(
    {
        "Call": "calls of functions and methods",
        "Mul": "products",
        "Pow": "powers",
        "Mod": "remainders and the formatting of texts",
        "Include": "other templates",
        "Extends": "other templates",
        "Import": "other templates",
        "FromImport": "other templates",
        "Macro": "macros",
    }
)
"""Parts of Jinja (its nodes) that layouts do not have, in words."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_NAMED = re.compile(r"<image(?: (\d+))?>")
_NONCE = secrets.token_hex(8)
"""Drawn for each process, so that no document can contain the mark of a picture."""
_MARK = re.compile(r"\x02([0-9a-f]{16}):(image|video|frame):([0-9]{1,9})\x03")


class Fields(Struct, frozen=True, kw_only=True):
    """The fields of a document that templates can name, and how many media it has."""

    question: str = ""
    query: str = ""
    """The whole text that the benchmark asks, if its data state one: MathVista's, or MathVision's in that form."""
    hint: str = ""
    options: tuple[str, ...] = ()
    """Texts of the options without letters; an empty one is a letter without an option. None: an open question."""
    option_lines: tuple[str, ...] = ()
    """The options as the data state them, with letters if they have some; without any, the options with letters."""
    subtitles: str = ""
    letters_in_picture: bool = False
    """The options are letters that the picture shows."""
    images: int = 0
    videos: int = 0
    frames: int = 0
    """Frames that are sent instead of the videos. 0: the videos are sent."""


RESERVED = frozenset({*Fields.__struct_fields__, "media", "n", "count", "text"})
"""Names that templates know, which named texts cannot have."""


class Layout(Struct, frozen=True, kw_only=True):
    """The user's turn of one benchmark."""

    parts: tuple[str, ...]
    """A template for each text of the turn."""
    pictures: Literal["first", "last", "marked", "placed"] = "first"
    """``first`` and ``last``: before or after the texts; ``marked``: in place of ``<image>`` and ``<image N>``, which
    are cut out, or first in texts without marks; ``placed``: where the templates name ``images``, ``videos`` or
    ``frames``."""
    picture: str = MEDIUM
    """A template for each picture or video: ``media``, its number ``n`` and their ``count``."""
    frame: str = MEDIUM
    """The same for each frame of a video that is sent as frames."""
    text: str = TEXT
    """A template for each text between pictures: ``text``."""
    most: int | None = None
    """Pictures that are sent: the first ones in their places. ``None``: all."""
    join: str | None = None
    """Text between texts and pictures, which become one text around the pictures."""
    gather: bool = False
    """Put the pictures, in the order of their places, before the texts."""
    rstrip: bool = False
    """Remove white space at the end."""
    suffix: str = ""
    """A template of what follows the end, after ``rstrip``."""
    answer_start: str = ""
    """A template of what the model's answer begins with."""
    texts: Mapping[str, str] = {}
    """Named texts that the templates may use."""


class MediaReference(Struct, frozen=True):
    """A reference to a picture, video or frame of the document, counted from 0."""

    kind: Kind
    index: int


Part = str | MediaReference


def render(layout: Layout, fields: Fields) -> list[Part]:
    """Return the parts of the user's turn: texts, and references to the media between them. Empty texts are left out.

    Raises ``ItemError`` if the document names a picture that it does not have, or a template fails for it.
    """
    values = _values(layout, fields)
    texts = [_fill(part, values) for part in layout.parts]
    if layout.rstrip:
        texts[-1] = texts[-1].rstrip()
    texts[-1] += _fill(layout.suffix, values)
    pieces = [list(_split(text)) for text in _with_media(layout, values, texts)]
    if layout.text != TEXT:
        pieces = [[_shaped(layout, values, piece) for piece in part] for part in pieces]
    return _put_together(layout, pieces)


def answer_start(layout: Layout, fields: Fields) -> str:
    """Return what the model's answer to a document begins with; empty if it is free. Raises as ``render``."""
    return _fill(layout.answer_start, _values(layout, fields))


def filled(template: str, texts: Mapping[str, str]) -> str:
    """Return a text with its named texts. Raises ``ItemError`` if it names another, or is no template."""
    if mistake := _mistake(template, frozenset(texts)):
        raise ItemError(mistake)
    return _fill(template, texts)


def mistakes(layout: Layout) -> Iterator[tuple[str, str]]:
    """Yield the key and the mistake of each template that cannot be read or names an unknown field."""
    known = {*Fields.__struct_fields__, *layout.texts}
    templates: list[tuple[str, str, Iterable[str]]] = [
        *((f"parts[{number}]", part, known) for number, part in enumerate(layout.parts, 1)),
        ("picture", layout.picture, {*known, "media", "n", "count"}),
        ("frame", layout.frame, {*known, "media", "n", "count"}),
        ("text", layout.text, {*known, "text"}),
        ("suffix", layout.suffix, known),
        ("answer_start", layout.answer_start, known),
    ]
    for key, template, names in templates:
        if mistake := _mistake(template, frozenset(names)):
            yield key, mistake


def lettered(options: Sequence[str], form: str = "X. ", between: str = "\n") -> str:
    """Return the options with letters, one on each line: ``form`` with the letter for its ``X`` before each text.

    An empty option is left out with its letter.
    """
    before, _, after = form.partition("X")
    lines = [f"{before}{chr(ord('A') + place)}{after}{text}" for place, text in enumerate(options) if text]
    return between.join(lines)


def numbered(text: str, form: str) -> str:
    """Return a text with its marks of pictures replaced by ``form``, whose ``N`` is their number in order."""
    count = iter(range(1, len(text) + 1))
    return _NAMED.sub(lambda _mark: form.replace("N", str(next(count))), text)


def marked(text: str, pictures: int = 0) -> list[int]:
    """Return the numbers, from 1, of the pictures that a text names, in order; without any, all ``pictures``."""
    count = iter(range(1, len(text) + 1))
    named = [int(mark[1]) if mark[1] else next(count) for mark in _NAMED.finditer(text)]
    return named or list(range(1, pictures + 1))


def _is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


@functools.cache
def _environment() -> Environment:
    environment = sandbox(keeps_newline=True)
    known = {name: environment.filters[name] for name in FILTERS}
    environment.filters = {**known, "lettered": lettered, "numbered": numbered, "marked": marked}
    environment.tests["chinese"] = _is_chinese
    environment.globals.clear()
    return environment


@functools.lru_cache(maxsize=4096)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


@functools.lru_cache(maxsize=4096)
def _mistake(template: str, known: frozenset[str]) -> str:
    from jinja2 import TemplateSyntaxError, meta, nodes

    try:
        tree = _environment().parse(template)
        named = meta.find_undeclared_variables(tree)
        _compiled(template)
    except TemplateSyntaxError as error:
        return f"template {template!r}: {error.message}"
    for kind, words in NOT_PART.items():
        if tree.find(getattr(nodes, kind)) is not None:
            return f"template {template!r}: {words} are not part of layouts"
    unknown = sorted(named - known)
    if not unknown:
        return ""
    return f"template {template!r}: unknown field {unknown[0]!r}; there are {', '.join(sorted(known))}"


def _fill(template: str, values: Mapping[str, Any]) -> str:
    if "{{" not in template and "{%" not in template and "{#" not in template:
        return template
    from jinja2 import TemplateError

    try:
        return _compiled(template).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, re.error) as error:
        raise ItemError(f"layout: template {template!r}: {error}") from error


def _mark(kind: str, index: int) -> str:
    return f"\x02{_NONCE}:{kind}:{index}\x03"


def _values(layout: Layout, fields: Fields) -> dict[str, Any]:
    """Return the variables of the templates. Those of media are lists of their texts, with marks in their places."""
    values: dict[str, Any] = {name: getattr(fields, name) for name in fields.__struct_fields__}
    values["option_lines"] = fields.option_lines or lettered(fields.options).splitlines()
    values.update(layout.texts)
    counts = {"image": fields.images, "video": 0 if fields.frames else fields.videos, "frame": fields.frames}
    shown = {
        kind: [_shown(layout, values, kind, place, count) for place in range(count)] for kind, count in counts.items()
    }
    return {**values, **{f"{kind}s": texts for kind, texts in shown.items()}}


def _shown(layout: Layout, values: Mapping[str, Any], kind: str, place: int, count: int) -> str:
    template = layout.frame if kind == "frame" else layout.picture
    mark = _mark(kind, place)
    return mark if template == MEDIUM else _fill(template, {**values, "media": mark, "n": place + 1, "count": count})


def _with_media(layout: Layout, values: Mapping[str, Any], texts: list[str]) -> list[str]:
    """Return the texts with the media in their places."""
    media = "".join(text for kind in ("video", "frame", "image") for text in values[f"{kind}s"])
    if layout.pictures == "placed":
        return texts
    if layout.pictures == "last":
        return [*texts, media]
    if layout.pictures == "marked" and any(_NAMED.search(text) for text in texts):
        return _with_marked(texts, values["images"])
    return [media + texts[0], *texts[1:]]


def _with_marked(texts: list[str], images: Sequence[str]) -> list[str]:
    unnumbered = iter(range(len(images) + 1))

    def place(mark: re.Match[str]) -> str:
        index = int(mark[1]) - 1 if mark[1] else next(unnumbered, len(images))
        if not 0 <= index < len(images):
            raise ItemError(f"layout: {mark[0]} has no picture; the document has {len(images)}")
        return images[index]

    return [_NAMED.sub(place, text) for text in texts]


def _split(text: str) -> Iterator[Part]:
    place = 0
    for mark in _MARK.finditer(text):
        if mark[1] != _NONCE:
            continue
        if before := text[place : mark.start()]:
            yield before
        kind: Any = mark[2]
        yield MediaReference(kind, int(mark[3]))
        place = mark.end()
    if rest := text[place:]:
        yield rest


def _shaped(layout: Layout, values: Mapping[str, Any], piece: Part) -> Part:
    return piece if isinstance(piece, MediaReference) else _fill(layout.text, {**values, "text": piece})


def _put_together(layout: Layout, pieces: list[list[Part]]) -> list[Part]:
    places = itertools.count()
    most = math.inf if layout.most is None else layout.most
    flat: list[Part] = [
        piece
        for part in pieces
        for piece in part
        if (next(places) < most if isinstance(piece, MediaReference) and piece.kind == "image" else piece != "")
    ]
    media: list[Part] = []
    if layout.gather:
        media = [piece for piece in flat if isinstance(piece, MediaReference)]
        flat = [piece for piece in flat if not isinstance(piece, MediaReference)]
    if layout.join is None:
        return media + flat
    marks = [piece if isinstance(piece, str) else _mark(piece.kind, piece.index) for piece in flat]
    return media + list(_split(layout.join.join(marks)))
