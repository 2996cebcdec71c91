from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.readers import maps as depth_module
from lmms_eval.tasks.general_bench.readers.maps import read_depth, read_normals
from tests.cases import for_each
from tests.media.test_damage import damage, damaged
from tests.tasks.general_bench.readers.pixel_files import noise, write_frames, write_picture

DEPTH = np.random.default_rng(4).uniform(1, 50, (3, 1, 4, 5)).astype(np.float32)


def npy(array: np.ndarray, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_header(shape: str, kind: str = "<f4") -> bytes:
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@for_each("name", ["disparity", "depth", "arr_0"])
def test_the_array_of_an_archive_is_read(tmp_path, name):
    np.savez(tmp_path / "a.npz", **{name: DEPTH})
    assert np.array_equal(read_depth(tmp_path / "a.npz"), DEPTH[:, 0])


def test_disparity_is_chosen_among_several(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", mask=DEPTH > 2, disparity=DEPTH)
    assert np.array_equal(read_depth(tmp_path / "a.npz"), DEPTH[:, 0])
    np.savez(tmp_path / "b.npz", one=DEPTH, two=DEPTH)
    with pytest.raises(MediaError, match="disparity or depth, but 2 others"):
        read_depth(tmp_path / "b.npz")


@for_each("array", [DEPTH, DEPTH[:, 0], DEPTH[:1, 0], DEPTH.astype(np.float64), np.asfortranarray(DEPTH)])
def test_arrays_with_and_without_channels(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    expected = array[:, 0] if array.ndim == 4 else array
    assert np.array_equal(read_depth(tmp_path / "a.npy"), expected)


def test_one_map_is_one_frame_and_other_channels_do_not_count(tmp_path):
    np.save(tmp_path / "a.npy", DEPTH[0, 0])
    assert np.array_equal(read_depth(tmp_path / "a.npy"), DEPTH[:1, 0])
    np.save(tmp_path / "b.npy", np.concatenate([DEPTH, DEPTH + 1], axis=1))
    assert np.array_equal(read_depth(tmp_path / "b.npy"), DEPTH[:, 0])


def test_pictures_hold_depth_as_it_is(tmp_path):
    array = np.array([[0, 255, 256, 65535]], np.uint16)
    assert read_depth(write_picture(tmp_path / "a.png", array)).tolist() == [[[0, 255, 256, 65535]]]
    with pytest.raises(MediaError, match="grey picture"):
        read_depth(write_picture(tmp_path / "b.png", noise(1, 2, 2, 3)))


def test_a_folder_is_a_video(tmp_path):
    frames = noise(1, 11, 3, 4)
    assert np.array_equal(read_depth(write_frames(tmp_path / "video", frames)), frames)
    np.save(tmp_path / "video" / "11.npy", frames[0])
    with pytest.raises(MediaError, match=r"both \.npy and \.png"):
        read_depth(tmp_path / "video")


def test_frames_of_a_folder_have_one_size(tmp_path):
    write_frames(tmp_path / "video", noise(1, 2, 3, 4))
    write_picture(tmp_path / "video" / "2.png", noise(1, 3, 5))
    with pytest.raises(MediaError, match="one size"):
        read_depth(tmp_path / "video")


def test_a_folder_is_not_read_beyond_the_limit(tmp_path, monkeypatch):
    write_frames(tmp_path / "video", noise(1, 3, 3, 4))
    monkeypatch.setattr(depth_module, "MAX_VALUES", 24)
    with pytest.raises(MediaError, match="more than the 24 values"):
        read_depth(tmp_path / "video")


OPENED: list[str] = []


class Bomb:
    def __reduce__(self):
        return OPENED.append, ("unpickled",)


@for_each("name", ["a.npy", "a.npz"])
def test_nothing_is_unpickled(tmp_path, name):
    array = np.array([Bomb()], dtype=object)
    if name == "a.npy":
        np.save(tmp_path / name, array, allow_pickle=True)
    else:
        np.savez(tmp_path / name, disparity=array)
    with pytest.raises(MediaError, match="not numbers"):
        read_depth(tmp_path / name)
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(MediaError):
        read_depth(tmp_path / name)
    assert not OPENED


@for_each(
    ("content", "message"),
    [
        (npy_header("(1000000, 1000000)"), "numbers are stated"),
        (npy_header("(12000, 12000)") + bytes(100), "numbers are stated"),
        (npy_header("(-3, -3)") + bytes(100), "shape"),
        (npy_header("(3, 3)", "|O") + bytes(100), "not numbers"),
        (npy_header("(3, 3)", "<c16") + bytes(1000), "not numbers"),
        (npy_header("(3, 3)", "<U9") + bytes(1000), "not numbers"),
        (npy_header("(0, 3)") + bytes(100), "shape"),
        (npy_header("(3,)") + bytes(100), "shape"),
        (npy_header("(" * 300 + ")" * 300) + bytes(100), "no readable array"),
        (b"\x93NUMPY\x03\x00" + bytes(20), "version"),
        (npy_header("-" * 9000 + "1") + bytes(100), "no readable array"),
        (b"text of some length", "no readable array"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "no readable array"),
    ],
)
def test_what_is_no_array_is_refused_before_memory_is_taken(tmp_path, content, message):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(MediaError, match=message):
        read_depth(tmp_path / "a.npy")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    """A hundred kilobytes of zeros packed, a hundred megabytes and more unpacked."""
    content = npy_header("(1000, 1000, 1000)", "|u1")
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("depth.npy", "w") as file,
    ):
        file.write(content)
        for _ in range(130):
            file.write(bytes(10**6))
    with pytest.raises(MediaError, match="numbers are stated"):
        read_depth(tmp_path / "a.npz")


def test_normals_of_maps_and_points(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((7, 3)))
    assert read_normals(tmp_path / "a.npy").shape == (7, 3)
    upright = np.full((2, 2, 3), (128, 0, 255), np.uint8)
    found = read_normals(write_picture(tmp_path / "b.png", upright))
    assert found[0, 0].tolist() == pytest.approx([1 / 255, -1, 1], abs=1e-6)
    np.save(tmp_path / "c.npy", np.ones((3, 7)))
    with pytest.raises(MediaError, match="normals are"):
        read_normals(tmp_path / "c.npy")
    (tmp_path / "d.txt").write_text("1 0 0")
    with pytest.raises(MediaError, match=r"npy or \.png"):
        read_normals(tmp_path / "d.txt")


def test_numbers_beyond_single_precision_become_infinite(tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 2), 1e300))
    assert np.isinf(read_depth(tmp_path / "a.npy")).all()


@for_each("name", ["zero.npz", "zero.npy", "zero.png"])
def test_devices_and_absent_files_are_refused(tmp_path, name):
    (tmp_path / name).symlink_to("/dev/zero")
    for path in (tmp_path / name, tmp_path / f"absent-{name}"):
        with pytest.raises(DataError):
            read_depth(path)
    with pytest.raises(MediaError, match="depth is a"):
        read_depth(write_picture(tmp_path / "a.jpg", noise(1, 2, 2)))


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(["npy", "npz"]), hits=damage, cut=st.sampled_from([1.0, 1.0, 0.9, 0.3]))
def test_damage_ends_in_an_array_or_in_our_errors(tmp_path, kind, hits, cut):
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, DEPTH)
    else:
        np.savez_compressed(path, disparity=DEPTH)
    path.write_bytes(damaged(path.read_bytes(), hits, cut))
    try:
        assert read_depth(path).ndim == 3
    except (DataError, MediaError):
        return
