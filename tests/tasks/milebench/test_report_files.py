from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench import report
from lmms_eval.tasks.milebench.summary.dataset import summarise
from tests.tasks.milebench.summaries import summary, value
from tests.tasks.milebench.test_report_text import overview


def test_files_hold_what_the_overview_says(tmp_path: Path) -> None:
    found = overview(summary("TQA", [1.0, 0.0]))
    report.write(found, tmp_path / "new")
    assert json.loads((tmp_path / "new" / "report.json").read_text("utf-8")) == json.loads(json.dumps(found.as_dict()))
    assert (tmp_path / "new" / "scores.csv").read_text("utf-8").startswith("kind,name,")
    assert (tmp_path / "new" / "images.csv").read_text("utf-8").startswith("kind,scope,")


def test_pictures_of_the_curve_and_of_needles(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plain = overview(summary("TQA", [1.0, 0.0], 200))
    assert [path.name for path in report.draw(plain, tmp_path)] == [
        "score_by_images.png",
        "score_by_images.svg",
        "score_by_images.pdf",
    ]
    needles = overview(summarise([value(1, needle_depth=0, needle_length=5)], "TextNeedleInAHaystack"))
    drawn = report.draw(needles, tmp_path)
    assert [path.name for path in drawn][3:] == ["needle_grid.png", "needle_grid.svg", "needle_grid.pdf"]
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="file"):
        report.write(overview(summary("TQA", [1.0])), blocked)
