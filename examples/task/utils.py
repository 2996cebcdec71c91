from pathlib import Path

from lmms_eval.tasks._task_utils.media_files import find_media

FOLDER = Path(__file__).parent


def pictures(doc):
    # A path is relative to this file's folder; a picture that the data contain (parquet) is passed on as it is.
    return [find_media(doc["image"], "image", base_dir=FOLDER)]
