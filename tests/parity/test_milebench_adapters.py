"""The adapters of MileBench see what a wrong product or a wrong vector would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases import for_each
from tests.parity.replay import line_state

PROMPTS = "milebench/units/prompts.jsonl"


def prompt_line(sample_id: Any = 3, /, **item: Any) -> dict[str, Any]:
    instance = {"context": "{image#1}What?", "images_path": ["a.jpg"]}
    sample = {"sample_id": sample_id, "task_instruction_id": 0, "task_instance": instance, "response": 2}
    return {
        "name": "vector", "dataset": "ToyQA", "tokenizer": "char", "max_context_len": 1000, "n_tokens_per_image": 10,
        "combine_image": None, "img_dir": "data/ToyQA/images", "task_instruction": ["Look."], "sample": sample,
        "result": {
            "item": {"sample_id": sample_id, "context": "Look.\n<ImageHere>What?",
                     "raw_img_list": ["data/ToyQA/images/a.jpg"], "response": "2", **item},
        },
    }  # fmt: skip


@for_each(
    ("line", "state"),
    [
        (prompt_line(), "passed"),
        (prompt_line("3"), "passed"),
        (prompt_line("3", sample_id=3), "passed"),
        (prompt_line(sample_id=4), "failed"),
        (prompt_line("3", sample_id="4"), "failed"),
        (prompt_line(response="3"), "failed"),
        (prompt_line(response=2), "failed"),
        (prompt_line(context="Look."), "failed"),
        (prompt_line(raw_img_list=[]), "failed"),
        (prompt_line(more=1), "failed"),
    ],
)
def test_every_part_of_a_prompt_is_compared(tmp_path: Path, line: dict[str, Any], state: str) -> None:
    assert line_state(tmp_path, PROMPTS, line) == state
