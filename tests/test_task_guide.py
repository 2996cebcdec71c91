"""The first example of ``docs/task_guide.md`` is the folder ``examples/task``, and it runs as it is printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.metrics.table import METRICS
from lmms_eval.tasks.yaml.settings import arguments_of
from tests.faults.bad_input import here
from tests.faults.command import results

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "task"
GUIDE = (ROOT / "docs" / "task_guide.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```\w*\n# examples/task/(\S+)\n(.*?)```", re.DOTALL)
METRIC = "exact_match,none"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(EXAMPLE, tmp_path / "task")
    return tmp_path / "task"


def test_the_guide_prints_the_files_of_the_folder() -> None:
    printed = dict(BLOCK.findall(GUIDE))
    assert set(printed) == {"colours.yaml", "utils.py", "paint.py"}
    for name, text in printed.items():
        assert text == (EXAMPLE / name).read_text(encoding="utf-8")


def test_the_guide_paints_the_data_of_the_folder(folder: Path) -> None:
    shutil.rmtree(folder / "data")
    subprocess.run([sys.executable, folder / "paint.py"], check=True)
    made = sorted(path.name for path in (folder / "data").iterdir())
    assert made == sorted(path.name for path in (EXAMPLE / "data").iterdir())
    for name in made:
        new, kept = folder / "data" / name, EXAMPLE / "data" / name
        if name.endswith(".png"):
            assert Image.open(new).tobytes() == Image.open(kept).tobytes()
        else:
            assert new.read_bytes() == kept.read_bytes()


def test_gold_answers_with_paths_in_the_rows(folder: Path, tmp_path: Path) -> None:
    flags = {
        "--model": "baseline",
        "--model_args": "strategy=gold",
        "--tasks": "colours",
        "--include_path": str(folder),
    }
    ended = here({**flags, "--output_path": str(tmp_path / "out")})
    assert ended.code == 0, ended.shown
    assert results(tmp_path / "out")["results"]["colours"][METRIC] == 1.0
    (folder / "data" / "square.png").unlink()
    assert here({**flags, "--output_path": str(tmp_path / "without")}).code == 3


def test_the_model_of_the_folder_sees_decoded_columns_and_paths(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    rows = [json.loads(line) for line in (folder / "data" / "colours.jsonl").read_text().splitlines()]
    held = [{**row, "image": {"bytes": (folder / row["image"]).read_bytes(), "path": row["image"]}} for row in rows]
    text = {"dtype": "string", "_type": "Value"}
    features = {"image": {"_type": "Image"}, "question": text, "answer": text}
    table = pa.Table.from_pylist(held).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    pq.write_table(table, folder / "data" / "colours.parquet")
    for builder, ending in (("json", "jsonl"), ("parquet", "parquet")):
        file = folder / "colours.yaml"
        asked = (EXAMPLE / "colours.yaml").read_text().replace("path: json", f"path: {builder}")
        file.write_text(asked.replace("colours.jsonl", f"colours.{ending}"))
        out = tmp_path / builder
        ended = here(
            {
                "--model": "colour_meter", "--plugins": "colour_models", "--tasks": "colours", "--include_path":
                str(folder), "--output_path": str(out), "--log_samples": "",
            }
        )  # fmt: skip
        assert ended.code == 0, ended.shown
        assert results(out)["results"]["colours"][METRIC] == 1.0
        samples = [json.loads(line) for line in next(out.rglob("*_samples_*")).read_text().splitlines()]
        assert [sample["resps"] if "resps" in sample else sample["filtered_resps"] for sample in samples] == [
            "red", "green", "blue", "yellow", "yellow",
        ]  # fmt: skip
        assert [(len(one["sent_media"]), one["sent_media"][0]["width"]) for one in samples] == [(1, 64)] * 5


def test_a_misspelt_argument_of_the_example_ends_the_run_before_the_model_is_built(folder: Path) -> None:
    file = folder / "colours.yaml"
    file.write_text(file.read_text().replace("ignore_case", "ignorecase"))
    ended = here({"--model": "baseline", "--tasks": "colours", "--include_path": str(folder)})
    assert ended.code == 2
    assert "metric 'exact_match' has no argument 'ignorecase'; did you mean 'ignore_case'?" in ended.err


def test_the_guide_lists_every_metric_and_its_arguments() -> None:
    _, _, listed = GUIDE.partition("| metric of texts |")
    listed, _, _ = listed.partition("register_metric")
    named = set(re.findall(r"`(\w+)`", listed))
    arguments: set[str] = set()
    for entry in METRICS.values():
        for kind in entry.output_types:
            arguments |= set(arguments_of(entry.function(kind), ("references", "predictions", "item")) or ())
    assert named >= set(METRICS) | arguments
