"""Documents of our tasks as the fields that layouts name, and the messages that a layout makes of them.

The files that the sources read hold question, hint and options in columns of their own. The data sets of our tasks
often hold them in one text, which is taken apart here. A text in another form is an ``ItemError``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatVideoContent, visual_to_content
from lmms_eval.errors import ItemError
from lmms_eval.media.video import probe, uniform_indices
from lmms_eval.models.remote.media import Frames, read_video
from lmms_eval.recipes.layouts import MEDIUM, Fields, Layout, answer_start, render
from lmms_eval.recipes.recipe import MediaLimits
from lmms_eval.tasks._task_utils.question import LETTERS, read_list
from lmms_eval.tasks.mathvista.prompts import question as mathvista_question
from lmms_eval.tasks.videomme.utils import VIDEOS
from lmms_eval.tasks.videomme.utils import doc_to_visual as video_of
from lmms_eval.tasks.videomme.utils import read as read_subtitles

if TYPE_CHECKING:
    from PIL import Image

Doc = Mapping[str, Any]
READERS = 1
"""Number of the rules below, part of the run key: it grows if a rule changes the fields of a document."""
_ABSENT = (None, "", "nan", "N/A", "NA")
_FEWEST_OPTIONS = 2
_PICTURES = 7
"""Columns of pictures in MMMU."""
_LETTERED = re.compile(r"^\s*\(?([A-Z])[.):]\s*(.*\S)\s*$")
_OPTION_LINE = re.compile(r"^\(?([A-Z])[.)]\s*(.*)$")
_MMSTAR_OPTION = re.compile(r"(?:^|,\s*|\n)([A-Z]):\s*")
_REQUEST = re.compile(r"\APlease answer (?:directly )?with .*\Z")
"""RealWorldQA's own instruction, the last line of its questions."""
_CHOOSES = "Hint: Please answer the question and provide the correct option letter, e.g., A, B, C, D, at the end."
_ANSWERS = "Hint: Please answer the question requiring an answer."


def _question(doc: Doc) -> Fields:
    return Fields(question=_text(doc, "question"))


def _text(doc: Doc, column: str) -> str:
    held = doc.get(column)
    if not isinstance(held, str):
        kind = "is absent" if column not in doc else f"holds {held!r:.80}"
        raise ItemError(f"recipe: column {column!r} {kind}: it must be a text")
    return held


def _hint(doc: Doc) -> str:
    held = doc.get("hint")
    return "" if held in _ABSENT else str(held)


def _of_column(column: str, doc: Doc) -> Fields:
    """Return a question whose options a column lists."""
    return Fields(question=_text(doc, "question"), hint=_hint(doc), options=tuple(read_list(doc, column)))


def _of_columns(columns: Sequence[str], doc: Doc) -> Fields:
    """Return a question with an option in each column; empty ones are left out."""
    options = tuple(str(doc[name]) for name in columns if doc.get(name) not in _ABSENT)
    return Fields(question=_text(doc, "question"), hint=_hint(doc), options=options)


def _unlettered(column: str, doc: Doc) -> Fields:
    """Return a question whose options a column lists with their letters, which are left out."""
    listed = read_list(doc, column)
    found = [_LETTERED.match(option) for option in listed]
    if not all(match and match[1] == letter for match, letter in zip(found, LETTERS, strict=False)):
        return Fields(question=_text(doc, "question"), options=tuple(listed))
    options = tuple(match[2] for match in found if match)
    return Fields(question=_text(doc, "question"), options=options, option_lines=tuple(listed))


def _mmmu(doc: Doc) -> Fields:
    is_open = doc.get("question_type") == "open"
    return Fields(question=_text(doc, "question"), options=() if is_open else tuple(read_list(doc, "options")))


def _mmmu_pro_vision(doc: Doc) -> Fields:
    return Fields(options=tuple(read_list(doc, "options")))


def _mathvision(doc: Doc) -> Fields:
    """Return the question, and in the form of MathVista, as the file of the sources has it (our reading)."""
    question, options = _text(doc, "question"), tuple(read_list(doc, "options"))
    lines = "".join(f"\n({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False))
    choices = f"\nChoices:{lines}" if options else ""
    query = f"{_CHOOSES if options else _ANSWERS}\nQuestion: {question}{choices}"
    return Fields(question=question, query=query, options=options)


def _mathvista(doc: Doc) -> Fields:
    query = doc.get("query")
    if not query:  # the same text, with the hint before the question
        asked, _, hint = mathvista_question(doc, {"shot_type": "step-by-step"}).rpartition("\n")
        query = f"{hint}\n{asked}"
    options = tuple(read_list(doc, "choices")) if doc.get("choices") else ()
    return Fields(question=_text(doc, "question"), query=str(query), options=options)


def _in_lines(doc: Doc) -> Fields:
    """Take the question apart: its text, lines with options, and an instruction after them, which is left out."""
    lines = _text(doc, "question").strip().split("\n")
    if _REQUEST.match(lines[-1].strip()):
        lines.pop()
    options: list[str] = []
    while lines and (match := _OPTION_LINE.match(lines[-1].strip())):
        options.insert(0, match[2])
        lines.pop()
    return Fields(question="\n".join(lines).strip(), options=tuple(options))


def _mmstar(doc: Doc) -> Fields:
    """Take the question apart, whose options follow ``Options:`` in one line or in lines of their own."""
    question, mark, rest = _text(doc, "question").partition("Options:")
    if not mark:
        question, mark, rest = question.partition("Choices:")
    pieces = _MMSTAR_OPTION.split(rest.strip())
    letters, texts = pieces[1::2], pieces[2::2]
    options: list[str] = []
    for letter, text in zip(letters, texts, strict=True):
        if letter == LETTERS[min(len(options), len(LETTERS) - 1)]:
            options.append(text.strip().rstrip(","))
        elif options:  # a colon inside an option
            options[-1] += f", {letter}: {text}"
    if len(options) < _FEWEST_OPTIONS:
        raise ItemError(f"recipe: column 'question' holds no options after 'Options:': {doc['question']!r:.120}")
    return Fields(question=question.strip(), options=tuple(options))


_CHOICE_COLUMNS = tuple(f"choice_{letter}" for letter in "abcd")
_LONG_COLUMNS = tuple(f"option{number}" for number in range(5))
_READERS: tuple[tuple[str, Callable[[Doc], Fields]], ...] = (
    ("mmmu_pro_vision*", _mmmu_pro_vision),
    ("mmmu_*", _mmmu),
    ("mathvision*", _mathvision),
    ("mathvista*", _mathvista),
    ("realworldqa", _in_lines),
    ("videomme*", partial(_unlettered, "options")),
    ("mmstar_oc", partial(_of_columns, LETTERS)),
    ("mmstar*", _mmstar),
    ("ai2d*", partial(_of_column, "options")),
    ("mmbench*", partial(_of_columns, LETTERS)),
    ("blink_*", partial(_of_column, "choices")),
    ("muirbench", partial(_of_column, "options")),
    ("scienceqa*", partial(_of_column, "choices")),
    ("seedbench*", partial(_of_columns, _CHOICE_COLUMNS)),
    ("mvbench_*", partial(_of_column, "candidates")),
    ("mlvu*", _in_lines),
    ("longvideobench*", partial(_of_columns, _LONG_COLUMNS)),
    ("chartqa*", _question),
    ("docvqa*", _question),
    ("infovqa*", _question),
    ("textvqa*", _question),
    ("ocrbench", _question),
    ("hallusion_bench*", _question),
    ("pope*", _question),
    ("mme", _question),
)
"""Readers of documents by patterns of task names; the first that fits counts."""


def reader_of(task: str) -> Callable[[Doc], Fields] | None:
    """Return the function that reads a task's documents as fields; ``None`` for an unknown task."""
    return next((reader for pattern, reader in _READERS if fnmatchcase(task, pattern)), None)


def subtitles_of(doc: Doc, settings: Mapping[str, Any] | None, media: MediaLimits) -> str:
    """Return the subtitles of a video of Video-MME that are on the screen when one of its frames begins.

    Each line is named once, in order, separated by blanks. Frames are those of ``media``: ``fps`` for the length in
    whole seconds, within its numbers of frames. Raises ``MediaError`` if there are subtitles, but no video.
    """
    file = VIDEOS.look_up(f"subtitle/{doc['videoID']}.srt", settings=settings)
    if file is None:
        return ""
    info = probe(*video_of(doc, settings))
    if not info.fps or not info.frames:
        return ""
    most = media.frames or media.max_frames or info.frames
    wanted = round(info.frames / info.fps) * media.fps if media.fps and not media.frames else most
    count = min(max(int(wanted), media.min_frames or 1), most, info.frames)
    times = [number / info.fps for number in uniform_indices(info.frames, count)]
    blocks = read_subtitles(file.read_text(encoding="utf-8-sig", errors="replace"))
    shown = [" ".join(block.lines) for block in blocks if any(block.start <= time < block.end for time in times)]
    return " ".join(dict.fromkeys(line.replace("\\N", " ") for line in shown))


class LaidOut(Struct, frozen=True):
    """The messages of a task's documents by a layout (``api.task.QuestionLayout``)."""

    task: str
    layout: Layout
    media: MediaLimits
    read: Callable[[Doc], Fields]
    settings: Mapping[str, Any] | None = None
    """The task's settings, which name folders of media."""

    def __call__(self, doc: Doc, visuals: Callable[[], Sequence[Any]]) -> list[dict[str, Any]]:
        """Return a user's turn, and the beginning of the answer if the layout has one.

        Raises:
            ItemError: the document has another form than the reader knows, or lacks a picture.
            MediaError: a video that is sent as numbered frames cannot be read.
        """
        media = [visual_to_content(one) for one in self._media(doc, visuals)]
        by_kind: dict[str, list[dict[str, Any]]] = {
            kind: [part for part in media if part["type"] == kind] for kind in ("image", "video")
        }
        by_kind["frame"] = [part for video in by_kind["video"] for part in self._frames(video)]
        fields = self.fields(doc, **{f"{kind}s": len(parts) for kind, parts in by_kind.items()})
        content: list[dict[str, Any]] = []
        for part in render(self.layout, fields):
            if isinstance(part, str):
                content.append({"type": "text", "text": part})
            else:
                content.append(by_kind[part.kind][part.index])
        turns = [{"role": "user", "content": content}]
        if start := answer_start(self.layout, fields):
            turns.append({"role": "assistant", "content": [{"type": "text", "text": start}]})
        return turns

    def fields(self, doc: Doc, images: int = 0, videos: int = 0, frames: int = 0) -> Fields:
        """Return the fields of a document with so many pictures, videos and frames."""
        has_subtitles = self.task.startswith("videomme") and self.task.endswith("_w_subtitle")
        subtitles = subtitles_of(doc, self.settings, self.media) if has_subtitles else ""
        return replace(self.read(doc), images=images, videos=videos, frames=frames, subtitles=subtitles)

    def _media(self, doc: Doc, visuals: Callable[[], Sequence[Any]]) -> list[Any]:
        shown = _mmmu_pictures(doc) if self.task.startswith("mmmu_") and "vision" not in self.task else list(visuals())
        if self.media.double_first and shown:
            shown[0] = doubled(shown[0])
        return shown

    def _frames(self, video: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the frames of a video as pictures if the layout names each of them, and their number is stated."""
        if not names_frames(self.layout, self.media):
            return []
        limits = limits_of(self.media)
        form = Frames(limits.max_frames or MOST_FRAMES).limited(limits)
        part = ChatVideoContent.model_validate(video)
        return [{"type": "image", "url": picture} for picture in read_video(part, form).images()]


MOST_FRAMES = 1024
"""Most frames of a video that are sent as numbered pictures if a recipe states their rate alone."""


def names_frames(layout: Layout | None, media: MediaLimits) -> bool:
    """Return whether videos are sent as numbered pictures, whose number or rate is stated."""
    is_stated = media.frames is not None or media.fps is not None
    return layout is not None and layout.frame != MEDIUM and is_stated


def limits_of(media: MediaLimits) -> RequestLimits:
    """Return the limits in the form for back ends."""
    return RequestLimits(
        min_pixels=media.min_pixels,
        max_pixels=media.max_pixels,
        total_pixels=media.total_pixels,
        fps=media.fps,
        min_frames=media.min_frames if media.frames is None else media.frames,
        max_frames=media.max_frames if media.frames is None else media.frames,
        frame_rule=media.frame_rule,
        tiles=media.tiles,
        tiles_later=media.tiles_later,
        total_tiles=media.tiles_in_all,
    )


def _mmmu_pictures(doc: Doc) -> list[Any]:
    """Return all pictures of a document, in the order of their columns; the texts need not name them."""
    columns = [f"image_{number}" for number in range(1, _PICTURES + 1)]
    return [doc[name].convert("RGB") for name in columns if doc.get(name) is not None]


def doubled(picture: Any) -> Image.Image:
    """Return a picture with twice its width and height, interpolated linearly between pixels."""
    from PIL import Image

    from lmms_eval.media.image import load_rgb

    opened = load_rgb(picture)
    return opened.resize((opened.width * 2, opened.height * 2), Image.Resampling.BILINEAR)
