import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples.build_tiny_model import ARCHITECTURES, build_tiny_vlm
from lmms_eval.errors import UnknownNameError
from tests.cases import for_each

ROOT = Path(__file__).parents[2]


@for_each("architecture", ARCHITECTURES)
def test_small_and_the_same_for_a_seed(tmp_path, architecture):
    from safetensors.torch import load_file

    first = build_tiny_vlm(tmp_path / "first", architecture=architecture)
    again = build_tiny_vlm(tmp_path / "again", architecture=architecture)
    other = build_tiny_vlm(tmp_path / "other", architecture=architecture, seed=1)
    assert sum(file.stat().st_size for file in first.iterdir()) < 1_000_000
    for name in ("config.json", "tokenizer.json", "preprocessor_config.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    weights, same, different = (load_file(folder / "model.safetensors") for folder in (first, again, other))
    assert all(weights[name].equal(same[name]) for name in weights)
    assert any(not weights[name].equal(different[name]) for name in weights)


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    import torch

    state = torch.random.get_rng_state()
    build_tiny_vlm(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_unknown_architecture(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean idefics3"):
        build_tiny_vlm(tmp_path, architecture="idefics")


def test_example_script_builds_a_model_that_answers_fast(tmp_path):
    import torch

    from tests.models.hf.support import answers, ask, build, picture

    folder = tmp_path / "model"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "build_tiny_model.py"), str(folder)],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout
    torch.set_num_threads(1)
    model = build(folder)
    question = ask(0, "What is it?", [picture(60, 40)])
    assert answers(model, [question])[0].text.isprintable()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        answers(model, [question])
        times.append(time.perf_counter() - start)
    assert min(times) < 0.5, "16 tokens; about 0.03 s on an idle core"
