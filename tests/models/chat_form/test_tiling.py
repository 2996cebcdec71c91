import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_eval.models.chat_form.internvl import MEAN, STD, Grid, choose_grid, cut, tensor_of
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ


@for_each(
    ("size", "grid"),
    [((1, 1), (1, 1)), ((448, 448), (1, 1)), ((896, 448), (2, 1)), ((896, 896), (2, 2)), ((10, 12), (3, 4)),
     ((100, 1000), (1, 10)), ((5000, 10), (12, 1))],
)  # fmt: skip
def test_grids(size, grid):
    assert choose_grid(*size) == Grid(*grid)


def test_a_single_tile_has_no_thumbnail():
    assert Grid(1, 1).tiles_with_thumbnail == 1
    assert Grid(3, 2).tiles_with_thumbnail == 7


def test_tiles_come_row_by_row_then_the_whole():
    image = Image.new("RGB", (20, 40))
    image.paste((255, 0, 0), (0, 0, 20, 20))
    image.paste((0, 0, 255), (0, 20, 20, 40))
    tiles = cut(image, tile=16)
    assert choose_grid(20, 40, tile=16) == Grid(1, 2)
    assert [tile.size for tile in tiles] == [(16, 16)] * 3
    assert [tile.getpixel((8, 8)) for tile in tiles[:2]] == [(255, 0, 0), (0, 0, 255)]
    assert tiles[2].getpixel((8, 2)) == (255, 0, 0)
    assert tiles[2].getpixel((8, 14)) == (0, 0, 255)


def test_the_tensor_is_normalised_by_channel():
    image = Image.new("RGB", (2, 3), (0, 51, 255))
    found = tensor_of(cut(image, tile=4, max_tiles=1))
    assert tuple(found.shape) == (1, 3, 4, 4)
    expected = (np.array([0.0, 0.2, 1.0]) - MEAN) / STD
    assert np.allclose(found[0, :, 0, 0], expected, atol=1e-6)


@FUZZ
@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 12))
def test_no_grid_of_allowed_size_is_nearer(width, height, most):
    found = choose_grid(width, height, most)
    assert 1 <= found.tiles <= most
    distance = abs(width / height - found.columns / found.rows)
    every = [(c, r) for c in range(1, most + 1) for r in range(1, most + 1) if c * r <= most]
    assert distance == min(abs(width / height - c / r) for c, r in every)
