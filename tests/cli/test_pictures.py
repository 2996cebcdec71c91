from __future__ import annotations

import base64
import io
import os
import re
from pathlib import Path

from PIL import Image

from lmms_eval.cli.show import LONGEST_SIDE, escape_sequence, protocol, show_pictures, thumbnail
from tests.cases import for_each


@for_each(
    ("environ", "how"),
    [
        ({"KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}, None),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_pictures_are_shown_where_the_terminal_says_so(environ: dict[str, str], how: str | None) -> None:
    assert protocol(environ, is_terminal=True) == how
    assert protocol(environ, is_terminal=False) is None


def test_thumbnails_are_small(tmp_path: Path) -> None:
    Image.new("RGBA", (2000, 100), (1, 2, 3, 4)).save(tmp_path / "x.png")
    data = thumbnail(tmp_path / "x.png")
    assert data is not None
    assert Image.open(io.BytesIO(data)).size == (LONGEST_SIDE, 26)


def test_what_is_no_picture_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("x.png", "absent.png", "pipe", ".", "a\0b", "n" * 300):
        assert thumbnail(tmp_path / name) is None


def test_escape_sequences_hold_the_pixels_and_nothing_else() -> None:
    png = bytes(range(256)) * 40
    kitty = escape_sequence("kitty", png)
    chunks = re.findall(r"\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\", kitty)
    assert base64.b64decode("".join(chunk for _, chunk in chunks)) == png
    assert [keys for keys, _ in chunks] == ["a=T,f=100,q=2,m=1", "m=1", "m=1", "m=0"]
    found = re.fullmatch(r"\x1b\]1337;File=inline=1;size=10240:([A-Za-z0-9+/=]*)\x07", escape_sequence("iterm", png))
    assert found
    assert base64.b64decode(found[1]) == png


def test_nothing_is_written_where_nobody_looks(tmp_path: Path, capsys) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    show_pictures([str(tmp_path / "x.png")])
    assert capsys.readouterr().out == ""
