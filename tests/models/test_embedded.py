"""The model that the package ships, asked through the command line: a regression test of the whole path.

``embedded_answers.json`` holds the answers on ``megabench_demo`` to the sample, the score of each and the macro mean:
float32, greedy. After training a new model: ``python tests/models/test_embedded.py`` writes it anew.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.models.hf.options import EMBEDDED, model_location
from tests.cases import for_each
from tests.faults.command import in_process

STORED = Path(__file__).with_name("embedded_answers.json")
FOLDER = Path(model_location(EMBEDDED))
MOST_BYTES = 2_000_000
TOLERANCE = 1e-9


def evaluate(out: Path, batch_size: int, *more: str) -> dict[str, Any]:
    """Run the command with ``more`` options; return the macro mean, and answer and score by row id."""
    words = [
        "--model", "hf", "--model_args", f"pretrained=embedded,dtype=float32,device=cpu,batch_size={batch_size}",
        "--tasks", "megabench_demo", "--gen_kwargs", "max_new_tokens=96", "--output_path", str(out), "--log_samples",
        *more,
    ]  # fmt: skip
    with chdir(out):
        done = in_process(*words, HF_HUB_OFFLINE="1")
    assert done.code == 0, done.err[-2000:]
    (results,) = out.glob("*/*_results.json")
    (samples,) = out.glob("*/*_samples_megabench_demo.jsonl")
    macro_mean = json.loads(results.read_text())["results"]["megabench_demo"]["macro_mean,none"]
    rows = {}
    for line in samples.read_text().splitlines():
        sample = json.loads(line)
        rows[sample["doc"]["id"]] = {
            "task": sample["doc"]["task_name"],
            "answer": sample["filtered_resps"],
            "score": sample["macro_mean"]["query"],
        }
    return {"macro_mean": macro_mean, "samples": rows}


@for_each("batch_size", [1, 8])
def test_every_answer_and_the_macro_mean_are_the_stored_ones(tmp_path: Path, batch_size: int) -> None:
    stored = json.loads(STORED.read_text())
    found = evaluate(tmp_path, batch_size)
    assert found["samples"].keys() == stored["samples"].keys()
    for row, expected in stored["samples"].items():
        assert found["samples"][row] == expected, f"row {row} of {expected['task']}"
    assert found["macro_mean"] == pytest.approx(stored["macro_mean"], abs=TOLERANCE)


def test_the_first_answers_are_the_stored_ones(tmp_path: Path) -> None:
    stored = json.loads(STORED.read_text())["samples"]
    found = evaluate(tmp_path, 4, "--limit", "8")["samples"]
    assert len(found) == 8
    assert found == {row: stored[row] for row in found}


def test_the_stored_scores_are_far_from_chance_and_differ() -> None:
    stored = json.loads(STORED.read_text())
    by_task: dict[str, list[float]] = {}
    for sample in stored["samples"].values():
        by_task.setdefault(sample["task"], []).append(sample["score"])
    means = [sum(scores) / len(scores) for scores in by_task.values()]
    assert stored["macro_mean"] == pytest.approx(sum(means) / len(means), abs=TOLERANCE)
    assert stored["macro_mean"] > 0.5
    for task in ("demo_read_word", "demo_read_sign", "demo_which_side", "demo_name_colour", "demo_count_circles"):
        assert sum(by_task[task]) / len(by_task[task]) > 0.8, task
    assert sum(mean > 0.8 for mean in means) >= 5 and min(means) < 0.2


def test_small_enough_for_the_package_and_half_precision_on_disk() -> None:
    from safetensors.torch import load_file

    weights = FOLDER / "model.safetensors"
    assert weights.stat().st_size <= MOST_BYTES
    assert {str(value.dtype) for value in load_file(weights).values()} == {"torch.float16"}
    assert not list(FOLDER.glob("*.py")), "no code is loaded from the folder"


def test_only_the_bare_word_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / EMBEDDED).mkdir()
    monkeypatch.chdir(tmp_path)
    assert FOLDER.is_dir() and FOLDER.parents[1].name == "lmms_eval"
    assert model_location("./embedded") == "./embedded"
    assert model_location("someone/embedded") == "someone/embedded"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(evaluate(Path(folder), 8), indent=1, ensure_ascii=False)
    STORED.write_text(text + "\n", encoding="utf-8")
