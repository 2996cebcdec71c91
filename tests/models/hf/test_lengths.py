import pytest

from lmms_eval.models.hf.inputs import Lengths
from lmms_eval.models.hf.load import load
from lmms_eval.models.hf.options import HFOptions

from .support import picture


@pytest.mark.parametrize("size", [(48, 160), (320, 240), (1024, 768)])
@pytest.mark.parametrize("family", ["qwen2_vl", "llava"])
def test_a_picture_counts_as_the_processor_will_place_it(tiny_folders, family, size):
    processor = load(HFOptions(str(tiny_folders[family]), device="cpu")).processor
    mark = "<|image_pad|>" if family == "qwen2_vl" else "<image>"
    ids = processor(text=[mark], images=[[picture(*size)]], return_tensors="pt")["input_ids"]
    placed = int((ids == processor.tokenizer.convert_tokens_to_ids(mark)).sum())
    assert Lengths(processor, {}).tokens("", [size]) == placed
    assert Lengths(processor, {}).tokens("", [size] * 3) == 3 * placed


class Refusing:
    def __init__(self):
        self.asked = 0

    def _get_num_multimodal_tokens(self, image_sizes):
        self.asked += 1
        raise TypeError("another interface")


def test_pixels_are_counted_where_the_processor_cannot_tell():
    refusing = Refusing()
    for lengths in (Lengths(object(), {}), Lengths(refusing, {})):
        assert lengths.tokens("x" * 35, [(560, 560), (28, 28)]) == 10 + 400 + 64
        assert lengths.tokens("", [], seconds=2.0) == 50
    assert refusing.asked == 1, "not asked again"


def test_sizes_that_are_nearly_alike_are_asked_about_once():
    asked = []

    class Counting:
        def _get_num_multimodal_tokens(self, image_sizes):
            asked.append(image_sizes)
            return type("Counts", (), {"num_image_tokens": [7]})

    assert Lengths(Counting(), {}).tokens("", [(313, 240), (320, 225), (320, 241)]) == 21
    assert asked == [[(240, 320)], [(256, 320)]]
