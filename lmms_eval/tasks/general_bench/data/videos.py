"""Items of video comprehension (General-Bench specification §2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from lmms_eval.tasks.general_bench.data.drafts import Draft, Source
from lmms_eval.tasks.general_bench.data.field_maps import FieldMap
from lmms_eval.tasks.general_bench.data.forms import form_of
from lmms_eval.tasks.general_bench.data.mapped import read_mapped_item
from lmms_eval.tasks.general_bench.data.media import first_media, media_of, required_media
from lmms_eval.tasks.general_bench.data.records import Record, checked_path
from lmms_eval.tasks.general_bench.data.tubes import frame_boxes, tube_of
from lmms_eval.tasks.general_bench.items import MediaKind
from lmms_eval.tasks.general_bench.readers.boxes import MAX_FRAMES

_VIDEOS: Mapping[str, MediaKind] = MappingProxyType(
    {"video_file_list": "frames", "video_folder": "frames", "video_file": "video", "video_path": "video"}
)
_DEPTHS = "depth"
"""Below a task's folder: depths of its videos, which lie in ``video``."""


def read_video_item(source: Source, fields: FieldMap) -> Draft:
    """Reads an item of the schema that its task's metric goes with.

    Raises:
        DataError: a key is missing or of another kind.
    """
    match form_of(source.facts):
        case "tube" if source.facts.metric == "m_viou":  # action detection and grounding: a flat item
            top = source.top
            media = media_of("video", top, "video_path", source.annotation)
            return Draft("tube", top.text("caption"), media, tube_of(top))
        case "depth":
            return _depth(source)
        case "saliency":
            return read_mapped_item(source, fields)
        case "masks":
            return _segmentation(source)
        case form:
            given = source.top.record("input")
            prompt = given.optional_text("prompt") if form == "flow" else given.text("prompt")
            reference = _answer(source) if source.has_output else None
            return Draft(form, prompt, required_media(_VIDEOS, given, source.annotation), reference)


def _answer(source: Source) -> Any:
    """Reads boxes of a tracked thing, a flow's path, else a text."""
    output = source.output
    match form_of(source.facts):
        case "tube":
            return frame_boxes(output, "answer")
        case "flow":
            return output.path("flow")
    return output.answer("answer" if output.has("answer") else "text")


def _depth(source: Source) -> Draft:
    """Reads an item whose ``input`` and ``output`` are paths, below ``video`` and ``depth``."""
    media = media_of("video", source.top, "input", source.annotation)
    reference = None
    if source.has_output:
        path = checked_path(source.top.values["output"], f"{source.top.where}: `output`")
        parts = PurePosixPath(path).parts
        reference = path if parts[0] == _DEPTHS else str(PurePosixPath(_DEPTHS, path))
    return Draft("depth", "", media, reference)


def _segmentation(source: Source) -> Draft:
    """Reads a mask (COCO run lengths) for each frame, in the order of the output's keys; prompts of referring tasks."""
    given = source.top.record("input")
    media = first_media(_VIDEOS, given, source.annotation)
    if not media:
        raise given.wrong("video_folder", "the folder of a video's frames")
    reference = _masks(source.output) if source.has_output else None
    return Draft("masks", given.optional_text("prompt"), media, reference)


def _masks(output: Record) -> list[Mapping[str, Any] | None]:
    """Reads run lengths by frame, ``None`` where nothing is to be seen."""
    if len(output.values) > MAX_FRAMES:
        raise output.wrong("mask", f"a mask for each of at most {MAX_FRAMES} frames")
    frames = [output.record(name) for name in output.values]
    return [
        None if "mask" in frame.values and not frame.has("mask") else dict(frame.record("mask").values)
        for frame in frames
    ]
