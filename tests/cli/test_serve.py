from __future__ import annotations

import pytest

from lmms_eval.cli.main import main


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--host", "0.0.0.0"], "tunnel"),
        (["--port", "65536"], "1 to 65535"),
        (["--gpus", "0,0"], "each stands once"),
        (["--parallel", "0"], "from 1 on"),
        (["--max_completed_jobs", "0"], "from 1 on"),
        (["--grace", "-1"], "seconds"),
        (["--folder", "/dev/null/x"], "cannot be used"),
        (["--no_such"], "--help"),
    ],
)
def test_mistakes_are_one_line(words, part, capsys, tmp_path):
    folder = [] if "--folder" in words else ["--folder", str(tmp_path)]
    assert main(["serve", "--port", "0", *folder, *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert part in told.err
    assert told.err.count("\n") == 1
