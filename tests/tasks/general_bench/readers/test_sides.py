from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.sides import brief, finite, prediction_of, reference_of
from tests.tasks.general_bench.measures.region_items import item


def test_faults_are_told_by_side(tmp_path: Path):
    one = item(None, tmp_path)
    assert isinstance(prediction_of(one).refuse("is odd"), UnreadableAnswer)
    error = reference_of(one).refuse("is odd")
    assert not isinstance(error, UnreadableAnswer)
    assert str(error) == f"{tmp_path.name}, item 1: the reference is odd"


def test_files_are_regular(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    one = item(None, tmp_path)
    assert prediction_of(one).file("file") == reference_of(one).file("file") == tmp_path / "file"
    for name in ("/dev/zero", ".", "missing"):
        with pytest.raises(UnreadableAnswer):
            prediction_of(one).file(name)
    with pytest.raises(MediaError):
        reference_of(one).file("missing")


def test_errors_inside_become_those_of_the_side():
    for error in (DataError("odd"), MediaError("odd")):
        with pytest.raises(UnreadableAnswer, match="cannot be used: odd"), prediction_of(item(None)).reading():
            raise error
    with pytest.raises(UnreadableAnswer, match=r"^odd$"), prediction_of(item(None)).reading():
        raise UnreadableAnswer("odd")


def test_finite_numbers():
    assert [finite(value) for value in (1, 2.5, True, "1", None, float("nan"), float("inf"), 10**400)] == [
        1.0, 2.5, None, None, None, None, None, None,
    ]  # fmt: skip


def test_values_in_messages_are_short():
    assert brief([1] * 9) == "a list of 9"
    assert brief({"a": 1}) == "a dictionary of 1"
    assert brief(10**5000) == "an integer of more than 77 digits"
    assert len(brief("x" * 1000)) == 80
