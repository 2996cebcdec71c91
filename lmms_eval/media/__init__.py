"""Pictures, videos and sounds: the only package that finds, hashes, decodes, samples, resizes and encodes them.

Every function takes any form of media that a task may provide (path, URL, data URL, bytes, PIL image, hub feature,
sound mapping). Errors are :class:`lmms_eval.errors.MediaError` with the name of the source. Heavy libraries are
imported when they are first used.
"""

from __future__ import annotations

from lmms_eval.media.audio import Audio, EncodedAudio, audio_seconds, encode_wav, load_audio, wire_audio
from lmms_eval.media.encode import EncodedImage, WireOptions, encode_image, image_url, wire_image
from lmms_eval.media.image import (
    Bounds,
    ImageHeader,
    fit,
    flatten_alpha,
    header,
    load_image,
    load_preview,
    load_rgb,
    shrink,
    to_rgb,
)
from lmms_eval.media.reference import MediaRef, digest, resolve
from lmms_eval.media.video import FrameSampling, VideoFrames, probe, read_frames, sample_count, uniform_indices
from lmms_eval.media.video_file import VideoInfo

__all__ = [
    "Audio",
    "Bounds",
    "EncodedAudio",
    "EncodedImage",
    "FrameSampling",
    "ImageHeader",
    "MediaRef",
    "VideoFrames",
    "VideoInfo",
    "WireOptions",
    "audio_seconds",
    "digest",
    "encode_image",
    "encode_wav",
    "fit",
    "flatten_alpha",
    "header",
    "image_url",
    "load_audio",
    "load_image",
    "load_preview",
    "load_rgb",
    "probe",
    "read_frames",
    "resolve",
    "sample_count",
    "shrink",
    "to_rgb",
    "uniform_indices",
    "wire_audio",
    "wire_image",
]
