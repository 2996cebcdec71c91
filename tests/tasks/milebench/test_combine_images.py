from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.tasks.milebench import combine_images
from lmms_eval.tasks.milebench.data import documents
from tests.tasks.milebench import made


def test_sheets_and_an_annotation_that_names_them(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(3, 2))
    assert combine_images.main(["--data_dir", str(tmp_path), "--dataset_name", "TQA", "--max_img_num", "2"]) == 0
    whole = json.loads((tmp_path / "TQA" / "TQA_combined_2.json").read_text("utf-8"))
    before = json.loads((tmp_path / "TQA" / "TQA.json").read_text("utf-8"))
    assert whole["meta_data"] == before["meta_data"]
    found = [entry["task_instance"].pop("combined_2_images") for entry in whole["data"]]
    assert found == [["0-0.jpg", "0-1.jpg"], ["1-0.jpg", "1-1.jpg"]]
    assert whole["data"] == before["data"]
    with Image.open(tmp_path / "TQA" / "combined_2_images" / "0-0.jpg") as image:
        assert (image.size, image.mode, image.format) == ((1600, 800), "RGB", "JPEG")
    rows = documents("TQA", {"combine_image": 2, "prompt_mode": "index", "data_root": str(tmp_path)}).rows
    assert rows[0]["sheets"] == ["0-0.jpg", "0-1.jpg"]


def test_as_a_script(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(2,))
    words = ["--data_dir", str(tmp_path), "--dataset_name", "TQA", "--max_img_num", "1", "--font_size", "10"]
    run = subprocess.run(
        [sys.executable, combine_images.__file__, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "TQA" / "combined_1_images" / "0-0.jpg").is_file()


def test_a_missing_picture_ends_it_before_the_annotation(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", counts=(2,))
    next((tmp_path / "TQA" / "images").iterdir()).unlink()
    assert combine_images.main(["--data_dir", str(tmp_path), "--dataset_name", "TQA", "--max_img_num", "1"]) == 1
    assert not (tmp_path / "TQA" / "TQA_combined_1.json").exists()


def test_a_data_set_that_is_not_there(tmp_path: Path) -> None:
    assert combine_images.main(["--data_dir", str(tmp_path), "--dataset_name", "No", "--max_img_num", "1"]) == 1
    with pytest.raises(SystemExit):
        combine_images.main(["--data_dir", str(tmp_path), "--dataset_name", "No", "--max_img_num", "0"])
