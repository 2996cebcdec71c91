import struct

import numpy as np
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers import points as meshes
from lmms_eval.tasks.general_bench.readers.points import read_mesh
from tests.cases import for_each

SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
PLY = """ply
format {format} 1.0
comment made by hand
element vertex {vertices}
property float x
property uchar red
property float y
property float z
element face {faces}
property list uchar int vertex_indices
{more}end_header
"""


def ply(path, form, faces, more="", behind=b"", vertices=4):
    header = PLY.format(format=form, vertices=vertices, faces=len(faces), more=more).encode()
    if form == "ascii":
        lines = [f"{x} 255 {y} {z}" for x, y, z in SQUARE]
        lines += [" ".join(map(str, (len(face), *face))) for face in faces]
        path.write_bytes(header + "\n".join(lines).encode() + b"\n")
        return path
    order = "<" if "little" in form else ">"
    body = b"".join(struct.pack(f"{order}fBff", x, 255, y, z) for x, y, z in SQUARE)
    body += b"".join(struct.pack(f"{order}B{len(face)}i", len(face), *face) + behind for face in faces)
    path.write_bytes(header + body)
    return path


@for_each("form", ["ascii", "binary_little_endian", "binary_big_endian"])
@for_each(
    ("faces", "triangles"),
    [
        ([(0, 1, 2), (0, 2, 3)], [[0, 1, 2], [0, 2, 3]]),
        ([(0, 1, 2, 3)], [[0, 1, 2], [0, 2, 3]]),
        ([(0, 1, 2), (0, 1, 2, 3)], [[0, 1, 2], [0, 1, 2], [0, 2, 3]]),
        ([(0, 1, 2, 3), (0, 1, 2)], [[0, 1, 2], [0, 2, 3], [0, 1, 2]]),
        ([], []),
    ],
)
def test_ply_in_all_its_forms(tmp_path, form, faces, triangles):
    vertices, found = read_mesh(ply(tmp_path / "a.ply", form, faces))
    assert vertices.tolist() == SQUARE
    assert found.tolist() == triangles


@for_each("faces", [[(0, 1, 2), (0, 2, 3)], [(0, 1, 2), (0, 1, 2, 3)]])
def test_what_stands_behind_the_corners_is_passed_over(tmp_path, faces):
    path = ply(tmp_path / "a.ply", "binary_little_endian", faces, "property ushort mark\n", b"\xff\xff")
    assert read_mesh(path)[1][0].tolist() == [0, 1, 2]


def test_obj_with_textures_negative_numbers_and_polygons(tmp_path):
    path = tmp_path / "a.obj"
    path.write_text("# x\nv 0 0 0\nv 1 0 0 1.0\nvn 0 0 1\nv 1 1 0\nv 0 1 0\nf 1/1/1 2//1 3\nf -4 -2 -1\nf 1 2 3 4\n")
    vertices, triangles = read_mesh(path)
    assert vertices.tolist() == SQUARE
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2], [0, 2, 3]]


@for_each("head", ["OFF\n4 1 0\n", "OFF 4 1 0\n", "OFF4 1 0\n", "# c\nOFF\n\n4 1 0 # n\n"])
def test_off_with_its_headers(tmp_path, head):
    path = tmp_path / "a.off"
    path.write_text(head + "0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3 0.5 0.5 0\n")
    vertices, triangles = read_mesh(path)
    assert vertices.tolist() == SQUARE
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


@for_each(
    ("name", "content"),
    [
        ("a.ply", b"plx\nformat ascii 1.0\nend_header\n"),
        ("a.ply", b"ply\nelement vertex 1\nproperty float x\nend_header\n1\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 9999999999999\nproperty float x\nend_header\n1\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nend_header\n\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nproperty half x\nend_header\n1\n"),
        ("a.ply", b"ply\nformat ascii 1.0\n" + b"comment x\n" * 20_000 + b"end_header\n"),
        ("a.ply", PLY.format(format="ascii", vertices=9_000_000, faces=0, more="").encode() + b"1 1 1 1\n"),
        ("a.ply", PLY.format(format="ascii", vertices=1, faces=1, more="").encode() + b"1 1 1 1\n3 0 0 9\n"),
        ("a.ply", PLY.format(format="ascii", vertices=1, faces=1, more="").encode() + b"1 1 1 1\nx 0 0 9\n"),
        ("a.ply", PLY.format(format="ascii", vertices=1, faces=0, more="").encode() + b"1 one 1 up\n"),
        ("a.ply", PLY.format(format="binary_little_endian", vertices=9_000_000, faces=0, more="").encode() + b"1234"),
        ("a.ply", PLY.format(format="binary_little_endian", vertices=0, faces=2, more="").encode() + b"1234"),
        ("a.off", b"OFF\n999999999 0 0\n0 0 0\n"),
        ("a.off", b"OFF\n-1 0 0\n0 0 0\n"),
        ("a.off", b"0 0 0\n"),
        ("a.off", b"OFF\n"),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n3 0 1 2\n"),
        ("a.off", b"OFF\n1 2 0\n0 0 0\n3 0 0 0\n"),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n3 0 0 99999999999999999999999999\n"),
        ("a.obj", b"v 0 0 0\nf 1 1 99999999999999999999999999\n"),
        ("a.obj", b"v 0 0 0\nf" + b" 1" * 40_000),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n4 0 0 0\n"),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n-1 0 0 0\n"),
        ("a.obj", b"v 1 2 up\n"),
        ("a.obj", b"f 1 2 3\n"),
        ("a.obj", b"v 0 0 0\nf 1 2 3\n"),
        ("a.obj", b""),
        ("a.stl", b"solid"),
    ],
)
def test_damaged_and_boastful_files_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=str(path)):
        read_mesh(path)


def test_a_face_list_that_ends_early_is_refused(tmp_path):
    path = ply(tmp_path / "a.ply", "binary_little_endian", [(0, 1, 2), (0, 1, 2, 3)])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match="ends within its faces"):
        read_mesh(path)


def test_the_number_of_triangles_is_bounded(tmp_path, monkeypatch):
    (tmp_path / "a.obj").write_text("v 0 0 0\nf 1 1 1 1 1\n")
    monkeypatch.setattr(meshes, "MAX_FACES", 2)
    with pytest.raises(DataError, match="more than 2 triangles"):
        read_mesh(tmp_path / "a.obj")
    monkeypatch.setattr(meshes, "MAX_LINES", 1)
    with pytest.raises(DataError, match="more than 1 lines"):
        read_mesh(tmp_path / "a.obj")


def test_a_large_binary_cloud_is_read_at_once(tmp_path):
    path = tmp_path / "a.ply"
    places = np.random.default_rng(0).random((300_000, 3)).astype("<f4")
    head = "ply\nformat binary_little_endian 1.0\nelement vertex 300000\n"
    head += "property float x\nproperty float y\nproperty float z\nend_header\n"
    path.write_bytes(head.encode() + places.tobytes())
    assert np.array_equal(read_mesh(path)[0], places.astype(float))
