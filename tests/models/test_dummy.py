import json
from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.baseline import Dummy
from tests.models.fakes import FakeTask, answers


def request(*parts: dict[str, object]) -> Request:
    content = [*parts, {"type": "text", "text": "why?"}]
    return Request(
        "t/0/0/0/0",
        "generate_until",
        FakeTask([{}]),
        0,
        lambda: ChatMessages(messages=[{"role": "user", "content": content}]),
    )


def test_one_answer_to_everything() -> None:
    assert answers(Dummy("B"), [request()])["t/0/0/0/0"].text == "B"
    assert Dummy("B").identity()["text"] == "B"


def test_media_are_read_and_counted_where_that_is_asked_for(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.new("RGB", (9, 9), "red").save(picture)
    model = Dummy(read_bytes=True, decode_num_frames=2, metrics_output_path=str(tmp_path / "out" / "read.json"))
    model.prepare(request({"type": "image", "url": str(picture)}))
    frames = [Image.new("RGB", (4, 4))] * 3
    model.prepare(request({"type": "video", "url": frames}))
    told = model.describe()
    assert (told["pictures"], told["videos"], told["frames"], told["bytes"]) == (1, 1, 2, picture.stat().st_size)
    model.close()
    assert json.loads((tmp_path / "out" / "read.json").read_text("utf-8")) == told


def test_nothing_is_opened_unless_asked_for() -> None:
    def refuse() -> ChatMessages:
        raise AssertionError("opened")

    model = Dummy()
    model.prepare(request().with_messages(refuse))
    assert model.describe() == {}


def test_wrong_arguments_and_places_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="decode_fps above 0"):
        Dummy(decode_fps=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written"):
        Dummy(metrics_output_path=str(tmp_path / "file" / "read.json")).close()
