"""The recipes of ``CONTRIBUTING.md`` name files that are there, and their example runs."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from lmms_eval.evaluator import simple_evaluate
from tests.cases import for_each

ROOT = Path(__file__).parents[1]
RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Four recipes")[2]
NAMED = sorted(set(re.findall(r"[`(]([\w/]+/[\w/]+\.(?:py|md|yaml|toml|tsv))", RECIPES)))


def test_four_recipes() -> None:
    assert re.findall(r"^### Add a (.*)$", RECIPES, re.MULTILINE) == ["benchmark", "back end", "metric", "column"]
    assert len(NAMED) > 20


@for_each("name", [name for name in NAMED if "NAME" not in name])
def test_a_named_file_is_there(name: str) -> None:
    assert (ROOT / name).is_file() or (ROOT / "lmms_eval" / name).is_file()


def test_the_example_of_a_benchmark_gives_full_marks(tmp_path: Path) -> None:
    for language, name in (("yaml", "birds.yaml"), ("python", "utils.py")):
        (block,) = re.findall(rf"^ +```{language}\n(.*?)^ +```$", RECIPES, re.MULTILINE | re.DOTALL)
        (tmp_path / "task").mkdir(exist_ok=True)
        (tmp_path / "task" / name).write_text(textwrap.dedent(block), encoding="utf-8")
    row = {"question": "Which bird?", "options": ["a wren", "an owl"], "image": None}
    rows = [{**row, "answer": letter, "family": family} for letter, family in (("A", "small"), ("B", "large"))]
    (tmp_path / "data" / "birds").mkdir(parents=True)
    lines = "".join(f"{json.dumps(one)}\n" for one in rows)
    (tmp_path / "data" / "birds" / "test.jsonl").write_text(lines, encoding="utf-8")
    found = simple_evaluate(
        tasks=["birds"], model="baseline", model_args="strategy=gold", data_root=str(tmp_path / "data"),
        include_path=str(tmp_path / "task"),
    )  # fmt: skip
    assert found["results"]["birds"]["birds_accuracy,none"] == 1.0
    assert set(found["sub_scores"]["birds"]["birds_accuracy,none"]["family"]) == {"small", "large"}
