import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.registry import ModelRegistry

from ..hf.support import answers, ask, picture
from .build import BUILDERS
from .conformance import FRAMES, make_model, watch

ROOT = Path(__file__).parents[3]
FAMILY_ARGUMENTS = {
    "qwen2_vl": "min_pixels=256,max_pixels=2048,max_num_frames=3,fps=2,system_prompt=Hi,use_flash_attention_2=false",
    "qwen2_5_vl": "device_map=cpu,attn_implementation=eager,min_pixels=256,max_pixels=2048,max_num_frames=3,fps=1,"
    "system_prompt=Hi,reasoning_prompt=Think.,interleave_visuals=true",
    "qwen3_vl": "attn_implementation=sdpa,min_pixels=256,max_pixels=2048,max_num_frames=3,fps=1,"
    "interleave_visuals=false",
    "llava_onevision": "max_frames_num=4,device_map=cpu,attn_implementation=sdpa",
    "llava_hf": "dtype=float32,device_map=cpu,max_frames=3,trust_remote_code=false",
    "internvl_hf": "dtype=float32,device_map=cpu,max_frames=3,max_patches=2",
    "idefics3": "max_frames=4,do_image_splitting=false",
    "gemma3": "attn_implementation=eager,max_num_frames=2,do_pan_and_scan=false",
    "phi4_multimodal": "max_frames_num=4,torch_dtype=float32",
    "qwen2_audio": "torch_dtype=float32,system_prompt=Hi",
    "whisper": "language=en,task=transcribe,torch_dtype=float32",
    "hf_text": "dtype=float32,system_prompt=Hi,reasoning_prompt=Think.",
}


def classes():
    return {name: ModelRegistry().resolve(name).load() for name in BUILDERS}


@pytest.mark.parametrize("name", FAMILY_ARGUMENTS)
def test_argument_names_that_users_type(folder_of, name):
    model, found = ModelRegistry().build(name, f"pretrained={folder_of(name)},device=cpu,{FAMILY_ARGUMENTS[name]}")
    assert type(model) is found.load()
    given = dict(item.split("=") for item in FAMILY_ARGUMENTS[name].split(","))
    frames = [given[key] for key in ("max_frames", "max_frames_num", "max_num_frames") if key in given]
    assert [str(model.options.max_num_frames)] == (frames or ["32"])
    for key in ("system_prompt", "reasoning_prompt", "attn_implementation"):
        assert getattr(model.options, key) == given.get(key)


def test_flash_attention_is_passed_on():
    profile = classes()["qwen2_vl"].profile
    options = HFOptions.from_arguments({"pretrained": "x", "use_flash_attention_2": "True"}, profile)
    assert options.attn_implementation == "flash_attention_2"
    options = HFOptions.from_arguments({"pretrained": "x", "use_flash_attention_2": False}, profile)
    assert options.attn_implementation is None
    with pytest.raises(ModelError, match="max_frames=3 and max_num_frames=4 contradict each other"):
        HFOptions.from_arguments({"pretrained": "x", "max_frames": 3, "max_num_frames": 4}, profile)


def test_unknown_and_meaningless_arguments():
    known = classes()
    with pytest.raises(ModelError, match=r"gemma3: unknown model argument 'do_pan_and_scn'; did you mean 'do_pan"):
        known["gemma3"](pretrained="x", do_pan_and_scn=True)
    with pytest.raises(ModelError, match="hf_text: unknown model argument 'max_pixels'"):
        known["hf_text"](pretrained="x", max_pixels=3)
    with pytest.raises(ModelError, match="whisper: unknown model argument 'system_prompt'"):
        known["whisper"](pretrained="x", system_prompt="Hi")
    with pytest.raises(ModelError, match="internvl_hf: max_patches=0 is not valid"):
        known["internvl_hf"](pretrained="x", max_patches=0)
    assert "max_patches" in inspect.signature(known["internvl_hf"]).parameters
    assert "max_patches" not in inspect.signature(known["gemma3"]).parameters
    assert "extra" not in inspect.signature(known["gemma3"]).parameters


def test_the_checkpoint_of_another_family_is_refused(folder_of):
    with pytest.raises(ModelError, match=r"qwen2_vl: .* holds a model of type 'llava', not qwen2_vl; use the wrapper"):
        make_model("qwen2_vl", folder_of("llava_hf"))
    with pytest.raises(ModelError, match="not a causal language model"):
        make_model("hf_text", folder_of("qwen2_audio"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "llava", "architectures": ["LlavaLlamaForCausalLM"]}, r"its authors \(LlavaLlamaForCausalLM\)"),
        ({"model_type": "llava_qwen"}, "a type that transformers does not support"),
    ],
)
def test_a_checkpoint_in_the_form_of_its_authors_is_told_from_a_converted_one(tmp_path, folder_of, config, message):
    folder = tmp_path / "theirs"
    shutil.copytree(folder_of("llava_hf"), folder)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=rf"llava_hf: .*{message}.* as llava-hf/llava-1.5-7b-hf is"):
        make_model("llava", folder)


def test_defaults_that_the_users_of_a_family_know():
    profile = classes()["qwen3_vl"].profile
    options = HFOptions.from_arguments({}, profile)
    assert (options.pretrained, options.max_num_frames) == ("Qwen/Qwen3-VL-4B-Instruct", 32)
    assert (options.min_pixels, options.max_pixels) == (200704, 1605632)
    assert HFOptions.from_arguments({"pretrained": "x", "max_pixels": 50176}, profile).min_pixels is None
    assert HFOptions.from_arguments({"pretrained": "x", "min_pixels": 3211264}, profile).max_pixels is None
    assert inspect.signature(classes()["qwen3_vl"]).parameters["max_pixels"].default == 1605632
    assert HFOptions.from_arguments({}, FAMILIES["video_llava"]).max_num_frames == 8
    assert HFOptions.from_arguments({"max_frames": 4}, FAMILIES["video_llava"]).max_num_frames == 4
    with pytest.raises(ModelError, match="hf_text: give the model folder or hub name"):
        classes()["hf_text"]()


def test_defaults_of_the_family_are_recorded(folder_of):
    model = make_model("qwen2_vl", folder_of("qwen2_vl"), max_pixels=4096)
    assert model.identity()["family_defaults"] == {"pretrained": "Qwen/Qwen2-VL-7B-Instruct"}
    assert (model.describe()["max_pixels"], model.describe()["max_num_frames"]) == (4096, 32)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("internvl_hf", {"crop_to_patches": False}), ("idefics3", {"do_image_splitting": False}),
        ("gemma3", {"do_pan_and_scan": True}),
    ],
)  # fmt: skip
def test_options_of_the_image_processor_change_the_prompt(folder_of, name, argument):
    wide = [ask(0, "What?", [picture(1200, 300)])]
    plain, changed = (answers(make_model(name, folder_of(name), **more), wide)[0] for more in ({}, argument))
    assert plain.error is None and changed.error is None
    assert plain.usage.input_tokens != changed.usage.input_tokens


def test_fewer_frames_make_a_shorter_prompt(folder_of):
    lengths = []
    for count in (2, 5):
        model = make_model("llava_onevision", folder_of("llava_onevision"), max_frames_num=count)
        lengths.append(answers(model, [watch(0, "What?", FRAMES)])[0].usage.input_tokens)
    assert lengths[0] < lengths[1]


def test_nothing_heavy_is_imported_by_the_wrappers():
    modules = "table, whisper"
    heavy = "{'torch', 'transformers', 'PIL', 'av'}"
    code = (
        f"import sys; from lmms_eval.models.families import {modules}; sys.exit(' '.join({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )
    assert (done.stderr.strip(), done.returncode) == ("", 1)
