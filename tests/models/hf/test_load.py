import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from transformers.utils import is_torchvision_available

from lmms_eval.errors import ModelError
from lmms_eval.models.hf import load as load_module
from lmms_eval.models.hf.load import load, resolve_device
from lmms_eval.models.hf.options import HFOptions


def options(folder, **arguments):
    return HFOptions.from_arguments({"pretrained": str(folder), "device": "cpu", **arguments})


def edited(folder, target, file="config.json", change=lambda data: None):
    """A copy of a model folder whose JSON ``file`` is changed."""
    shutil.copytree(folder, target)
    data = json.loads((target / file).read_text())
    change(data)
    (target / file).write_text(json.dumps(data))
    return target


@pytest.mark.parametrize("name", ["idefics3", "qwen2_vl", "llava"])
def test_every_family_loads_through_the_normal_path(tiny_folders, name):
    loaded = load(options(tiny_folders[name]))
    assert loaded.tokenizer.padding_side == "left"
    assert loaded.dtype == "float32"
    assert loaded.device == torch.device("cpu")
    assert not loaded.model.training
    lacks_video = name == "qwen2_vl" and not is_torchvision_available()
    assert loaded.absent_parts == ({"video_processor"} if lacks_video else set())
    assert loaded.processor.chat_template


def test_dtype_attention_and_device_map(tiny):
    loaded = load(options(tiny, dtype="bfloat16", attn_implementation="eager", device_map={"": "cpu"}))
    assert loaded.dtype == "bfloat16"
    assert loaded.model.config._attn_implementation == "eager"
    assert loaded.device == torch.device("cpu")


def test_pixel_limits_of_the_family(tiny_folders):
    loaded = load(options(tiny_folders["qwen2_vl"], max_pixels=32 * 64))
    assert loaded.native_pixels
    image = torch.zeros(3, 200, 200).numpy()
    grid = loaded.processor.image_processor(images=[image], return_tensors="pt")["image_grid_thw"]
    assert int(grid.prod()) * 8 * 8 <= 32 * 64
    assert not load(options(tiny_folders["llava"], max_pixels=32 * 64)).native_pixels


@pytest.mark.parametrize(
    ("part", "files"),
    [
        ("weights", ["model.safetensors"]), ("configuration", ["config.json"]), ("a tokenizer", ["tokenizer.json"]),
        ("an image processor", ["preprocessor_config.json", "processor_config.json"]),
    ],
)  # fmt: skip
def test_an_incomplete_folder_is_named_with_what_it_lacks(tiny, tmp_path, part, files):
    broken = tmp_path / "model"
    shutil.copytree(tiny, broken)
    for file in files:
        (broken / file).unlink()
    with pytest.raises(ModelError) as caught:
        load(options(broken))
    assert str(broken) in str(caught.value)
    assert part in str(caught.value)
    assert ("--model hf_text" in str(caught.value)) == (part == "an image processor")


def test_cut_weights(tiny, tmp_path):
    broken = tmp_path / "model"
    shutil.copytree(tiny, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"the model of .* cannot be loaded: SafetensorError"):
        load(options(broken))


def test_weights_that_the_checkpoint_lacks_are_not_made_up(tiny, tmp_path):
    def add_layer(data):
        data["text_config"]["num_hidden_layers"] = 3

    broken = edited(tiny, tmp_path / "model", change=add_layer)
    with pytest.raises(ModelError, match=r"lacks 9 of the weights .*layers\.2\..* they would be random"):
        load(options(broken))


def test_other_architectures_are_refused(tiny, tmp_path):
    def change(data):
        data["model_type"] = "bert"

    with pytest.raises(ModelError, match="not an image-text-to-text architecture"):
        load(options(edited(tiny, tmp_path / "model", change=change)))


def test_remote_code_is_refused_without_asking(tiny, tmp_path):
    def change(data):
        data.update(model_type="strange", auto_map={"AutoConfig": "code.C", "AutoModelForImageTextToText": "code.M"})

    broken = edited(tiny, tmp_path / "model", change=change)
    (broken / "code.py").write_text("raise SystemExit('remote code ran')")
    with pytest.raises(ModelError, match="trust_remote_code=true"):
        load(options(broken))


def test_without_chat_template(tiny, tmp_path):
    broken = tmp_path / "model"
    shutil.copytree(tiny, broken)
    (broken / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=r"no chat template .* give one with chat_template=FILE"):
        load(options(broken))
    assert load(options(broken, chat_template="{{ messages }}")).model


def test_the_hub_out_of_reach_is_explained():
    with pytest.raises(ModelError, match="someone/nothing is not a folder here, and the hub cannot be reached"):
        load(options("someone/nothing"))


def test_image_processor_that_needs_torchvision(tiny_folders, tmp_path, monkeypatch):
    import transformers

    def refuse(*args, **kwargs):
        raise ImportError("X requires the Torchvision library but it was not found in your environment.")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", refuse)
    monkeypatch.setattr(transformers.AutoImageProcessor, "from_pretrained", refuse)
    with pytest.raises(ModelError, match=r"image processor of .* truly needs torchvision"):
        load(options(tiny_folders["qwen2_vl"]))


def test_a_missing_package_is_named(tiny, monkeypatch):
    import transformers

    def refuse(*args, **kwargs):
        raise ImportError("XProcessor requires the num2words library")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", refuse)
    with pytest.raises(ModelError, match=r"needs a package that is not installed: .*num2words"):
        load(options(tiny))


def test_devices(monkeypatch):
    assert resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(ModelError, match="not a device of torch"):
        resolve_device("toaster")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match=r"torch .* finds no GPU"):
        resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert resolve_device("cuda") == torch.device("cuda", 3)
    assert resolve_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("device_map", ["auto", "balanced"])
def test_a_model_over_all_gpus_is_for_one_process(tiny, monkeypatch, device_map):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, value in {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ModelError, match=rf"device_map={device_map} .* each of the 4 processes .* start one process"):
        load(options(tiny, device_map=device_map))


@pytest.mark.parametrize(
    "told", [{"LOCAL_WORLD_SIZE": "1"}, {"CUDA_VISIBLE_DEVICES": "2,3"}], ids=["one per machine", "GPUs of its own"]
)
def test_a_model_over_all_gpus_that_the_process_has_for_itself(tiny, monkeypatch, told):
    for name, value in {"WORLD_SIZE": "4", "LOCAL_RANK": "1", **told}.items():
        monkeypatch.setenv(name, value)
    assert load(options(tiny, device_map="auto")).device.type == torch.get_default_device().type


def test_a_model_of_whole_videos_alone_is_refused_as_that(tiny, monkeypatch):
    video_llm = SimpleNamespace(tokenizer=object(), video_processor=object())
    monkeypatch.setattr(load_module, "_read", lambda options, profile: (video_llm, frozenset()))
    with pytest.raises(ModelError, match=r"has no image_processor: it takes whole videos only"):
        load(HFOptions(str(tiny), device="cpu"))
    video_llm.video_processor = None
    with pytest.raises(ModelError, match=r"has no image_processor: it is not an image-text-to-text"):
        load(HFOptions(str(tiny), device="cpu"))
