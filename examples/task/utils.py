from pathlib import Path

from lmms_eval.tasks._task_utils.media_files import find_media

FOLDER = Path(__file__).parent


def pictures(doc):
    # A path starts beside this file; a picture that the data hold themselves (parquet) comes as it is.
    return [find_media(doc["image"], "image", base_dir=FOLDER)]
