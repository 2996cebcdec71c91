"""The pictures of GQA lie in a part of their own and are looked up by id."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.errors import ItemError
from lmms_eval.tasks.gqa.utils import doc_to_visual

FEATURES = b'{"info": {"features": {"id": {"dtype": "string", "_type": "Value"}, "image": {"_type": "Image"}}}}'


@pytest.fixture
def data_root(tmp_path: Path) -> str:
    rows = []
    for name, colour in (("n1", "#ff0000"), ("n2", "#0000ff")):
        held = io.BytesIO()
        Image.new("RGB", (4, 3), colour).save(held, "PNG")
        rows.append({"id": name, "image": {"bytes": held.getvalue(), "path": f"{name}.png"}})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({b"huggingface": FEATURES})
    folder = tmp_path / "lmms-lab-encoder" / "GQA" / "testdev_balanced_images"
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "testdev-00000-of-00001.parquet")
    return str(tmp_path)


def test_a_picture_is_found_by_its_id(data_root: str) -> None:
    (picture,) = doc_to_visual({"imageId": "n2"}, {"data_root": data_root})
    assert picture.getpixel((0, 0)) == (0, 0, 255)


def test_a_picture_that_is_not_there_fails_its_question(data_root: str) -> None:
    with pytest.raises(ItemError, match="'n3'"):
        doc_to_visual({"imageId": "n3"}, {"data_root": data_root})
