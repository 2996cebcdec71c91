"""Contexts and messages: system instruction, description and examples reach every kind of model."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError, UsageError
from lmms_eval.media.audio import load_audio
from lmms_eval.tasks.yaml.prompts import FewShot
from tests.cases import for_each
from tests.media import draw
from tests.tasks.kit import ROWS, Function, converse, loaded, make_task, turns_of

PICTURES = """
from PIL import Image

def visual(doc):
    return [Image.new("RGB", (2, 2))]

def text_part(doc):
    return {"type": "text", "text": doc["question"]}

def messages(doc, lmms_eval_specific_kwargs=None):
    return [
        {"role": "system", "content": [{"type": "text", "text": "Look."}]},
        {"role": "user", "content": [*({"type": "image", "url": v} for v in visual(doc)), text_part(doc)]},
    ]

def not_messages(doc):
    return "text"

def text_content(doc):
    return [{"role": "user", "content": "text"}]

def wrong_role(doc):
    return [{"role": "boss", "content": []}]
"""
EVERYTHING = {
    "description": "Answer about {{question}}.\n\n",
    "num_fewshot": 1,
    "fewshot_config": {"sampler": "first_n"},
}
SYSTEM = TaskOptions(system_instruction="Be brief.")


def first(task: Any, doc_id: int = 2) -> Any:
    return task.exchange(doc_id, 0).open()[0]


def test_context_and_messages_say_the_same(tmp_path: Path) -> None:
    task = loaded(tmp_path, EVERYTHING, options=SYSTEM)
    request = first(task)
    rest = "Answer about snow colour.\nsky colour? blue\n\nsnow colour?"
    assert request.context == f"Be brief.\n\n{rest}"
    assert turns_of(request) == [("system", ["Be brief."]), ("user", [rest])]


def test_media_of_examples_are_carried(tmp_path: Path) -> None:
    task = loaded(tmp_path, {**EVERYTHING, "doc_to_visual": Function("utils.visual")}, PICTURES, SYSTEM)
    assert turns_of(first(task)) == [
        ("system", ["Be brief."]),
        ("user", ["image", "Answer about snow colour.\nsky colour? blue\n\n", "image", "snow colour?"]),
    ]


def test_examples_as_turns(tmp_path: Path) -> None:
    options = TaskOptions(system_instruction="Be brief.", fewshot_as_multiturn=True)
    task = loaded(tmp_path, {**EVERYTHING, "doc_to_messages": Function("utils.messages")}, PICTURES, options)
    request = first(task)
    assert turns_of(request) == [
        ("system", ["Be brief.\n\nLook."]),
        ("user", ["image", "Answer about snow colour.\nsky colour"]),
        ("assistant", ["blue"]),
        ("user", ["image", "snow colour"]),
    ]
    assert task.legacy_context_turns(request) == [
        {"role": "system", "content": "Be brief.\n\nAnswer about snow colour.\n"},
        {"role": "user", "content": "sky colour?"},
        {"role": "assistant", "content": "blue"},
        {"role": "user", "content": "snow colour?"},
    ]


def test_messages_of_the_task_alone(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"doc_to_messages": Function("utils.messages")}, PICTURES)
    assert turns_of(first(task)) == [("system", ["Look."]), ("user", ["image", "snow colour"])]


@for_each(
    ("function", "message"),
    [
        ("not_messages", "doc_to_messages must return a list of messages"),
        ("text_content", "content of a message must be a list of parts"),
        ("wrong_role", "role"),
    ],
)
def test_wrong_messages_are_errors_of_the_document(tmp_path: Path, function: str, message: str) -> None:
    task = loaded(tmp_path, {"doc_to_messages": Function(f"utils.{function}")}, PICTURES)
    with pytest.raises(Exception, match=message) as caught:
        first(task).build_messages()
    assert not isinstance(caught.value, UsageError)  # that would end the run


def test_examples_never_hold_the_question_itself(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"num_fewshot": 2})
    for number, row in enumerate(ROWS):
        context = first(task, number).context
        assert context.count(row["question"]) == 1
        assert context == first(task, number).context


def test_the_choice_of_examples_follows_the_seed(tmp_path: Path) -> None:
    def chosen(seed: int | None) -> list[list[int]]:
        few = FewShot(3, "test", True, "default", f"{seed}:t")
        return [few.choose(doc_id, 50) for doc_id in range(10)]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
    assert len({tuple(numbers) for numbers in chosen(1)}) > 1
    assert FewShot(2, "train", False, "first_n", "").choose(0, 9) == [0, 1]
    assert FewShot(2, "test", True, "first_n", "").choose(1, 9) == [0, 2]


def test_examples_come_from_the_named_split(tmp_path: Path) -> None:
    tmp_path.joinpath("train.jsonl").write_text('{"question": "sum", "answer": "9"}\n')
    data = {"data_files": {"test": "rows.jsonl", "train": "train.jsonl"}}
    task = loaded(tmp_path, {"dataset_kwargs": data, "training_split": "train"}, options=TaskOptions(num_fewshot=1))
    assert first(task).context == "sum? 9\n\nsnow colour?"


def test_too_few_examples_and_unknown_samplers(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="num_fewshot 3: split 'test' has only 3 documents, the question among them"):
        loaded(tmp_path / "a", {"num_fewshot": 3})
    with pytest.raises(
        TaskError, match=r"probe\.yaml: key 'fewshot_config': sampler 'best'; valid are default, first_n"
    ):
        make_task(tmp_path / "b", {"fewshot_config": {"sampler": "best"}})


def test_examples_with_pictures_need_a_chat_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs a chat model.*--num_fewshot 0"):
        make_task(
            tmp_path, {"doc_to_visual": Function("utils.visual")}, PICTURES, TaskOptions(chat=False, num_fewshot=1)
        )


def test_requests_are_the_same_on_every_start(tmp_path: Path) -> None:
    one, two = (first(loaded(tmp_path / name, options=TaskOptions(seed=3)), 1) for name in "ab")
    other = first(loaded(tmp_path / "c", options=TaskOptions(seed=4)), 1)
    assert one.id == two.id == "probe/1/0/0/0"
    assert one.seed == two.seed != other.seed
    assert one.generation == one.generation_after(has_template=True) == {"do_sample": False}
    assert one.generation_after(has_template=False) == {"until": ["\n\n"], "do_sample": False}
    assert one.generation is not first(loaded(tmp_path / "d"), 1).generation


def test_random_prompts_are_seeded_by_document(tmp_path: Path) -> None:
    code = "import random\ndef text(doc):\n    return str(random.random())\n"
    one = loaded(tmp_path / "a", {"doc_to_text": Function("utils.text")}, code)
    two = loaded(tmp_path / "b", {"doc_to_text": Function("utils.text")}, code)
    assert first(one, 1).context == first(one, 1).context == first(two, 1).context
    assert first(one, 0).context != first(one, 1).context
    answer, _ = converse(one, 0, lambda request: "x")
    assert turns_of(first(one, 0)) == [("user", [answer.input])]


@for_each("features", [{"sound": {"sampling_rate": 16_000, "_type": "Audio"}}, None])
def test_a_column_of_sounds_reaches_chat_models_as_sound(tmp_path: Path, features: Any) -> None:
    """With the data set's own word for the column's type, and without it."""
    held = io.BytesIO()
    with wave.open(held, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes((draw.tone() * 32767).astype("<i2").tobytes())
    table = pa.table({"q": ["Heard?"], "a": ["yes"], "sound": [{"bytes": held.getvalue(), "path": "s.wav"}]})
    metadata = {"huggingface": json.dumps({"info": {"features": features}})} if features else None
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "test.parquet")
    keys = {"dataset_path": "parquet", "dataset_kwargs": {"data_files": {"test": "test.parquet"}}}
    task = loaded(tmp_path, {**keys, "doc_to_text": "q", "doc_to_target": "a", "doc_to_visual": "sound"})
    _, videos, (audio,) = first(task, 0).build_messages().extract_media()
    assert videos == []
    assert len(load_audio(audio, 16_000).samples) == pytest.approx(8000, abs=2)
