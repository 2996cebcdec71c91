"""From a document to what a model is asked: texts and pictures of the question in their order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.mmie.data.documents import question_of
from lmms_eval.tasks.mmie.data.files import image_finder
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import PLACEHOLDER
from lmms_eval.utils.picture_marks import INSTRUCTION


def question_pieces(doc: Mapping[str, Any], settings: Settings) -> list[str | Path]:
    """Returns texts (trimmed, none empty) and files of pictures in order.

    Raises:
        MediaError: a picture is not there and the settings are strict; else it is left out.
    """
    finder = image_finder(settings)
    pieces: list[str | Path] = []
    for segment in question_of(doc).question:
        if segment.text and segment.text.strip():
            pieces.append(segment.text.strip())
        if segment.image is None:
            continue
        found = finder.find(segment.image)
        if found is not None:
            pieces.append(Path(found))
        elif settings.strict_images:
            raise MediaError(f"MMIE, {doc['id']}: the picture {segment.image} is not there (strict_images)")
    return pieces


def messages(doc: Mapping[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """Returns one user turn. Raises ``MediaError`` also for a picture that cannot be read."""
    pieces = [*question_pieces(doc, settings), *_instruction(settings)]
    content = [{"type": "text", "text": piece} if isinstance(piece, str) else image_part(piece) for piece in pieces]
    return [{"role": "user", "content": content}]


def text(doc: Mapping[str, Any], settings: Settings) -> str:
    """Returns the question with ``<image>`` in place of each picture that is there."""
    pieces = [*question_pieces(doc, settings), *_instruction(settings)]
    return "\n".join(piece if isinstance(piece, str) else PLACEHOLDER for piece in pieces)


def visuals(doc: Mapping[str, Any], settings: Settings) -> list[Any]:
    """Returns the pictures of the question, opened (RGB), in order."""
    return [open_image(piece) for piece in question_pieces(doc, settings) if isinstance(piece, Path)]


def _instruction(settings: Settings) -> list[str]:
    """Returns the request for described pictures, for models that cannot draw; none unless it is asked for."""
    given = settings.ask_pictures
    wording = given if isinstance(given, str) else INSTRUCTION if given else ""
    return [wording] if wording else []
