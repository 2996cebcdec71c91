import inspect

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import text_or_file
from lmms_eval.models.hf.batching import AUTO_BATCH_SIZE
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import HFOptions
from tests.cases import for_each


def test_values_are_converted():
    options = HFOptions.from_arguments(
        {"pretrained": "x", "batch_size": "4", "dtype": "torch.bfloat16", "fps": "2", "trust_remote_code": "False",
         "use_cache": 0, "max_pixels": 1e6, "revision": None}
    )  # fmt: skip
    assert (options.batch_size, options.dtype, options.fps) == (4, "bfloat16", 2.0)
    assert options.trust_remote_code is False
    assert options.use_cache is False
    assert options.max_pixels == 1_000_000
    assert options.revision is None


@for_each("value", ["auto", "auto:4"])
def test_auto_batch_size_is_a_number(value):
    assert HFOptions.from_arguments({"pretrained": "x", "batch_size": value}).batch_size == AUTO_BATCH_SIZE


def test_remote_code_is_off_by_default():
    assert HFOptions.from_arguments({"pretrained": "x"}).trust_remote_code is False


def test_unknown_argument_names_the_nearest():
    with pytest.raises(ModelError, match="'truncaton'; did you mean 'truncation'"):
        HFOptions.from_arguments({"pretrained": "x", "truncaton": True})
    with pytest.raises(ModelError, match=r"unknown model argument 'atn_implementation'; did you mean 'attn_impl"):
        HFOptions.from_arguments({"pretrained": "x", "atn_implementation": "sdpa"})


@for_each(
    ("name", "value"),
    [
        ("batch_size", 0), ("batch_size", "2.5"), ("batch_size", True), ("dtype", "int8"), ("fps", -1),
        ("trust_remote_code", "maybe"), ("max_pixels", "many"),
    ],
)  # fmt: skip
def test_invalid_value_names_argument_and_value(name, value):
    with pytest.raises(ModelError, match=f"{name}={value!r} is not valid"):
        HFOptions.from_arguments({"pretrained": "x", name: value})


def test_pretrained_is_needed_and_limits_must_agree():
    with pytest.raises(ModelError, match="pretrained=FOLDER"):
        HFOptions.from_arguments({"pretrained": " "})
    with pytest.raises(ModelError, match="min_pixels=9 is larger than max_pixels=4"):
        HFOptions.from_arguments({"pretrained": "x", "min_pixels": 9, "max_pixels": 4})


def test_class_shows_its_arguments():
    parameters = inspect.signature(HuggingFace).parameters
    assert parameters["pretrained"].default is inspect.Parameter.empty
    assert parameters["max_num_frames"].default == 32


def test_text_or_file(tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("Be brief.", encoding="utf-8")
    assert text_or_file(str(file)) == "Be brief."
    assert text_or_file("Be kind.") == "Be kind."
    assert text_or_file("line\nline") == "line\nline"
    assert text_or_file("long " * 100) == "long " * 100  # longer than a name of a file may be
    assert text_or_file(None) is None
    file.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ModelError, match=r"cannot read .*prompt\.txt"):
        text_or_file(str(file))


def test_names_of_the_familys_wrappers():
    options = HFOptions.from_arguments(
        {"pretrained": "x", "num_frames": 4, "enable_thinking": "False", "total_pixels": 9, "max_image_size": 8.0,
         "add_system_prompt": "true", "add_generation_prompt": False, "max_length": "20", "torch_dtype": "bfloat16"}
    )  # fmt: skip
    assert (options.max_num_frames, options.dtype, options.max_length) == (4, "bfloat16", 20)
    assert (options.enable_thinking, options.add_system_prompt, options.add_generation_prompt) == (False, True, False)
    assert (options.total_pixels, options.max_image_size) == (9, 8)
