"""The script that measures pictures on their way to an API, on a few of them."""

from __future__ import annotations

from benchmarks.pictures import SIZE, run


def test_pictures_go_out_as_their_files() -> None:
    found = run(3, 1, ["column_convert"])
    assert SIZE == (1024, 768)
    assert found["bare"]["request_bytes"] > found["file_bytes"] * 4 / 3
    assert found["this"]["column_convert"]["bytes_ratio_to_base64_of_file"] <= found["bars"]["bytes_ratio"]
    assert set(found["this"]["column_convert"]) == {
        "cpu_ms", "cpu_to_bare", "request_bytes", "bytes_ratio_to_base64_of_file", "lowest_cpu_ms",
    }  # fmt: skip
