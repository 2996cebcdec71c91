"""Base classes and helpers that this version leaves out are named in the one line that a person sees."""

from __future__ import annotations

import pytest

from lmms_eval.cli.main import main
from lmms_eval.utils.installed import error_text
from tests.cases import for_each
from tests.compat.plugins.kit import Plugins

LEFT_OUT = [
    "lmms_eval.models.simple.gemini.Gemini",
    "lmms_eval.models.simple.litellm._LiteLLMClientShim",
    "lmms_eval.models.simple.llava_onevision1_5.Llava_OneVision1_5",
    "lmms_eval.models.simple.internvl3.InternVL3",
    "lmms_eval.models.simple.phi4_multimodal.Phi4",
    "lmms_eval.models.simple.qwen2_5_omni.Qwen2_5_Omni",
    "lmms_eval.models.simple.qwen3_omni.Qwen3_Omni",
    "lmms_eval.models.simple.minicpm_o.MiniCPM_O",
    "lmms_eval.models.simple.omnivinci.OmniVinci",
    "lmms_eval.models.simple.baichuan_omni.BaichuanOmni",
    "lmms_eval.models.simple.cambrians.CambrianS",
    "lmms_eval.models.simple.qwen_image_edit.QwenImageEdit",
    "lmms_eval.models.simple.diffusers_wm_base.Base",
    "lmms_eval.models.aurora_xtuner.model.AuroraModel",
    "lmms_eval.models.mplug_owl_video.processing.Processor",
    "lmms_eval.models.video_chatgpt.inference.infer",
    "lmms_eval.models.model_utils.efficiency_metrics.summarize",
    "lmms_eval.models.model_utils.parallel.ParallelPlan",
    "lmms_eval.models.model_utils.qwen.qwen_generate_utils.make_context",
    "lmms_eval.models.model_utils.thyme.sandbox.run",
    "lmms_eval.models.model_utils.load_video.read_video_pyav_base64",
    "lmms_eval.utils.load_yaml_config",
]
PLUGIN = "from {module} import {name}\n\n\nclass Own({name}):\n    pass\n"


@for_each("path", LEFT_OUT)
def test_the_import_is_told_in_one_line(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {name}", {})
    line = error_text(caught.value)
    assert "\n" not in line and "pip install" not in line
    assert "is not part of this version of lmms_eval" in line and "needs a package lmms-eval 0.7.x that has it" in line
    absent = line.partition(": ")[2].partition(" ")[0]
    assert path.startswith(absent) and absent.count(".") >= 2


def test_a_plugin_over_one_of_them_ends_with_that_line(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    plugins.write(PLUGIN.format(module="lmms_eval.models.simple.internvl3", name="InternVL3"))
    code = main(["--model", "own", "--tasks", "mmmu_val"])
    frame, line = capsys.readouterr().err.strip().splitlines()
    assert "own.py:1, in <module>:" in frame and frame.endswith(
        "from lmms_eval.models.simple.internvl3 import InternVL3"
    )
    assert code in (1, 2)
    assert "model 'own' (own_plugin.models.own.Own) cannot be imported: ModuleNotFoundError: " in line
    assert "lmms_eval.models.simple.internvl3 is not part of this version of lmms_eval" in line
