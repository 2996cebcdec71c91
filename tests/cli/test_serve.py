from __future__ import annotations

import sqlite3

import pytest

from lmms_eval.cli.main import main
from tests.cases import for_each


@for_each(
    ("words", "part"),
    [
        (["--host", "0.0.0.0"], "tunnel"),
        (["--port", "65536"], "1 to 65535"),
        (["--gpus", "0,0"], "name each GPU once"),
        (["--parallel", "0"], "from 1 on"),
        (["--max_completed_jobs", "0"], "from 1 on"),
        (["--grace", "-1"], "seconds"),
        (["--folder", "/dev/null/x"], "cannot be used"),
        (["--no_such"], "--help"),
        (["--gpus", "a,b"], "nvidia-smi -L"),
        (["--include_path", "/dev/null/tasks"], "the folder does not exist"),
        (["--data_root", "/dev/null/data"], "the folder does not exist"),
        (["--plugins", "no_such_plugin"], "cannot be imported"),
    ],
)
def test_mistakes_are_one_line(words, part, capsys, tmp_path):
    folder = [] if "--folder" in words else ["--folder", str(tmp_path)]
    assert main(["serve", "--port", "0", *folder, *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert part in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["--transport", "http", "--port", "0"]])
def test_tools_over_a_folder_that_cannot_be_used(words, capsys, tmp_path):
    pytest.importorskip("mcp")
    (tmp_path / "file").touch()
    assert main(["mcp", "--folder", str(tmp_path / "file"), *words]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"error: the server's folder {tmp_path / 'file'} cannot be used: File exists\n")


def test_jobs_of_a_newer_version_are_left_alone(capsys, tmp_path):
    path = tmp_path / "jobs.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    assert main(["serve", "--port", "0", "--folder", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1) and "a newer version of lmms_eval" in told.err
    assert [one.name for one in tmp_path.glob("*damaged*")] == []
