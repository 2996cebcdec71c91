"""Subtitles that stand on the screen in a sampled frame."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.videomme.utils import ALL_FRAMES, TextBlock, read, shown
from tests.cases import for_each


def block(number: int, times: str, *lines: str, tagged: bool = True) -> str:
    texts = [f'<font color="white" size=".72c">{line}</font>' if tagged else line for line in lines]
    return "\n".join([str(number), times, *texts])


FILE = "\n\n".join(
    [
        block(2, "00:00:02,500 --> 00:00:04,000", "second"),
        block(1, "00:00:00,000 --> 00:00:02,500", "first", "below it"),
        block(3, "00:00:04,010 --> 00:00:04,050", "between two frames"),
    ]
)


def test_blocks_come_in_the_order_of_time() -> None:
    assert [one.lines for one in read(FILE)] == [("first", "below it"), ("second",), ("between two frames",)]
    assert read(FILE)[1] == TextBlock(2.5, 4.0, ("second",))


def test_a_block_is_shown_if_a_sampled_frame_falls_into_it() -> None:
    assert shown(read(FILE), frames=100, rate=10, sampled=100) == ["first", "second"]
    assert shown(read(FILE), frames=100, rate=10, sampled=2) == ["first"]
    assert shown(read(FILE), frames=1000, rate=100, sampled=ALL_FRAMES) == ["first", "second", "between two frames"]


def test_untagged_lines_count_where_no_line_is_tagged() -> None:
    plain = block(1, "00:00:00,000 --> 00:00:09,000", "plain", tagged=False)
    assert [one.lines for one in read(plain)] == [("plain",)]
    assert "plain" not in shown(read(f"{FILE}\n\n{plain}"), 100, 10, 32)


@for_each("text", ["", "\n\n", "1\nno times\ntext", FILE.replace("\n", "\r\n"), "1\n00:00:00,000 --> x"])
def test_what_has_no_times_is_passed_over(text: str) -> None:
    assert len(read(text)) in (0, 3)


@given(st.text(alphabet="0123456789:,.-> \n<font>/\r", max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert all(one.start >= 0 for one in read(text))
