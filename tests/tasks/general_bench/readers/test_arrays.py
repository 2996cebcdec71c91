"""Arrays from ``.npy`` files, honest and not."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.pictures import label_map
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, read_array
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import item

PLAIN = "{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
HEADERS = {
    "signs": "-" * 9000 + "1",
    "brackets": "(" * 5000,
    "quotation": "{'descr': '<i4', 'shape': (1,), '",
    "attributes": "a" + ".a" * 4000,
    "sum": "1" + "+1" * 4000,
    "large": PLAIN.format(descr="'<i4'", shape=f"({10**14}, {10**10}, {10**10})"),
    "negative": PLAIN.format(descr="'<i4'", shape="(-1,)"),
    "words": PLAIN.format(descr="'<i4'", shape="('a',)"),
    "digits": PLAIN.format(descr="'<i4'", shape=f"({'9' * 5000},)"),
    "objects": PLAIN.format(descr="'|O'", shape="(1,)"),
    "fields": PLAIN.format(descr="'<i4,<i4'", shape="(1,)"),
}


def write_npy(path: Path, header: str) -> Path:
    content = header.encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content) + 1) + content + b"\n" + bytes(64))
    return path


def test_read_array_keeps_the_type(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.int16).reshape(2, 3))
    found = read_array(tmp_path / "a.npy")
    assert found.dtype == np.int16
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


@for_each("name", HEADERS)
def test_headers_that_lie_are_refused(name: str, tmp_path: Path):
    path = write_npy(tmp_path / "a.npy", HEADERS[name])
    with pytest.raises(MediaError):
        read_array(path)
    with pytest.raises(UnreadableAnswer):  # a wrong answer, not a task without a score
        label_map("a.npy", prediction_of(item(None, tmp_path)))


def test_types_and_numbers_are_bounded(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    assert read_array(tmp_path / "a.npy", most=6).shape == (2, 3)
    with pytest.raises(MediaError, match="5 are read"):
        read_array(tmp_path / "a.npy", most=5)
    with pytest.raises(MediaError, match="type float64"):
        read_array(tmp_path / "a.npy", "iu")
    with pytest.raises(DataError):
        read_array(tmp_path / "none.npy")


def test_headers_of_python_2_give_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder):
    path = write_npy(tmp_path / "a.npy", PLAIN.format(descr="'<i4'", shape="(2L,)"))
    assert read_array(path).tolist() == [0, 0]
    assert not recwarn.list
