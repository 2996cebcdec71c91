import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.chat_form.checkpoints import InternVL, MiniCPM
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.registry import ModelRegistry
from tests.cases import for_each
from tests.models.families.build import BUILDERS

from . import folders
from .support import make

ROOT = Path(__file__).parents[3]


@for_each("name", ["internvl", "internvl2", "internvl3", "internvl3_5", "internvideo2_5"])
def test_names_of_the_first_form(name):
    assert ModelRegistry().resolve(name).load() is InternVL


@for_each("name", ["minicpm_v", "minicpm_o"])
def test_names_of_the_second_form(name):
    assert ModelRegistry().resolve(name).load() is MiniCPM


def test_arguments_that_users_of_the_family_type(folder_of):
    model = make(
        "internvl3", folder_of("internvl"), num_frame=5, max_num=6, total_max_num="64", device_map="auto",
        torch_dtype="torch.float32", modality="video", trust_remote_code="True", use_flash_attention_2=False,
    )  # fmt: skip
    options = model.options
    assert (options.max_num_frames, options.dtype) == (5, "float32")
    assert options.extra == {"max_num": 6, "total_max_num": 64}
    assert make("minicpm_v", folder_of("minicpm_v"), max_frames_num=7).options.max_num_frames == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_nmu": 3}, "did you mean max_num"),
        ({"max_num": 0}, "max_num=0 is not valid"),
        ({"chat_template": "x"}, "'chat_template'"),
        ({"torch_compile": True}, "'torch_compile'"),
    ],
)
def test_unknown_and_meaningless_arguments(folder_of, arguments, said):
    with pytest.raises(ModelError, match=said):
        make("internvl", folder_of("internvl"), **arguments)


def test_code_is_not_run_unless_it_is_allowed(tmp_path):
    folder = folders.write(tmp_path / "loud", "internvl", "raise SystemExit('was run')\n")
    registry = ModelRegistry()
    with pytest.raises(ModelError, match="ships code of its own, which is not run unless you give --trust_remote_code"):
        registry.build("internvl", f"pretrained={folder}", BuildOptions(device="cpu"))
    options = BuildOptions(device="cpu", trust_remote_code=True)
    with pytest.raises(ModelError, match="--trust_remote_code"):
        registry.build("internvl", f"pretrained={folder},trust_remote_code=False", options)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_package_at_all\n", "cannot be loaded by its own code: .*no_such_package_at_all"),
        ("1 / 0\n", "cannot be loaded by its own code: ZeroDivisionError"),
        (folders.INTERNVL.replace("def chat(", "def talk("), "has no method chat"),
    ],
)
def test_code_that_does_not_work(tmp_path, modules_cache, code, said):
    folder = folders.write(tmp_path / f"broken{len(code)}", "internvl", code)
    with pytest.raises(ModelError, match=said):
        make("internvl", folder)


def test_another_form_is_told(folder_of):
    with pytest.raises(ModelError, match=r"internvl: chat of Model .* takes image, msgs, .*: use --model minicpm_v"):
        make("internvl", folder_of("minicpm_v"))
    with pytest.raises(ModelError, match=r"minicpm_v: .* use --model internvl"):
        make("minicpm_v", folder_of("internvl"))
    code = folders.INTERNVL.replace("def chat(self, tokenizer, pixel_values", "def chat(self, tokenizer, pixels")
    folder = folders.write(folder_of("internvl").parent / "neither", "internvl", code)
    with pytest.raises(ModelError, match="a class of your own can ask it as a plugin"):
        make("internvl", folder)


def test_checkpoints_in_the_form_of_transformers_are_told_their_wrapper(tmp_path):
    native = BUILDERS["internvl_hf"](tmp_path / "internvl")
    with pytest.raises(ModelError, match="'internvl' without code of its own: --model internvl_hf runs it"):
        make("internvl3", native)
    other = BUILDERS["qwen2_vl"](tmp_path / "qwen")
    with pytest.raises(ModelError, match="'qwen2_vl' without code of its own: --model hf runs it"):
        make("minicpm_v", other)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ModelError, match="does not exist"):
        make("internvl", tmp_path / "none")
    with pytest.raises(ModelError, match="lacks the model's configuration"):
        make("internvl", tmp_path)


def test_absent_weights_are_told(tmp_path, modules_cache, caplog):
    code = folders.INTERNVL.replace("self.batches = []", "self.batches = []; self.more = nn.Linear(2, 2)")
    folder = folders.write(tmp_path / "partial", "internvl", code)
    with caplog.at_level(logging.WARNING):
        make("internvl", folder)
    assert "lacks 2 weights of its model (more.bias, more.weight" in caplog.text


def test_several_processes_do_not_spread_over_the_same_gpus(folder_of, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with pytest.raises(ModelError, match="device_map=auto spreads one model over all GPUs"):
        make("internvl", folder_of("internvl"), device_map="auto")


def test_layers_are_placed_by_the_authors_rule_on_several_gpus(monkeypatch):
    options = HFOptions.from_arguments({"pretrained": "x", "device_map": "auto"}, InternVL.profile)
    config = {"llm_config": {"num_hidden_layers": 4}}
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    place = InternVL.load_options(options, config, None).device_map
    assert place["vision_model"] == place["language_model.model.layers.3"] == 0
    assert place["language_model.model.layers.2"] == 1
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert InternVL.load_options(options, config, "cuda:0").device_map == {"": "cuda:0"}


def test_attention_is_passed_on_in_each_forms_way(folder_of):
    assert make("internvl", folder_of("internvl")).form.model.use_flash_attn is False
    flash = HFOptions.from_arguments({"pretrained": "x", "use_flash_attention_2": True}, InternVL.profile)
    assert InternVL.load_options(flash, {}, None).flash_attention is True
    assert MiniCPM.load_options(flash, {}, None).arguments == {"attn_implementation": "flash_attention_2"}


def test_identity_holds_the_code_and_what_is_described_can_be_stored(folder_of):
    model = make("internvl", folder_of("internvl"), system_prompt="Hi")
    identity = model.identity()
    assert {"modeling_stub.py", "model.safetensors"} <= {stamp["name"] for stamp in identity["files"]}
    assert identity["system_prompt"] != make("internvl", folder_of("internvl")).identity()["system_prompt"]
    assert json.dumps([dict(identity), dict(model.describe())])
    assert model.describe()["parameters"] == 9
    model.close()


def test_nothing_heavy_is_imported_by_the_module():
    code = (
        "import sys; import lmms_eval.models.chat_form.checkpoints; "
        "sys.exit(' '.join({'torch', 'transformers', 'PIL', 'av'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )
    assert (done.stderr.strip(), done.returncode) == ("", 1)
