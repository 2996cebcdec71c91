"""Questions in the form of most picture benchmarks: a frame of texts, lettered options, the document's picture.

A task's YAML can name the functions that take a document directly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import ItemError, TaskError

if TYPE_CHECKING:
    from PIL import Image

Doc = Mapping[str, Any]
Settings = Mapping[str, Any] | None
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def framed(text: str, settings: Settings) -> str:
    """Return the text between the settings ``pre_prompt`` and ``post_prompt``."""
    settings = settings or {}
    return f"{settings.get('pre_prompt') or ''}{text}{settings.get('post_prompt') or ''}"


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the column ``question`` in its frame."""
    return framed(doc["question"], lmms_eval_specific_kwargs)


def doc_to_text_stripped(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the column ``question``, without outer white space, in its frame."""
    return framed(doc["question"].strip(), lmms_eval_specific_kwargs)


def doc_to_text_reframed(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Do as ``doc_to_text_stripped``; a frame takes the place of the instruction to answer yes or no."""
    text = doc["question"].strip()
    reframed = framed(text.replace(" Please answer yes or no.", ""), lmms_eval_specific_kwargs)
    return reframed if framed("", lmms_eval_specific_kwargs) else text


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """Return the picture of the column ``image`` as RGB; an empty list if the column is empty."""
    image = doc["image"]
    return [] if image is None else [image.convert("RGB")]


def doc_to_visual_repeated(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[Image.Image]:
    """Return the picture of the column ``image`` once or twice, by the setting ``num_image``.

    Raises:
        TaskError: the setting is neither 1 nor 2.
    """
    return doc_to_visual(doc) * times_shown(lmms_eval_specific_kwargs)


def name_of(doc: Doc, column: str) -> str:
    """Return a name or label that a column holds as text or as a whole number.

    Raises:
        ItemError: the column is absent or holds something else.
    """
    held = doc.get(column)
    if isinstance(held, bool) or not isinstance(held, str | int):
        kind = "is absent" if column not in doc else f"holds {held!r:.80} ({type(held).__name__})"
        raise ItemError(f"column {column!r} {kind}: it must be a text or a whole number")
    return str(held)


def read_list(doc: Doc, column: str) -> list[str]:
    """Return the texts of a column that holds a list, or a list as text in Python's form.

    Raises:
        ItemError: it holds none.
    """
    held = doc[column]
    try:
        found = ast.literal_eval(held) if isinstance(held, str) else held
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list | tuple):
        raise ItemError(f"column {column!r} holds {held!r:.200}: it must be a list, or the text of one")
    return [str(item) for item in found]


def doc_to_audio(doc: Doc) -> list[Any]:
    """Return the sound of the column ``audio`` as ``{path, array, sampling_rate}``, or its file if it names one.

    A column whose type says that it is not decoded holds the file's bytes.

    Raises:
        ItemError: the column is empty.
        MediaError: the bytes are not a sound, or the sound has no samples.
    """
    audio = doc["audio"]
    if not audio:
        raise ItemError("column 'audio' is empty: there is no sound to ask about")
    if audio.get("array") is not None:
        return [audio]
    if audio.get("bytes") is None:
        return [{"type": "audio", "url": audio["path"]}]
    from lmms_eval.media.audio import load_audio

    sound = load_audio({"bytes": audio["bytes"], "path": audio.get("path")})
    return [{"path": audio.get("path"), "array": sound.samples, "sampling_rate": sound.sampling_rate}]


def option_lines(options: Iterable[Any]) -> str:
    """Return a line ``A. OPTION`` for each option."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))


def times_shown(settings: Settings) -> int:
    """Return how often the only picture of a document is shown: the setting ``num_image``, once or twice.

    Raises:
        TaskError: the setting is neither 1 nor 2.
    """
    times: int = (settings or {}).get("num_image", 1)
    if times not in (1, 2):
        raise TaskError(f"task setting num_image must be 1 or 2, not {times!r}")
    return times
