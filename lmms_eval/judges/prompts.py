"""Parts of judge prompts: filled templates, and pictures of bounded size."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import TaskError

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages

MAX_SIDE = 1000
JPEG_QUALITY = 95


def fill_template(template: str, values: Mapping[str, Any], where: str) -> str:
    """Fill a Python format string whose placeholders are plain names. The values are not read as templates.

    Raises:
        TaskError: a placeholder is not a plain name or has no value, or the text is not a format string.
    """
    try:
        for _, name, _, _ in string.Formatter().parse(template):
            if name is not None and name not in values:
                raise TaskError(f"{where}: the placeholder {name!r} of the judge's prompt has no value")
        return string.Formatter().vformat(template, (), values)
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise TaskError(f"{where}: the judge's prompt cannot be filled: {error}") from error


def user_turn(text: str, pictures: Iterable[Any] = ()) -> ChatMessages:
    """Return one user message: all pictures, then the text."""
    from lmms_eval.api.messages import ChatImageContent, ChatMessage, ChatMessages, ChatTextContent

    parts: list[Any] = [ChatImageContent(url=picture) for picture in pictures]
    return ChatMessages(messages=[ChatMessage(role="user", content=[*parts, ChatTextContent(text=text)])])


def bounded_picture(value: Any, max_side: int | None = MAX_SIDE) -> Any:
    """Return a picture as a judge gets it: RGB over white, with no side longer than ``max_side``.

    A file that already meets this is returned unchanged; anything else is returned as the bytes of a JPEG.

    Raises:
        MediaError: the picture cannot be found or read.
    """
    from lmms_eval.media import encode_image, header, load_image, shrink, to_rgb
    from lmms_eval.media.encode import is_untouched

    found = header(value)
    fits = max_side is None or max(found.width, found.height) <= max_side
    if fits and not hasattr(value, "convert") and is_untouched(found):
        return value
    image = to_rgb(load_image(value))
    return encode_image(image if fits else shrink(image, max_side=max_side), "JPEG", JPEG_QUALITY)
