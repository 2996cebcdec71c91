"""Video files of a task, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.cache_folders import get_cache_dir as get_cache_dir
from lmms_eval.compat.video_files import get_video as get_video
