"""Video files by the names that data sets give them."""

from __future__ import annotations

import os

from lmms_eval.errors import MediaError


class AbsentVideoError(MediaError, FileNotFoundError):
    """None of the names under which a video may lie in a folder exists."""


def get_video(prefix: str, video_name: object, suffix: str = "mp4") -> str:
    """Return the absolute path of a video; its ending may be missing in the name, and in upper or lower case.

    Args:
        prefix: the folder.
        video_name: its name in the data set.
        suffix: ending of the file, without the dot.

    Raises:
        AbsentVideoError: there is no such file; it is a ``FileNotFoundError`` too.
    """
    name, ending = str(video_name), suffix.removeprefix(".")
    endings = (f".{each}" for each in (ending, ending.upper(), ending.lower()))
    tried = [os.path.abspath(os.path.join(prefix, name if name.endswith(end) else name + end)) for end in endings]
    for path in tried:
        if os.path.exists(path):
            return path
    raise AbsentVideoError(f"video {name!r}: not there; looked for {', '.join(dict.fromkeys(tried))}")
