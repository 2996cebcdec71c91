"""Combine the pictures of every sample of a data set into sheets, as the authors' script of this name.

python lmms_eval/tasks/milebench/combine_images.py --data_dir data/MileBench --dataset_name TQA --max_img_num 1
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loguru import logger

sys.path[:1] = [str(Path(__file__).resolve().parents[3])] if __name__ == "__main__" else sys.path[:1]

from lmms_eval.errors import DataError, LmmsEvalError  # noqa: E402 - the package must be found first
from lmms_eval.storage.atomic import replacing  # noqa: E402
from lmms_eval.tasks.milebench.data import read_annotation  # noqa: E402
from lmms_eval.tasks.milebench.sheets import draw_sheet, plan_sheets  # noqa: E402


def main(words: Sequence[str] | None = None) -> int:
    """Write the sheets and ``NAME_combined_N.json``; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", type=Path, default=Path("data/MileBench"), help="root of the data")
    parser.add_argument("--dataset_name", required=True)
    parser.add_argument("--max_img_num", type=int, required=True, metavar="N", help="sheets that a sample may have")
    parser.add_argument("--font_size", type=int, default=8, help="captions are drawn at four times this size")
    given = parser.parse_args(words)
    if given.max_img_num < 1 or given.font_size < 1:
        parser.error("--max_img_num and --font_size must be at least 1")
    try:
        file = combine_dataset(given.data_dir, given.dataset_name, given.max_img_num, given.font_size)
    except LmmsEvalError as error:
        logger.error("{}", error)
        return 1
    logger.info("{} is written, with its sheets in combined_{}_images", file, given.max_img_num)
    return 0


def combine_dataset(root: Path, name: str, max_sheets: int, font_size: int = 8) -> Path:
    """Draw all sheets of ``root/name`` and write a copy of the annotation that names them, last; returns its path.

    Raises:
        DataError: the annotation cannot be used or a file not be written. MediaError: a picture cannot be read.
    """
    folder = root / name
    meta, samples = read_annotation(folder / f"{name}.json")
    data: list[dict[str, Any]] = []
    try:
        for entry in samples:
            instance = dict(entry.get("task_instance") or {})
            images = [folder / "images" / path for path in instance.get("images_path") or ()]
            sheets = plan_sheets(entry["sample_id"], len(images), max_sheets)
            for sheet in sheets:
                with replacing(folder / f"combined_{max_sheets}_images" / sheet.file) as file:
                    draw_sheet(sheet, images, font_size).save(file, format="JPEG")
            instance[f"combined_{max_sheets}_images"] = [sheet.file for sheet in sheets]
            data.append({**entry, "task_instance": instance})
        path = folder / f"{name}_combined_{max_sheets}.json"
        whole = {"meta_data": dict(meta), "data": data}
        with replacing(path) as file:
            file.write(json.dumps(whole, ensure_ascii=False, indent=4).encode("utf-8"))
    except OSError as error:
        raise DataError(f"{folder}: the sheets cannot be written: {error.strerror or error}") from error
    return path


if __name__ == "__main__":
    sys.exit(main())
