import copy
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from lmms_eval.media.originals import ByteLRU
from lmms_eval.models.hf.load import load
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.hf.pictures import CachedPictures, cache_pictures, is_independent

from .support import answers, ask, build, picture


def processor_of(folder):
    return load(HFOptions(str(folder), device="cpu")).processor


@pytest.mark.parametrize("family", ["qwen2_vl", "llava"])
def test_joined_results_are_those_of_the_processor(tiny_folders, family):
    plain, cached = processor_of(tiny_folders[family]), processor_of(tiny_folders[family])
    cache = cache_pictures(cached, 1 << 20)
    images = [picture(60, 40, 1), picture(33, 80, 2), picture(60, 40, 1)]
    mark = "<|image_pad|>" if family == "qwen2_vl" else "<image>"
    arguments = {"text": [mark, mark * 2], "images": [images[:1], images[1:]], "return_tensors": "pt", "padding": True}
    expected = plain(**arguments)
    for _ in range(2):
        got = cached(**arguments)
        assert set(got) == set(expected)
        for name, value in expected.items():
            assert got[name].dtype == value.dtype
            assert torch.equal(got[name], value), name
    assert (cache.misses, cache.hits) == (2, 4)


def test_equal_pixels_of_another_shape_or_mode_are_another_picture(tiny_folders):
    processor = processor_of(tiny_folders["llava"])
    cache = cache_pictures(processor, 1 << 20)
    pixels = np.zeros((20, 40, 3), np.uint8)
    for _ in range(2):
        for image in (Image.fromarray(pixels), Image.fromarray(pixels.reshape(40, 20, 3))):
            processor.image_processor([image], return_tensors="pt")
        processor.image_processor([Image.fromarray(pixels)], return_tensors="pt", do_normalize=False)
    assert (cache.misses, cache.hits) == (3, 1)


def test_only_where_pictures_are_independent(tiny_folders):
    tiles = processor_of(tiny_folders["idefics3"])
    assert not is_independent(tiles.image_processor)
    assert cache_pictures(tiles, 1 << 20) is None
    assert cache_pictures(processor_of(tiny_folders["llava"]), 0) is None


class Parts:
    """An image processor whose results cannot be joined."""

    size = 3

    def __call__(self, images, **options):
        return {"pixels": torch.zeros(len(images), images[0].width)}


def test_what_cannot_be_joined_is_left_to_the_processor():
    part = CachedPictures(Parts(), ByteLRU(1 << 20, lambda _: 1))
    assert part.size == 3
    assert part([picture(4, 4), picture(5, 4)])["pixels"].shape == (2, 4)
    assert copy.deepcopy(part)._cache is part._cache
    with pytest.raises(AttributeError):
        _ = part.absent


def test_new_pictures_go_to_the_processor_together():
    calls = []

    class Counting:
        def __call__(self, images, **options):
            calls.append(len(images))
            return {"pixels": torch.tensor([float(np.asarray(image).sum()) for image in images])}

    part = CachedPictures(Counting(), ByteLRU(1 << 20, lambda _: 1))
    images = [picture(30, 20, seed) for seed in range(4)]
    first = part(images[:3])["pixels"]
    assert calls == [3], "asked about at once"
    for _ in range(2):
        assert torch.equal(part(images)["pixels"][:3], first)
    assert calls == [3, 1, 1, 1, 1], "each of the repeated ones alone, and once"
    calls.clear()
    mixed = [*(picture(30, 20, seed) for seed in (10, 11)), images[0], *(picture(30, 20, seed) for seed in (12, 13))]
    assert torch.equal(part(mixed)["pixels"][2:3], first[:1])
    assert calls == [2, 2], "new ones on either side of a known one"


def test_a_model_processes_repeated_pictures_once(tiny_folders):
    same = [ask(n, f"Question {n}", [picture(50, 50, 7)]) for n in range(5)]
    model = build(tiny_folders["qwen2_vl"], batch_size=2)
    off = build(tiny_folders["qwen2_vl"], batch_size=2, image_cache_mb=0)
    assert {n: r.text for n, r in answers(model, same).items()} == {n: r.text for n, r in answers(off, same).items()}
    assert model.describe()["pictures_processed_once"] >= 3
    assert off.describe()["pictures_processed_once"] is None


@pytest.mark.parametrize(("family", "tokens"), [("qwen2_vl", True), ("llava", False), ("idefics3", False)])
def test_what_the_processor_made_of_each_picture_is_told(tiny_folders, family, tokens):
    model = build(tiny_folders[family], batch_size=2)
    asked = [ask(0, "What?", [picture(64, 48), picture(30, 60, 1)]), ask(1, "What?", [picture(64, 48)])]
    found = answers(model, asked)
    ids = model.loaded.model.config.image_token_id
    for number, pictures in ((0, 2), (1, 1)):
        sight = found[number].sight
        prompt = model._lookahead.encode_prepared([model.prepare(asked[number]).payload])["input_ids"]
        assert sight.tokens == int((prompt == ids).sum()) and len(sight.sizes) == pictures
        assert (sum(sight.tokens_of_each) == sight.tokens) is tokens


def test_a_processors_other_defaults_are_seen(tiny_folders, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(tiny_folders["qwen2_vl"], folder)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**settings, "max_pixels": 1024}))
    asked = [ask(0, "What?", [picture(64, 48)])]
    old, new = (answers(build(one), asked)[0].sight for one in (tiny_folders["qwen2_vl"], folder))
    assert old.sizes != new.sizes and old.tokens > new.tokens
