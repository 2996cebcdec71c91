from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.data.annotations import read_annotation
from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.tasks.general_bench.data.reading import Items, read_item, read_items
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.submission import read_predictions
from tests.tasks.general_bench.data.kit import annotation, read


def items_of(task: str, *data: Any, folder: Path = Path("/data/task"), type: str = "") -> Items:
    facts = find_task(task)
    return read_items(
        facts, structs.replace(annotation(folder, items=data), type=type), folder, load_field_maps(None)(facts)
    )


def labelled(item_id: Any, text: Any = "Cod") -> dict[str, Any]:
    return {"id": item_id, "input": {"image_file": "1.png", "prompt": "Which?"}, "output": {"text": text}}


def test_what_an_item_holds(tmp_path: Path) -> None:
    facts, raw = find_task("Fish Recognition"), {**labelled("a"), "more": [1]}
    head = {"task": "x", "skill": "y"}
    item = read_item(facts, annotation(tmp_path, head), raw, tmp_path / "answers", load_field_maps(None)(facts))
    assert item.facts is facts and item.folder == tmp_path and item.prediction_folder == tmp_path / "answers"
    assert item.raw == raw and item.head == head


def test_broken_items_stop_no_others() -> None:
    found = items_of("Fish Recognition", labelled(1), 7, labelled(2, {}), labelled(3), {"input": {}})
    assert [item.id for item in found.items] == [1, 3]
    assert [(one.index, one.id) for one in found.problems] == [(1, None), (2, 2), (4, None)]
    assert "item 2: `output`: `text` is {}" in found.problems[1].message
    assert found.dropped == found.duplicates == ()


def test_repeated_ids_are_named() -> None:
    found = items_of("Fish Recognition", labelled(1), labelled("1"), labelled(1.0), labelled(1))
    assert len(found.items) == 4 and found.problems == ()
    assert [(one.index, one.id) for one in found.duplicates] == [(2, 1.0), (3, 1)]
    assert "the id 1 is that of an earlier item" in found.duplicates[0].message


def test_unknown_keys_of_some_items_are_their_problem() -> None:
    odd = {"id": 9, "output": {"odd": 1}}
    found = items_of("Fish Recognition", labelled(1), odd)
    assert len(found.items) == 1 and "schema unknown" in found.problems[0].message and found.problems[0].id == 9
    with pytest.raises(NotEvaluated, match="output keys odd"):
        items_of("Fish Recognition", odd, 3)
    assert items_of("Fish Recognition").items == ()


def test_a_task_has_either_maps_or_labels() -> None:
    sound, damaged = {"id": 1, "output": {"text": "good"}}, {"id": 2, "output": {"mask": "m.png"}}
    mixed = items_of("Pill Anomaly Detection", sound, damaged)
    assert [(item.form, item.reference) for item in mixed.items] == [("map", "good"), ("map", "m.png")]
    assert [item.form for item in items_of("Pill Anomaly Detection", sound).items] == ["text"]


def test_language_items_are_read_by_their_types() -> None:
    data = ({"id": 1, "dialog": []}, {"id": 2, "dialog": ["hi"], "output": {"reference": "ho"}}, {"dialog": ["x"]})
    found = items_of("Multi-Turn Daily Dialogue Generation", *data, type="Dialogue")
    assert [(item.id, item.reference) for item in found.items] == [(2, "ho")]
    assert [(one.index, one.id) for one in found.dropped] == [(0, 1)]
    assert [one.index for one in found.problems] == [2]


TASKS = (
    "Fish Recognition", "Bird Detection", "Crowd Counting", "Pill Anomaly Detection", "Indoor Semantic Segmentation",
    "Indoor Depth Estimation", "Ball Tracking", "Human Video Grounding", "Street Scene Video Depth Estimation",
    "Human Video Object Segmentation", "Human Video Salient Detection", "Panoramic Optical Flow Estimation",
    "Pets Video Question Answering", "Bird Sound Detection", "Intent Classification", "Note Qualities Analysis",
    "Speech Command", "TextToSpeech", "Video Deraining", "3D Odometry", "Image Dehazing", "TriviaQA", "Time Series",
)  # fmt: skip
KEYS = (
    "id", "input", "output", "text", "answer", "boxes", "mask", "prompt", "image_file", "audio_file", "video_folder",
    "video_path", "frame_count", "caption", "trajectory", "tube_start_frame", "tube_end_frame", "bbox", "flow", "1",
    "gt_dir", "intent_label", "action", "object", "location", "number", "depth", "labels", "counts", "target",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["a/b.png", "../x", "1.mp4", "\ud800", "a\0b", "x" * 5000, "1, 2, 0"]),
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
ITEMS = st.fixed_dictionaries(
    {"id": st.integers(0, 3) | JSON},
    optional={"input": JSON, "output": JSON, "trajectory": JSON, "frame_count": JSON, "tube_start_frame": JSON,
              "tube_end_frame": JSON, "caption": SCALARS, "video_path": SCALARS},
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TASKS), ITEMS | JSON, JSON)
@example("Speech Command", {"id": 1, "input": {"audio_file": "x" * 5000, "prompt": ""}}, None)
@example("Speech Command", {"id": 1, "input": {"audio_file": "\ud800", "prompt": ""}}, None)
def test_no_item_raises_anything_else(task: str, raw: Any, labels: Any) -> None:
    try:
        item = read(task, raw, Path("/data/task"), intent_label=labels)
    except (LmmsEvalError, NotEvaluated):
        return
    assert isinstance(item, Item) and item.id == raw.get("id", raw.get("original_video_id"))
    assert all(path.is_relative_to("/data/task") and ".." not in path.parts for one in item.media for path in one.paths)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0 atskd\\u8', max_size=40).map(str.encode))
def test_no_file_raises_anything_else(content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as opened:
        opened.write(content)
        opened.flush()
        for reader in (read_annotation, read_predictions):
            message = opened.name
            try:
                reader(Path(opened.name))
            except LmmsEvalError as error:
                message = str(error)
            assert opened.name in message
