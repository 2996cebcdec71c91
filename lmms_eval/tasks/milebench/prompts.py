"""Makes messages from a document: question, pictures at their places, and a cut if the context is short.

``official`` puts the text and the list of pictures together as the authors' script does: pictures take their places
by position, whatever the placeholders name. ``by_index`` puts every picture at its placeholder.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError, TaskError
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.milebench.data import root
from lmms_eval.tasks.milebench.settings import Settings
from lmms_eval.tasks.milebench.sheets import draw_sheet, plan_sheets

_WORD = re.compile(r"\s*\S+|\s+\Z")


class Tokenizer(Struct, frozen=True):
    """Cuts a text into tokens, without special ones, and puts tokens together again."""

    encode: Callable[[str], Sequence[Any]]
    decode: Callable[[Sequence[Any]], str]


CHARACTERS = Tokenizer(lambda text: text, "".join)
"""One token per code point."""
WORDS = Tokenizer(_WORD.findall, "".join)
"""Words with the white space in front of them; white space at the end is a token too."""


@functools.lru_cache(maxsize=8)
def tokenizer(name: str) -> Tokenizer:
    """Return ``characters``, ``words``, or the tokenizer of a checkpoint (folder or name on the hub).

    Raises:
        TaskError: the transformers library is not installed, or the checkpoint has no tokenizer that can be read.
    """
    if name in ("characters", "words"):
        return CHARACTERS if name == "characters" else WORDS
    try:
        from transformers import AutoTokenizer

        made: Any = AutoTokenizer.from_pretrained(name)
    except (ImportError, OSError, ValueError, KeyError) as error:
        raise TaskError(f"MileBench: the tokenizer of {name!r} cannot be loaded: {error}") from error
    return Tokenizer(functools.partial(made.encode, add_special_tokens=False), lambda tokens: str(made.decode(tokens)))


MARKER = "<ImageHere>"
"""The place of a picture in a finished prompt."""
IMAGE_TOKEN = "<image>"
"""The place of a picture in the text for models of the simple interface."""
NO_LETTERS = "GPR1200"
"""The data set whose options have no letters."""
_PLACEHOLDER = re.compile(r"(\{(?:image|table)#\d+\})")


class PromptParts(Struct, frozen=True):
    """The parts of a document that make its prompt."""

    sample_id: int
    dataset: str
    instruction: str
    context: str
    """With placeholders ``{image#k}`` and ``{table#k}``, k from 1."""
    images: tuple[str, ...]
    """Paths of the pictures, relative to their folder."""
    choices: tuple[str, ...] | None = None
    sheets: tuple[str, ...] | None = None
    """File names of its combined sheets."""

    @property
    def question(self) -> str:
        """The context with the list of choices, if the sample has choices."""
        if self.choices is None:
            return self.context
        plain = self.dataset == NO_LETTERS
        options = [text if plain else f"{chr(65 + place)}. {text}" for place, text in enumerate(self.choices)]
        return f"{self.context}\nChoice list: \n" + "\n".join(options) + "\nYour answer is: "


class ContextBudget(Struct, frozen=True):
    """The limit of a context and its counting of tokens."""

    max_context_len: float
    n_tokens_per_image: int
    tokenizer: Tokenizer

    def left(self, instruction: str) -> float:
        """Return the tokens left for everything except the instruction; may be negative."""
        return self.max_context_len - len(self.tokenizer.encode(instruction))

    def last(self, tokens: Sequence[Any], room: float) -> str:
        """Return the last tokens as a text: 0 keeps all of them, a negative number cuts from the front."""
        return self.tokenizer.decode(tokens[-int(room) :])


UNLIMITED = ContextBudget(math.inf, 0, CHARACTERS)


class PlacedPicture(Struct, frozen=True):
    """A picture in its place."""

    path: str


Part = str | PlacedPicture


class FinishedPrompt(Struct, frozen=True):
    """A finished prompt."""

    text: str
    """The text, with a marker for every picture."""
    images: tuple[str, ...]
    """Paths of the pictures that were kept, in order."""
    parts: tuple[Part, ...]
    """Texts and pictures as a chat model gets them, without markers."""

    @property
    def simple_text(self) -> str:
        """The text with an image token for every picture."""
        return "".join(IMAGE_TOKEN if isinstance(part, PlacedPicture) else part for part in self.parts)


def official(sample: PromptParts, folder: str, budget: ContextBudget = UNLIMITED, combine: int = 0) -> FinishedPrompt:
    """The prompt as the authors' script makes it; cut from the front, the instruction kept, with a ``budget``.

    Args:
        sample: the sample.
        folder: its folder of pictures.
        budget: the limit; by default nothing is cut.
        combine: number of sheets that were asked for; 0 for separate pictures.

    Raises:
        DataError: sheets are asked for and the sample has not exactly one.
    """
    context = sample.question
    for number in range(1, len(sample.images) + 1):
        place = f"<Image {number}> " if combine else MARKER
        context = context.replace(f"{{image#{number}}}", place).replace(f"{{table#{number}}}", place)
    if combine:
        sheets = _sheets(sample, folder, combine)
        if len(sheets) != 1:
            raise DataError(
                f"MileBench, {sample.dataset}, sample {sample.sample_id}: {len(sheets)} sheets, and the official "
                "prompt takes one; use combine_image=1, or prompt_mode=index, which takes any number"
            )
        kept, _ = _end_of(context, sample, budget, None)
        text, images = f"{MARKER}\n{sample.instruction}\n{kept}", sheets
    else:
        kept, images = _end_of(context, sample, budget, _paths(sample, folder))
        text = f"{sample.instruction}\n{kept}"
    return FinishedPrompt(text, tuple(images), _by_position(text, images))


def by_index(sample: PromptParts, folder: str, budget: ContextBudget = UNLIMITED, combine: int = 0) -> FinishedPrompt:
    """Return the prompt with every picture at its placeholder, as often as it is named.

    Pictures that no placeholder names stand in front, in order; so do sheets, in any number. With a ``budget`` the end
    is kept: texts are cut from the front, a picture that does not fit ends the prompt there. Raises ``DataError`` if
    sheets are asked for and the sample has none.
    """
    paths = [] if combine else _paths(sample, folder)
    parts: list[Part] = []
    for piece in _PLACEHOLDER.split(sample.question):
        number = int(piece[piece.index("#") + 1 : -1]) if _PLACEHOLDER.fullmatch(piece) else 0
        if 1 <= number <= len(sample.images):
            parts.append(f"<Image {number}>" if combine else PlacedPicture(paths[number - 1]))
        elif piece:
            parts.append(piece)
    named = {part.path for part in parts if isinstance(part, PlacedPicture)}
    parts = [*(PlacedPicture(path) for path in paths if path not in named), *parts]
    kept: list[Part] = []
    room = budget.left(sample.instruction)
    for part in reversed(parts):
        tokens: Sequence[Any] = () if isinstance(part, PlacedPicture) else budget.tokenizer.encode(part)
        cost = budget.n_tokens_per_image if isinstance(part, PlacedPicture) else len(tokens)
        if cost > room:
            kept += [budget.last(tokens, room)] if tokens and room > 0 else []
            break
        kept.append(part)
        room -= cost
    sheets = [PlacedPicture(path) for path in _sheets(sample, folder, combine)] if combine else []
    parts = [*sheets, f"\n{sample.instruction}\n" if combine else f"{sample.instruction}\n", *reversed(kept)]
    text = "".join(MARKER if isinstance(part, PlacedPicture) else part for part in parts)
    images = tuple(part.path for part in parts if isinstance(part, PlacedPicture))
    return FinishedPrompt(text, images, _joined(parts))


def _paths(sample: PromptParts, folder: str) -> list[str]:
    return [f"{folder}/{path}" for path in sample.images]


def _sheets(sample: PromptParts, folder: str, combine: int) -> list[str]:
    """Paths of the sheets. Every occurrence of the folder's name in its path is replaced, as the authors do it."""
    if sample.sheets is None:
        raise DataError(f"MileBench, {sample.dataset}, sample {sample.sample_id}: no combined_{combine}_images")
    other = folder.replace(PurePosixPath(folder).name, f"combined_{combine}_images")
    return [f"{other}/{name}" for name in sample.sheets]


def _end_of(
    context: str, sample: PromptParts, budget: ContextBudget, images: Sequence[str] | None
) -> tuple[str, list[str]]:
    """Return the end of a text that fits, from the last fragment between markers to the first, and its pictures.

    ``images``: the pictures of the markers; ``None`` if markers are not separate pictures.
    """
    room, left = budget.left(sample.instruction), list(images or ())
    fragments: list[str] = []
    shown: list[str] = []
    total, leads = 0, False
    for fragment in reversed(context.split(MARKER)):
        tokens = budget.tokenizer.encode(fragment)
        if len(tokens) + total > room:
            if not fragments:
                fragments.append(budget.last(tokens, room))
            break
        fragments.insert(0, budget.tokenizer.decode(tokens))
        total, leads = total + len(tokens), False
        if images is not None and budget.n_tokens_per_image + total > room:
            break
        if left:
            shown.insert(0, left.pop())
            total, leads = total + budget.n_tokens_per_image, True
    return (MARKER if leads else "") + MARKER.join(fragments), shown


def _by_position(text: str, images: Sequence[str]) -> tuple[Part, ...]:
    """Assign pictures to markers by position; surplus markers show nothing."""
    parts: list[Part] = []
    for number, fragment in enumerate(text.split(MARKER)):
        if 0 < number <= len(images):
            parts.append(PlacedPicture(images[number - 1]))
        parts.append(fragment)
    return _joined(parts)


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join neighbouring texts and drop empty ones."""
    made: list[Part] = []
    for part in parts:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        elif part != "":
            made.append(part)
    return tuple(made)


@once_per_document
def prompt_of(doc: Mapping[str, Any], settings: Settings) -> FinishedPrompt:
    """The finished prompt of a document; paths start at the data's root folder.

    Raises ``DataError`` if the official prompt takes one sheet and the sample has more.
    """
    choices, sheets = doc["choice_list"], None
    if settings.combine_image:  # the annotation's names, else the names that would be made
        sheets = doc.get("sheets")
        if sheets is None:
            planned = plan_sheets(doc["sample_id"], len(doc["images_path"]), settings.combine_image)
            sheets = [sheet.file for sheet in planned]
    sample = PromptParts(
        sample_id=int(doc["sample_id"]),
        dataset=str(doc["dataset"]),
        instruction=str(doc["instruction"]),
        context=str(doc["context"]),
        images=tuple(doc["images_path"]),
        choices=None if choices is None else tuple(choices),
        sheets=None if sheets is None else tuple(sheets),
    )
    budget = UNLIMITED
    limit, each, counter = settings.max_context_len, settings.n_tokens_per_image, settings.tokenizer
    if limit is not None and each is not None and counter is not None:
        budget = ContextBudget(limit, each, tokenizer(counter))
    make = official if settings.prompt_mode == "official" else by_index
    return make(sample, f"{sample.dataset}/images", budget, settings.combine_image)


def messages(doc: Mapping[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """Return one user turn: texts and pictures in their places. Pictures that need no change are given as paths.

    Raises ``DataError`` or ``MediaError`` as :func:`prompt_of` and :func:`visuals`.
    """
    content: list[dict[str, Any]] = []
    for part in prompt_of(doc, settings).parts:
        if isinstance(part, PlacedPicture):
            found = _picture(doc, settings, part.path)
            content.append(image_part(found) if isinstance(found, Path) else {"type": "image", "url": found})
        else:
            content.append({"type": "text", "text": part})
    return [{"role": "user", "content": content}]


def visuals(doc: Mapping[str, Any], settings: Settings) -> list[Any]:
    """Open the pictures of the prompt (RGB), in order.

    Raises:
        DataError: the annotation names sheets that are neither there nor ours. MediaError: a picture cannot be read.
    """
    parts = prompt_of(doc, settings).parts
    found = [_picture(doc, settings, part.path) for part in parts if isinstance(part, PlacedPicture)]
    return [open_image(picture) if isinstance(picture, Path) else picture for picture in found]


def _picture(doc: Mapping[str, Any], settings: Settings, path: str) -> Any:
    """Return the path of a picture, or a sheet, which is drawn if its file does not exist."""
    name = str(doc["dataset"])
    folder = root(name, settings).absolute()
    if not settings.combine_image or (folder / path).is_file():
        return folder / path
    sheets = plan_sheets(doc["sample_id"], len(doc["images_path"]), settings.combine_image)
    found = next((sheet for sheet in sheets if sheet.file == Path(path).name), None)
    if found is None:
        raise DataError(
            f"MileBench, {name}, sample {doc['sample_id']}: there is no sheet {path}; make it with combine_images.py"
        )
    return draw_sheet(found, [folder / name / "images" / image for image in doc["images_path"]], settings.font_size)
