"""Video reading, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.load_video import load_video_decord as load_video_decord
from lmms_eval.compat.model_utils.load_video import read_video as read_video
from lmms_eval.compat.model_utils.load_video import read_video_pyav as read_video_pyav
