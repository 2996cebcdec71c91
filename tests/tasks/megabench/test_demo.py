"""The demonstration data: made by its script, small, and scored in full where the replies are right."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from lmms_eval.media import header, load_image, probe
from lmms_eval.tasks.megabench import utils
from lmms_eval.tasks.megabench.data import parse_row
from lmms_eval.tasks.megabench.facts import demo_labels, labels
from lmms_eval.tasks.megabench.summary import task_scores
from tests.cases import for_each

REPOSITORY = Path(__file__).parents[3]
DEMO = Path(utils.__file__).parent / "demo"
OPTIONS = {"max_video_subsample_frame": 64, "data_folder": "demo"}
FIRST = "core/test-00000-of-00001.parquet"


def docs(folder: Path = DEMO) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = pq.read_table(folder / FIRST).to_pylist()
    return rows


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    import make_megabench_demo

    yield make_megabench_demo
    for name in ("make_megabench_demo", "megabench_demo_tasks"):
        sys.modules.pop(name, None)


def right_reply(doc: dict[str, str]) -> str:
    return f"I looked closely.\n{utils.doc_to_gold(doc)}"


def test_size_and_variety() -> None:
    rows = docs()
    assert len(rows) >= 40
    assert len({row["task_name"] for row in rows}) >= 20
    assert [row["id"] for row in rows] == [str(number + 1) for number in range(len(rows))]
    kinds = [parse_row(row).kind for row in rows]
    assert {"image", "video", "mixed"} == set(kinds)
    files = [path for path in DEMO.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 400_000
    assert max(path.stat().st_size for path in files if path.suffix == ".mp4") < 50_000
    assert "RGBA" in {header(path).mode for path in files if path.suffix == ".png"}


@for_each("doc", docs(), ids=lambda doc: f"{doc['task_name']}-{doc['id']}")
def test_right_replies_score_in_full_and_empty_ones_do_not(doc: dict[str, str]) -> None:
    values = utils.process_results(doc, [right_reply(doc)])
    assert values["macro_mean"]["query"] == pytest.approx(1.0, abs=1e-9)
    assert values["scored"] == 1.0
    assert values["submission"]["scores"]["query"] == values["macro_mean"]["query"]
    assert utils.process_results(doc, [""])["macro_mean"]["query"] == 0


@for_each("doc", docs(), ids=lambda doc: f"{doc['task_name']}-{doc['id']}")
def test_prompts_can_be_built(doc: dict[str, str]) -> None:
    turn = utils.doc_to_messages(doc, OPTIONS)[0]["content"]
    shown = utils.doc_to_visual(doc, OPTIONS)
    assert len(turn) == len(shown) + 1 and turn[-1]["text"] == utils.doc_to_text(doc, OPTIONS)
    row = parse_row(doc)
    text = "\n".join(segment.text for segment in row.segments)
    assert text.count("<image>") + text.count("<video>") in (len(row.media), len(row.query.media + row.example.media))
    assert utils.doc_to_target(doc) == doc["answer"]


def test_the_script_makes_the_same_data_again(script: ModuleType, tmp_path: Path) -> None:
    assert script.make(tmp_path) == len(docs())
    assert docs(tmp_path) == docs()
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert made == sorted(path.relative_to(DEMO) for path in DEMO.rglob("*") if path.is_file())
    for name in made:
        if name.suffix in (".png", ".jpg"):
            one, other = (np.asarray(load_image(folder / name), dtype=int) for folder in (DEMO, tmp_path))
            assert one.shape == other.shape and np.abs(one - other).max() <= (8 if name.suffix == ".jpg" else 0), name
        elif name.suffix == ".mp4":
            assert probe(DEMO / name) == probe(tmp_path / name)


def test_labels_of_the_tasks_are_those_of_their_rows_in_published_words() -> None:
    published = labels().values()
    found = demo_labels()
    assert set(found) == {row["task_name"] for row in docs()}
    for row in docs():
        label = found[row["task_name"]]
        assert (label.application, label.input_format, label.output_format) == (
            row["application"], row["input_format"], row["output_format"],
        )  # fmt: skip
        assert (label.visual_inputs == "video") == (parse_row(row).kind != "image")
        assert label.visual_inputs in {one.visual_inputs for one in published}
        assert set(label.skills) <= {skill for one in published for skill in one.skills}


def test_macro_mean_is_over_tasks() -> None:
    rows = docs()
    values = [
        utils.process_results(doc, [right_reply(doc) if doc["task_name"] == "demo_swipe" else ""])["macro_mean"]
        for doc in rows
    ]
    tasks = len({doc["task_name"] for doc in rows})
    assert utils.aggregate_macro_mean(values).value == pytest.approx(1 / tasks)
    assert task_scores(values)[0].name == rows[0]["task_name"]
    assert utils.aggregate_scored([1.0, 1.0]) == 2


def test_what_cannot_be_evaluated_withholds_the_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.api.outcome import Unscored, Withheld

    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    doc = dict(docs()[0])
    info: dict[str, Any] = {
        "field_score_function": {"count": "constrained_generation"},
        "aggregation": {"function": "mean", "field_weights": {"count": 1}},
        "response_parse_function": "answer_string",
    }
    other = {**doc, "metric_info": str(info), "task_name": "elsewhere", "eval_context": "{'contain': '[here]'}"}
    values = utils.process_results(other, ["Answer: here"])
    assert isinstance(values["scored"], Unscored) and "lmms-eval fetch nltk" in values["scored"].reason
    right = utils.process_results(doc, [right_reply(doc)])["macro_mean"]
    withheld = utils.aggregate_macro_mean([right, values["macro_mean"]])
    assert isinstance(withheld, Withheld)
    assert withheld.partial.value == 1.0 and "elsewhere" in withheld.reason


def test_interleaving_puts_media_into_their_places() -> None:
    turn = utils.doc_to_messages(docs()[0], {**OPTIONS, "interleave": True})[0]["content"]
    assert [part["type"] for part in turn][:3] == ["text", "text", "image"]
