"""A whole run: what a package or data is lacking for is unscored, and the others are scored."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lmms_eval.evaluator import simple_evaluate


def test_prompts_are_scored_or_unscored(tmp_path: Path) -> None:
    stated = [
        ("punctuation:no_comma", {}),
        ("keywords:frequency", {"keyword": "lamp", "frequency": 2, "relation": "at least"}),
        ("length_constraints:number_sentences", {"num_sentences": 1, "relation": "at least"}),
    ]
    keys = sorted({key for _, kwargs in stated for key in kwargs})
    rows = [
        {"key": number, "prompt": "Write.", "instruction_id_list": [name],
         "kwargs": [{key: kwargs.get(key) for key in keys}]}
        for number, (name, kwargs) in enumerate(stated)
    ]  # fmt: skip
    folder = tmp_path / "wis-k" / "instruction-following-eval" / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "train-00000-of-00001.parquet")
    answers = tmp_path / "samples_ifeval.jsonl"
    lines = ("a lamp.", "Lamp, lamp.", "One.")
    answers.write_text("".join(json.dumps({"doc_id": n, "resps": [text]}) + "\n" for n, text in enumerate(lines)))
    absent = tmp_path / "nothing"
    absent.mkdir()
    found = simple_evaluate(
        model="replay", model_args=f"path={answers}", tasks=["ifeval"], data_root=str(tmp_path), nltk_data=str(absent)
    )
    assert found["results"]["ifeval"]["prompt_level_strict_acc,none"] == 1.0
    assert found["results"]["ifeval"]["inst_level_loose_acc,none"] == 1.0
    assert (found["outcomes"]["ifeval"]["scored"], found["outcomes"]["ifeval"]["unscored"]) == (2, 1)
