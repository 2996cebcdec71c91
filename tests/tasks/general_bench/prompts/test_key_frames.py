from lmms_eval.tasks.general_bench.prompts.replies import MAX_HELD, mask_frames, tube_frames
from tests.cases import for_each

A, B = [0, 0, 10, 10], [4, 8, 10, 20]
SQUARE = [[0, 0, 4, 0, 4, 4]]


@for_each(
    ("value", "found"),
    [
        ([A, None, B], [A, None, B]),
        ([[0, 0, 10, 10, "ball"]], [A]),
        ([{"bbox_2d": [0, 0, 10, 10]}, {"bbox": None}], [A, None]),
        (A, [A]),
        ([], []),
        ([[*A, 0.9], [*A, 0.8]], [A, A]),
        ([A, "none"], None),
        ([[1, 2]], None),
        ("text", None),
        (5, None),
        ({}, None),
    ],
)
def test_a_box_for_each_frame(value, found):
    assert tube_frames(value, 3) == found


NUMBERED = [
    [[1, A], [3, B]],
    [[1, *A], [3, *B]],
    {"1": A, "3": B},
    {"answer": [[1, A], [3, B]]},
    [{"frame": 1, "bbox": A}, {"frame": 3, "bbox_2d": [4, 8, 14, 28]}],
]


@for_each("value", NUMBERED)
def test_between_numbered_frames_boxes_move_evenly(value):
    assert tube_frames(value, 6) == [None, A, [2, 4, 10, 15], B, None, None]


def test_a_box_holds_until_the_frame_without():
    assert tube_frames([[0, A], [3, None], [5, B]], 7) == [A, A, A, None, None, B, None]


def test_frames_beyond_the_video_are_left_out():
    assert tube_frames([[0, A], [9, B]], 2) == [A, None]


def test_without_a_length_the_last_number_ends_the_tube():
    assert tube_frames([[0, A], [2, A]], None) == [A, A, A]
    assert len(tube_frames([[10**12, A]], None)) == 10_000


@for_each("value", [[[0.5, A]], [[-1, A]], [[True, A]], {"x": A}, [[0, "a"]], [[0, A], [1, [2]]]])
def test_what_is_no_numbered_frame(value):
    assert tube_frames(value, 4) is None


def test_masks_hold_until_the_next():
    later = [[1, 1, 5, 1, 5, 5]]
    assert mask_frames([[0, SQUARE], [2, later], [3, None]], 5) == [SQUARE, SQUARE, later, None, None]


def test_a_mask_for_each_frame():
    assert mask_frames([SQUARE, None, [], [[[0, 0], [4, 0], [4, 4]]]], 4) == [SQUARE, None, None, SQUARE]
    assert mask_frames({"masks": [SQUARE]}, 1) == [SQUARE]
    assert mask_frames([[1, 2]], 1) is None


def test_masks_that_would_fill_the_memory_are_no_answer():
    large = [[1] * 1000]
    assert mask_frames([[0, large], [100, None]], 200) is not None
    assert mask_frames([[0, large], [MAX_HELD // 1000, None]], 200_000) is None
