"""Finding the media files that documents of the family's tasks name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lmms_eval.errors import MediaError

AUDIO = ("wav", "mp3", "m4a", "aac", "flac", "ogg", "opus", "webm")
VIDEO = ("mp4", "webm", "mkv", "mov", "avi", "flv", "wmv")
AUDIO_FOLDERS = ("audio", "audios", "clips", "datasets/audio", "datasets/audios")
VIDEO_FOLDERS = ("video", "videos", "clips", "datasets/video", "datasets/videos")
"""Sub-folders of a data set's cache folder; those after ``datasets/`` in its folder below that."""


def resolve_media_reference(
    reference: Any,
    media_type: str = "video",
    cache_dir: str | None = None,
    env_vars: Iterable[str] = (),
    extra_subdirs: Iterable[str] = (),
) -> Any:
    """Return the first existing file that a document's reference may mean, else the reference as it is.

    The search covers the folders that ``env_vars`` and ``LMMS_EVAL_MEDIA_ROOT`` name, ``HF_HOME``, and the cache
    folders of the data set. In each it tries the reference and then its base name, with the extension as it is, in
    lower and in upper case. A name without an extension is tried with the usual ones.

    Args:
        reference: the value in the document; blanks at both ends are ignored. A URL, and a value that is not a text, is
            returned unchanged.
        media_type: ``audio``; any other type has the extensions of videos.
        cache_dir: folder of the data set below ``HF_HOME``.
        env_vars: environment variables that name folders to look in first.
        extra_subdirs: sub-folders to look in after each folder.
    """
    if not isinstance(reference, str):
        return reference
    text = reference.strip()
    if not text or text.lower().startswith(("http://", "https://", "data:")):
        return text or reference
    expanded = os.path.expanduser(text)
    if os.path.exists(expanded):
        return expanded
    extensions = AUDIO if media_type == "audio" else VIDEO
    names = dict.fromkeys((expanded, os.path.basename(expanded)))
    subdirs = ("", *extra_subdirs)
    for root in dict.fromkeys(_roots(media_type, cache_dir, env_vars)):
        for subdir in subdirs:
            for name in names:
                for candidate in _spellings(os.path.join(root, subdir, name), extensions):
                    if os.path.exists(candidate):
                        return candidate
    return reference


def _roots(media_type: str, cache_dir: str | None, env_vars: Iterable[str]) -> Iterator[str]:
    home = os.path.expanduser(os.environ.get("HF_HOME") or "~/.cache/huggingface")
    for variable in (*env_vars, "LMMS_EVAL_MEDIA_ROOT"):
        if folder := os.environ.get(variable):
            yield os.path.expanduser(folder)
    yield home
    if not cache_dir:
        return
    cache, datasets = os.path.join(home, cache_dir), os.path.join(home, "datasets", cache_dir)
    yield cache
    yield datasets
    for folder in AUDIO_FOLDERS if media_type == "audio" else VIDEO_FOLDERS:
        parent, _, name = folder.rpartition("/")
        yield os.path.join(datasets if parent else cache, name)


def _spellings(path: str, extensions: Iterable[str]) -> Iterator[str]:
    stem, extension = os.path.splitext(path)
    if extension:
        yield from dict.fromkeys((path, stem + extension.lower(), stem + extension.upper()))
    if extension.lower().lstrip(".") not in {*AUDIO, *VIDEO}:  # none, or the end of a name with dots in it
        for one in extensions:
            yield f"{path}.{one}"
            yield f"{path}.{one.upper()}"


def resolve_cache_dir(cache_dir: str, base_dir: str | None = None) -> str:
    """Expand variables and ``~`` in the path of a folder, and put ``base_dir`` before it if it is relative.

    Variables that are not set stay in the path; nothing else is normalised.
    """
    folder = os.path.expanduser(os.path.expandvars(cache_dir))
    return folder if base_dir is None or os.path.isabs(folder) else os.path.join(base_dir, folder)


def get_cache_dir(config: Mapping[str, Any], sub_dir: str = "videos") -> str:
    """Return a task's media folder, ``HF_HOME/CACHE_DIR/SUB_DIR``.

    Args:
        config: content of the task's YAML, with ``dataset_kwargs.cache_dir``.
        sub_dir: folder of this kind of media.

    Raises:
        KeyError: the YAML has no such setting.
        TypeError: the setting is not a text.
    """
    home = os.path.expanduser(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    return os.path.join(home, config["dataset_kwargs"]["cache_dir"], sub_dir)


class AbsentVideoError(MediaError, FileNotFoundError):
    """No file exists under any of the names that a video may have in a folder."""


def get_video(prefix: str, video_name: object, suffix: str = "mp4") -> str:
    """Return the absolute path of a video; the name may lack its ending, which may be in upper or lower case.

    Args:
        prefix: the folder.
        video_name: its name in the data set.
        suffix: ending of the file, without the dot.

    Raises:
        AbsentVideoError: the file does not exist. It is a ``FileNotFoundError`` too.
    """
    name, ending = str(video_name), suffix.removeprefix(".")
    endings = (f".{each}" for each in (ending, ending.upper(), ending.lower()))
    tried = [os.path.abspath(os.path.join(prefix, name if name.endswith(end) else name + end)) for end in endings]
    for path in tried:
        if os.path.exists(path):
            return path
    raise AbsentVideoError(f"video {name!r}: not there; looked for {', '.join(dict.fromkeys(tried))}")
