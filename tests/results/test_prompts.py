from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.results.prompts import prompts_text
from tests.cases import for_each

ENTRY: dict[str, Any] = {
    "n": 40,
    "scores": {
        "as given": {"score": 0.625, "low": 0.5, "high": 0.75, "method": "wilson"},
        "terse": {"score": 0.375, "low": None, "high": None, "reason": "n = 1"},
    },
    "mean": 0.5,
    "these": {"low": 0.4375, "high": 0.5625, "method": "t"},
    "like_these": {"low": None, "high": None, "reason": "fewer than 3 prompts"},
}


def test_the_scores_of_a_task_are_a_table() -> None:
    document = {"prompt_variants": {"quiz": {"variants": {}, "metrics": {"acc,none": ENTRY}}}}
    assert prompts_text(document, "quiz") == (
        "prompts: acc,none (40 documents)\n\n"
        "|         Prompt         |Score|        CI95        |\n"
        "|------------------------|----:|--------------------|\n"
        "|as given                |0.625|[0.5000, 0.7500]    |\n"
        "|terse                   |0.375|n = 1               |\n"
        "|mean, these prompts     |0.500|[0.4375, 0.5625]    |\n"
        "|mean, prompts like these|0.500|fewer than 3 prompts|"
    )
    assert prompts_text(document, "other") == prompts_text({}, "quiz") == ""


@for_each("part", [None, [], "x", {"quiz": 1}, {"quiz": {"metrics": []}}, {"quiz": {"metrics": {"acc": 1}}}])
def test_parts_of_strangers_do_no_harm(part: Any) -> None:
    assert isinstance(prompts_text({"prompt_variants": part}, "quiz"), str)


def test_a_macro_mean_keeps_its_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variants = tmp_path / "v.yaml"
    variants.write_text("- {name: a, pre_prompt: One. }\n- {name: b, post_prompt: Two.}\n")
    arguments = [
        "--model",
        "baseline",
        "--model_args",
        "strategy=gold",
        "--tasks",
        "megabench_demo",
        "--log_samples",
    ]
    assert main([*arguments, "--prompt_variants", str(variants), "--output_path", str(tmp_path / "out")]) == 0
    (file,) = (tmp_path / "out").glob("*_results.json")
    document = json.loads(file.read_text())
    found = document["prompt_variants"]["megabench_demo"]["metrics"]["macro_mean,none"]
    assert found["mean"] == pytest.approx(document["results"]["megabench_demo"]["macro_mean,none"])
    assert found["scores"]["a"]["low"] == document["intervals"]["megabench_demo@a"]["macro_mean,none"]["low"]
    assert 0 < found["these"]["low"] < found["mean"] <= found["these"]["high"] == 1
    assert found["like_these"] == found["these"] and found["variance"]["prompts"] == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "out"), "megabench_demo"]) == 0
    assert "prompts: macro_mean,none (59 documents)" in capsys.readouterr().out
