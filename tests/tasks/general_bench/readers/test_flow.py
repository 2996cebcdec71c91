from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.readers.maps import read_flow
from tests.cases import for_each
from tests.media.test_damage import damage, damaged
from tests.tasks.general_bench.readers.pixel_files import (
    flo_header,
    noise,
    png_bytes,
    write_flo,
    write_flow_png,
    write_picture,
)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 20, (*shape, 2))


def test_a_flo_file_is_read_row_by_row(tmp_path):
    flow = drawn(1, 3, 5).astype(np.float32)
    assert np.array_equal(read_flow(write_flo(tmp_path / "a.flo", flow)), flow)


def test_a_picture_holds_sixty_fourths_of_a_pixel_in_red_and_green(tmp_path):
    flow = drawn(1, 7, 5)
    found = read_flow(write_flow_png(tmp_path / "A.PNG", flow))
    assert np.array_equal(found, np.round(flow * 64) / 64)
    assert found[0, 0, 0] != found[0, 0, 1]


def test_the_third_channel_is_not_looked_at(tmp_path):
    flow = drawn(1, 4, 4)
    found = [read_flow(write_flow_png(tmp_path / f"{third}.png", flow, third)) for third in (0, 1, 65535)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@for_each("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(tmp_path, value):
    flow = drawn(1, 3, 5)
    flow[1, 2, 0] = value
    with pytest.raises(MediaError, match="not finite"):
        read_flow(write_flo(tmp_path / "a.flo", flow))


@for_each(
    ("content", "message"),
    [
        (flo_header(2**31 - 1, 2**31 - 1), "pixels"),
        (flo_header(-1, -1) + bytes(8), "pixels"),
        (flo_header(0, 5), "pixels"),
        (flo_header(8000, 8000), "instead of the 512000012"),
        (flo_header(2, 2) + bytes(31), "instead of the 44"),
        (flo_header(2, 2) + bytes(33), "instead of the 44"),
        (b"PIEX" + flo_header(1, 1)[4:] + bytes(8), "no .flo file"),
        (b"PIEH", "cut short"),
    ],
)
def test_what_is_no_flo_file_is_refused(tmp_path, content, message):
    (tmp_path / "a.flo").write_bytes(content)
    with pytest.raises(MediaError, match=message):
        read_flow(tmp_path / "a.flo")


def test_pictures_of_eight_bits_or_one_channel_are_refused(tmp_path):
    for name, array in (("a", noise(1, 3, 3, 3)), ("b", noise(1, 3, 3).astype(np.uint16))):
        with pytest.raises(MediaError, match="three channels of 16 bits"):
            read_flow(write_picture(tmp_path / f"{name}.png", array))


def test_giant_and_cut_pictures_are_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(png_bytes(60_000, 60_000, b""))
    with pytest.raises(MediaError, match="pixels"):
        read_flow(tmp_path / "a.png")
    whole = write_flow_png(tmp_path / "b.png", drawn(1, 40, 40)).read_bytes()
    (tmp_path / "b.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MediaError, match="no readable picture"):
        read_flow(tmp_path / "b.png")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"text")
    with pytest.raises(MediaError, match=r"\.flo or a 16-bit"):
        read_flow(tmp_path / "a.npy")
    (tmp_path / "a.flo").mkdir()
    (tmp_path / "zero.flo").symlink_to("/dev/zero")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for name in ("a.flo", "zero.flo", "zero.png", "absent.flo"):
        with pytest.raises(DataError):
            read_flow(tmp_path / name)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(["flo", "png"]), hits=damage, cut=st.sampled_from([1.0, 1.0, 0.9, 0.3]))
def test_damage_ends_in_a_flow_or_in_our_errors(tmp_path, kind, hits, cut):
    path: Path = tmp_path / f"a.{kind}"
    (write_flo if kind == "flo" else write_flow_png)(path, drawn(1, 8, 8))
    path.write_bytes(damaged(path.read_bytes(), hits, cut))
    try:
        assert np.isfinite(read_flow(path)).all()
    except (DataError, MediaError):
        return
