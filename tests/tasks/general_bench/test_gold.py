from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval.tasks.general_bench import utils
from lmms_eval.tasks.general_bench.settings import Settings
from tests.tasks.general_bench.demo_kit import CHOICES, SET, copied, edit, rows


def test_gold_of_a_closed_set_is_empty(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Commonsense-Reasoning")

    def close(content: Any) -> None:
        for entry in content["data"]:
            del entry["output"]

    edit(root / SET / "nlp/Commonsense-Reasoning/annotation.json", close)
    given = {"data_root": str(root)}
    assert utils.gold(rows(CHOICES, given)[0], Settings.of(given)) == ""
