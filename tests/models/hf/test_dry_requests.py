from types import SimpleNamespace

import pytest
import torch
from loguru import logger
from msgspec import structs

from lmms_eval.models.hf.model import HuggingFace, wants_flat_images
from tests.cases import for_each

from .support import build


class NeedsPictures(HuggingFace):
    """Its ``generate`` wants pixels, as that of BLIP-2 does."""

    def generate(self, **arguments):
        if "pixel_values" not in arguments:
            raise TypeError("generate() missing 1 required positional argument: 'pixel_values'")
        if arguments["pixel_values"].shape[1] > 6:
            raise RuntimeError("one picture\nat most")
        return torch.zeros(1, 1)


@pytest.fixture
def lines():
    found = []
    sink = logger.add(lambda message: found.append(message.record["message"]), level="WARNING")
    yield found
    logger.remove(sink)


def test_what_a_model_cannot_do_is_said_in_one_line_at_load(tiny, lines):
    model = build(tiny, NeedsPictures, dry_requests=True)
    assert set(model.describe()["cannot_answer"]) == {"text alone", "several pictures"}
    (line,) = lines
    assert line.startswith(f"hf: {tiny} cannot answer requests of text alone (TypeError: generate() missing 1 required")
    assert line.endswith("several pictures (RuntimeError: one picture at most)")


def test_nothing_is_said_of_a_model_that_answers_or_is_not_asked(tiny, lines):
    assert build(tiny, dry_requests=True).describe()["cannot_answer"] == {}
    assert build(tiny, NeedsPictures, dry_requests=False).describe()["cannot_answer"] == {}
    assert lines == []


class Flat:
    """A processor that takes one list of pictures."""

    def __call__(self, text, images, **options):
        if any(isinstance(image, list) for image in images):
            raise ValueError("nested images")
        return {}


class Nested:
    def __call__(self, text, images, **options):
        assert all(isinstance(image, list) for image in images)
        return {}


@for_each(("processor", "is_flat"), [(Flat(), True), (Nested(), False)])
def test_processors_that_want_flat_lists(processor, is_flat):
    def render(messages):
        (message,) = messages.messages
        return SimpleNamespace(text="x", images=(message.content[0].url,))

    assert wants_flat_images(SimpleNamespace(processor=processor), render) is is_flat


def test_pictures_of_a_batch_go_as_one_list_where_the_processor_wants_that(tiny, monkeypatch):

    from .support import answers, ask, picture

    model = build(tiny, dry_requests=False)
    seen = []

    class Watching:
        tokenizer = model.loaded.tokenizer

        def __call__(self, images=None, **options):
            seen.append(images)
            raise ValueError("enough")

    encoder = model.encoder(structs.replace(model.loaded, processor=Watching(), flat_images=True), model.options)
    monkeypatch.setattr(model._answerer, "_encode", encoder.encode)
    answers(model, [ask(0, "What?", [picture(20, 20), picture(20, 30)])])
    assert [image.size for image in seen[0]] == [(20, 20), (20, 30)]
