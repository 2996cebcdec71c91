"""Answers with pictures of class plugins and of earlier runs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import lmms
from lmms_eval.api.request import GeneratedImage, Response, Usage
from lmms_eval.models.legacy import LegacyAdapter
from lmms_eval.models.replay import Replay
from tests.cases import for_each
from tests.models.fakes import FakeTask, answers
from tests.painting import png

DOCS = [{"question": f"q{number}", "answer": ""} for number in range(3)]
IMAGE = generated_image(png(1))


class Plugin(lmms):
    """Returns what it is told."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        return [self.output for _ in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        raise NotImplementedError


def plugged(output: Any) -> Response:
    task = FakeTask(DOCS[:1])
    adapter = LegacyAdapter(Plugin(output))
    adapter.attach_tasks([task])
    return answers(adapter, task.requests())["fake/0/0/0/0"]


def test_a_plugin_gives_pictures_as_bytes_file_or_image(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(png(1))
    picture = Image.new("RGBA", (3, 2), (1, 2, 3, 4))
    parts = ["a", png(1), tmp_path / "one.png", IMAGE, picture, "b"]
    found = plugged(GenerationResult("not looked at", TokenCounts(3, 2), parts))
    assert (found.text, found.usage, found.error) == ("ab", Usage(3, 2), None)
    assert found.parts[:4] == ("a", IMAGE, IMAGE, IMAGE)
    made = found.parts[4]
    assert isinstance(made, GeneratedImage) and made.data is not None
    decoded = Image.open(io.BytesIO(made.data))
    assert (decoded.format, decoded.size, decoded.getpixel((0, 0))) == ("PNG", (3, 2), (1, 2, 3, 4))


@for_each(
    ("part", "told"),
    [(b"<svg/>", "6 bytes that are no PNG"), (7, "type int"), (Path("/absent.png"), "absent.png")],
)
def test_what_a_plugin_gives_instead_is_malformed(part: Any, told: str) -> None:
    error = plugged(GenerationResult(parts=["x", part])).error
    assert error is not None and error.kind == "malformed" and told in error.message


def test_a_partial_result_that_is_no_picture_does_not_stand() -> None:
    class Partial(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            self.cache_hook.add_partial("generate_until", requests[0].args[:2], GenerationResult(parts=[b"x"]))
            self.cache_hook.add_partial("generate_until", requests[0].args[:2], GenerationResult(parts=["a", png(1)]))
            return [GenerationResult("late") for _ in requests]

    task = FakeTask(DOCS[:1])
    adapter = LegacyAdapter(Partial(None))
    adapter.attach_tasks([task])
    assert answers(adapter, task.requests())["fake/0/0/0/0"].parts == ("a", IMAGE)


def test_a_result_with_text_alone_is_as_ever() -> None:
    assert plugged(GenerationResult("text", TokenCounts(1, 2, 3))).text == "text"


def named(image: GeneratedImage = IMAGE, **other: str) -> dict[str, str]:
    return {"type": "image", "path": f"images/{image.file_name}", "sha256": image.sha256, **other}


def samples(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / IMAGE.file_name).write_bytes(png(1))
    path = folder / "samples_fake.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def replayed(path: Path, task: FakeTask, requests: Any = None) -> list[Response]:
    model = Replay(str(path))
    model.attach_tasks([task])
    return list(answers(model, requests or task.requests()).values())


def test_replay_reads_the_pictures_beside_the_samples(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a "}, named()]
    path = samples(
        tmp_path,
        {"doc_id": 0, "resps": "a ", "filtered_resps": "a", "parts": parts},
        {"doc_id": 1, "filtered_resps": "plain"},
        {"doc_id": 2, "filtered_resps": "", "parts": [named()]},
    )
    found = replayed(path, FakeTask(DOCS))
    assert [response.parts for response in found] == [("a ", IMAGE), (), (IMAGE,)]
    assert [response.text for response in found] == ["a ", "plain", ""]
    image = found[0].parts[1]
    assert isinstance(image, GeneratedImage) and image.data == png(1)


def test_replay_of_repeats_and_rounds(tmp_path: Path) -> None:
    first, second = [{"type": "text", "text": "a"}, named()], [{"type": "text", "text": "b"}]
    path = samples(tmp_path, {"doc_id": 0, "raw_resps": ["a", "b"], "parts": [first, second]})
    found = replayed(path, FakeTask(DOCS[:1], repeats=2))
    assert [(response.text, response.parts) for response in found] == [("a", ("a", IMAGE)), ("b", ())]
    path = samples(tmp_path, {"doc_id": 0, "filtered_resps": ["a", "b"], "parts": [first, second]})
    task = FakeTask(DOCS[:1], output_type="generate_until_multi_round")
    found = replayed(path, task, [task.request(0, round=number) for number in range(3)])
    assert [response.parts for response in found] == [("a", IMAGE), (), ()]
    assert found[1].text == "b" and found[2].error is not None


@for_each(
    ("part", "told"),
    [
        (named(sha256="0" * 64), "another hash"),
        (named(path="images/absent.png"), "cannot be read"),
        (named(path="samples_fake.jsonl"), "no PNG, JPEG, WebP or GIF"),
        ({"type": "image"}, "cannot be read"),
    ],
)
def test_replay_of_a_picture_that_is_gone_or_another(tmp_path: Path, part: dict[str, str], told: str) -> None:
    path = samples(tmp_path, {"doc_id": 0, "filtered_resps": "", "parts": [part]})
    error = replayed(path, FakeTask(DOCS[:1]))[0].error
    assert error is not None and error.kind == "malformed" and told in error.message
