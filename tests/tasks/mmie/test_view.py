from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.mmie.data.records import Segment
from lmms_eval.tasks.mmie.view import ViewedPicture, ViewOptions, build_view, in_folder
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ

FULL = ViewOptions("full_text")
segments = st.lists(
    st.builds(
        Segment,
        st.one_of(st.none(), st.text(max_size=3)),
        st.one_of(st.none(), st.sampled_from(["a", "b", "gone"])),
    ),
    max_size=7,
)


def find(image):
    return image if image == "gone" else ViewedPicture(image)


def pictures(n, text="t"):
    return [Segment(f"{text}{number}", f"{text}{number}.png") for number in range(n)]


def test_pictures_are_numbered_over_question_and_answer():
    view = build_view([Segment("q", "a")], [Segment("r", "b"), Segment("s")], find)
    assert view.question == "q\nImage-0: <image>\n"
    assert view.answer == "r\nImage-1: <image>\ns\n"
    assert view.images == ("a", "b")
    assert not view.is_cut


def test_nothing_follows_the_third_picture_and_the_loss_is_counted():
    view = build_view(pictures(1), [*pictures(2), Segment("lost", "gone"), Segment("lost too", "b")], find)
    assert view.answer == "t0\nImage-1: <image>\nt1\nImage-2: <image>\n"
    assert (view.lost_texts, view.lost_images, view.is_cut) == (2, 1, True)


def test_three_question_pictures_leave_the_first_text_only():
    view = build_view(pictures(3), [Segment("first", "x"), Segment("second")], find)
    assert view.answer == "first\n"
    assert (view.lost_texts, view.lost_images) == (1, 1)


def test_full_text_keeps_all_texts_and_skips_nothing():
    view = build_view(pictures(6), [Segment("first", "x"), Segment("second")], find, FULL)
    assert view.answer == "first\nsecond\n"
    assert len(view.images) == 4
    assert view.question.endswith("t4\nt5\n")
    assert (view.lost_texts, view.lost_images, view.is_skipped) == (0, 3, False)


@for_each(("n", "limit", "skipped"), [(4, 4, False), (5, 4, True), (5, 5, False)])
def test_too_many_pictures_skip_the_sample(n, limit, skipped):
    view = build_view(pictures(n), [], find, ViewOptions(max_images=limit))
    assert view.is_skipped is skipped
    assert not view.is_cut


def test_missing_pictures_are_named_and_leave_no_gap():
    view = build_view([Segment("q", "gone"), Segment("r", "a")], [Segment(None, "gone")], find)
    assert view.question == "q\nr\nImage-0: <image>\n"
    assert view.missing == ("gone", "gone")


def test_paths(tmp_path):
    (tmp_path / "a.png").touch()
    finder = in_folder(str(tmp_path))
    assert finder("a.png") == ViewedPicture(f"{tmp_path}/a.png")
    assert finder(f"{tmp_path}/a.png") == ViewedPicture(f"{tmp_path}/a.png")
    assert finder("b.png") == f"{tmp_path}/b.png"
    assert finder("") == ViewedPicture(f"{tmp_path}/")
    assert finder(5) == f"{tmp_path}/5"


def test_pictures_of_the_data_set_lie_elsewhere(tmp_path):
    for name in ("here/a.png", "there/a.png", "there/b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    finder = in_folder(f"{tmp_path}/here", f"{tmp_path}/there")
    assert finder("a.png") == ViewedPicture(f"{tmp_path}/here/a.png")
    assert finder("b.png") == ViewedPicture(f"{tmp_path}/there/b.png")
    assert finder("c.png") == f"{tmp_path}/here/c.png"


@FUZZ
@given(segments, segments, st.sampled_from(["official", "full_text"]), st.integers(3, 5))
def test_nothing_disappears_without_being_counted(question, answer, mode, limit):
    view = build_view(question, answer, find, ViewOptions(mode, limit))
    everything = [*question, *answer]
    there = [segment for segment in everything if segment.image in ("a", "b")]
    assert len(view.images) + view.lost_images == len(there)
    shown = view.question.count("\n") + view.answer.count("\n") - len(view.images)
    lost = sum(segment.text.count("\n") + 1 for segment in answer if segment.text is not None) if view.lost_texts else 0
    wanted = sum(segment.text.count("\n") + 1 for segment in everything if segment.text is not None)
    assert wanted - lost <= shown <= wanted
    if mode == "full_text":
        assert shown == wanted
        assert len(view.images) <= limit
        assert not view.is_skipped
    numbers = [f"Image-{number}: " for number in range(len(view.images))]
    assert [piece for piece in (*view.question_pieces, *view.answer_pieces) if piece in numbers][
        : len(numbers)
    ] == numbers
