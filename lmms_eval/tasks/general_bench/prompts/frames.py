"""Frames of a video given as pictures: their files, their order, and the ones that are shown."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.media.video import uniform_indices
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.readers.frames import PICTURE_SUFFIXES, files_of


def in_frames(medium: MediaInput) -> bool:
    """Return whether the medium is a video given as pictures: a list of files, or a folder."""
    return medium.kind == "frames" or (medium.kind == "video" and medium.paths[0].is_dir())


def frame_files(medium: MediaInput) -> tuple[Path, ...]:
    """Return the frames in order: the files as given, or the pictures of one folder in natural order.

    Raises:
        MediaError: the folder cannot be read, or holds no picture.
    """
    if len(medium.paths) != 1 or not medium.paths[0].is_dir():
        return medium.paths
    return tuple(files_of(medium.paths[0], PICTURE_SUFFIXES))


def shown(total: int, max_frames: int) -> list[int]:
    """Return the numbers of the frames of a video that are shown: all, or evenly spaced ones from first to last,
    rounded down.
    """
    return uniform_indices(total, min(total, max_frames)) if total else []
