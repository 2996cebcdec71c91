"""Both kinds of checkpoint from folders with random weights: they load, tile, chat, and nothing they say is a score."""

import json

import pytest
import torch

from lmms_eval.errors import ModelError
from lmms_eval.judges import JudgeOptions, ask, open_judge
from lmms_eval.judges.internvl.loading import usable_dtype
from lmms_eval.media import header
from lmms_eval.models.chat_form.internvl import choose_grid
from lmms_eval.tasks.mmie.judge_prompts import built_in
from lmms_eval.tasks.mmie.judge_questions import judge_question
from lmms_eval.tasks.mmie.view import View, ViewedPicture

from . import checkpoint


def view(pictures):
    return View(tuple(piece for path in pictures for piece in ("Image: ", ViewedPicture(path), "\n")), ("an answer\n",))


def questions(pictures):
    return [
        judge_question(view(shown), category, "ref", built_in())
        for shown, category in ((pictures, "SA"), (pictures[:1], "MSR"), ([], "PBL"))
    ]


def test_a_checkpoint_with_its_own_code(remote_folder, pictures):
    judge = open_judge(JudgeOptions(f"internvl:{remote_folder}", None, {"trust_remote_code": True}, "cpu"))
    verdicts = ask(judge, questions(pictures))
    assert [verdict.error for verdict in verdicts] == [None] * 3
    assert not any(verdict.accepted for verdict in verdicts)
    headers = [header(path) for path in pictures]
    tiles = [choose_grid(found.width, found.height).tiles_with_thumbnail for found in headers]
    assert verdicts[0].text.endswith(f"[3 {sum(tiles)} False]")
    assert verdicts[1].text.endswith(f"[1 {tiles[0]} False]")
    assert verdicts[2].text.endswith("[0 0 False]")
    assert ask(judge, questions(pictures))[0].text == verdicts[0].text
    assert judge.identity()["identity"]["dtype"] == "torch.bfloat16"
    assert json.dumps(judge.identity())
    model = judge.model.form.model
    assert model.use_flash_attn is False
    assert not model.training


def test_its_code_is_not_run_unless_asked_for(tmp_path):
    folder = checkpoint.write(tmp_path / "loud", "raise SystemExit('was run')\n")
    with pytest.raises(ModelError, match="--trust_remote_code"):
        open_judge(JudgeOptions(f"internvl:{folder}", None, {}, "cpu"))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_package_at_all\n", "no_such_package_at_all"),
        (checkpoint.CODE.replace("def chat(", "def talk("), "has no method chat"),
    ],
)
def test_code_that_does_not_work(tmp_path, modules_cache, code, said):
    folder = checkpoint.write(tmp_path / f"broken{len(code)}", code)
    with pytest.raises(ModelError, match=said):
        open_judge(JudgeOptions(f"internvl:{folder}", None, {"trust_remote_code": True}, "cpu"))


def test_transformers_own_form(native_folder, pictures):
    judge = open_judge(JudgeOptions(f"internvl:{native_folder}", None, {"dtype": "float32"}, "cpu"))
    asked = questions(pictures)
    for question in asked:
        question.generation["max_new_tokens"] = 8
    verdicts = ask(judge, asked)
    assert [verdict.error for verdict in verdicts] == [None] * 3
    assert not any(verdict.accepted for verdict in verdicts)
    assert judge.model.options.extra == {"crop_to_patches": True, "min_patches": 1, "max_patches": 12}


def test_transformers_tiles_as_the_authors_do(native_folder):
    judge = open_judge(JudgeOptions(f"internvl:{native_folder}", None, {"dtype": "float32"}, "cpu"))
    processor = judge.model.loaded.processor.image_processor
    side = processor.size["height"]
    settings = {"min_patches": 1, "max_patches": 12, "crop_to_patches": True}
    for width in (1, 5, 20, 31, 32, 33, 64, 100, 333):
        for height in (1, 7, 32, 50, 64, 97, 200):
            found = processor.get_number_of_image_patches(height, width, settings)
            assert found == choose_grid(width, height, 12, side).tiles_with_thumbnail, (width, height)


def test_other_models_are_referred_to_their_own_back_end(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "qwen2_vl"}')
    with pytest.raises(ModelError, match="name another model as hf:"):
        open_judge(JudgeOptions(f"internvl:{tmp_path}", None, {}, "cpu"))
    with pytest.raises(ModelError, match="cannot be read"):
        open_judge(JudgeOptions(f"internvl:{tmp_path}/none", None, {}, "cpu"))


def test_spreading_is_for_gpus(remote_folder, native_folder):
    arguments = {"trust_remote_code": True, "spread": True}
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="there is no GPU"):
            open_judge(JudgeOptions(f"internvl:{remote_folder}", None, arguments, "cpu"))
    with pytest.raises(ModelError, match="in the format of transformers"):
        open_judge(JudgeOptions(f"internvl:{native_folder}", None, {"spread": True}, "cpu"))


def test_the_type_falls_back_where_there_is_no_bfloat16(monkeypatch):
    assert usable_dtype("cpu") == torch.bfloat16
    assert usable_dtype("cpu", "float16") == torch.float16

    def refuse(*_):
        raise RuntimeError("not implemented for 'BFloat16'")

    monkeypatch.setattr(torch.nn.functional, "conv2d", refuse)
    assert usable_dtype("cpu") == torch.float32
