"""Media for task files and plugins of the family: files are found, videos read, sounds split, pictures encoded."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, get_args

from lmms_eval.compat.helpers import require_package
from lmms_eval.errors import MediaError
from lmms_eval.media import digest
from lmms_eval.media.encode import EncodedImage, ImageFormat, WireOptions, encode_image, wire_image
from lmms_eval.media.image import load_image, to_rgb
from lmms_eval.media.video import Sampling, read_frames

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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

    The search covers the folders that ``env_vars`` and ``LMMS_EVAL_MEDIA_ROOT`` name, ``HF_HOME``, and the folder
    ``cache_dir`` of the data set below it, each with its ``extra_subdirs``. In each it tries the reference and then its
    base name, with the extension as it is, in lower and in upper case. A name without an extension is tried with the
    usual ones: those of sounds for the type ``audio``, else those of videos. Blanks at both ends are ignored. A URL,
    and a value that is not a text, is returned unchanged.
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
    """Return a task's media folder, ``HF_HOME/CACHE_DIR/SUB_DIR``, by the ``dataset_kwargs.cache_dir`` of its YAML.

    Raises ``KeyError`` if the YAML has no such setting, and ``TypeError`` if the setting is not a text.
    """
    home = os.path.expanduser(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    return os.path.join(home, config["dataset_kwargs"]["cache_dir"], sub_dir)


class AbsentVideoError(MediaError, FileNotFoundError):
    """No file exists under any of the names that a video may have in a folder."""


def get_video(prefix: str, video_name: object, suffix: str = "mp4") -> str:
    """Return the absolute path of a video in the folder ``prefix``.

    The name may lack its ending ``suffix``, which may be in upper or lower case. Raises ``AbsentVideoError``, which is
    a ``FileNotFoundError`` too, if the file does not exist.
    """
    name, ending = str(video_name), suffix.removeprefix(".")
    endings = (f".{each}" for each in (ending, ending.upper(), ending.lower()))
    tried = [os.path.abspath(os.path.join(prefix, name if name.endswith(end) else name + end)) for end in endings]
    for path in tried:
        if os.path.exists(path):
            return path
    raise AbsentVideoError(f"video {name!r}: not there; looked for {', '.join(dict.fromkeys(tried))}")


def split_audio(audio_arrays: Any, chunk_lim: int) -> list[Any]:
    """Cut a sound into consecutive pieces of ``chunk_lim`` samples. The last one may be shorter.

    A sound without samples gives no pieces, and so does a negative ``chunk_lim``. Raises ``ValueError`` if
    ``chunk_lim`` is 0.
    """
    if chunk_lim == 0:
        raise ValueError("a sound cannot be cut into pieces of 0 samples: give chunk_lim a positive number")
    return [audio_arrays[start : start + chunk_lim] for start in range(0, len(audio_arrays), chunk_lim)]


def downsample_audio(audio_array: npt.NDArray[Any], original_sr: float, target_sr: float) -> npt.NDArray[np.floating]:
    """Resample a sound as ``librosa.resample`` does by default: soxr in high quality, along the last axis.

    Args:
        audio_array: ``(..., samples)``, floating-point.
        original_sr: samples per second of the input.
        target_sr: samples per second of the result.

    Returns:
        ``(..., ⌈samples · target_sr / original_sr⌉)``, of the same type.

    Raises:
        MissingOptionalDependencyError: the package soxr is not installed; librosa brings it.
    """
    import numpy as np

    if original_sr == target_sr:
        return audio_array
    require_package("soxr", feature="resampling of sounds")
    import soxr

    samples = audio_array.shape[-1]
    length = int(np.ceil(samples * float(target_sr) / original_sr))
    found = np.apply_along_axis(soxr.resample, -1, audio_array, original_sr, target_sr, quality="HQ")[..., :length]
    missing = [(0, 0)] * (found.ndim - 1) + [(0, length - found.shape[-1])]
    return np.asarray(np.pad(found, missing), dtype=audio_array.dtype)


BACKENDS = ("pyav", "torchcodec", "dali")
"""Decoders that a plugin can name; ``lmms_eval.media`` decodes for all of them and chooses the same frames."""


def read_video(
    video_path: Any,
    num_frm: int = 8,
    fps: float | None = None,
    format: str = "rgb24",
    force_include_last_frame: bool = False,
    backend: str | None = None,
) -> npt.NDArray[np.uint8]:
    """Read evenly spaced frames of a video.

    Args:
        video_path: anything that :func:`lmms_eval.media.resolve` takes.
        num_frm: number of frames, the upper bound if ``fps`` is given.
        fps: frames per second to take.
        format: only ``rgb24``.
        force_include_last_frame: end with the video's last frame.
        backend: one of ``BACKENDS``; else that of ``LMMS_VIDEO_DECODE_BACKEND``.

    Returns:
        ``(frames, height, width, 3)``, uint8, RGB; the caller owns it.

    Raises:
        MediaError: the video cannot be found or read.
        ValueError: another ``format`` or ``backend``, or a count or rate that is not positive.
    """
    if format != "rgb24":
        raise ValueError(f"frames come as rgb24, not as {format!r}: convert the array that this function gives")
    wanted = backend or os.environ.get("LMMS_VIDEO_DECODE_BACKEND") or BACKENDS[0]
    if wanted not in BACKENDS:
        raise ValueError(f"unknown video backend {wanted!r}: use one of {', '.join(BACKENDS)}")
    sampling = Sampling(count=num_frm, fps=fps, include_last=force_include_last_frame)
    return read_frames(video_path, sampling).array.copy()


read_video_pyav = read_video
"""The name that plugins use with keyword arguments."""


def load_video_decord(
    video_path: Any, max_frames_num: int, fps: float | None = None, force_include_last_frame: bool = False
) -> npt.NDArray[np.uint8]:
    """Read as :func:`read_video` does, by the name and argument order of its older form. Decord itself is not used.

    A list or tuple of paths means its first entry.
    """
    path = video_path[0] if isinstance(video_path, (list, tuple)) else video_path
    return read_video(path, max_frames_num, fps, force_include_last_frame=force_include_last_frame)


_FORMATS: dict[str, ImageFormat] = {name: name for name in get_args(ImageFormat)} | {"JPG": "JPEG"}
_JPEG_MODES = ("1", "L", "RGB", "CMYK", "YCbCr")

Cache = MutableMapping[Any, str]


def encode_image_to_bytes(
    image: Any,
    *,
    image_format: str = "PNG",
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
) -> bytes:
    """Encode a picture (PIL image, path, ...) in a format (``PNG``, ``JPEG``, ``WEBP``), in its own mode.

    JPEG has no transparency and no palette: such a picture is laid over white. ``quality`` is for JPEG and WebP. Raises
    ``MediaError`` if the picture cannot be read or the format cannot hold its mode, and ``ValueError`` for an unknown
    format.
    """
    name = _format(image_format)
    picture = load_image(image)
    if convert_rgb or (name == "JPEG" and picture.mode not in _JPEG_MODES):
        picture = to_rgb(picture)
    buffer = io.BytesIO()
    try:
        picture.save(buffer, format=name, **({} if quality is None or name == "PNG" else {"quality": quality}))
    except OSError as error:
        raise MediaError(f"a picture of mode {picture.mode} is not written as {name}: pass convert_rgb=True") from error
    return buffer.getvalue()


def encode_image_to_base64(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    image_format: str | None = None,
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Encode a picture (PIL image, path, bytes, ...) in base64.

    Without ``image_format`` the original bytes of a JPEG, PNG or WebP file are kept if possible, and anything else
    becomes PNG. With it the picture is encoded in that format (``PNG``, ``JPEG``, ``WEBP``). Raises ``MediaError`` if
    the picture cannot be read, and ``ValueError`` for an unknown format.
    """
    settings = (image_format, convert_rgb, quality)
    return _kept(cache, image, settings, lambda: _encode(image, *settings).base64)


def encode_image_to_data_url(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    image_format: str | None = None,
    mime_type: str | None = None,
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Put the ``data:`` prefix before :func:`encode_image_to_base64`; ``mime_type`` overrides the media type."""

    def encoded() -> str:
        made = _encode(image, image_format, convert_rgb, quality)
        return f"data:{mime_type or made.mime};base64,{made.base64}"

    return _kept(cache, image, ("data", mime_type, image_format, convert_rgb, quality), encoded)


def encode_image_to_base64_with_size_limit(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    max_size_bytes: int,
    image_format: str | None = None,
    quality: int | None = None,
    convert_rgb: bool = True,  # noqa: ARG001 - as the wire form needs it
    copy_if_pil: bool = True,  # noqa: ARG001 - no picture is changed
    resize_factor: float = 0.75,  # noqa: ARG001 - the largest size that fits is looked for
    min_side: int = 100,  # noqa: ARG001 - likewise
    resample: Any = None,  # noqa: ARG001 - likewise
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Encode a picture in base64 with at most ``max_size_bytes`` bytes, shrunk as far as necessary.

    ``convert_rgb``, ``resize_factor``, ``min_side`` and ``resample`` are accepted and not used: a picture becomes RGB
    if the format requires it, and the largest size that fits is found in another way. Raises ``MediaError`` if the
    picture cannot be read or made to fit, and ``ValueError`` for an unknown format.
    """
    options = WireOptions(
        max_bytes=max_size_bytes, image_format=_format(image_format or "PNG"), quality=quality or WireOptions().quality
    )
    return _kept(cache, image, ("limited", options), lambda: wire_image(image, options=options).base64)


def _kept(cache: Cache | None, image: Any, settings: Hashable, encoded: Callable[[], str]) -> str:
    if cache is None:
        return encoded()
    key = (digest(image), settings)
    if key not in cache:
        cache[key] = encoded()
    return cache[key]


def _encode(image: Any, image_format: str | None, convert_rgb: bool, quality: int | None) -> EncodedImage:
    if image_format is None:
        return wire_image(image, options=WireOptions(quality=quality or WireOptions().quality))
    name = _format(image_format)
    picture = load_image(image)
    data = encode_image(to_rgb(picture) if convert_rgb else picture, name, quality or WireOptions().quality)
    return EncodedImage(f"image/{name.lower()}", base64.b64encode(data).decode("ascii"), len(data))


def _format(name: str) -> ImageFormat:
    found = _FORMATS.get(name.upper())
    if found is None:
        raise ValueError(f"unknown image format {name!r}: use one of {', '.join(_FORMATS)}")
    return found
