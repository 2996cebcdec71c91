from __future__ import annotations

import os

import pytest

from lmms_eval.utils.files import read_plain, read_plain_text


def test_a_regular_file_is_read_as_a_whole_links_too(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == b"\xef\xbb\xbfa\r\nb\rc\n"
    assert read_plain_text(tmp_path / "file", "utf-8-sig") == "a\nb\nc\n"
    assert read_plain_text(tmp_path / "file", "utf-8-sig") == (tmp_path / "file").read_text("utf-8-sig")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place, message in ((tmp_path / "pipe", "regular"), ("/dev/zero", "regular"), (tmp_path, "directory")):
        with pytest.raises(OSError, match=message):
            read_plain(place)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "absent")


def test_large_files_are_refused_unread(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_plain(tmp_path / "file", most=5) == b"12345"
    with pytest.raises(OSError, match="Larger than 4 bytes"):
        read_plain(tmp_path / "file", most=4)
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="Larger"):
        read_plain(tmp_path / "sparse")
