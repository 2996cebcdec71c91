"""Files that options name and that are none: pipes, which wait for ever, devices, which never end, giants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import LmmsEvalError
from lmms_eval.judges.providers import RecordedJudge
from lmms_eval.models.replay import SamplesBook, read_submission
from lmms_eval.results.baseline import read_presets
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.judge_texts import texts_of
from lmms_eval.tasks.megabench import submission
from lmms_eval.tasks.megabench.geocoding import GeocodeTable
from lmms_eval.tasks.mmie.scores_file import read_scores
from lmms_eval.utils.prices import read_prices

READERS: dict[str, Callable[[Path], Any]] = {
    "--judge_model replay:": lambda path: RecordedJudge(str(path)),
    "--model replay": SamplesBook,
    "--model replay, submission": read_submission,
    "--baseline_presets": read_presets,
    "--geocode_table": GeocodeTable.read,
    "--human_scores": lambda path: list(read_scores(path)),
    "--judge_prompts": texts_of,
    "--prices": lambda path: read_prices(str(path)),
    "results": read_json,
    "submission": submission.read_submission,
}


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    signal.alarm(20)  # ends the tests: a reader that waits holds the interpreter
    yield
    signal.alarm(0)


@pytest.fixture(params=["pipe.json", "pipe.csv", "zero", "tty", "giant", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    if request.param.startswith("pipe"):
        os.mkfifo(path)
    elif request.param == "giant":
        with open(path, "wb") as file:
            file.truncate(1 << 42)
    elif request.param == "folder":
        path.mkdir()
    else:
        path.symlink_to(f"/dev/{request.param}")
    return path


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_refuses_what_is_no_file(place: Path, reader: str) -> None:
    with pytest.raises(LmmsEvalError, match=place.name):
        READERS[reader](place)
