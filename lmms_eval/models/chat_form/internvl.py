"""The form of ``chat`` in InternVL's checkpoints: pictures as tiles, and ``<image>`` in the question for each picture.

Source: the usage sections of the model cards (InternVL 1.5 to 3.5, InternVideo2.5).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.generation import TILE_LIMITS, RequestLimits
from lmms_eval.models.chat_form.form import ChatConversation, ChatForm, ChatPrompt, Piece, call, media_of
from lmms_eval.models.hf.batching import RefusedError

if TYPE_CHECKING:
    from PIL import Image


TILE = 448
"""The side of a tile in pixels."""
MAX_TILES = 12
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The values for the channels red, green and blue (ImageNet)."""
PLACEHOLDER = "<image>"
"""The placeholder of a picture in a question."""
_CONTEXT = "<IMG_CONTEXT>"
"""The token that the checkpoint's code repeats in place of a picture."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The division of a picture into tiles."""

    columns: int
    rows: int

    @property
    def tiles(self) -> int:
        return self.columns * self.rows

    @property
    def tiles_with_thumbnail(self) -> int:
        """The number of tiles, with one for the whole picture unless the grid is a single tile."""
        return self.tiles + (self.tiles > 1)


def choose_grid(width: int, height: int, max_tiles: int = MAX_TILES, tile: int = TILE) -> Grid:
    """Return the grid with the proportions nearest to the picture's.

    Among equally near grids, a larger one is used only if the picture covers more than half of its area.
    """
    aspect, area = width / height, width * height
    best, nearest = Grid(1, 1), float("inf")
    for grid in _candidates(max_tiles):
        distance = abs(aspect - grid.columns / grid.rows)
        if distance < nearest or (distance == nearest and area > 0.5 * tile * tile * grid.tiles):
            best, nearest = grid, distance
    return best


def cut(image: Image.Image, max_tiles: int = MAX_TILES, tile: int = TILE) -> list[Image.Image]:
    """Return the tiles row by row, then the thumbnail. The picture is stretched to the grid."""
    grid = choose_grid(*image.size, max_tiles, tile)
    stretched = image.resize((grid.columns * tile, grid.rows * tile))
    tiles = [
        stretched.crop((column * tile, row * tile, (column + 1) * tile, (row + 1) * tile))
        for row in range(grid.rows)
        for column in range(grid.columns)
    ]
    return tiles if grid.tiles == 1 else [*tiles, image.resize((tile, tile))]


def tensor_of(tiles: Sequence[Image.Image]) -> Any:
    """Convert tiles to a float32 tensor of shape (tiles, 3, side, side), normalised by ``MEAN`` and ``STD``."""
    import numpy as np
    import torch

    stacked = np.stack([np.asarray(picture, dtype=np.uint8) for picture in tiles])
    values = torch.from_numpy(stacked).permute(0, 3, 1, 2).to(torch.float32) / 255
    mean, std = (torch.tensor(of).view(1, 3, 1, 1) for of in (MEAN, STD))
    return (values - mean) / std


@functools.lru_cache
def _candidates(max_tiles: int) -> tuple[Grid, ...]:
    """Return all grids with at most ``max_tiles`` tiles, by size, then by columns."""
    grids = [
        Grid(columns, rows)
        for columns in range(1, max_tiles + 1)
        for rows in range(1, max_tiles + 1)
        if columns * rows <= max_tiles
    ]
    return tuple(sorted(grids, key=lambda grid: grid.tiles))


@dataclass(frozen=True, slots=True, eq=False)
class InternVLPrompt(ChatPrompt):
    """A question in the form for ``chat``."""

    question: str
    tiles: Any
    """A tensor of shape (tiles, 3, side, side) in the model's type, or ``None`` without pictures."""
    counts: tuple[int, ...]
    """The number of tiles of each picture in the whole conversation, thumbnails included."""
    history: tuple[tuple[str, str], ...] = ()
    """Earlier questions with their answers."""
    system: str = ""

    @property
    def nbytes(self) -> int:
        texts = len(self.question) + sum(len(text) for pair in self.history for text in pair)
        return texts + (0 if self.tiles is None else int(self.tiles.element_size() * self.tiles.nelement()))


class InternVLForm(ChatForm):
    """Uses up to ``max_num`` tiles of a picture, ``total_max_num`` of all pictures of a prompt, and one of a frame."""

    name = "internvl"
    parameters = ("tokenizer", "pixel_values", "question", "generation_config", "num_patches_list")
    marks = (PLACEHOLDER, _CONTEXT)
    limits = TILE_LIMITS

    @property
    def media(self) -> frozenset[str]:
        return frozenset({"image", "video"})

    def render(self, conversation: ChatConversation) -> InternVLPrompt:
        if conversation.system and not isinstance(getattr(self.model, "system_message", None), str):
            raise RefusedError(f"{self.name}: {type(self.model).__name__} has no system_message to put the prompt into")
        pictures = len(media_of(conversation, "image"))
        limits = conversation.limits or RequestLimits()
        first = limits.tiles or int(self.extra.get("max_num", MAX_TILES))
        most = [first, *[limits.tiles_later or first] * (pictures - 1)]
        if total := limits.total_tiles or self.extra.get("total_max_num"):
            most = [min(one, max(1, total // max(1, pictures))) for one in most]
        writer = _Writer(pictures > 1, most, int(self.config.get("force_image_size") or TILE))
        *earlier, question = ["".join(map(writer.write, pieces)) for _, pieces in conversation.turns]
        return InternVLPrompt(
            question,
            self.tensor([tile for own in writer.tiles for tile in own]),
            tuple(len(own) for own in writer.tiles),
            tuple(zip(earlier[::2], earlier[1::2], strict=True)),
            conversation.system,
        )

    def tensor(self, tiles: Sequence[Image.Image]) -> Any:
        """Convert tiles to a tensor in the model's type on the CPU; ``None`` without tiles."""
        return tensor_of(tiles).to(getattr(self.model, "dtype", None)) if tiles else None

    def group(self, prompt: InternVLPrompt) -> Hashable | None:
        """Group questions for ``batch_chat``, which takes exactly one picture each, and no history."""
        if len(prompt.counts) == 1 and not prompt.history and hasattr(self.model, "batch_chat"):
            return prompt.system
        return None

    def ask(self, prompts: Sequence[InternVLPrompt], arguments: Mapping[str, Any]) -> list[Any]:
        with self._system(prompts[0].system):
            if len(prompts) == 1:
                (prompt,) = prompts
                answer = call(
                    self.model.chat,
                    self.tokenizer,
                    self._on_device(prompt.tiles),
                    prompt.question,
                    dict(arguments),  # the checkpoint's code writes into it
                    num_patches_list=list(prompt.counts),
                    **({"history": list(prompt.history)} if prompt.history else {}),
                )
                return [answer]
            import torch

            answers = call(
                self.model.batch_chat,
                self.tokenizer,
                self._on_device(torch.cat([prompt.tiles for prompt in prompts])),
                questions=[prompt.question for prompt in prompts],
                generation_config=dict(arguments),
                num_patches_list=[count for prompt in prompts for count in prompt.counts],
            )
            if not isinstance(answers, list) or len(answers) != len(prompts):
                raise RefusedError(f"batch_chat gave no list of {len(prompts)} answers", "malformed")
            return answers

    def _on_device(self, tiles: Any) -> Any:
        return None if tiles is None else tiles.to(getattr(self.model, "device", "cpu"))

    @contextmanager
    def _system(self, text: str) -> Iterator[None]:
        """Set the system prompt as on the model card, in an attribute that ``chat`` reads."""
        if not text:
            yield
            return
        before, self.model.system_message = self.model.system_message, text
        try:
            yield
        finally:
            self.model.system_message = before


class _Writer:
    """Renders pieces, numbers pictures if there are several (``labels``), and collects tiles, at most ``most`` of each.

    A picture whose label the prompt states is not numbered again.
    """

    def __init__(self, labels: bool, most: Sequence[int], side: int) -> None:
        self._labels, self._most, self._side = labels, most, side
        self._pictures, self._before = 0, ""
        self.tiles: list[list[Image.Image]] = []
        """The tiles of each picture and frame, in order."""

    def write(self, piece: Piece) -> str:
        before, self._before = self._before, piece if isinstance(piece, str) else ""
        if isinstance(piece, str):
            return piece
        if piece.kind == "image":
            self.tiles += [cut(image, self._most[self._pictures], self._side) for image in piece.items]
            self._pictures += 1
            label = f"Image-{self._pictures}: "
            label = "" if not self._labels or before.endswith(label) else label
            return f"{label}{PLACEHOLDER}\n"
        self.tiles += [cut(frame, 1, self._side) for frame in piece.items]  # a video, as sounds are refused
        return "".join(f"Frame{number}: {PLACEHOLDER}\n" for number in range(1, len(piece.items) + 1))
