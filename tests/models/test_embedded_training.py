"""The training of the embedded model: what it draws, what it feeds, and that one command writes a model that loads."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lmms_eval.models.hf.options import EMBEDDED, model_location

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = ("batches", "cases", "guard", "labels", "mixture", "others", "parts", "scenes")


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The modules of the training by name; forgotten afterwards, as their names are everyday words."""
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not part of this installation")
    for folder in (EXAMPLES, EXAMPLES / "tiny_vlm"):
        monkeypatch.syspath_prepend(str(folder))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_no_text_of_the_evaluation_is_drawn(training: dict[str, Any]) -> None:
    held_out = {"open until noon", "wet paint", "mind the step", "gate", "milk", "stairs", "north"}
    assert held_out == training["others"].HELD_OUT_TEXTS
    random = Random(1)
    signs = [training["others"].sign_scene(random) for _ in range(400)]
    texts = [scene.asked[0].answer["text"].lower() for scene in signs]
    assert held_out.isdisjoint(texts) and len(set(texts)) > 200
    assert {"gate", "milk", "stairs", "north"} <= {word for text in texts for word in text.split()}


def test_the_guard_refuses_the_pictures_of_the_evaluation(training: dict[str, Any]) -> None:
    from make_megabench_demo import Shape, canvas

    guard = training["guard"].Guard(EXAMPLES.parent / "lmms_eval" / "tasks" / "megabench" / "demo" / "data")
    shown = [Shape("circle", "red", (0.1, 0.35, 0.3, 0.65)), Shape("square", "blue", (0.6, 0.3, 0.85, 0.7))]
    moved = [Shape("circle", "red", (0.1, 0.05, 0.3, 0.35)), Shape("square", "blue", (0.6, 0.3, 0.85, 0.7))]
    assert not guard(canvas(shown)) and guard(canvas(moved)) and guard.refused == 1


def test_labels_say_what_each_token_shows(training: dict[str, Any]) -> None:
    from make_megabench_demo import Shape

    labels = training["labels"]
    shapes = [Shape("circle", "red", (0.0, 0.0, 0.25, 0.4)), Shape("square", "blue", (0.5, 0.2, 1.0, 0.6))]
    found = labels.of_shapes(shapes, (120, 80), (5, 8)).reshape(5, 8, -1)
    column = {name: number for number, name in enumerate(labels.CLASSES)}
    assert found[0, 0, column["kind"]] == 1 and found[2, 7, column["kind"]] == 2 and found[4, 7, column["kind"]] == 0
    assert [found[2, 5, column[edge]] for edge in ("left", "top", "right", "bottom")] == [10, 4, 20, 12]
    assert found[4, 7, column["left"]] == labels.UNKNOWN
    assert labels.SIDES[found[2, 6, column["side"]]] == "right" == labels.side_of(shapes[1], shapes[0])


def test_cases_are_encoded_as_the_processor_does(training: dict[str, Any]) -> None:
    """Tokens, grids and pixels of a question are the ones that the ``hf`` back end feeds."""
    from dataclasses import replace

    from lmms_eval.models.hf.load import load
    from lmms_eval.models.hf.options import HFOptions

    processor = load(HFOptions(pretrained=model_location(EMBEDDED), dtype="float32", device="cpu")).processor
    encoder, random = training["batches"].CaseEncoder(processor.tokenizer), Random(5)
    for _ in range(25):
        case = training["mixture"].draw_case(random, lambda _: True)
        case = replace(case, turns=case.turns[:1])
        fed = training["batches"].collate([encoder.encode(case)], 0).inputs
        content = [*({"type": "image"} for _ in case.pictures), {"type": "text", "text": case.turns[0].prompt}]
        text = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
        images = [picture.image for picture in case.pictures]
        asked = processor(text=[text], images=images, return_tensors="pt")
        assert asked["input_ids"][0].tolist() == fed["input_ids"][0, : asked["input_ids"].shape[1]].tolist()
        assert asked["image_grid_thw"].tolist() == fed["image_grid_thw"].tolist()
        assert (asked["pixel_values"] - fed["pixel_values"]).abs().max() < 0.02


def test_one_command_trains_a_model_that_loads_and_answers(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from lmms_eval.models.hf.load import load
    from lmms_eval.models.hf.options import HFOptions

    command = [sys.executable, str(EXAMPLES / "tiny_vlm" / "train.py"), "--out", str(tmp_path), "--threads", "1"]
    done = subprocess.run([*command, "--looks", "2", "--answers", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shipped = Path(model_location(EMBEDDED))
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in shipped.iterdir()}
    made, kept = (load_file(folder / "model.safetensors") for folder in (tmp_path, shipped))
    assert {name: value.shape for name, value in made.items()} == {name: value.shape for name, value in kept.items()}
    loaded = load(HFOptions(pretrained=str(tmp_path), dtype="float32", device="cpu"))
    known = load(HFOptions(pretrained=str(shipped), dtype="float32", device="cpu")).tokenizer
    assert loaded.tokenizer.get_vocab() == known.get_vocab()
    ids = loaded.tokenizer("Is it red or blue?", return_tensors="pt")
    assert loaded.model.generate(**ids, max_new_tokens=3, do_sample=False).shape[1] > ids["input_ids"].shape[1]
