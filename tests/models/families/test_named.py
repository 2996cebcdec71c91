import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers.utils import is_timm_available, is_torchvision_available

from lmms_eval.errors import ModelError
from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.registry import FAMILIES as FAMILY_NAMES
from lmms_eval.models.registry import ModelRegistry
from tests import torchvision_operators

from ..hf.support import answers, ask, picture
from .build import BUILDERS
from .conformance import make_model
from .named import NAMES, asked, build_named, questions

ROOT = Path(__file__).parents[3]
NEED_TORCHVISION = tuple(name for name in NAMES if "torchvision" in FAMILIES[name].packages)
OTHERS = tuple(name for name in NAMES if name not in NEED_TORCHVISION)


@pytest.fixture(scope="module")
def named_folder(tmp_path_factory):
    """From a name to a small checkpoint, built when it is first asked for."""
    root, built = tmp_path_factory.mktemp("named"), {}

    def get(name):
        if name not in built:
            built[name] = build_named(name, root / name)
        return built[name]

    return get


@pytest.mark.parametrize("name", OTHERS)
def test_each_name_answers_what_it_takes(named_folder, name):
    """Answers differ with the picture, the video and the sound."""
    assert asked(name, named_folder(name)) == dict.fromkeys(questions(name), "yes")


@pytest.mark.skipif(not torchvision_operators.is_there(), reason="torchvision is not installed")
def test_names_that_need_torchvision_answer_with_it():
    """Without timm all but ``plm``, which says so."""
    names = [name for name in NEED_TORCHVISION if name != "plm" or is_timm_available()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.families.named", *names],
        capture_output=True, text=True, check=False, timeout=300, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {name: said for line in done.stdout.splitlines() for name, said in json.loads(line).items()}
    assert found == {name: dict.fromkeys(questions(name), "yes") for name in names}


@pytest.mark.skipif(not torchvision_operators.is_there(), reason="torchvision is not installed")
@pytest.mark.parametrize("name", ["qwen2_5_omni", "qwen3_omni"])
def test_the_sound_of_videos_is_heard_with_their_frames(name):
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.families.omni", name],
        capture_output=True, text=True, check=False, timeout=300, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)[name]
    heard, silent = found["True"], found["False"]
    assert heard["errors"] == silent["errors"] == [None] * 5
    assert (heard["films"], silent["films"]) == ([1, 1, 0, 2, 2], [0] * 5)
    assert (heard["images"], silent["images"]) == ([0, 0, 4, 0, 0], [4, 2, 4, 8, 8])
    assert heard["seconds"] == [[2.0], [1.0], [], [2.0, 2.0], [2.0, 2.0]], "a part of a video has its part of the sound"
    assert heard["texts"][2] == silent["texts"][2], "a video without sound is shown as before"
    assert heard["texts"][0] != silent["texts"][0] and heard["tokens"][0] > heard["tokens"][1]


@pytest.mark.skipif(is_torchvision_available(), reason="torchvision is installed")
def test_the_sound_of_videos_needs_torchvision(named_folder):
    with pytest.raises(ModelError, match="use_audio_in_video=true needs torchvision: pip install torchvision"):
        make_model("qwen2_5_omni", named_folder("qwen2_5_omni"), use_audio_in_video="true")
    with pytest.raises(ModelError, match="has no argument 'use_audio_in_video'"):
        make_model("llava_hf", named_folder("qwen2_5_omni"), use_audio_in_video="true")


@pytest.mark.skipif(is_torchvision_available(), reason="torchvision is installed")
@pytest.mark.parametrize("name", NEED_TORCHVISION)
def test_names_that_need_torchvision_say_so_without_it(folder_of, name):
    with pytest.raises(ModelError, match=rf"{name} needs .*torchvision: pip install .*torchvision"):
        make_model(name, folder_of("llava_hf"))


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_family_is_refused(folder_of, name):
    with pytest.raises(
        ModelError, match=rf"{name}: .* holds a model of type 'llava', not {FAMILIES[name].model_types[0]}"
    ):
        make_model(name, folder_of("llava_hf"))


def test_only_the_part_that_writes_is_loaded_of_a_model_that_speaks(named_folder):
    for name, kind in {"qwen2_5_omni": "Qwen2_5OmniThinker", "qwen3_omni": "Qwen3OmniMoeThinker"}.items():
        model = make_model(name, named_folder(name))
        assert model.describe()["model_class"] == f"{kind}ForConditionalGeneration"
        assert "talker" not in "".join(parameter for parameter, _ in model.loaded.model.named_parameters())


def test_an_answer_of_an_encoder_and_decoder_is_whole(named_folder):
    """InstructBLIP is published with T5 and with Vicuna; only its text part says which."""
    model = make_model("instructblip", named_folder("instructblip"))
    question = "What is to be seen in this picture? " * 3
    brief, longer = (answers(model, [ask(0, question, [picture(64, 48)], max_new_tokens=n)])[0] for n in (3, 12))
    assert brief.text and longer.text.startswith(brief.text)
    assert (brief.finish_reason, brief.usage.output_tokens) == ("length", 3)


def test_one_picture_at_most_where_the_processor_finds_its_place(named_folder):
    model = make_model("instructblip", named_folder("instructblip"))
    pictures = [picture(40, 40), picture(40, 40, 1)]
    several = answers(model, [ask(0, "Which?", pictures), ask(1, "Which?", pictures[:1])])
    assert several[0].error.kind == "bad_request"
    assert several[0].error.message == "instructblip takes 1 picture(s) in a request at most, not 2"
    assert several[1].text
    assert "several pictures" not in model.describe()["cannot_answer"]
    plain = make_model("hf", named_folder("instructblip"), chat_template="none")
    assert answers(plain, [ask(1, "Which?", pictures[:1])])[1].text == several[1].text


def test_every_row_is_asked():
    assert set(FAMILIES) == {*NAMES, *BUILDERS} - {"whisper"} == set(FAMILY_NAMES)
    assert ModelRegistry().resolve("llava").manifest.model_id == "llava_hf"
    assert ModelRegistry().resolve("async_hf").manifest.model_id == "hf"
    assert ModelRegistry().resolve("async_hf_model").manifest.model_id == "hf"
