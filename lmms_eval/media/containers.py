"""Opening files of videos and sounds: only formats that hold what they show."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.media.reference import MediaRef

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,av1,ivf,obu,gif,apng,flv,asf,ogg,"
    "mxf,nut,dv,mjpeg,yuv4mpegpipe,rm,vc1,h263,"
    "wav,w64,mp3,flac,aac,aiff,au,caf,amr,amrnb,amrwb,ac3,eac3,ape,wv,tta,mpc,mpc8,gsm,voc,dts,truehd,xwma"
)
"""FFmpeg's names of formats. Playlists and the like (hls, concat, dash) are none of them: they make FFmpeg open further
files and addresses."""


def open_container(ref: MediaRef) -> Any:
    """A video or sound, opened by PyAV: a file, bytes, or an address to fetch.

    Raises:
        av.FFmpegError: it is none of ``FORMATS``, whatever its name, or damaged.
        MediaError: the bytes cannot be read.
        OSError: the file cannot be opened.
    """
    import av

    source: Any = str(ref.path) if ref.kind == "path" else io.BytesIO(ref.read_bytes())
    return av.open(source, options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})
